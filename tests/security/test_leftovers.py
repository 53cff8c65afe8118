"""What is left of a process that had a probe: nothing, whichever way it ended."""

import os
import signal
import subprocess
import sys

import pytest

import parties

LIBRARY = os.path.abspath(os.path.join(parties.BUILD, ".libs", "libprobe.so"))
# Way: the end, and its status.
ENDS = {
    "last line": ("pass", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "exception": ("raise KeyError", 1),
    "exit(3)": ("import ctypes; ctypes.CDLL(None).exit(4)", 4),
    "from a thread": ("import ctypes, threading, time; threading.Thread(target=ctypes.CDLL(None).exit, args=[5]).start(); time.sleep(60)", 5),
    "threads at work": ("import threading, time; threading.Thread(target=time.sleep, args=[60], daemon=True).start()", 0),
}
HARD_ENDS = {"os._exit": ("os._exit(6)", 6), "SIGKILL": ("os.kill(os.getpid(), 9)", -signal.SIGKILL),
             "SIGSEGV": ("os.kill(os.getpid(), 11)", -signal.SIGSEGV)}


@pytest.fixture
def run(tmp_path):
    """run(code): the status of a Python with a probe, and the sockets that it saw of itself; sockets(): those that are there now."""
    folder = tmp_path / "probing"

    def sockets():
        return sorted(name for name in os.listdir(str(folder)) if name.endswith(".sock"))

    def begin(code):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, PROBING="1", XDG_RUNTIME_DIR=str(tmp_path), PROBING_CRASH="off",
                   PROBING_DATA_DIR=str(tmp_path / "rings"))
        told = "import os, sys; print([name for name in os.listdir({!r}) if name.endswith('.sock')], os.getpid(), flush=True)\n".format(str(folder))
        done = subprocess.run([sys.executable, "-c", told + code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=parties.DEADLINE)
        names, pid = done.stdout.splitlines()[0].rsplit(" ", 1)
        assert "'{}-".format(pid) in names, "no probe: " + names + done.stderr
        return done.returncode

    begin.sockets = sockets
    return begin


@pytest.mark.parametrize("end", ENDS)
def test_socket(run, end):
    code, status = ENDS[end]
    assert (run(code), run.sockets()) == (status, [])


@pytest.mark.parametrize("end", HARD_ENDS)
def test_socket_is_swept(run, end):
    """Nothing of ours runs at such an end: the next probe of that user sweeps."""
    code, status = HARD_ENDS[end]
    assert run(code) == status
    assert len(run.sockets()) == 1
    assert (run("pass"), run.sockets()) == (0, [])


@pytest.mark.parametrize("child", ["sys.exit(0)", "import ctypes; ctypes.CDLL(None).exit(0)"])
def test_a_child_leaves_it(run, child):
    """A fork has no probe, and takes no other's socket away."""
    code = """
if not os.fork(): {}
assert os.wait()[1] == 0
sys.exit(7 if len([name for name in os.listdir(os.environ["XDG_RUNTIME_DIR"] + "/probing") if name.endswith(".sock")]) == 1 else 8)
""".format(child)
    assert (run(code), run.sockets()) == (7, [])
