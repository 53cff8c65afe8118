"""The page of `probing serve` in Jupyter, behind jupyter-server-proxy, which finds `proxied` by its entry point and runs `main`.

A user has one server, on a Unix socket.  Where one runs already, this program waits, and starts its own when that ends.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time

from probing_c import _native, _tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

PAUSE = 1.0  # s, when a server ends as soon as it was started


def folder():
    # type: () -> str
    """Where the server has its socket and its lock, as serve/doors/places.c finds it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    try:
        owned = runtime.startswith("/") and os.stat(runtime).st_uid == os.geteuid()
    except OSError:
        owned = False
    return os.path.join(runtime, "probing") if owned else "/tmp/probing-{}".format(os.geteuid())


def proxied():
    # type: () -> Dict[str, Any]
    """What jupyter-server-proxy wants to know.  Jupyter's login is the only one: who comes through it may look."""
    return {
        "command": [sys.executable, "-m", "probing_c._jupyter"],
        "unix_socket": os.path.join(folder(), "serve.sock"),
        "request_headers_override": {"Via": "1.1 jupyter"},  # else a request would be taken for the user's own program
        "update_last_activity": False,  # the page asks each second, also when nobody works
        "timeout": 60.0,
        "launcher_entry": {
            "title": "Probing",
            "icon_path": os.path.join(os.path.dirname(os.path.abspath(__file__)), "icon.svg"),
            "enabled": os.access(os.path.join(_native.FOLDER, "probing-serve"), os.X_OK),
        },
    }


def _wait_for_other():
    # type: () -> None
    """Until nobody holds the server's lock."""
    try:
        lock = os.open(os.path.join(folder(), "serve.lock"), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
    finally:
        os.close(lock)


def _end(*_):
    # type: (Any) -> None
    raise SystemExit(0)


def main():
    # type: () -> int
    signal.signal(signal.SIGTERM, _end)
    # Jupyter answers for the names under which it is asked, and for who asks
    command = [_tool.path(), "serve", "--unix", "--host", "*", "--while", str(os.getpid())]
    while True:
        began = time.monotonic()
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            status = server.wait()
        finally:
            if server.poll() is None:
                server.terminate()
                server.wait()
        if status:
            return status
        _wait_for_other()
        time.sleep(max(0.0, began + PAUSE - time.monotonic()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except _native.ProbeError as error:
        sys.exit("probing: {}".format(error))
