# Uncaught exceptions where CPython itself hands over what nobody caught (sys.excepthook, sys.unraisablehook for raw threads,
# Thread._invoke_excepthook), so that no call is slowed until then.  The frames that were left are in the traceback.
import sys

exceptions = probe.part("exceptions")
UNWIND = 1 << 6
OF_THREADS = "_invoke_excepthook"  # Lib/threading.py, 3.8 and later: each Thread has one of its own


def usable(session):
    """Instead of UNWIND: where that means a hook at every call, and nobody asked for SystemExit, which no hook sees."""
    threading = sys.modules.get("threading")
    return probe.engine.mechanism == "frame evaluation" and hasattr(threading, "_make_invoke_excepthook") and (
        not session.options.exits.asked)


def hook_of_launcher():
    """No hook of CPython's sees a SystemExit, but the launcher of a program does (dap/attach/program_command.c): a list of
    functions that it calls; one that nobody reads where there is no launcher."""
    threads = probe.part("threads")
    for _, frame in threads.running():
        while frame is not None:
            if threads.is_launcher(frame):
                run = frame.f_globals.get("_probing_run")  # which has not begun yet
                if frame.f_code.co_name == "_probing_run":
                    return frame.f_locals["ended"]
                if run is not None and run.__defaults__:
                    return run.__defaults__[0]
            frame = frame.f_back
    return []


class InFront(object):
    """A data descriptor of Thread is found before the attribute of each thread: it reports, then does what that does."""

    def __init__(self, hand_over):
        self.hand_over = hand_over

    def __get__(self, thread, kind=None):
        if thread is None or OF_THREADS not in thread.__dict__:
            raise AttributeError(OF_THREADS)
        before = thread.__dict__[OF_THREADS]

        return lambda *given: self.hand_over(sys.exc_info()[1], before, given)

    def __set__(self, thread, value):
        thread.__dict__[OF_THREADS] = value

    def __delete__(self, thread):
        if thread.__dict__.pop(OF_THREADS, None) is None:
            raise AttributeError(OF_THREADS)


def chained(before, error_of, hand_over):
    return lambda *given: hand_over(error_of(given), before, given)


HOOKS = {"excepthook": lambda given: given[1] if len(given) > 1 else None,
         "unraisablehook": lambda given: getattr(given[0], "exc_value", None) if given else None}


class Hooks(object):
    """All hooks, until off().  After that a hook that the program saved only calls the one before it."""

    def __init__(self):
        self.live = True
        self.set = {}  # name -> (the one before, ours)
        self.handed = set()  # ids of exceptions on their way: hooks call each other
        self.launcher = hook_of_launcher()
        self.launcher[:] = [self.exits]
        self.thread = sys.modules["threading"].Thread
        setattr(self.thread, OF_THREADS, InFront(self.hand_over))
        self.again()

    def again(self):
        """In front, too, of one that the program has set meanwhile."""
        for name, error_of in HOOKS.items():
            now, before = getattr(sys, name, None), self.set.get(name)
            if callable(now) and (before is None or now is not before[1]):
                ours = chained(now, error_of, self.hand_over)
                self.set[name] = now, ours
                setattr(sys, name, ours)

    def off(self):
        self.live = False
        del self.launcher[:]
        for name, (before, ours) in self.set.items():
            if getattr(sys, name, None) is ours:
                setattr(sys, name, before)
        if isinstance(self.thread.__dict__.get(OF_THREADS), InFront):
            delattr(self.thread, OF_THREADS)

    def exits(self, error):
        """A SystemExit has left the program; the launcher's own frames are left next."""
        frame = error.__traceback__.tb_frame
        while frame.f_back is not None:
            frame = frame.f_back
        if self.live:
            probe.engine.found(UNWIND, frame, frame.f_lineno, error)

    def hand_over(self, error, before, given):
        """On the thread that the exception ended, unless it was only reported (out of a __del__)."""
        if not self.live or id(error) in self.handed:
            return before(*given)
        self.handed.add(id(error))
        try:
            trace = getattr(error, "__traceback__", None)
            if trace is not None and exceptions.is_outermost(trace.tb_frame):
                probe.engine.found(UNWIND, trace.tb_frame, trace.tb_lineno, error)
            return before(*given)
        finally:
            self.handed.discard(id(error))
