"""Figures of looking: what the commands cost in CPU time, page faults and system calls, and where it goes."""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import tempfile

import getting_in
from support import target as live
from timing import HERE, TRUE, TRUE_MS, floor, in_turn, peer, pieces

PROBING = live.PROBING
BUILD = os.environ.get("BUILDDIR", ".")
CROWD = os.path.join(BUILD, "tests", "bench", "crowd")


def calls(command):
    """How many system calls it makes, or None without strace."""
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strace", "-f", "-c", "-o", out.name, *map(str, command)], stdout=subprocess.DEVNULL, check=True)
        whole = re.search(rb"^100\.00 +\S+ +\S+ +(\d+)", out.read(), re.M)
    return int(whole.group(1)) if whole else None


def least(pid):
    """The bare system calls of a look, milliseconds of CPU."""
    told = floor(pid)
    threads = told["threads"]
    return {f"stat of {threads} threads": told["stat"] / 1e3, f"two readings of {threads} stacks": told["readings"] / 1e3}


@contextlib.contextmanager
def begun(command):
    """A program of ours that prints a line when it is ready."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert child.stdout.readline(), command
        yield child
    finally:
        child.kill()
        child.communicate()


def looking(figures, options):
    """The commands that people wait for, on a process of 30 threads that wait."""
    rounds = options.rounds * 2
    with getting_in.waiting() as target:
        pid, pyspy = target.pid, peer("py-spy")
        looks = [("`backtrace`, 30 threads", ["backtrace"], 2.5), ("`backtrace --native`, the same", ["backtrace", "--native"], 6),
                 ("`query` of `select 1`", ["query", "select 1"], 2.2),
                 ("`query` of python.backtrace", ["query", "select count(*) from python.backtrace"], 4)]
        commands = [[PROBING, "-t", pid, *words] for _, words, _ in looks]
        theirs = [[pyspy, "dump", "--pid", pid]] if pyspy else []
        true, start, *told = in_turn(rounds, TRUE, [PROBING, "--version"], *commands, *theirs)
        scale = true["cpu_ms"] / TRUE_MS
        bare = {"`/bin/true`": true["cpu_ms"], "`probing --version`": start["cpu_ms"]}
        of_stacks = least(pid)
        for (name, words, bar), command, run in zip(looks, commands, told):
            figures.bound(name + ", CPU time", run["cpu_ms"], "ms", bar * scale)
            figures.account(name, "ms of CPU", run["cpu_ms"], pieces(rounds, command),
                            bare if words[-1] == "select 1" else {**bare, **of_stacks})
        if pyspy:
            figures.against(looks[0][0] + ", CPU time", told[0]["cpu_ms"], told[-1]["cpu_ms"], "py-spy dump", "ms", 1 / 9)
        figures.bound(looks[0][0] + ", page faults", told[0]["faults"], "", 250)
        made = calls(commands[0])
        if made:
            figures.bound(looks[0][0] + ", system calls", made, "", 200)
    with begun([CROWD, 2000]):
        true, run = in_turn(options.rounds, TRUE, [PROBING, "list"])
        figures.bound("`list` beside 2,000 processes that are not Python, CPU time", run["cpu_ms"], "ms", 35 * true["cpu_ms"] / TRUE_MS)
        bare = floor(os.getpid(), 1)
        figures.account("`list` beside 2,000 processes", "ms of CPU", run["cpu_ms"], pieces(options.rounds, [PROBING, "list"]),
                        {"`/bin/true`": true["cpu_ms"], "stat of {} processes".format(bare["processes"]): bare["list"] / 1e3})


# What grows, from one size to another: unit, the command, its bar for each more, microseconds.
HEAP = ["query", "select type, count(*) from python.objects group by 1 order by 2 desc limit 5"]
GROWTH = [("threads", (1, 30, 300, 2000), ["backtrace"], 25, "a thread of 7 frames"),
          ("threads", (1, 30, 300, 2000), ["backtrace", "--native"], 70, "the same with `--native`"),
          ("depth", (10, 1000, 10000), ["backtrace"], 0.4, "a frame"),
          ("mappings", (500, 10000, 60000), ["backtrace"], 1, "a mapping"),
          ("objects", (100000, 1000000, 10000000), HEAP, 0.15, "an object on the heap")]


# Beside so many processes: what `list` takes for each.
PROCESSES = [("python", (10, 50, 200), 100, "a Python process"), ("crowd", (10, 500, 2000, 5000), 15, "a process that is not Python")]


def slope(figures, name, sizes, costs, trues, bar):
    """From the least size to the most, microseconds for each; milliseconds of each size stand beside it."""
    each = (costs[-1] - costs[0]) / (sizes[len(costs) - 1] - sizes[0]) * 1e3
    figures.bound("{} ({} ms)".format(name, ", ".join(f"{size:,}: {cost:.3g}" for size, cost in zip(sizes, costs))),
                  each, "µs", bar * statistics.median(trues) / TRUE_MS)


def growth(figures, options):
    """What one more thread, frame, mapping, object or process costs: the slope from the least to the most."""
    python = getting_in.interpreter()
    for kind, sizes, words, bar, name in GROWTH:
        costs, trues = [], []
        sizes = sizes[:-1] if options.quick else sizes
        for size in sizes:
            with begun([*python.command(), os.path.join(HERE, "sized.py"), kind, size]) as child:
                true, run = in_turn(3 if size >= 1000000 else options.rounds, TRUE, [PROBING, "-t", child.pid, *words])
                costs.append(run["cpu_ms"])
                trues.append(true["cpu_ms"])
        slope(figures, name + " more", sizes, costs, trues, bar)
    for kind, sizes, bar, name in PROCESSES:
        costs, trues = [], []
        for size in sizes[:-1] if options.quick else sizes:
            with contextlib.ExitStack() as running:
                for command in [[CROWD, size]] if kind == "crowd" else [[*python.command(), os.path.join(HERE, "sized.py"), "objects", 1]] * size:
                    running.enter_context(begun(command))
                true, run = in_turn(options.rounds, TRUE, [PROBING, "list"])
            costs.append(run["cpu_ms"])
            trues.append(true["cpu_ms"])
        slope(figures, name + " more, `list`", sizes, costs, trues, bar)


PARTS = [looking, growth]
