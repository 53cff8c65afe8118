"""Ctrl-C while libprobing works: noted, and raised when it is back.

gdb's own handler of the signal lets Python's run, which raises KeyboardInterrupt at any place: also where a function that
the library calls begins, before its `try`.  There it would be lost, with a traceback on the screen.  So Python's handler
is another one meanwhile.  signal.signal() sets the kernel's, too, so gdb's is put back at once (sigaction(2)).
"""

import contextlib
import ctypes as c
import signal
import threading
from typing import Any, Callable, Iterator

SIGACTION_BYTES = 256  # more than struct sigaction has anywhere

_libc = c.CDLL(None)


def _handle(handler: Any) -> Any:
    """Make handler Python's, leaving the kernel's; the one before."""
    kernels = c.create_string_buffer(SIGACTION_BYTES)
    known = _libc.sigaction(int(signal.SIGINT), None, kernels) == 0
    before = signal.signal(signal.SIGINT, handler)
    if known:
        _libc.sigaction(int(signal.SIGINT), kernels, None)
    return before


@contextlib.contextmanager
def noted(note: Callable[[], None]) -> Iterator[None]:
    """While it lasts, Ctrl-C calls note, and raises nothing."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    before = _handle(lambda _number, _frame: note())
    try:
        yield
    finally:
        _handle(before)
