# breakpoint() of the program: it stops the thread as a breakpoint does, at the next line, while a session is there (PEP 553).
# CPython 3.7 and later call sys.breakpointhook; 3.6 has neither.
import _thread
import os
import sys

threads = probe.part("threads")


def stand_in():
    """The one that evaluations have in sys while they run (python/streams.py), or None."""
    now = sys.breakpointhook
    return now if getattr(now, "_prb_original", probe.agent.streams.NOBODY) is not probe.agent.streams.NOBODY else None


def get():
    before = stand_in()
    return sys.breakpointhook if before is None else before._prb_original


def put(hook):
    before = stand_in()
    if before is None:
        sys.breakpointhook = hook
    else:
        object.__setattr__(before, "_prb_original", hook)


class BreakpointHook(object):
    """Ours in sys.breakpointhook until off().  After that, and in a child process, it only calls the one before."""

    def __init__(self, session):
        self.session = session
        self.pid = os.getpid()
        self.before = None
        if hasattr(sys, "breakpointhook"):
            self.before = get()
            put(self)

    def off(self):
        self.session = None
        if self.before is not None and get() is self:
            put(self.before)

    def __call__(self, *args, **given):
        if self.session is None or os.getpid() != self.pid:
            return self.before(*args, **given)
        caller = threads.strip(sys._getframe(1))
        switched_off = self.before is sys.__breakpointhook__ and os.environ.get("PYTHONBREAKPOINT") == "0"
        if caller is not None and not switched_off:
            self.session.stepping.begin_breakpoint(_thread.get_ident(), caller)
        return None
