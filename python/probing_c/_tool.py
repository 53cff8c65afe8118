"""The tool of this package, native/probing: as the `probing` command, and asked about this process from inside."""

import os
import subprocess
import sys
import threading

from probing_c import _native, _other
from probing_c._native import ProbeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence

PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
# The child waits for a line before it becomes the tool, so that it may be allowed to look first.
GATE = 'read -r go && exec "$0" "$@" </dev/null'
_lock = threading.Lock()


def path():
    # type: () -> str
    """The packaged tool."""
    tool = os.path.join(_native.FOLDER, "probing")
    if not os.access(tool, os.X_OK):
        raise ProbeError("the tool is not in this package: {} is missing".format(tool))
    return tool


def main():
    # type: () -> int
    """The `probing` and the `probing-c` command: becomes the tool, for which this Python is the one to start."""
    _other.warned("probing")
    os.environ.setdefault("PROBING_PYTHON", sys.executable or "")
    try:
        os.execv(path(), ["probing"] + sys.argv[1:])
    except (OSError, ProbeError) as error:
        sys.stderr.write("probing: {}\n".format(error))
    return 70


def _environment():
    # type: () -> Dict[str, str]
    """The tool's: without what would start a probe in it."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PROBING", "PROBE")}
    preload = [word for word in kept.get("LD_PRELOAD", "").replace(":", " ").split() if os.path.basename(word) != "libprobe.so"]
    kept.pop("LD_PRELOAD", None)
    if preload:
        kept["LD_PRELOAD"] = ":".join(preload)
    return kept


def _yama_wants():
    # type: () -> bool
    """Whether a child needs this process's word to read its memory (Documentation/admin-guide/LSM/Yama.rst)."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as scope:
            return scope.read().strip() == "1"
    except OSError:
        return False


def _allow(pid):
    # type: (int) -> None
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


def ask(arguments, timeout=None):
    # type: (Sequence[str], Optional[float]) -> str
    """What the tool prints about this process."""
    command = ["/bin/sh", "-c", GATE, path(), "-t", str(os.getpid())] + list(arguments)
    with _lock:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment())
        allowed = _yama_wants()
        if allowed:
            _allow(child.pid)
        try:
            out, complaint = child.communicate(b"go\n", timeout=timeout)
        except subprocess.TimeoutExpired:
            raise ProbeError("no answer in {} s".format(timeout))
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()
            if allowed:
                _allow(0)
    if child.returncode != 0:
        raise ProbeError(complaint.decode("utf-8", "replace").strip() or "the tool ended with {}".format(child.returncode))
    return out.decode("utf-8", "replace")


def query(sql, tuples=False, timeout=None):
    # type: (str, bool, Optional[float]) -> List[Any]
    import json

    hook = (lambda pairs: tuple(value for _, value in pairs)) if tuples else None
    # "--": a statement may begin with a comment
    return json.loads(ask(["query", "-f", "json", "--", sql], timeout), object_pairs_hook=hook)


def backtrace(native=False, locals=False, timeout=None):
    # type: (bool, bool, Optional[float]) -> List[Dict[str, Any]]
    import json

    options = ["--native"] * bool(native) + ["--locals"] * bool(locals)
    threads = json.loads(ask(["backtrace", "--json"] + options, timeout))
    for thread in threads:
        if thread["thread_id"] == threading.get_ident():
            thread["frames"] = _without_ours(thread["frames"])
    return threads


def _without_ours(frames):
    # type: (List[Dict[str, Any]]) -> List[Dict[str, Any]]
    """The frames from the caller of probing.backtrace outwards."""
    file = sys.modules["probing_c"].backtrace.__code__.co_filename
    for at, frame in enumerate(frames):
        if frame["name"] == "backtrace" and frame.get("filename") == file:
            return frames[at + 1:]
    return frames
