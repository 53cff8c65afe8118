"""What sampled allocations cost, beside tracemalloc and memray, and how good an estimate of 200 samples is.

PROBING_MEMRAY names a memray command, of a Python that has torch, too.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

from support import target as live
from support.torch_python import torch_python
from timing import peer

PROGRAM = os.path.join(HERE, "allocates.py")
KEPT = 1033  # bytes of one of its objects
SETTING = "probing.memory.profile="


class Loops:
    """The program, in a process that can be looked at."""

    def __init__(self, *command):
        self.child = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      encoding="utf-8", preexec_fn=live.die_with_parent)
        while "ready" not in self.child.stdout.readline():
            assert self.child.poll() is None, command

    def ask(self, name):
        self.child.stdin.write(name + "\n")
        self.child.stdin.flush()
        return float(self.child.stdout.readline())

    def end(self):
        self.child.kill()
        self.child.communicate()


def switch(pid, word):
    """On, and seen by all hooks; or off."""
    live.probing(pid, "config", SETTING + word, check=False)
    while word == "on":
        told = live.probing(pid, "query", "SELECT count(*) FROM memory_allocations", check=False)
        if not told.stderr:
            return


def slower(rounds, name, begin, end):
    """By how much a loop takes longer, in turns within one process: the median of pairs, %, and how sure it is."""
    ratios = []
    for _ in range(rounds):
        pair = []
        for change in (end, begin):
            change()
            pair.append(min(change.loops.ask(name) for _ in range(5)))
        ratios.append(100 * (pair[1] / pair[0] - 1))
    return statistics.median(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5


class Switch:
    def __init__(self, loops, word):
        self.loops, self.word = loops, word

    def __call__(self):
        switch(self.loops.child.pid, self.word)


def beside(rounds, name, plain, command):
    """The same of a process of its own."""
    other = Loops(*command)
    try:
        ratios = [100 * (min(other.ask(name) for _ in range(5)) / min(plain.ask(name) for _ in range(5)) - 1) for _ in range(rounds)]
    finally:
        other.end()
    return statistics.median(ratios)


def estimate(figures):
    """Of 200,000 objects, with a period that gives some 200 samples."""
    loops = Loops(torch_python() or sys.executable, PROGRAM)
    try:
        live.probing(loops.child.pid, "config", "probing.memory.period=1MiB", "probing.memory.samples=100000", check=False)
        off = []
        for _ in range(7):
            switch(loops.child.pid, "on")
            loops.ask("keep")
            row = json.loads(live.probing(loops.child.pid, "query", "-f", "json", "SELECT sum(live_bytes) AS live FROM memory_allocations"
                                          " WHERE function_name LIKE 'keep%'").stdout)[0]
            off.append(100 * abs(row["live"] / (200000 * KEPT) - 1))
            switch(loops.child.pid, "off")
        figures.bound("live estimate of 200 samples, off the truth", statistics.median(off), "%", 10)
    finally:
        loops.end()


def allocations(figures, options):
    rounds = max(3, options.rounds)
    python = torch_python() or sys.executable
    memray = peer("memray")
    with tempfile.TemporaryDirectory() as folder:
        peers = [("tracemalloc, 1 frame", [python, PROGRAM, "tracemalloc", 1])]
        if memray:
            memray_python = os.path.join(os.path.dirname(memray), "python")
            peers.append(("memray", [memray_python, "-m", "memray", "run", "-q", "-f", "-o", os.path.join(folder, "memray.bin"), PROGRAM]))
        names = [("containers", "three small containers", 20), ("blocks", "bytes(2000)", 20)]
        names += [("steps", "training step", 0.5)] if torch_python() else []
        for name, text, bar in names:
            loops = Loops(python, PROGRAM)
            try:
                loops.ask(name)
                more, error = slower(rounds * (3 if name == "steps" else 1), name, Switch(loops, "on"), Switch(loops, "off"))
                resolved = more > 2 * error
                figures.add("{}, sampled".format(text), more, "% (± {:.2f}) of CPU more".format(error), "≤ {} %".format(bar),
                            more <= bar or not resolved)
                switch(loops.child.pid, "off")
                for peer_name, command in peers:
                    figures.add("the same beside " + peer_name, beside(rounds, name, loops, command), "% of CPU more")
            finally:
                loops.end()
    estimate(figures)
