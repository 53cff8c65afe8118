"""The figures of tests/bench/README.md, measured beside the peers that are installed.

Prints a table in Markdown and writes build/bench.json (argument --json FILE).  --page FILE renews the page's tables of the
parts that ran.  Every comparison is of runs taken in turn, medians of them.  --quick: fewer runs, and no page.
--only WORD: the parts with that word in their name.
PROBING_TORCH_PYTHON names a Python with torch; PROBING_PYSPY the py-spy command; PROBING_MEMRAY memray; PROBING_UPSTREAM the probing of
PyPI's wheel, in an environment of its own.
"""

import argparse
import glob
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import across  # noqa: E402
import allocating  # noqa: E402
import communication  # noqa: E402
import crashes  # noqa: E402
import debuggers  # noqa: E402
import debugging  # noqa: E402
import getting_in  # noqa: E402
import keeping  # noqa: E402
import looking  # noqa: E402
import outside  # noqa: E402
import page  # noqa: E402
import profiling  # noqa: E402
import served  # noqa: E402
import shown  # noqa: E402
import tensors  # noqa: E402
import tracing  # noqa: E402
import watching  # noqa: E402
from support import pythons  # noqa: E402
from support import target as live  # noqa: E402
from support.torch_python import torch_python  # noqa: E402
from timing import in_turn, measure, of_root, peer  # noqa: E402

BUILD = os.environ.get("BUILDDIR", ".")
SAMPLE = os.path.join(BUILD, "tests", "bench", "sample")
PROBING = live.PROBING


class Figures:
    def __init__(self):
        self.rows = []
        self.accounts = []
        self.part = ""

    def add(self, name, value, unit, bar=None, met=None, peer=None, theirs=None, ratio=None):
        row = {"part": self.part, "figure": name, "value": value, "unit": unit, "bar": bar, "met": met, "peer": peer, "theirs": theirs,
               "ratio": ratio}
        self.rows.append(row)
        print("  {}: {:.4g} {}{}".format(name, value, unit, "" if theirs is None else
                                         " ({} {:.4g})".format(peer, theirs)), file=sys.stderr, flush=True)

    def against(self, name, ours, theirs, peer_name, unit, at_most):
        ratio = ours / theirs
        self.add(name, ours, unit, "≤ {:.2g} × {}".format(at_most, peer_name), ratio <= at_most, peer_name, theirs, ratio)

    def account(self, name, unit, whole, pieces, floor):
        """Where a figure goes: pieces and floor are {what: value}; the pieces sum up to the whole, but for what measuring costs."""
        self.accounts.append({"part": self.part, "figure": name, "unit": unit, "whole": whole, "pieces": pieces, "floor": floor})
        print("  " + page.account(self.accounts[-1]), file=sys.stderr, flush=True)

    def bound(self, name, value, unit, bound):
        self.add(name, value, unit, "≤ {:g} {}".format(bound, unit), value <= bound)


class Training:
    """The training job: bench/train.py, which times its own steps."""

    def __init__(self, threads=30):
        self.target = live.Target(pythons.Python([], torch_python(), (3, 0, 0), "torch"), "train.py", [threads], folder=HERE)
        self.pid = self.target.pid

    def period(self):
        """The steps since the last call."""
        self.target.child.stdin.write(b"\n")
        self.target.child.stdin.flush()
        return json.loads(self.target.line())

    def while_running(self, rounds, *command):
        """Median and worst step, milliseconds, while the command runs again and again."""
        self.period()
        if command:
            for _ in range(rounds):
                measure(1, *command)
        else:
            time.sleep(rounds * 0.05)
        told = self.period()
        while not told["steps"]:  # the step that began before is not over yet
            time.sleep(0.05)
            told = self.period()
        return told["median"] * 1e3, told["worst"] * 1e3


def commands(figures, options):
    runs = in_turn(options.rounds * 2, [PROBING, "--version"])
    figures.bound("`probing --version`", runs[0]["ms"], "ms", 5)


def stopped_ms(pid):
    """The longest stop of one thread that `backtrace --native -v` tells of."""
    text = live.probing("-t", pid, "-v", "backtrace", "--native", check=False).stdout
    told = [line for line in text.splitlines() if "was stopped for" in line]
    return float(told[-1].split("was stopped for ")[1].split()[0]) if told else 0.0


def training(figures, options):
    if not torch_python():
        print("  no Python with torch: left out", file=sys.stderr)
        return
    job = Training()
    try:
        pid, pyspy, pystack = job.pid, peer("py-spy"), peer("pystack")
        plain, native = [PROBING, "-t", pid, "backtrace"], [PROBING, "-t", pid, "backtrace", "--native"]
        theirs = [[pyspy, "dump", "--pid", pid], [pyspy, "dump", "--native", "--pid", pid]] if pyspy else []
        runs = in_turn(options.rounds, plain, native, [PROBING, "-t", pid, "query", "SELECT count(*) FROM python.backtrace"],
                       *theirs)
        if pyspy:
            figures.against("`backtrace`, torch, 30 threads", runs[0]["ms"], runs[3]["ms"], "py-spy dump", "ms", 1 / 5)
            figures.against("`backtrace --native`, the same", runs[1]["ms"], runs[4]["ms"], "py-spy dump --native", "ms", 1 / 10)
        if pystack:
            slow = in_turn(3, plain, [pystack, "remote", pid])
            figures.against("`backtrace`, the same", slow[0]["ms"], slow[1]["ms"], "pystack remote", "ms", 1 / 5)
        figures.bound("peak memory of `backtrace`", runs[0]["mb"], "MB", 20)
        figures.add("peak memory of `backtrace --native`", runs[1]["mb"], "MB", peer="py-spy dump --native" if pyspy else None,
                    theirs=runs[4]["mb"] if pyspy else None, ratio=runs[1]["mb"] / runs[4]["mb"] if pyspy else None)
        figures.bound("`query` on a live target, whole command", runs[2]["ms"], "ms", 15)
        figures.bound("longest stop of a thread, `backtrace --native`",
                      statistics.median(stopped_ms(pid) for _ in range(options.rounds)), "ms", 0.2)
        for name, command in [("nothing", []), ("`backtrace`", plain), ("`backtrace --native`", native)] + (
                [("py-spy dump", theirs[0]), ("py-spy dump --native", theirs[1])] if pyspy else []):
            median, worst = job.while_running(options.rounds, *command)
            figures.add("worst training step beside " + name, worst, "ms (median step {:.1f} ms)".format(median))
        told = sampled(pid, "--seconds", 1 if options.quick else 3)
        figures.bound("a verified sample, torch, busy", told["cpu_us_per_thread"], "µs a thread", 2)
        whole = told["cpu_us_per_thread"] * told["thread_samples"] / told["samples"]
        figures.account("a verified sample, torch, busy", "µs of CPU", whole, *profiling.of_a_sample(pid, whole, "sample"))
    finally:
        job.target.end()


def sampled(pid, *options):
    return json.loads(subprocess.run([SAMPLE, str(pid), *map(str, options)], stdout=subprocess.PIPE, check=True).stdout)


def cpu_seconds():
    """Of all children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpython_sampler(python, pid, rate, seconds):
    """Collapsed stacks {stack: count} of the sampler inside CPython 3.15, or None."""
    out = "/tmp/probing-bench-{}.collapsed".format(os.getpid())
    arguments = ["-m", "profiling.sampling", "attach", "-a", "-r", rate, "-d", str(seconds), "--collapsed", "-o", out, str(pid)]
    command = python.command(*arguments)
    if python.root:  # it opens the target's files by the names that we see, so it must see them so, too
        loader = next(iter(sorted(glob.glob(python.root + "/usr/lib*/ld-linux-*.so.*"))), None)
        if not loader:
            return None
        libraries = ":".join(glob.glob(python.root + "/usr/lib/*-linux-gnu") + [python.root + "/usr/lib"])
        command = ["env", "PYTHONHOME=" + python.root + "/usr", loader, "--library-path", libraries,
                   python.root + python.executable, *arguments]
    done = subprocess.run(command,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=seconds + 60)
    if done.returncode or not os.path.exists(out):
        return None
    counts = profiling.collapsed(out)
    os.unlink(out)
    return counts


def impossible(stack):
    """The rule of sample.c on a collapsed stack, outermost frame first."""
    levels = []
    for frame in stack.split(";"):
        words = [word for word in frame.replace(":", " ").replace("(", " ").split() if word[:1] in "ab" and word[1:].isdigit()]
        levels += [(word[0], int(word[1:])) for word in words[:1]]
    return bool(levels) and ([level for _, level in levels] != list(range(len(levels))) or len({c for c, _ in levels}) > 1)


def wrong_share(counts):
    whole = sum(counts.values())
    return 100 * sum(n for stack, n in counts.items() if impossible(stack)) / whole if whole else 0.0


def cost(figures, options):
    """What a sample costs when nothing moves, beside the sampler inside CPython 3.15."""
    found = [python for python in pythons.found() if not python.container and "jit" not in python.how]
    for python in found:
        with of_root(python, "parked.py", 9) as target:
            target.settle()
            told = sampled(target.pid, "--seconds", 0.5 if options.quick else 2)
            name, whole = "a verified sample, 9 threads, CPython {}".format(python.id.split("-")[0]), 9 * told["cpu_us_per_thread"]
            figures.bound(name, told["cpu_us_per_thread"], "µs a thread", 2)
            # Before 3.7 nothing tells that a thread had no GIL: all are read.
            figures.account(name, "µs of CPU", whole,
                            *profiling.of_a_sample(target.pid, whole, "sample" if python.minor >= (3, 7) else "readings"))
            if python.minor >= (3, 15):
                before = cpu_seconds()
                counts = cpython_sampler(python, target.pid, "1000khz", 3)
                spent = cpu_seconds() - before
                if counts:
                    theirs = spent * 1e6 / sum(counts.values())
                    figures.against("the same", told["cpu_us_per_thread"], theirs, "CPython 3.15's sampler", "µs a thread", 1 / 2)


def torn(figures, options):
    """Wrong stacks of the alternating program, by version."""
    pyspy = peer("py-spy")
    for python in pythons.found():
        if python.container or python.minor < (3, 8) or "jit" in python.how:
            continue
        for shape in ("own", "shared"):
            with of_root(python, "alternate.py", shape, 14) as target:
                os.sched_setaffinity(target.pid, {max(os.sched_getaffinity(0))})
                told = sampled(target.pid, "--samples", 3000 if options.quick else 20000, "--rate", 10000)
                wrong = 100 * told["impossible"] / max(1, told["checked"])
                dropped = 100 * (told["unstable"] + told["broken"]) / told["thread_samples"]
                theirs, name = None, None
                if python.minor >= (3, 15):
                    counts = cpython_sampler(python, target.pid, "10khz", 2)
                    theirs, name = counts and wrong_share(counts), "CPython 3.15's sampler"
                elif pyspy:
                    theirs, name = pyspy_wrong(pyspy, target.pid), "py-spy --nonblocking"
                figures.add("wrong stacks, {}, {} functions".format(python.id.split("-")[0], shape), wrong,
                            "% (dropped {:.2f} %, tries rejected {:.0f} %)".format(
                                dropped, 100 * told["rejected"] / max(1, told["tries"])),
                            "≤ 0.1 % at ≤ 1 % dropped", wrong <= 0.1 and dropped <= 1, name, theirs)


def pyspy_wrong(pyspy, pid):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "raw")
        done = subprocess.run([pyspy, "record", "--nonblocking", "-r", "1000", "-d", "2", "-f", "raw", "-o", out, "--pid",
                               str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        return wrong_share(profiling.collapsed(out)) if done.returncode == 0 and os.path.exists(out) else None


PARTS = ([commands] + looking.PARTS + [training, cost, torn] + getting_in.PARTS + debugging.PARTS + tensors.PARTS + debuggers.PARTS +
         crashes.PARTS + [allocating.allocations] + watching.PARTS + tracing.PARTS + outside.PARTS + keeping.PARTS + communication.PARTS + across.PARTS + served.PARTS + shown.PARTS +
         profiling.parts(Training, cpython_sampler, torch_python, wrong_share))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default=os.path.join(BUILD, "bench.json"))
    parser.add_argument("--page")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    options.rounds = 5 if options.quick else 15
    figures = Figures()
    for part in PARTS:
        if options.only in part.__name__:
            print(part.__name__, file=sys.stderr, flush=True)
            figures.part = part.__name__
            part(figures, options)
    told = {"machine": {"cpus": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()},
            "figures": figures.rows, "accounts": figures.accounts}
    with open(options.json, "w") as out:
        json.dump(told, out, indent=2, ensure_ascii=False)
    print(page.markdown(figures.rows, figures.accounts))
    if options.page and not options.quick:
        page.write(options.page, figures.rows, figures.accounts)


if __name__ == "__main__":
    main()
