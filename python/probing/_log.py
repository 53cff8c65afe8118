"""The log beside the control socket: DIR/probing.log, DIR = $XDG_RUNTIME_DIR/probing or /tmp/probing-UID (0700, ours).

The probe writes there, too; this is for what happens where no probe could be loaded.  A line that cannot be written is lost.
"""

import os
import stat
import time

SIZE_MAX = 16 << 20  # bytes; beyond that nothing is added


def folder():
    # type: () -> str
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime) and os.path.isdir(runtime):
        return os.path.join(runtime, "probing")
    return "/tmp/probing-{}".format(os.geteuid())


def _trusted(path):
    # type: (str) -> bool
    seen = os.lstat(path)
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not stat.S_IMODE(seen.st_mode) & 0o077


def write(text):
    # type: (str) -> None
    try:
        where = folder()
        try:
            os.mkdir(where, 0o700)
        except FileExistsError:
            pass
        if not _trusted(where):
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(os.path.join(where, "probing.log"), flags, 0o600)
        try:
            if os.fstat(descriptor).st_size < SIZE_MAX:
                when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                line = "{} pid {}: {}".format(when, os.getpid(), " ".join(text.split()))
                os.write(descriptor, line.encode("utf-8", "replace")[:2000] + b"\n")
        finally:
            os.close(descriptor)
    except Exception:
        pass
