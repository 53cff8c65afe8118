# Expressions and statements where a frame stands, on its own thread when that is parked; completions.
import ast

names = probe.part("names")
FILE = "<debug console>"
NO_CALLS = ("hover",)  # contexts in which nothing may be changed
CALLS = tuple(getattr(ast, name) for name in ("Call", "Await", "Yield", "YieldFrom", "NamedExpr") if hasattr(ast, name))
TEXT_MAX = 1 << 20  # of the context "clipboard"
LINE_MAX = 1 << 12
COMPLETIONS_MAX = 500


class Raised(Exception):
    """What the evaluated code raised."""


def refuse_busy(handle):
    if probe.calls.busy(handle):
        raise probe.Failed("the thread of this frame is still in an evaluation, or the repr of a value, that does not end", "BUSY")


def handle_of(session, number):
    if number:
        handle = session.handles.frame_of(number)
        refuse_busy(handle)
        return handle
    stopped = next(iter(session.stops), None)
    stack = probe.part("stack")
    if stopped is None:
        return None
    found = stack.frames(session, stopped)
    handle = session.handles.frame_of(session.handles.frame(found[0][0], stopped, found[0][1])) if found else None
    return None if probe.calls.busy(handle) else handle


def space_of(session, handle):
    space = dict(session.handles.scratch)
    if handle is None:
        import sys

        space["sys"] = sys  # of no frame: whoever looks around needs it, and no name of the program is lost
        space.update(sys.modules["__main__"].__dict__)
    else:
        space.update(names.merged(handle.frame))
    return space


def parsed(text):
    """(code of statements or None, code of an expression or None, whether they may await)"""
    source = text.strip()
    try:
        tree = compile(source, FILE, "eval", ast.PyCF_ONLY_AST, True)
        if not has_await(tree):
            return None, compile(source, FILE, "eval", 0, True), False
    except SyntaxError:
        if "await" in source:
            code = probe.part("awaits").compiled(source)
            if code is not None:
                return None, code, True
        return parsed_statements(text)
    return None, probe.part("awaits").compiled(source), True


def parsed_statements(text):
    try:
        body, last = probe.agent.part("statements").compile_statements(text, FILE)
        return body, last, False
    except SyntaxError:
        if "await" not in text:
            raise
    body, last = probe.part("awaits").statements(text)
    return body, last, True


def has_await(tree):
    return any(isinstance(node, ast.Await) for node in ast.walk(tree))


def run(session, handle, text, statements):
    """(value, whether there is one).  Exceptions of the code are Raised."""
    try:
        body, last, awaits = parsed(text)
    except (SyntaxError, ValueError) as error:
        raise Raised(probe.caught(error))
    if body is not None and not statements:
        raise Raised("SyntaxError: only an expression can be evaluated here")
    try:
        if body is None and not awaits and handle is not None and not session.handles.scratch:
            return names.evaluated(last, handle.frame), True
        space = space_of(session, handle)
        before = dict(space)
        try:
            value_of_code = probe.part("awaits").run if awaits else eval
            if body is not None:
                value_of_code(body, space)
            return (value_of_code(last, space), True) if last is not None else (None, False)
        finally:
            keep(session, handle, before, space)
    except (probe.Failed, probe.engine.Interrupted):
        raise
    except BaseException as error:
        # One that the code raises itself is only its failure; the program gets what a signal handler of its own raised.
        if not (isinstance(error, KeyboardInterrupt) and "KeyboardInterrupt" in text) and probe.engine.keep_pending(error):
            raise Raised("a signal handler of the program raised {}: the program gets it when it goes on".format(
                probe.agent.plain(error)))
        raise Raised(probe.agent.plain(error))


def keep(session, handle, before, space):
    if handle is not None:
        session.handles.scratch.update(names.store(handle.frame, before, space))
        return
    import sys

    main = sys.modules["__main__"].__dict__
    main.update({name: value for name, value in space.items() if before.get(name, before) is not value})


def value_of(session, handle, text):
    try:
        return run(session, handle, text, False)[0]
    except Raised as error:
        raise probe.Failed(str(error))


class Captured(object):
    """What an evaluation prints is the client's, not the program's log."""

    def __init__(self):
        self.waiting = {}

    def begin(self):
        streams = probe.agent.streams
        streams.enter(streams.Output(self.send, self.display))

    def end(self):
        probe.agent.streams.leave()
        for stream, data in sorted(self.waiting.items()):
            self.report(stream, data)

    def send(self, stream, data):
        """print() writes pieces: they are sent on line by line."""
        data = self.waiting.pop(stream, b"") + data
        if data.endswith(b"\n") or len(data) > LINE_MAX:
            self.report(stream, data)
        elif data:
            self.waiting[stream] = data

    def report(self, stream, data):
        text = data.decode("utf-8", "replace")
        probe.engine.event("output", {"category": "stderr" if stream == 2 else "stdout", "output": text})

    def display(self, value):
        if value is not None:
            probe.engine.note(probe.part("values").text(value))


def captured(session, handle, text):
    """Statements.  A value that takes long to free may be interrupted again: the streams are the program's all the same."""
    streams = Captured()
    streams.begin()
    try:
        return run(session, handle, text, True)
    finally:
        try:
            streams.end()
        except KeyboardInterrupt:
            streams.end()
            raise


def evaluate(session, given):
    text = given.get("expression")
    if not isinstance(text, str):
        raise probe.Failed("there is no expression")
    context = given.get("context") or "repl"
    handle = handle_of(session, given.get("frameId"))
    if not text.strip():
        return {"result": "", "variablesReference": 0}
    if context in NO_CALLS:
        refuse_calls(text)
    try:
        if context == "repl":
            value, is_value = captured(session, handle, text)
        else:
            value, is_value = run(session, handle, text, False)
    except Raised as error:
        raise probe.Failed(str(error))
    if not is_value or value is None and context == "repl":
        return {"result": "", "variablesReference": 0}
    view = probe.part("variables").View(session, handle, given)
    if context == "clipboard" and isinstance(value, str):
        return {"result": value[:TEXT_MAX], "type": "str", "variablesReference": 0}
    expression = text.strip() if text.strip().isidentifier() else "({})".format(text.strip())
    found = view.shown(value, expression, TEXT_MAX if context == "clipboard" else None)
    found["result"] = found.pop("value")
    return found


def refuse_calls(text):
    try:
        tree = ast.parse(text.strip(), FILE, "eval")
    except SyntaxError as error:
        raise probe.Failed(probe.caught(error))
    if any(isinstance(node, CALLS) for node in ast.walk(tree)):
        raise probe.Failed("a hover calls nothing: evaluate it in the console or as a watch")


def set_expression(session, given):
    """Anything that can stand left of =."""
    handle = handle_of(session, given.get("frameId"))
    value = value_of(session, handle, given.get("value") or "")
    target = (given.get("expression") or "").strip()
    try:
        code = compile("{} = __probing_value__".format(target), FILE, "exec", 0, True)
    except (SyntaxError, ValueError) as error:
        raise probe.Failed(probe.caught(error))
    space = space_of(session, handle)
    before = dict(space)
    space["__probing_value__"] = value
    try:
        exec(code, space)
    except Exception as error:
        raise probe.Failed(probe.caught(error))
    del space["__probing_value__"]
    keep(session, handle, before, space)
    return probe.part("variables").View(session, handle, given).shown(value, target)


def units(text):
    """UTF-16 units, in which the protocol counts columns."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def completions(session, given):
    lines = (given.get("text") or "").splitlines() or [""]
    line = lines[min(max(given.get("line") or 1, 1), len(lines)) - 1]
    column = given.get("column") or units(line) + 1
    text = line.encode("utf-16-le", "surrogatepass")[:2 * max(column - 1, 0)].decode("utf-16-le", "ignore")
    handle = handle_of(session, given.get("frameId"))
    complete, spaces = probe.agent.part("complete"), [space_of(session, handle)]
    found = complete.complete(text, spaces, True)
    word = complete._WORD.search(text).group()
    last = word.rpartition(".")[2]
    start = units(text) - units(last)
    targets = []
    for name in found[:COMPLETIONS_MAX]:
        label = name.rpartition(".")[2]
        targets.append({"label": label, "text": label, "type": complete.kind(name, spaces), "start": start + 1,
                        "length": units(last)})
    return {"targets": targets}
