"""How the benchmarks time commands, and where the peers are."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

from support import target as live
from support.torch_python import torch_python

MEASURE = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "measure")
ACCOUNT = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", ".libs", "account.so")
FLOOR = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "floor")
WORDS = {"start": "start of the program", "prb_target_open_pid": "open the target", "prb_target_open": "open the target",
         "prb_stacks_take": "read and name the stacks", "prb_target_close": "close it", "prb_process_list": "find the processes",
         "prb_db_open": "open the database", "prb_db_query": "run the statement", "prb_stacks_free": "free the stacks", "prb_db_close": "close the database",
         "prb_control_open": "connect to the probe", "prb_ensure_probe": "connect to the probe",
         "prb_control_eval": "evaluate", "prb_inject": "inject", "the command": "print, and the rest", "end": "end of the program"}

# The bars of the design are of a machine where this takes so many milliseconds of CPU: here they are scaled by what it takes.
TRUE, TRUE_MS = ["/bin/true"], 0.63


def peer(name):
    """The path of a peer's command, or None."""
    return os.environ.get("PROBING_" + name.upper().replace("-", "")) or shutil.which(name) or next(
        (path for path in (os.path.join(os.path.dirname(python), name) for python in (sys.executable, torch_python() or ""))
         if os.access(path, os.X_OK)), None)


class Hung(Exception):
    """A peer's command did not end."""


def measure(count, *command, seconds=None, environment=None):
    child = subprocess.Popen([MEASURE, str(count), *map(str, command)], stdout=subprocess.PIPE, start_new_session=True,
                             env=dict(os.environ, **(environment or {})))
    try:
        told = child.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise Hung(command)
    runs = [json.loads(line) for line in told.splitlines()]
    assert child.returncode == 0 and len(runs) == count, command
    assert all(run["status"] == 0 for run in runs), (command, runs)
    return runs


def in_turn(rounds, *commands):
    """Of each command, run in turn: median milliseconds (ms), of CPU (cpu_ms), page faults, and peak megabytes (mb)."""
    runs = [[] for _ in commands]
    for command in commands:
        measure(1, *command)  # brings its files into memory
    for _ in range(rounds):
        for kept, command in zip(runs, commands):
            kept += measure(1, *command)
    return [dict({key: statistics.median(run[key] for run in kept) for key in ("ms", "cpu_ms", "faults")},
                 mb=max(run["kb"] for run in kept) / 1024) for kept in runs]


def pieces(rounds, command):
    """Milliseconds of CPU by piece, which sum up to the whole (account.c)."""
    with tempfile.NamedTemporaryFile() as out:
        whole = measure(rounds, *command, environment={"LD_PRELOAD": ACCOUNT, "PROBING_ACCOUNT": out.name})
        runs = [json.loads(line) for line in out]
    for run, measured in zip(runs, whole):
        run["end"] = measured["cpu_ms"] * 1e3 - run.pop("all")
    told = {WORDS.get(name, name): statistics.median(run.get(name, 0) for run in runs) / 1e3 for name in runs[0]}
    return {name: value for name, value in told.items() if value >= 0.005}


def floor(pid, rounds=50):
    """The bare system calls of looks at a process, microseconds of CPU (floor.c)."""
    return json.loads(subprocess.run([FLOOR, str(pid), str(rounds)], stdout=subprocess.PIPE, check=True).stdout)


def of_root(python, program, *args):
    """Start a program of this folder or tests/targets, also for an interpreter in another root; its folder is .folder."""
    folder = HERE if os.path.exists(os.path.join(HERE, program)) else live.TARGETS
    if python.root:
        inner = "/tmp/probing-bench-{}".format(os.getpid())
        os.makedirs(python.root + inner, exist_ok=True)
        shutil.copy(os.path.join(folder, program), python.root + inner)
        folder = inner
    target = live.Target(python, program, args, folder=folder)
    target.folder = folder
    return target
