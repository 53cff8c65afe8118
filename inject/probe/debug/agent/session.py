# One debug session: whether the target is stopped and why, who gets which event, and what a resumption drops.
import _thread
import os
import sys

LINE, CALL, RESUME, JUMP, RETURN, RAISE, UNWIND = (1 << bit for bit in range(7))
threads = probe.part("threads")


class Stop(object):
    """Why one thread stopped."""

    def __init__(self, reason, frame, **more):
        self.reason = reason
        self.frame = frame
        self.text = more.get("text")
        self.description = more.get("description")
        self.hit = more.get("hit", ())
        self.exception = more.get("exception")  # the object, and how it came: "always", "unhandled", "userUnhandled"
        self.mode = more.get("mode")
        self.after = more.get("after")  # (function, value) of a frame that is about to return: the one that is shown is its caller
        self.returned = more.get("returned", ())  # [(function, value)] that the step ran over
        self.reported = False
        self.first = None  # whether it is the first of its halt

    def body(self, ident, first):
        body = {"reason": self.reason, "threadId": threads.native(ident), "allThreadsStopped": True}
        if self.text:
            body["text"] = self.text
        if self.description:
            body["description"] = self.description
        if self.hit:
            body["hitBreakpointIds"] = list(self.hit)
        if not first:
            body["preserveFocusHint"] = True
        return body


class Exits(object):
    """Which statuses of a SystemExit stop, as the Python Debugger has it: breakOnSystemExit is a list of statuses and of
    ranges {from, to}; without a list all stop but success, which is 0 (and 3 of django and flask): breakOnSystemExitZero has
    that stop, too."""

    def __init__(self, given):
        wanted = given.get("breakOnSystemExit")
        self.ranges = [self.range_of(one) for one in wanted] if isinstance(wanted, list) else None
        self.asked = bool(wanted) or given.get("breakOnSystemExitZero") is True
        self.passed = {0, 3} if given.get("django") is True or given.get("flask") is True else {0}
        if given.get("breakOnSystemExitZero") is True:
            self.passed = set()

    def range_of(self, one):
        if isinstance(one, dict):
            one = one.get("from"), one.get("to")
        else:
            one = one, one
        if not all(isinstance(end, int) for end in one):
            raise probe.Failed('breakOnSystemExit must be an array of integers and of {"from": 3, "to": 10}')
        return one

    def stop(self, error):
        status = SystemExit.code.__get__(error)
        status = 0 if status is None else int(status) if isinstance(status, int) else 1
        if self.ranges is not None:
            return any(first <= status <= last for first, last in self.ranges)
        return status not in self.passed


class Options(object):
    def __init__(self, given):
        self.just_my_code = bool(given.get("justMyCode", True))
        self.rules = probe.part("rules").Rules(given["rules"]) if given.get("rules") else ()
        self.breakpoint_hook = bool(given.get("breakpointHook", True))
        self.redirect_output = bool(given.get("redirectOutput", False))
        self.show_return_value = bool(given.get("showReturnValue", True))
        self.max_string = min(max(int(given.get("maxString") or 1024), 16), 1 << 20)
        frames_max = given.get("maxExceptionStackFrames")
        self.max_exception_frames = 500 if frames_max is None else int(frames_max)  # of a stack trace; 0: all
        self.exits = Exits(given)
        self.repr_timeout = float(1 if given.get("reprTimeout") is None else given["reprTimeout"])


class Control(object):
    """What the client asks of the whole target."""

    def pause(self, number):
        ident = threads.ident_of(number) if number else None
        launcher = threads.launcher() if ident is None and not self.stopped else None
        if launcher is not None:
            self.stepping.begin_entry(*launcher)
            return
        known = threads.running()
        if ident is None and known:
            ident = known[0][0]
        probe.engine.gate(True)
        if ident is None:
            self.stopped = True
            return
        if self.stopped and not self.alone:
            return
        if self.alone:
            self.stepping.clear()
            ident = self.alone
        stop = Stop("pause", threads.frame_of(ident))
        self.stops[ident] = stop
        self.report(ident, stop)

    def go_on(self, ident=0):
        """All threads, or one of the parked."""
        if ident:
            self.stops.pop(ident, None)
            self.handles.drop_thread(ident)
            self.alone = ident
            probe.engine.resume(ident)
            return
        self.alone = 0
        for one in [one for one, stop in list(self.stops.items()) if stop.reported]:
            self.stops.pop(one, None)  # a thread that is just going to stop is not meant
        self.stopped = False
        threads.numbers.set_stopped(False)
        self.handles.drop()
        probe.engine.resume(0)

    def close(self):
        self.closed = True
        if self.children is not None:
            self.children.off()
        go()
        if self.output is not None:
            self.output.off()
        self.stepping.clear()
        if self.exceptions is not None:
            self.exceptions.off()
        if self.breakpoint_hook is not None:
            self.breakpoint_hook.off()
        self.breakpoints = self.exceptions = self.data = None
        self.stops.clear()
        self.handles.drop()


class Stopping(Control):
    """How a thread that stops is reported."""

    def stop(self, ident, stop):
        self.stepping.clear()
        self.stops[ident] = stop
        return stop.reason

    def parked(self, ident, frame, reason):
        """engine.parked() has it; it waits when this has returned.  Again, when a signal came between."""
        stop = self.stops.get(ident)
        if stop is not None:
            self.report(ident, stop)

    def report(self, ident, stop):
        stop.reported = True
        if stop.first is None:
            stop.first = not self.stopped or ident == self.alone
            self.alone = 0
            if stop.first:
                threads.numbers.set_stopped(True)
        self.stopped = True
        probe.engine.event("stopped", stop.body(ident, stop.first))

    def forget(self, ident):
        stop = self.stops.get(ident)
        if stop is not None and not stop.reported:
            del self.stops[ident]


class Session(Stopping):
    def __init__(self):
        self.options = Options({})
        self.stopped = False
        self.alone = 0  # ident of the thread that runs while the others are held
        self.stops = {}  # ident -> Stop
        self.closed = False
        self.handles = probe.part("handles").Handles()
        self.breakpoints = probe.part("breakpoints").Breakpoints(self)
        self.stepping = probe.part("stepping").Stepping(self)
        self.exceptions = None
        self.breakpoint_hook = None
        self.children = None  # while they are taken
        self.data = None  # watches, when there are data breakpoints
        self.output = None

    # ---- events, on the program's threads ----

    def happened(self, event, frame, code, line, value, planted, judged=None):
        if self.closed:
            return None
        ident = _thread.get_ident()
        step = self.stepping.of(ident)
        try:
            stop = self.wanted(ident, event, frame, code, line, value, planted, judged)
        except BaseException:  # the program's, of a signal handler: it goes on
            if step is not None:
                self.stepping.again(step)
            raise
        return self.stop(ident, stop) if stop is not None else None

    def wanted(self, ident, event, frame, code, line, value, planted, judged):
        """The stop that an event makes, or None."""
        stop = None
        if event & (CALL | RESUME):
            self.breakpoints.new_code(code)
            if self.data is not None:
                self.data.new_code(code)
        if planted:
            if self.data is not None:
                stop = self.data.changed(frame)
            stop = self.breakpoints.hit(frame, code, line, judged) or stop
            step = self.stepping.of(ident) if stop is not None else None
            if step is not None and frame is step.frame:
                stop.returned = step.results()
        if stop is None and event & (RAISE | UNWIND) and self.exceptions is not None:
            stop = self.exceptions.happened(event, frame, value)
        if stop is None and self.stepping.of(ident):
            stop = self.stepping.happened(ident, event, frame, code, line, value)
        return stop


def pause(session, given):
    session.pause(given.get("threadId") or 0)


def continue_(session, given):
    if not session.stopped:
        raise probe.Failed("notStopped")
    ident = threads.ident_of(given.get("threadId")) if given.get("singleThread") else None
    if not ident:
        session.stepping.clear()  # of a thread that steps while the others are held
    session.go_on(ident or 0)
    return {"allThreadsContinued": not ident}


def attach(session, given):
    session.options = Options(given)
    probe.repr_timeout = session.options.repr_timeout
    probe.part("codes").mine.configure(session.options.just_my_code, session.options.rules)
    if session.options.breakpoint_hook and session.breakpoint_hook is None:
        session.breakpoint_hook = probe.part("breakpointhook").BreakpointHook(session)
    facts = {"python": sys.version, "mechanism": probe.engine.mechanism, "cwd": os.getcwd(), "pid": os.getpid(),
             "waits": waits(),
             "path": [one for one in sys.path if isinstance(one, str)], "features": features()}
    if session.options.redirect_output:
        try:
            probe.part("output").output(session, {"on": True})
        except Exception as error:
            facts["outputHidden"] = probe.caught(error)
    if given.get("threads"):
        facts.update(probe.part("stack").threads(session, {}))
    return facts


def go():
    probe.engine.child_goes()
    hook = sys.modules.get("_probing_birth")
    if hook is not None:
        hook.go()


def configured(session, given):
    """The client is done with the configuration: a process that waits at its birth goes on."""
    go()


def waits():
    """Whether this process waits at its birth for the session: in os.fork(), or in the start-up hook of the package."""
    hook = sys.modules.get("_probing_birth")
    return bool(probe.engine.child_waits() or (hook is not None and hook.waits()))


def features():
    """What this interpreter, or what is loaded in it, makes possible."""
    found = [name for name in ("torch", "numpy", "asyncio") if name in sys.modules]
    return found
