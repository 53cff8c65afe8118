# What the probe runs inside: one Job for each request, made, run and finished by the helper thread that has the GIL.
# Only Job.run can be interrupted.
#
# C gives every file of ours one name, `probe` (space.c): run(file, namespace) executes a source of ours, by the name of its file,
# statement by statement, and lets others have the GIL between; kept is a dict that outlives a detach; codes are those of errors; text_max is the room for a result; agent is this module.
import _thread
import builtins
import os
import sys

AUTO, SINGLE, COMPLETE = range(3)
RAISED, INCOMPLETE, NONE, INTERRUPTED = 1, 2, 4, 8
OWN = "<probing "
NAME_SPACES_MAX = 64
SOURCES_MAX = 64
ROOM_OF_PROMPT = 1 << 16  # characters of a value, and of every traceback
SOURCE_KEPT_MAX = 1 << 16

name_spaces = {}
sources = {}  # of the last evaluations, for tracebacks
counter = iter(range(1, 1 << 62)).__next__


parts = {}
probe.OWN = OWN


def part(name):
    """The module of another file of this folder.  It is loaded when first needed, so that no evaluation keeps the GIL
    longer than it has to."""
    found = parts.get(name)
    if found is None:
        found = parts.setdefault(name, load(name))
    return found


def load(name):
    made = type(sys)("probing_agent_" + name)
    made.__dict__.update(__builtins__=builtins, probe=probe)
    probe.run(OWN + name + ">", made.__dict__)
    return made


# Made once for all agents of this process: CPython may use what stands in for a stream without a reference.
if "streams" not in probe.kept:
    probe.kept.setdefault("streams", load("streams"))
streams = probe.kept["streams"]


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
        self.code = probe.codes[code]


def forbidden():
    """Whether the program's user switched remote debugging off, as CPython 3.14 reads it."""
    enabled = getattr(sys, "is_remote_debug_enabled", None)
    return bool("disable-remote-debug" in getattr(sys, "_xoptions", ()) or os.environ.get("PYTHON_DISABLE_REMOTE_DEBUG")
                or (enabled is not None and not enabled()))


class Names(dict):
    """What evaluations assign, over the names of __main__, which they read: CPython asks the globals of code by their own
    __getitem__ where they are not a plain dict.  The body of a class asks its builtins so, not its globals (LOAD_NAME,
    Python/ceval.c): they are one of these, too."""

    def __missing__(self, name):
        found = sys.modules["__main__"].__dict__
        return found[name] if name in found else builtins.__dict__[name]


def space_of(name):
    if name == "__main__":
        return sys.modules["__main__"].__dict__
    space = name_spaces.get(name)
    if space is None:
        space = {"__name__": name or "__probing__"} if name is not None else Names()
        space["__builtins__"] = builtins if name is not None else Names(builtins.__dict__)
        if name is None or name:
            if len(name_spaces) >= NAME_SPACES_MAX:
                raise Refused("USAGE", "there are {} namespaces already".format(NAME_SPACES_MAX))
            space = name_spaces.setdefault(name, space)  # of two evaluations at once the first one's
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
        if self.kind != SINGLE and lines and lines[0][:1] in " \t":
            text = part("statements").dedent(text)
        for old in list(sources)[:max(0, len(sources) - SOURCES_MAX + 1)]:
            sources.pop(old, None)  # another evaluation may have been first
        self.parsed = sources[self.file] = text[:SOURCE_KEPT_MAX]
        if self.kind == SINGLE:
            codes = part("statements").compile_single(text, self.file)
            self.flags |= 0 if codes else INCOMPLETE | NONE
            return codes or (None, None)
        try:
            return None, compile(text.strip(), self.file, "eval", 0, True)
        except SyntaxError:
            pass
        return part("statements").compile_statements(text, self.file)

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
        return part("show").show(value, self.room())

    def room(self):
        """Characters of a value: a person at a prompt gets less than a file."""
        return ROOM_OF_PROMPT if self.kind == SINGLE else probe.text_max // 4

    def display(self, value):
        """sys.displayhook of the interactive mode, for all values but the last."""
        if value is not None:
            self.send(1, self.shown(value).encode("utf-8", "backslashreplace") + b"\n")

    def store(self):
        names = part("frames").declared_global(self.parsed) if b"global" in self.source else []
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
                text = self.source.decode("utf-8", "replace")
                spaces = [self.names] + ([sys.modules["__main__"].__dict__] if isinstance(self.names, Names) else [])
                self.text = "\n".join(part("complete").complete(text, spaces))
            else:
                self.evaluate()
        except BaseException as error:
            self.flags = RAISED | (INTERRUPTED if isinstance(error, KeyboardInterrupt) else 0)
            self.text = plain(error)
            self.text = part("statements").write_traceback(error, sources, error is self.wrong)
            if type(error) is NameError and self.context is None and self.kind != COMPLETE:
                self.text += part("frames").hint(error, self.file)
            elif part("frames").raised_in() in ("pdb", "bdb"):  # it read the end of its input
                self.text += "note: {}\n".format(streams.no_commands("pdb"))

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
    def __init__(self, send, kind, source, name_space, thread, depth, cursor, function):
        self.flags = 0
        self.text = ""
        self.code = 0
        self.send = send
        self.kind = kind
        self.source = source
        self.context = None
        self.entered = False
        self.codes = self.parsed = self.wrong = None
        try:
            if kind != COMPLETE and forbidden():
                raise Refused("PERMISSION", "remote debugging is switched off in this process "
                                            "(PYTHON_DISABLE_REMOTE_DEBUG or -X disable-remote-debug)")
            if thread:
                frames = part("frames")
                self.context = frames.FrameNames(frames.thread_frame(thread, depth, function))
                self.names = self.context.names
            else:
                self.names = space_of(name_space)
            self.keeps_last = bool(name_space) and name_space != "__main__" or kind == SINGLE and name_space is None
            if kind == COMPLETE:
                self.source = source[:cursor]
            else:
                self.file = "<eval {}>".format(counter())
                streams.enter(streams.Output(send, self.display))
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
            streams.leave()
        threading = sys.modules.get("threading")
        if threading is not None:
            ident = _thread.get_ident()
            known = threading._active.get(ident)
            # threading makes one up for a thread that asks who it is.
            if isinstance(known, threading._DummyThread):
                threading._active.pop(ident, None)
        self.context = self.names = self.send = self.codes = self.parsed = self.wrong = None
        text = self.text
        room = ROOM_OF_PROMPT if self.flags & RAISED else self.room()
        if len(text) > room:
            text = part("statements").cut(text, room)
        return self.code, self.flags, text.encode("utf-8", "backslashreplace")


def place(ident):
    """Where a helper thread stands, for the message that it does not end."""
    return part("frames").where(ident)


def begin(closing):
    import atexit

    atexit.register(closing)


def detach(closing):
    import atexit

    atexit.unregister(closing)
    streams.detach()
    name_spaces.clear()
    sources.clear()
