# Threads and their stacks: those of the frames that run, or of the exception that ended them.
import itertools

codes = probe.part("codes")
threads_of = probe.part("threads")
FRAMES_MAX = 20000
LEVELS_MAX = 1000


def threads(session, given):
    parked = {ident: reason for ident, _, _, reason in probe.engine.parked()}
    found = []
    for ident, _ in threads_of.running():
        one = {"id": threads_of.native(ident), "ident": ident, "name": threads_of.name(ident), "parked": ident in parked}
        stop = session.stops.get(ident)
        if stop is not None:
            one["reason"] = stop.reason
        found.append(one)
    return {"threads": found}


def frames(session, ident):
    """[(frame, line)] innermost first, ours left out."""
    stop = session.stops.get(ident)
    found = []
    top = threads_of.frame_of(ident)
    if stop is not None and stop.exception is not None and stop.mode != "always":
        # The frames that the exception left are only in its traceback.
        trace = stop.exception.__traceback__
        while trace is not None and len(found) < FRAMES_MAX:
            found.append((trace.tb_frame, trace.tb_lineno))
            trace = trace.tb_next
        found.reverse()
        outermost = found[-1][0] if found else None
        if top is outermost:
            top = top.f_back if top is not None else None
    elif stop is not None and stop.after and stop.frame is not None:
        top = stop.frame
    while top is not None and len(found) < FRAMES_MAX:
        found.append((top, top.f_lineno))
        top = top.f_back
    found = [one for one in found if not threads_of.is_ours(one[0])]
    return [one for one in found if not threads_of.is_launcher(one[0])] or found


def position(frame):
    """{endLine, column, endColumn} of the call that a frame waits in."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None or frame.f_lasti < 0:
        return {}
    for line, end, column, end_column in itertools.islice(positions(), frame.f_lasti // 2, frame.f_lasti // 2 + 1):
        if line == frame.f_lineno and None not in (end, column, end_column):
            return {"endLine": end, "column": column + 1, "endColumn": end_column + 1}
    return {}


def described(session, frame, line, ident, innermost):
    code = frame.f_code
    own = codes.mine.own(code.co_filename)
    one = {"id": session.handles.frame(frame, ident, line) if session.stopped else 0, "name": codes.qualified(code),
           "line": line or 0, "column": 1, "own": own, "native": id(frame), "module": str(frame.f_globals.get("__name__", ""))[:200]}
    path = codes.mine.path(code.co_filename)
    if path:
        one["path"] = path
    else:
        one["path"] = code.co_filename
        one["sourceReference"] = probe.part("sources").reference(session, code)
    if own and not innermost:
        one.update(position(frame))
    if not own and codes.mine.just_my_code:
        one["presentationHint"] = "subtle"
    return one


def stack(session, given):
    ident = threads_of.ident_of(given.get("threadId"))
    if ident is None:
        raise probe.Failed("no thread {} runs Python code".format(given.get("threadId")), "NOT_FOUND")
    found = frames(session, ident)
    start = max(given.get("startFrame") or 0, 0)
    levels = given.get("levels") or LEVELS_MAX
    shown = found[start:start + min(levels, LEVELS_MAX)]
    return {"stackFrames": [described(session, frame, line, ident, start + number == 0)
                            for number, (frame, line) in enumerate(shown)], "totalFrames": len(found),
            "parked": any(one == ident for one, _, _, _ in probe.engine.parked())}
