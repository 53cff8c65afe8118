# Jump to a line of the function that a thread stands in.  CPython itself checks what can be jumped into.
codes = probe.part("codes")
threads = probe.part("threads")


class Line(object):
    def __init__(self, path, line):
        self.path = path
        self.line = line


def goto_targets(session, given):
    path = codes.mine.key(given.get("path") or (given.get("source") or {}).get("path") or "")
    wanted = given.get("line")
    if not isinstance(wanted, int):
        raise probe.Failed("there is no line")
    found = {}
    for ident, _, frame, _ in probe.engine.parked():
        frame = threads.strip(frame)
        if frame is not None and codes.mine.key(frame.f_code.co_filename) == path:
            found[id(frame.f_code)] = frame.f_code
    around = [codes.lines_of(code) for code in found.values() if code.co_firstlineno <= wanted]
    lines = sorted(line for lines in around for line in lines if line >= wanted)
    if not lines:
        return {"targets": []}
    number = session.handles.node(Line(path, lines[0]))
    return {"targets": [{"id": number, "label": "line {}".format(lines[0]), "line": lines[0]}]}


def goto(session, given):
    ident = threads.ident_of(given.get("threadId"))
    target = session.handles.node_of(given.get("targetId"))
    frame = threads.frame_of(ident) if ident is not None else None
    if frame is None or not isinstance(target, Line):
        raise probe.Failed("no thread, or no target of goto", "NOT_FOUND")
    if codes.mine.key(frame.f_code.co_filename) != target.path or target.line not in codes.lines_of(frame.f_code):
        raise probe.Failed("line {} is not in the function that the thread stands in".format(target.line))
    try:
        moved(frame, target.line)
    except (ValueError, RuntimeError) as error:
        raise probe.Failed(str(error))
    session.handles.drop_thread(ident)
    stop = probe.part("session").Stop("goto", frame)
    session.stops[ident] = stop
    session.report(ident, stop)


def moved(frame, line):
    """Up to CPython 3.11 a frame without a trace function of its own cannot be sent elsewhere."""
    borrowed = frame.f_trace is None
    if borrowed:
        frame.f_trace = nothing
    try:
        frame.f_lineno = line
    finally:
        if borrowed:
            del frame.f_trace


def nothing(frame, event, argument):
    return None
