"""Figures of recording PyTorch: a module's call, a step, and the GIL while the hooks are put in; beside hooks of PyTorch's.

PROBING_UPSTREAM names the command of another project of the name (its wheel in a folder of its own), whose step is measured, too.
"""

import functools
import json
import os
import statistics
import subprocess
import sys

from support import target as live
from support.torch_python import torch_python
from timing import HERE, peer

PROGRAM = os.path.join(HERE, "traced.py")
LIBS = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", ".libs")
TOGGLE = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "toggle")
SETTING = "probing.torch.profiling="


class Job:
    """traced.py, which answers each line with JSON."""

    def __init__(self, python, **variables):
        self.child = subprocess.Popen([python, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      encoding="utf-8", env=dict(os.environ, **variables), preexec_fn=live.die_with_parent)
        self.pid, self.switch, self.observed = self.child.pid, None, False
        while self.line() != "ready\n":
            pass

    def line(self):
        line = self.child.stdout.readline()
        assert line, self.child.wait()
        return line

    def send(self, command):
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()

    def ask(self, *command):
        self.send(" ".join(map(str, command)))
        return json.loads(self.line())

    def record(self, spec):
        """As `probing config` does, but without a process for each time."""
        if not self.switch:
            live.probing("-t", self.pid, "inject", check=False)
            self.switch = subprocess.Popen([TOGGLE, str(self.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                                           preexec_fn=live.die_with_parent)
        self.switch.stdin.write(spec + "\n")
        self.switch.stdin.flush()
        assert self.switch.stdout.readline() == spec + "\n"

    def way(self, way):
        """As a recording of ours ("on", "rate=1"), hooks of PyTorch's ("c", "python"), an observer that does nothing, or nothing ("")."""
        hooks = way in ("c", "python")
        if self.observed != (way == "observer"):
            self.observed = not self.observed
            self.ask("observe", "on" if self.observed else "off")
        self.ask("hooks", way if hooks else "none")
        self.record("off" if hooks or way in ("", "observer") else way)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in (self.child, self.switch):
            if child:
                child.kill()
                child.communicate()


class More:
    """What something costs more than nothing: the median of pairs, and its error."""

    def __init__(self, pairs):
        differences = [there - plain for plain, there in pairs]
        self.median = statistics.median(differences)
        quarter, _, three = statistics.quantiles(differences, n=4)
        self.error = 1.2533 * (three - quarter) / 1.349 / len(differences) ** 0.5  # of a median, others disturb few pairs
        self.plain = statistics.median(plain for plain, _ in pairs)


def by_turns(job, ways, rounds, *command):
    told = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            pair = []
            for each in ("", way):
                job.way(each)
                job.ask(*command)
                pair.append(job.ask(*command))
            told[way].append(pair)
    job.way("")
    return {way: More(pairs) for way, pairs in told.items()}


def beside(figures, ours, theirs, peer_name, unit):
    """A peer without a bar."""
    figures.add("the same", ours, unit, peer=peer_name, theirs=theirs, ratio=ours / theirs if theirs > 0 else None)


def needs_torch(part):
    @functools.wraps(part)
    def run(figures, options):
        if torch_python():
            part(figures, options)
        else:
            print("  no Python with torch: left out", file=sys.stderr)
    return run


@needs_torch
def module_calls(figures, options):
    """A call in place, of 1,501 modules, which each have a row."""
    with Job(torch_python()) as job:
        for command, text in ("light", "a call of an empty module"), ("calls", "a call of nn.Linear(8, 8)"):
            told = by_turns(job, ["rate=1", "c", "python"], options.rounds * 4, command, 5)
            ours = told["rate=1"]
            figures.add("{}, with a row".format(text), ours.median / 1e3, "µs (± {:.3f}) more than {:.2f}".format(
                ours.error / 1e3, ours.plain / 1e3), "≤ 0.3 µs", ours.median <= 300)
            figures.against("the same", ours.median / 1e3, told["c"].median / 1e3, "a hook in C", "µs", 1 / 8)
            beside(figures, ours.median / 1e3, told["python"].median / 1e3, "a hook in Python", "µs")
            clock = 2 * job.ask("clock")
            figures.account(text, "ns", ours.median, {"two looks at the clock": clock, "the thread, the row, and the rest": ours.median - clock}, {})


class Upstream:
    """A process with the other project's probe, and one without: the same program by the same Python."""

    def __init__(self, command):
        python = os.path.join(os.path.dirname(command), "python")
        packages = subprocess.run([torch_python(), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], stdout=subprocess.PIPE,
                                  encoding="utf-8", check=True).stdout.strip()
        self.plain = Job(python, PYTHONPATH=packages)
        self.probed = Job(python, PYTHONPATH=packages, PROBING="1", PROBING_TORCH_PROFILING="on")

    def more(self, rounds, *command):
        return More([(self.plain.ask(*command), self.probed.ask(*command)) for _ in range(rounds)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.plain.__exit__()
        self.probed.__exit__()


@needs_torch
def collective_rows(figures, options):
    """A scope as torch.distributed opens it, with nothing in it."""
    with Job(torch_python()) as job:
        told = by_turns(job, ["on", "observer"], options.rounds * 8, "scopes", 5)
        ours, floor = told["on"], told["observer"]
        figures.add("a collective's row", ours.median / 1e3, "µs (± {:.3f}) more than {:.2f}".format(ours.error / 1e3, ours.plain / 1e3),
                    "≤ 0.3 µs", ours.median <= 300)
        clock = 2 * job.ask("clock")
        figures.account("a collective's row", "ns", ours.median, {
            "an observer that does nothing": floor.median, "two looks at the clock": clock,
            "the scope's name, the row, and the rest": ours.median - floor.median - clock}, {})


def percent(figures, name, more, bar, peer_more=None, peer_name=None):
    """Of a step, which counts as met when it is not resolved."""
    value, error = 100 * more.median / more.plain, 100 * more.error / more.plain
    theirs = peer_more and 100 * peer_more.median / peer_more.plain
    resolved = abs(value) > 2 * error
    figures.add(name, value, "% (± {:.2f}{}) of {:.1f} ms".format(error, "" if resolved else ", not resolved", more.plain / 1e6),
                bar and "≤ {} %".format(bar), bar and (value <= bar or not resolved), peer_name, theirs)


@needs_torch
def traced_steps(figures, options):
    """A step of 28 modules by default settings: the account, and by turns; the same of hooks, and of upstream's."""
    with Job(torch_python()) as job:
        told = by_turns(job, ["on", "c", "python"], options.rounds * 4, "steps", 10)
        job.way("on")
        job.ask("steps", 300)
        row, = live.query(job.pid, "SELECT avg(overhead) AS o, max(overhead) AS worst, avg(events) AS events, avg(step_duration_sec) AS s"
                          " FROM (SELECT * FROM python.torch_step_timing ORDER BY local_step DESC LIMIT 200)")
        figures.add("a recorded step, by account", 100 * row["o"], "% (worst {:.2f}, {:.0f} events, {:.1f} ms)".format(
            100 * row["worst"], row["events"], 1e3 * row["s"]), "≤ 0.3 %", row["o"] <= 0.003)
        percent(figures, "the same, by turns", told["on"], 1)
        for way, text in ("c", "hooks in C"), ("python", "hooks in Python"):
            percent(figures, "a step with " + text, told[way], None)
    command = peer("upstream")
    if command:
        with Upstream(command) as upstream:
            percent(figures, "a step with upstream's", upstream.more(options.rounds * 4, "steps", 10), None)


@needs_torch
def arming(figures, options):
    """How long the program's threads cannot have the GIL while the hooks are put in and taken out; turns of both."""
    with Job(torch_python(), LD_PRELOAD=os.path.join(LIBS, "gil_held.so")) as job:
        job.record("off")
        kinds = {"put in": [], "taken out": []}
        for turn in range(options.rounds * 2):
            for way, held in ("on", kinds["put in"]), ("off", kinds["taken out"]):
                job.ask("held")
                job.record(way)
                held.append([value / 1e6 for value in job.ask("held")])
        if not kinds["put in"][0][1]:
            print("  libpython is not a library of its own: left out", file=sys.stderr)
        for what, held in kinds.items() if kinds["put in"][0][1] else ():
            figures.bound("longest hold of the GIL, hooks {}, CPU time (worst of {}: {:.3g}; by the clock {:.3g})".format(
                what, len(held), max(cpu for cpu, _ in held), statistics.median(wall for _, wall in held)),
                statistics.median(cpu for cpu, _ in held), "ms", 0.25)
        count = 200 if options.quick else 2000
        job.send("go_on")
        told = json.loads(subprocess.run([TOGGLE, str(job.pid), str(count)], stdout=subprocess.PIPE, check=True).stdout)
        job.send("")
        figures.add("hooks put in and taken out, {:,} times beside {:,} steps, each".format(count, json.loads(job.line())), told["ms"] / count, "ms")


PARTS = [module_calls, collective_rows, traced_steps, arming]
