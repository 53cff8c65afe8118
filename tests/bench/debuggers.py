"""Stacks inside gdb beside CPython's own py-bt, and those of cores beside pystack: parts of bench.py."""

import glob
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE, in_turn, peer, pieces

SRC = os.path.join(HERE, "..", "..")
PLUGIN = os.path.join(SRC, "gdb", "probing-gdb.py")
GIGABYTES = 4

# Runs inside gdb: what a command takes there, in ms, the first time and again.
TIMED = """python
import time
def timed(command):
    begin = time.perf_counter()
    text = gdb.execute(command, to_string=True)
    return (time.perf_counter() - begin) * 1e3, len(text)
for name, command in (("OURS", "py-backtrace"), ("THEIRS", "thread apply all py-bt")):
    if name == "THEIRS" and not {theirs!r}:
        continue
    if name == "THEIRS":
        gdb.execute("source " + {theirs!r})
    for time_ in range(2):
        print(name, *timed(command))
end
"""


def their_script(executable):
    """CPython's python-gdb.py of that interpreter, which lies beside it or its library."""
    real = os.path.realpath(executable)
    found = glob.glob(real + "-gdb.py") + glob.glob(os.path.join(os.path.dirname(real), "..", "lib", "libpython*-gdb.py"))
    return found[0] if found else ""


def gdb_stacks(figures, options):
    if not peer("gdb"):
        return
    python = next((one for one in pythons.found() if one.how == "shared" and one.minor == (3, 11)), None)
    if torch_python():
        python = pythons.Python([], torch_python(), (3, 0, 0), "bench")
    if python is None:
        return
    with live.Target(python, "parked.py", [30] + ["torch"] * bool(torch_python()), folder=HERE) as job:
        theirs = their_script("/proc/{}/exe".format(job.pid))
        with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
            script.write(TIMED.replace("{theirs!r}", repr(theirs)))
            script.flush()
            told = subprocess.run([peer("gdb"), "-q", "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
                                   "-p", str(job.pid), "-ex", "source " + PLUGIN, "-x", script.name],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, encoding="utf-8",
                                  timeout=300, env=dict(os.environ, PROBING_BUILDDIR=os.environ.get("BUILDDIR", "."))).stdout
    times = {name: [float(ms) for ms in re.findall(r"^{} ([\d.]+)".format(name), told, re.M)] for name in ("OURS", "THEIRS")}
    ours, other = times["OURS"], times["THEIRS"]
    figures.bound("`py-backtrace` in gdb, 30 threads, the first time", ours[0], "ms", 100)
    if other:
        figures.against("the same, native frames too", ours[0], other[0], "CPython's py-bt of all threads", "ms", 1)
        figures.against("the same, again", ours[1], other[1], "CPython's py-bt, again", "ms", 1)
    else:
        figures.add("the same, again", ours[1], "ms")


BIG = "import os, sys\nkept = [bytearray(b'x') * (1 << 30) for _ in range(int(sys.argv[1]))]\n" \
      "def crash(step): os.abort()\ncrash(7)\n"


def cores(figures, options):
    """A core that the kernel writes of a process with much memory."""
    with open("/proc/sys/kernel/core_pattern") as pattern:
        if not re.match(r"^core(\.%p)?\n$", pattern.read()):
            print("  the kernel writes no core file into the working folder: left out", file=sys.stderr)
            return
    gigabytes = 1 if options.quick else GIGABYTES
    unlimited = resource.RLIM_INFINITY
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        done = subprocess.run([sys.executable, "-c", BIG, str(gigabytes)], cwd=folder, stderr=subprocess.DEVNULL, timeout=300,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (unlimited, unlimited)))
        assert done.returncode == -signal.SIGABRT
        core = glob.glob(os.path.join(folder, "core*"))[0]
        ours = [[live.PROBING, "-t", core, "backtrace"], [live.PROBING, "-t", core, "backtrace", "--native", "--locals"]]
        pystack = peer("pystack")
        theirs = [[pystack, "core", core], [pystack, "core", core, "--native", "--locals"]] if pystack else []
        runs = in_turn(3 if options.quick else 7, *ours, *theirs)
        size = "a core of {} GB".format(gigabytes)
        figures.bound("`backtrace` of " + size, runs[0]["ms"], "ms", 10)
        figures.bound("peak memory of it", runs[0]["mb"], "MB", 20)
        figures.account("`backtrace` of " + size, "ms of CPU", runs[0]["cpu_ms"], pieces(options.rounds, ours[0]),
                        {"`probing --version`": in_turn(3, [live.PROBING, "--version"])[0]["cpu_ms"]})
        if pystack:
            figures.against("`backtrace` of " + size, runs[0]["ms"], runs[2]["ms"], "pystack core", "ms", 1)
            figures.against("`backtrace --native --locals` of it", runs[1]["ms"], runs[3]["ms"], "pystack core --native --locals",
                            "ms", 1)


PARTS = [gdb_stacks, cores]
