# What the probe runs inside: one Job for each request, made, run and finished by the helper thread that has the GIL.
# Only Job.run can be interrupted.  C puts CODES (of errors), TEXT_MAX, STAY (what outlives a detach) and PARTS here,
# the sources of the other files, which are executed in this namespace when first needed: no evaluation keeps the GIL
# longer than it has to.  RUN executes a source statement by statement, and lets others have the GIL between.
import _thread
import builtins
import os
import sys

AUTO, SINGLE, COMPLETE = range(3)
RAISED, INCOMPLETE, NONE, INTERRUPTED = 1, 2, 4, 8
OWN = "<probing "
NAME_SPACES_MAX = 64
SOURCES_MAX = 64
SOURCE_KEPT_MAX = 1 << 16

name_spaces = {}
sources = {}  # of the last evaluations, for tracebacks
counter = iter(range(1, 1 << 62)).__next__


def part(name, loaded=set()):
    """Have one of PARTS in this namespace."""
    if name not in loaded:
        RUN(PARTS[name], OWN + name + ">", globals())  # noqa: F821
        loaded.add(name)


def streams_of_process():
    """The namespace of streams.py, made once for all agents: STAY has what outlives them."""
    made = STAY.get("streams")  # noqa: F821
    if made is None:
        made = {"__name__": __name__, "__builtins__": builtins}
        RUN(PARTS["streams"], OWN + "streams>", made)  # noqa: F821
    return STAY.setdefault("streams", made)  # noqa: F821


streams = streams_of_process()


def name_of(value):
    try:
        return str(type(value).__name__)
    except Exception:
        return "object"


def message(error):
    """The text of an exception, whatever its own methods do."""
    try:
        return str(error)[:1000]
    except Exception as other:
        return "<its str raised {}>".format(name_of(other))


def plain(error):
    """TYPE: MESSAGE of an exception."""
    text, name = message(error), name_of(error)
    return name + ": " + text if text else name


class Refused(Exception):
    def __init__(self, code, text):
        Exception.__init__(self, text)
        self.code = CODES[code]  # noqa: F821


def forbidden():
    """Whether the program's user switched remote debugging off, as CPython 3.14 reads it."""
    enabled = getattr(sys, "is_remote_debug_enabled", None)
    return bool("disable-remote-debug" in getattr(sys, "_xoptions", ()) or os.environ.get("PYTHON_DISABLE_REMOTE_DEBUG")
                or (enabled is not None and not enabled()))


def space_of(name):
    if name is None:
        return sys.modules["__main__"].__dict__
    space = name_spaces.get(name)
    if space is None:
        space = {"__name__": name or "__probing__", "__builtins__": builtins}
        if name:
            if len(name_spaces) >= NAME_SPACES_MAX:
                raise Refused("USAGE", "there are {} namespaces already".format(NAME_SPACES_MAX))
            name_spaces[name] = space
    return space


class Prepared(object):
    """The source of a job, and what is shown and kept of it."""

    def prepare(self):
        """Not in run: an interruption in the midst of an import would leave the module's lock held for ever."""
        try:
            self.codes = self.compile()
        except Exception as error:
            self.wrong = error

    def compile(self):
        """Code objects of the statements and of the last expression, each or None."""
        text = self.source.decode("utf-8")
        lines = text.lstrip("\r\n").splitlines(True)
        if lines and lines[0][:1] in " \t":
            part("statements")
            text = dedent(text)  # noqa: F821
        if len(sources) >= SOURCES_MAX:
            sources.pop(next(iter(sources)))
        sources[self.file] = text[:SOURCE_KEPT_MAX]
        if self.kind == SINGLE:
            part("statements")
            codes = compile_single(text, self.file)  # noqa: F821
            self.flags |= 0 if codes else INCOMPLETE | NONE
            return codes or (None, None)
        try:
            return None, compile(text.strip(), self.file, "eval", 0, True)
        except SyntaxError:
            part("statements")
        return compile_statements(text, self.file)  # noqa: F821

    def result(self, value):
        if value is None:
            self.flags |= NONE
            return
        self.text = self.shown(value)
        if self.keeps_last:
            self.names["_"] = value

    def shown(self, value):
        if type(value) in (bool, float) or type(value) is int and value.bit_length() < 64:
            return repr(value)
        part("show")
        return show(value, TEXT_MAX // 4)  # noqa: F821

    def display(self, value):
        """sys.displayhook of the interactive mode, for all values but the last."""
        if value is not None:
            self.send(1, self.shown(value).encode("utf-8", "backslashreplace") + b"\n")

    def store(self):
        names = declared_global(sources[self.file]) if b"global" in self.source else []  # noqa: F821
        left = self.context.store(names)
        if left:
            note = "note: assigned in a copy, the thread's own {} {} as before: {}\n".format(
                "variables" if len(left) > 1 else "variable", "stay" if len(left) > 1 else "stays", ", ".join(left))
            self.send(2, note.encode("utf-8", "backslashreplace"))


class Running(Prepared):
    """Only run can be interrupted."""

    def run(self):
        if self.code:
            return
        try:
            if self.kind == COMPLETE:
                part("complete")
                text = self.source.decode("utf-8", "replace")
                self.text = "\n".join(complete(text, [self.names]))  # noqa: F821
            else:
                self.evaluate()
        except BaseException as error:
            self.flags = RAISED | (INTERRUPTED if isinstance(error, KeyboardInterrupt) else 0)
            self.text = plain(error)  # noqa: F821
            part("statements")
            self.text = write_traceback(error, sources)  # noqa: F821

    def evaluate(self):
        if self.wrong is not None:
            raise self.wrong
        body, last = self.codes
        if self.flags & INCOMPLETE:
            return
        try:
            if body is not None:
                exec(body, self.names)
            if last is not None:
                self.result(eval(last, self.names))
            else:
                self.flags |= NONE
        finally:
            if self.context is not None:
                self.store()


class Job(Running):
    def __init__(self, send, kind, source, name_space, thread, depth, cursor):
        self.flags = 0
        self.text = ""
        self.code = 0
        self.send = send
        self.kind = kind
        self.source = source
        self.context = None
        self.entered = False
        self.codes = self.wrong = None
        try:
            if kind != COMPLETE and forbidden():
                raise Refused("PERMISSION", "remote debugging is switched off in this process "
                                            "(PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug)")
            if thread:
                part("frames")
                self.context = FrameNames(thread_frame(thread, depth))  # noqa: F821
                self.names = self.context.names
            else:
                self.names = space_of(name_space)
            self.keeps_last = bool(name_space)
            if kind == COMPLETE:
                self.source = source[:cursor]
            else:
                self.file = "<eval {}>".format(counter())
                streams["enter"](streams["Output"](send, self.display))
                self.entered = True
                self.prepare()
        except Refused as refusal:
            self.code, self.text = refusal.code, str(refusal)

    def finish(self, escaped):
        """After run, whatever became of it: (code, flags, text).  escaped: an interruption came while run wrote."""
        if escaped:
            self.flags = RAISED | INTERRUPTED
            self.text = self.text or "KeyboardInterrupt\n"
        if self.entered:
            streams["leave"]()
        threading = sys.modules.get("threading")
        if threading is not None:
            ident = _thread.get_ident()
            known = threading._active.get(ident)
            # threading makes one up for a thread that asks who it is.
            if isinstance(known, threading._DummyThread):
                threading._active.pop(ident, None)
        self.context = self.names = self.send = self.codes = self.wrong = None
        text = self.text
        if len(text) > TEXT_MAX // 4:  # noqa: F821
            part("statements")
            text = cut(text, TEXT_MAX // 4)  # noqa: F821
        return self.code, self.flags, text.encode("utf-8", "backslashreplace")


def place(ident):
    """Where a helper thread stands, for the message that it does not end."""
    part("frames")
    return where(ident)  # noqa: F821


def begin(closing):
    import atexit

    atexit.register(closing)


def crash_hooks(on):
    part("crash")
    if on:
        crash_begin()  # noqa: F821
    else:
        crash_end()  # noqa: F821


def detach(closing):
    import atexit

    if "crash_end" in globals():
        crash_end()  # noqa: F821
    atexit.unregister(closing)
    streams["detach"]()
    name_spaces.clear()
    sources.clear()
