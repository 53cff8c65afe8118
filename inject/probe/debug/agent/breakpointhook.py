# breakpoint() of the program: it stops the thread as a breakpoint does, at the next line, while a session is there (PEP 553).
# CPython 3.7 and later call sys.breakpointhook; 3.6 has neither.
import _thread
import os
import sys

threads = probe.part("threads")
codes = probe.part("codes")


class BreakpointHook(object):
    """Ours in sys.breakpointhook until off().  After that, and in a child process, one that the program saved calls the one before."""

    def __init__(self, session):
        self.session = session
        self.pid = os.getpid()
        self.before = getattr(sys, "breakpointhook", None)
        if self.before is not None:
            self.ours = self.hook()
            sys.breakpointhook = self.ours

    def hook(self):
        def breakpointhook(*args, **given):
            caller = sys._getframe(1)
            if self.session is None or os.getpid() != self.pid:
                return self.before(*args, **given)
            if threads.strip(caller) is caller:  # not of an evaluation of ours
                self.session.stepping.begin_breakpoint(_thread.get_ident(), caller)
            return None

        return breakpointhook

    def off(self):
        self.session = None
        if self.before is not None and sys.breakpointhook is self.ours:
            sys.breakpointhook = self.before
