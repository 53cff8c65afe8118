"""A Python program that a debugged process starts: it waits here, before its first line, for a debug session of its own.

The start-up hook calls `run` where the debugger's agent has set PROBING_DEBUG_CHILDREN=NAME:SECONDS.  inject/probe/debug/birth.h
says how a child announces itself and when it goes on; children of os.fork() do the same in C.  The agent finds this module in
sys.modules, and calls `waits` and `go`.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

CONFIGURE_S = 10.0  # for a session that is attached to be configured
LATE = b"t"  # it goes on without a session
_waiting = None  # type: Any
_attached = False


def waits():
    # type: () -> bool
    """A session is attached.  Whether this process waits for it."""
    global _attached
    _attached = True
    return _waiting is not None


def go():
    # type: () -> None
    """It need not wait any longer."""
    connection = _waiting
    if connection is not None:
        connection.shutdown(2)


def _connect(name, seconds):
    # type: (str, float) -> Any
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(seconds)
    connection.connect("\0" + name)
    who = connection.getsockopt(_socket.SOL_SOCKET, 17, 12)  # SO_PEERCRED: pid, uid, gid
    if int.from_bytes(who[4:8], sys.byteorder) not in (0, os.geteuid()):
        raise OSError("another user has taken the name of the debugger")
    return connection


def _wait(connection, seconds):
    # type: (Any, float) -> None
    until = time.monotonic() + seconds
    extended = False
    while True:
        left = until - time.monotonic()
        if left > 0:
            connection.settimeout(left)
            try:
                connection.recv(1)
                return
            except OSError:
                if until - time.monotonic() > 0:
                    return
        elif _attached and not extended:
            extended = True
            until += CONFIGURE_S
        else:
            connection.settimeout(0)
            connection.send(LATE)
            return


def _announce(name, seconds):
    # type: (str, float) -> None
    global _waiting
    connection = None
    try:
        connection = _waiting = _connect(name, seconds)
        _wait(connection, seconds)
    except OSError:  # nobody listens any more
        pass
    finally:
        _waiting = None
        if connection is not None:
            connection.close()


def run(value):
    # type: (str) -> None
    import _probing_rules as rules

    name, _, seconds = value.partition(":")
    program = rules.current()
    if program.forkserver:  # not itself, but what it forks
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: _announce(name, float(seconds)))
    elif not program.tracker and not program.ours:
        _before_main(lambda: _announce(name, float(seconds)))


def _before_main(call):
    # type: (Callable[[], None]) -> None
    """Now; from CPython 3.15 on a little later, since nobody is let in before Py_IsInitialized(), which waits for site."""
    if sys.version_info < (3, 15):
        call()
        return
    calls = [call]

    def at_event(event, args):
        # type: (str, Any) -> None
        if calls and event.startswith("cpython.run_"):
            calls.pop()()

    sys.addaudithook(at_event)  # it stays, and costs each audited event some 50 ns
