# Stacks and scopes of all threads at one moment, as plain text, and the job goes on at once: no reference to anything of the
# program's is kept, no repr() of the program's own and nothing that lets another thread run is called.
import sys
import time

codes = probe.part("codes")
names = probe.part("names")
threads = probe.part("threads")
values = probe.part("values")
LEVELS, LEVELS_MAX = 64, 1000
VARIABLES_MAX = 200
ROOM = 200
INTERVAL = 1.0  # s: nobody else asks for the GIL that long


class Plain(values.Text):
    """Objects with a repr() of their own are only named."""

    def own(self, value):
        kind = type(value)
        if kind in values.SIMPLE or values.provider(value) is not None:
            return super(Plain, self).own(value)
        return "<{} object at {:#x}>".format(values.type_name(value), id(value))

    def base(self, value, kind):
        return super(Plain, self).base(value, kind) if kind in self.BRACKETS else None


def shown(value):
    shower = Plain(ROOM)
    try:
        shower.value(value)
    except Exception as error:
        return "<{}>".format(probe.caught(error))
    return "".join(shower.parts)


def rows(frame):
    local = frame.f_locals
    if local is frame.f_globals:
        return []
    found = []
    for name in list(local)[:VARIABLES_MAX]:
        value = local[name]
        found.append({"name": str(name), "value": shown(value), "type": values.type_name(value), "variablesReference": 0})
    value = local = None
    names.release(frame)
    return found


def stack_of(session, frame, levels):
    found = []
    total = 0
    while frame is not None:
        if not threads.is_ours(frame):
            total += 1
            if total <= levels:
                code = frame.f_code
                path = codes.mine.path(code.co_filename)
                found.append({"name": codes.qualified(code), "line": frame.f_lineno or 0, "column": 1, "path": path or code.co_filename,
                              "own": codes.mine.own(code.co_filename), "native": id(frame),
                              "module": str(frame.f_globals.get("__name__", ""))[:200], "variables": rows(frame)})
        frame = frame.f_back
    return {"stackFrames": found, "totalFrames": total}


def snapshot(session, given):
    levels = min(max(int(given.get("levels") or LEVELS), 1), LEVELS_MAX)
    for value in ([1], {"a": 1}):
        shown(value)  # all that is needed is loaded
    before = sys.getswitchinterval()
    begun = time.time()
    try:
        sys.setswitchinterval(INTERVAL)
        found = []
        for ident, frame in threads.running():
            one = {"id": threads.native(ident), "ident": ident, "name": threads.name(ident)}
            one.update(stack_of(session, frame, levels))
            found.append(one)
            frame = None
    finally:
        if sys.getswitchinterval() == INTERVAL:
            sys.setswitchinterval(before)
    return {"threads": found, "time": begun, "seconds": time.time() - begun}
