# next, in and out: which events a step wants, and where it ends.  A step belongs to one thread and to a frame of it; it ends
# when it stops, when any thread stops, or when its frame's callers are all left.
import types

codes = probe.part("codes")
threads = probe.part("threads")
LINE, CALL, RESUME, JUMP, RETURN, RAISE, UNWIND, CALLEE, RESULT = (1 << bit for bit in range(9))
ARMED_MAX = 200  # code objects of libraries that are looked through for calls of the user's code
ASYNC = 0x280  # CO_COROUTINE, CO_ASYNC_GENERATOR
GENERATOR = 0x20
RESULTS_MAX = 16  # of functions that one step ran over
RETURNS_MAX = 1000  # to the frame of one step: then it runs at full speed, and shows no results


class Step(object):
    def __init__(self, kind, ident, frame, target=None):
        self.kind = kind  # "next", "in", "out", or "entry" of a program
        self.reason = "entry" if kind == "entry" else "step"
        self.ident = ident
        self.frame = frame
        self.target = target  # of step-in targets: accepts(code)
        self.armed = {}  # id of code -> (code, events)
        self.into = None  # the frame that was entered, until its first line
        self.returned = []  # [(code, value)] of functions that the frame called, the last value of each
        self.returns = 0

    def results(self):
        return [(codes.qualified(code), value) for code, value in self.returned]


class Watching(object):
    """The events of a thread that steps."""

    def happened(self, ident, event, frame, code, line, value):
        step = self.steps[ident]
        if event & LINE or event & JUMP and is_one_line(frame):
            return self.line(step, frame)
        if event & (CALL | RESUME):
            return self.called(step, frame)
        if event & (RETURN | UNWIND) and frame is step.frame:
            return self.left(step, event, frame, value)
        if event & CALLEE:
            self.calls(step, frame, function_of(value))
        elif event & RESULT:
            self.result(step, frame, code, value)
        elif event & RETURN and frame.f_back is not step.frame:
            self.want_no_results(step)  # C looked through a million of them
        elif event & RETURN:
            self.result(step, frame.f_back, code, value, code.co_flags & ASYNC and probe.part("names").is_yield(frame))
        return None

    def calls(self, step, frame, code):
        if frame is step.frame and code is not None and has_result(code) and id(code) not in step.armed:
            if len(step.armed) < ARMED_MAX and step.returns < RETURNS_MAX:
                self.arm(step, code, RETURN)

    def result(self, step, frame, code, value, rests=False):
        """A function returned to frame, or rests."""
        step.returns += 1
        if step.returns >= RETURNS_MAX:
            self.want_no_results(step)
        elif frame is step.frame and not rests and has_result(code):
            step.returned = [one for one in step.returned if one[0] is not code][1 - RESULTS_MAX :] + [(code, value)]

    def line(self, step, frame):
        if frame is step.into or frame is step.frame and step.kind != "out":
            return self.stop(step, frame)
        return None

    def called(self, step, frame):
        if step.kind not in ("in", "entry") or frame is step.frame or frame is step.into or threads.is_launcher(frame):
            return None
        code = frame.f_code
        if not beneath(frame, step.frame):
            return None
        if codes.mine.steps_into(code) and (step.target is None or step.target(code)):
            step.into = frame
            self.arm(step, code, LINE | RETURN | UNWIND)
        elif step.target is None or not codes.mine.own(code.co_filename):
            if len(step.armed) < ARMED_MAX:
                self.arm(step, code, CALL)  # a library may call the user's code
        return None

    def left(self, step, event, frame, value):
        """The frame ends, or rests in a yield."""
        if event & RETURN and frame.f_code.co_flags & ASYNC and step.kind != "out":
            if probe.part("names").is_yield(frame):
                return None
        if event & RETURN and step.reason == "breakpoint":  # breakpoint() was the last that the frame did
            return self.stop(step, frame)
        back = frame.f_back
        while back is not None and (not codes.mine.steps_into(back.f_code) or threads.is_launcher(back)):
            back = back.f_back
        back = threads.strip(back) if back is not None else None
        if back is None:
            self.end(step.ident)
            return None
        if event & UNWIND or back is not frame.f_back:
            # It goes on in a library first, or the caller may handle the exception: its next line is what comes.
            step.kind = "next" if step.kind == "out" else step.kind
            self.watch(step, back)
            return None
        after = (codes.qualified(frame.f_code), value) if self.session.options.show_return_value else None
        return self.stop(step, back, after or (None, None))

    def stop(self, step, frame, after=None):
        self.end(step.ident)
        return probe.part("session").Stop(step.reason, frame, after=after, returned=step.results())


class Stepping(Watching):
    def __init__(self, session):
        self.session = session
        self.steps = {}  # ident -> Step

    def of(self, ident):
        return self.steps.get(ident)

    def begin(self, kind, ident, frame, target=None):
        self.end(ident)
        step = Step(kind, ident, frame, target)
        self.steps[ident] = step
        self.watch(step, frame)

    def begin_breakpoint(self, ident, frame):
        """To the line after the call of breakpoint() in this frame."""
        self.begin("next", ident, frame)
        self.steps[ident].reason = "breakpoint"

    def begin_entry(self, ident, frame):
        """To the first line of the program that this frame, the launcher's, is about to run."""
        self.end(ident)
        step = Step("entry", ident, frame, lambda code: not code.co_filename.startswith("<"))
        self.steps[ident] = step
        for code in (frame.f_code, frame.f_globals["_probing_run"].__code__):
            self.arm(step, code, CALL)

    def arm(self, step, code, events):
        step.armed[id(code)] = code, events
        probe.engine.step(step.ident, code, events, step.frame)

    def watch(self, step, frame):
        """frame is the one that the step is about now."""
        step.frame = frame
        events = RETURN | UNWIND
        if step.kind != "out":
            events |= LINE | JUMP
        if step.kind == "next" and self.session.options.show_return_value and step.returns < RETURNS_MAX:
            events |= CALLEE | RESULT
        if step.kind == "in":
            events |= CALL
        self.arm(step, frame.f_code, events)

    def want_no_results(self, step):
        step.returned, step.returns = [], RETURNS_MAX
        for code, events in list(step.armed.values()):
            if events & (CALLEE | RESULT):
                self.arm(step, code, events & ~(CALLEE | RESULT))
            elif events == RETURN:
                del step.armed[id(code)]
                probe.engine.step(step.ident, code, 0, None)

    def end(self, ident):
        step = self.steps.pop(ident, None)
        if step is not None:
            for code, _ in step.armed.values():
                probe.engine.step(ident, code, 0, None)

    def again(self, step):
        """It was interrupted, and may have ended before it said so."""
        self.steps[step.ident] = step
        for code, events in list(step.armed.values()):
            probe.engine.step(step.ident, code, events, step.frame)

    def clear(self):
        for ident in list(self.steps):
            self.end(ident)


def is_one_line(frame, cache={}):  # noqa: B006
    """Whether a jump backward stays on its line: then no event of a line follows."""
    code, at = frame.f_code, frame.f_lasti
    found = cache.get(id(code))
    if found is None or found[0] is not code:
        import dis

        jumps = dis.hasjabs + dis.hasjrel
        cache.clear()
        found = cache[id(code)] = code, {one.offset: one.argval for one in dis.get_instructions(code) if one.opcode in jumps}
    target = found[1].get(at)
    return target is not None and codes.line_at(code, target) == codes.line_at(code, at)


def function_of(value):
    """The code that a call of value runs first, or None: not known without running any, or a class."""
    for _ in range(4):
        kind = type(value)
        if kind is codes.Function:
            return value.__code__
        if kind is types.MethodType:
            value = value.__func__
        elif kind.__module__ == "functools":
            value = next((one for one in codes.inner_functions(value) if one is not None), None)
        elif type(kind) is not type:
            return None
        else:
            spaces = [type.__dict__["__dict__"].__get__(one) for one in kind.__mro__]
            value = next((space["__call__"] for space in spaces if "__call__" in space), None)
    return None


def has_result(code):
    """Whether it is a function of the user's whose value is worth a row: no class's body, no lambda, no comprehension."""
    return (
        code.co_flags & 1
        and not code.co_flags & GENERATOR
        and not code.co_name.startswith("<")
        and code.co_name != "__init__"
        and codes.mine.steps_into(code)
    )


def beneath(frame, outer):
    """Whether outer is one of its callers."""
    for _ in range(2000):
        if frame is None:
            return False
        if frame is outer:
            return True
        frame = frame.f_back
    return False


# ---- the client ----


def where(session, given):
    """(ident, frame) of the thread that steps."""
    if not session.stopped:
        raise probe.Failed("notStopped")
    ident = threads.ident_of(given.get("threadId"))
    if ident is None:
        raise probe.Failed("no thread {} runs Python code".format(given.get("threadId")), "NOT_FOUND")
    stop = session.stops.get(ident)
    frame = stop.frame if stop is not None and stop.after else threads.frame_of(ident)
    return ident, frame


def begin(session, given, kind, target=None):
    ident, frame = where(session, given)
    session.stepping.begin(kind, ident, frame, target)
    session.go_on(ident if given.get("singleThread") else 0)


def next_(session, given):
    begin(session, given, "next")


def step_in(session, given):
    target = given.get("targetId")
    begin(session, given, "in", probe.part("targets").accepts(session, target) if target is not None else None)


def step_out(session, given):
    begin(session, given, "out")
