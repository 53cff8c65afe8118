# The threads of the program: idents, names, and the frames that are theirs (ours, above or of helpers, are left out).
import _thread
import os
import sys

LAUNCHER = ("_probing_wait", "_probing_run")


def forget_dummy():
    """threading invents a thread object for a thread that asks for its own: remove that of a helper."""
    threading = sys.modules.get("threading")
    if threading is not None and hasattr(threading, "_DummyThread"):
        ident = _thread.get_ident()
        known = threading._active.get(ident)
        if isinstance(known, threading._DummyThread) and is_helper(sys._getframe()):
            threading._active.pop(ident, None)


def is_ours(frame):
    return frame.f_code.co_filename.startswith(probe.OWN)


def is_launcher(frame):
    """Whether a frame is of the few lines that begin a program for the debugger (dap/attach/program_command.c)."""
    code = frame.f_code
    return code.co_filename == "<string>" and (code.co_name in LAUNCHER or "_probing_run" in code.co_names)


def launcher():
    """(ident, outermost frame) of the thread that waits to begin the program, or None."""
    for ident, frame in running():
        waits = False
        while frame.f_back is not None:
            waits = waits or frame.f_code.co_name == "_probing_wait" and is_launcher(frame)
            frame = frame.f_back
        if waits:
            return ident, frame
    return None


def is_helper(frame):
    """Whether a thread was begun by the probe: its outermost frame is ours."""
    while frame.f_back is not None:
        frame = frame.f_back
    return is_ours(frame)


def strip(frame):
    """The innermost frame of the program's own; None for a helper."""
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return None if frame is None or is_helper(frame) else frame


def running():
    """[(ident, innermost frame)] of the program's threads, the main one first."""
    found = {ident: strip(frame) for ident, frame in sys._current_frames().items()}
    for ident, _, frame, reason in probe.engine.parked():
        if reason is not None and found.get(ident) is None:
            found[ident] = frame  # that an exception has left: nothing of the program's runs there any more
    main = main_ident()
    return sorted((one for one in found.items() if one[1] is not None), key=lambda one: (one[0] != main, one[0]))


def main_ident():
    threading = sys.modules.get("threading")
    return threading._main_thread.ident if threading is not None and hasattr(threading, "_main_thread") else 0


def name(ident):
    threading = sys.modules.get("threading")
    known = threading._active.get(ident) if threading is not None and hasattr(threading, "_active") else None
    if known is not None:
        try:
            return str(known.name)
        except Exception:
            pass
    number = native(ident)
    return "MainThread" if number == os.getpid() else "Thread-{}".format(number)


class Numbers(object):
    """Native ids, looked up once a stop: idents are used again when threads end, and each look-up takes system calls."""

    def __init__(self):
        self.known = {}
        self.stopped = False

    def set_stopped(self, stopped):
        self.known = {}
        self.stopped = stopped

    def of(self, ident):
        found = self.known.get(ident)
        if found is None:
            found = next((number for one, number, _, _ in probe.engine.parked() if one == ident and number), 0)
            found = found or probe.engine.native_id(ident) or ident
            if self.stopped:
                self.known[ident] = found
        return found


numbers = Numbers()


def native(ident):
    """gettid(2) of a thread; its ident where that cannot be known."""
    return numbers.of(ident)


def ident_of(number):
    """Of a native id, or None."""
    for ident, _ in running():
        if native(ident) == number:
            return ident
    return None


def frame_of(ident):
    for one, _, frame, _ in probe.engine.parked():
        if one == ident:
            return strip(frame) or frame
    frame = sys._current_frames().get(ident)
    return strip(frame) if frame is not None else None
