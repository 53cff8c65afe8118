"""Debuggers for this process: the tool serves them (`probing debug`), as a child that ends with this process."""

import binascii
import os
import re
import signal
import subprocess
import threading
import time

from probing_c import _native, _tool
from probing_c._native import ProbeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

ADDRESS = "127.0.0.1:9922"
PAUSED_S = 1.0  # within which a pause that was asked for comes
JUMP_S = 0.05  # a moment that took longer was a pause

_lock = threading.Lock()
_server = None  # type: Optional[subprocess.Popen[bytes]]
_owner = 0  # the process that started it: a child after fork has none
_address = ""


def _serves():
    # type: () -> bool
    return _server is not None and _owner == os.getpid() and _server.poll() is None


def _is_open(listen):
    # type: (str) -> bool
    """Whether others than this machine's users reach it, so that a token is asked of everybody."""
    host = listen.rpartition(":")[0].strip("[]")
    return "/" not in listen and host not in ("", "localhost", "::1") and not host.startswith("127.")


def _begin(listen, token, pause):
    # type: (str, Optional[str], bool) -> str
    import tempfile

    global _server, _owner
    _native.start("debug")
    environment = _tool._environment()
    made = ""
    if token is None and _is_open(listen) and "PROBING_DEBUG_TOKEN" not in environment:
        token = made = binascii.hexlify(os.urandom(16)).decode()
    if token is not None:
        environment["PROBING_DEBUG_TOKEN"] = token
    command = [_tool.path(), "-p", str(os.getpid()), "debug", "--pause" if pause else "--listen", "--address", listen]
    with tempfile.TemporaryFile() as complaint, open(os.devnull) as nothing:
        server = subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=complaint, env=environment,
                                  start_new_session=True)
        _server, _owner = server, os.getpid()
        if _tool._yama_wants():
            _tool._allow(server.pid)
        assert server.stdout is not None
        line = server.stdout.readline().decode("utf-8", "replace")
        server.stdout.close()
        where = line.rpartition(" on ")[2].strip()
        if where:
            return where + "?token=" + made if made else where
        server.wait()
        complaint.seek(0)
        text = complaint.read().decode("utf-8", "replace").strip()
    text = re.sub(r"--address (\S+)", r'listen="\1"', text)  # its advice, as this package has it
    raise ProbeError(text or "the server ended with {}".format(server.returncode))


def serve(listen, token=None, pause=False):
    # type: (str, Optional[str], bool) -> str
    """Where debuggers connect; the server that is there already stays."""
    global _address
    with _lock:
        if not _serves():
            _address = _begin(listen, token, pause)
        return _address


def stop_here(listen, token):
    # type: (str, Optional[str]) -> None
    """Pause this process for the debugger that is connected, or that will be."""
    with _lock:
        known = _serves()
    if not known:
        serve(listen, token, True)
        return
    assert _server is not None
    os.kill(_server.pid, signal.SIGUSR1)
    until = time.monotonic() + PAUSED_S
    while time.monotonic() < until:
        before = time.monotonic()
        time.sleep(0.002)
        if time.monotonic() - before > JUMP_S:
            return
