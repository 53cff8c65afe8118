"""The log beside the control socket: DIR/probing.log, DIR = $XDG_RUNTIME_DIR/probing or /tmp/probing-UID or
/tmp/probing-UID-USERNS (0700, ours).

The probe writes there, too; this is for what happens where no probe could be loaded.  A line that cannot be written is lost.
"""

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

LINE_MAX = 2000  # bytes


def _runtime_folder():
    # type: () -> str
    """XDG_RUNTIME_DIR of the environment that the process was started with, as the tool and the probe see it."""
    try:
        with open("/proc/self/environ", "rb") as environment:
            for variable in environment.read().split(b"\0"):
                if variable.startswith(b"XDG_RUNTIME_DIR="):
                    return os.fsdecode(variable[16:])
            return ""
    except OSError:  # a root without /proc
        return os.environ.get("XDG_RUNTIME_DIR", "")


def folders():
    # type: () -> List[str]
    """DIR, best first."""
    runtime = _runtime_folder()
    places = [os.path.join(runtime, "probing")] if runtime.startswith("/") else []
    places.append("/tmp/probing-{}".format(os.geteuid()))
    try:
        places.append("{}-{}".format(places[-1], os.stat("/proc/self/ns/user").st_ino))
    except OSError:
        pass
    return places


def _opened(folder):
    # type: (str) -> int
    """The log of a folder that is ours and nobody else's, to append to."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    seen = os.lstat(folder)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        raise OSError("{} is not this user's alone".format(folder))
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(os.path.join(folder, "probing.log"), flags, 0o600)


def write(text):
    # type: (str) -> None
    now = time.time()
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    line = "{}.{:03d}Z pid={} {}".format(when, int(now * 1000) % 1000, os.getpid(), " ".join(text.split()))
    for folder in folders():
        try:
            descriptor = _opened(folder)
        except OSError:
            continue
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.write(descriptor, line.encode("utf-8", "replace")[:LINE_MAX] + b"\n")
                return
        except OSError:
            pass
        finally:
            os.close(descriptor)
