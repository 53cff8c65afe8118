"""Figures of watched variables: what one costs at a call of its function, and at a step; beside the same from Python."""

import statistics
import subprocess
import sys
import time

from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE

CALLS, STEPS, MANY = 100000, 400, 16


def set_exprs(pid, exprs):
    subprocess.run([live.PROBING, "-t", str(pid), "config", "probing.torch.exprs=" + exprs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    time.sleep(0.3)  # the job that puts it in has no event


def ask(job, command):
    job.child.stdin.write(command.encode() + b"\n")
    job.child.stdin.flush()
    return float(job.line())


def by_turns(job, ways, command, rounds):
    """The least of each way's figures: other programs only make them longer."""
    told = [[] for _ in ways]
    for _ in range(rounds):
        for way, results in zip(ways, told):
            set_exprs(job.pid, way)
            results.append(ask(job, command))
    return [min(results) for results in told]


def watching(figures, options):
    rounds = max(3, options.rounds)
    python = pythons.Python([], torch_python() or sys.executable, (3, 0, 0), "bench")
    with live.Target(python, "watched.py", folder=HERE) as job:
        off, on = by_turns(job, ["", "loss@work"], "calls {}".format(CALLS), rounds)
        theirs = min(ask(job, "python calls {}".format(CALLS // 4)) for _ in range(rounds)) - off
        figures.bound("watched variable, a call of its function", (on - off) / 1e3, "µs", 2)
        figures.against("the same", (on - off) / 1e3, theirs / 1e3, "a profile function in Python", "µs", 1)
        if not torch_python():
            return
        subprocess.run([live.PROBING, "-t", str(job.pid), "config", "probing.torch.profiling=on"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        ways = ["", "loss@train", ",".join(["loss@train"] * MANY)]
        none, one, many = by_turns(job, ways, "steps {}".format(STEPS), rounds)
        set_exprs(job.pid, "")
        hooked = statistics.median(ask(job, "python steps {}".format(STEPS)) - ask(job, "steps {}".format(STEPS)) for _ in range(rounds))
        each = (many - one) / (MANY - 1)
        figures.bound("watched variable, a step", each, "µs", 0.3)
        figures.against("the same", each, hooked, "a hook in Python", "µs", 1 / 20)
        figures.add("the first one, a step", one - none, "µs")


PARTS = [watching]
