"""Profiles: what the sampler reaches, what it costs, and what it does to the job, beside py-spy and CPython 3.15's.

Each part takes a minute at most.
"""

import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from support import pythons
from support import target as live
from timing import floor, of_root, peer

COUNTS = re.compile(r"(\d+) samples in ([\d.]+) s .*, (\d+) of threads; (\d+) dropped")
STOPPED = re.compile(r"stopped for longer than ([\d.]+) ms")
THREADS = [1, 9, 30, 160, 400]
FULL_RATE = 1000000
TIMELINE_MB = 16  # at most: what exceeds 8 MB goes to a file (lib/profile/timeline.c)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak(pid):
    """Peak memory so far, MB; what wait4 tells is that of whoever forked, too."""
    try:
        with open("/proc/{}/status".format(pid)) as status:
            return max([int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")], default=0.0)
    except OSError:
        return 0.0


def run(command):
    """What a command printed, its CPU time (s) and peak memory (MB); None when it failed."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(list(map(str, command)), stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        mb, ended = 0.0, 0
        while not ended:
            time.sleep(0.1)
            mb = max(mb, peak(child.pid))
            ended, status, told = os.wait4(child.pid, os.WNOHANG)
        child.returncode = status
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    return None if status else (text, told.ru_utime + told.ru_stime, mb)


def collapsed(path):
    counts = {}
    with open(path, errors="replace") as lines:
        for line in lines:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            counts[stack] = counts.get(stack, 0) + int(count)
    return counts


def profile(pid, rate, seconds, *options, path="/dev/null"):
    """Samples and thread samples a second, share of a core (%), peak memory (MB), share dropped (%), longest stop (ms)."""
    said, cpu, mb = run([live.PROBING, "-v", "-t", pid, "profile", "-r", rate, "-d", seconds, "-f", "collapsed", "-o", path,
                         *options])
    found = COUNTS.search(said)
    assert found, said
    spent, threads, stopped = float(found[2]), int(found[3]), STOPPED.search(said)
    return {"samples": int(found[1]) / spent, "threads": threads / spent, "core": 100 * cpu / spent, "mb": mb,
            "cpu": cpu, "dropped": 100 * int(found[4]) / max(1, threads), "stop": float(stopped[1]) if stopped else 0.0}


def py_spy(pid, rate, seconds, *options):
    """As profile, of py-spy record; None."""
    command = peer("py-spy")
    if not command:
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = run([command, "record", "-r", rate, "-d", seconds, "-f", "raw", "-o", folder + "/raw", "-p", pid, "-i", "-t",
                    *options])
        if not done or not os.path.exists(folder + "/raw"):
            return None
        threads = sum(collapsed(folder + "/raw").values())
    return {"threads": threads / seconds, "cpu": done[1], "core": 100 * done[1] / seconds, "mb": done[2]}


def newest():
    found = [python for python in pythons.found() if not python.container and "jit" not in python.how]
    return max(found, key=lambda python: python.version)


def of_a_sample(pid, whole, which):
    """Its pieces and its floor (floor.c): the bare read of a thread that stands ("sample"), with a sleep before each ("slept"), or one
    reading of all threads ("readings": its first one is that of the sample before)."""
    told = floor(pid)
    bare = {"sample": {"one read of 5 ranges": told["sample"]},
            "slept": {"a sleep of 1 ms": told["nap"], "one read of 5 ranges after it": told["slept"] - told["nap"]},
            "readings": {"one reading of {} stacks".format(told["threads"]): told["readings"] / 2}}[which]
    return {**bare, "the rest": whole - sum(bare.values())}, bare


def rates(figures, options, cpython_sampler):
    """As fast as it goes, the same target for all, names resolved and counted, by the CPU time it took."""
    python, seconds = newest(), 1 if options.quick else 3
    for count in THREADS[:3] if options.quick else THREADS:
        with of_root(python, "parked.py", count) as target:
            target.settle()
            ours = profile(target.pid, FULL_RATE, seconds, "--idle")
            rate = ours["threads"] * seconds / ours["cpu"]
            name = "thread samples a second of one core, {} threads, CPython {}".format(count, python.id.split("-")[0])
            before, theirs = cpu_seconds(), None
            if python.minor >= (3, 15):
                counts = cpython_sampler(python, target.pid, "1000khz", seconds)
                theirs = sum(counts.values()) / (cpu_seconds() - before) if counts else None
            ratio = rate / theirs if theirs else None
            least = 6 if count == 9 else 2
            figures.add(name, rate / 1e3, "thousand (dropped {:.2f} %, {:.0f} MB)".format(ours["dropped"], ours["mb"]),
                        "≥ {} ×".format(least), None if ratio is None else ratio >= least, "CPython 3.15's sampler",
                        theirs and theirs / 1e3, ratio)
            if count == 1:
                figures.account("a sample of one thread", "µs of CPU", 1e6 / rate, *of_a_sample(target.pid, 1e6 / rate, "sample"))


class Stops:
    """While it is entered: how many of some looks at a process find its main thread held by a tracer, %."""

    def __init__(self, pid):
        self.path = "/proc/{}/stat".format(pid)
        self.looks = self.held = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.over.wait(0.005):
            with open(self.path) as stat:
                self.held += stat.read().rsplit(")", 1)[1].split()[0] == "t"
            self.looks += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.share = 100 * self.held / max(1, self.looks)


def beside_py_spy(figures, options):
    """The same on the newest Python of this root, and whether the target was stopped for it."""
    if not peer("py-spy"):
        print("  no py-spy: left out", file=sys.stderr)
        return
    python, seconds = max((one for one in pythons.found() if not one.root and not one.container),
                          key=lambda one: one.version), 1 if options.quick else 3
    for count in THREADS[:3] if options.quick else THREADS:
        with of_root(python, "parked.py", count) as target:
            target.settle()
            with Stops(target.pid) as stops:
                ours = profile(target.pid, FULL_RATE, seconds, "--idle")
            with Stops(target.pid) as their_stops:
                spy = py_spy(target.pid, max(5, 3000 // (count + 2)), seconds)  # it goes on until it has them all
            rate = ours["threads"] * seconds / ours["cpu"]
            spied = spy and spy["threads"] * seconds / spy["cpu"]
            figures.add("thread samples a second of one core, {} threads, CPython {}".format(count, python.id.split("-")[0]),
                        rate / 1e3, "thousand (target held in {:.0f} % of samples)".format(stops.share), None, None,
                        "py-spy record (held in {:.0f} %)".format(their_stops.share), spied and spied / 1e3,
                        spied and rate / spied)


def truth(figures, options, cpython_sampler, wrong_share):
    """The alternating program at 1 kHz, every CPython."""
    seconds, worst_wrong, worst_dropped = 1 if options.quick else 2, 0.0, 0.0
    for python in pythons.found():
        if python.container or "jit" in python.how:
            continue
        for shape in ("own", "shared"):
            with of_root(python, "alternate.py", shape, 14) as target, tempfile.TemporaryDirectory() as folder:
                os.sched_setaffinity(target.pid, {max(os.sched_getaffinity(0))})
                ours = profile(target.pid, 1000, seconds, "--idle", path=folder + "/raw")
                wrong = wrong_share(collapsed(folder + "/raw"))
                worst_wrong, worst_dropped = max(worst_wrong, wrong), max(worst_dropped, ours["dropped"])
                print("  {} {}: wrong {:.3f} %, dropped {:.3f} %, {:.0f} a second".format(
                    python.id, shape, wrong, ours["dropped"], ours["samples"]), file=sys.stderr, flush=True)
                if python.minor >= (3, 15):
                    counts = cpython_sampler(python, target.pid, "1khz", seconds) or {}
                    told = sum(counts.values())
                    figures.add("wrong stacks in a profile, {} functions, CPython 3.15".format(shape), wrong, "%", "≤ 0.1 %",
                                wrong <= 0.1, "CPython 3.15's sampler", wrong_share(counts) if counts else None)
                    figures.add("dropped of it", ours["dropped"], "%", "≤ 1 %", ours["dropped"] <= 1,
                                "CPython 3.15's sampler", 100 * max(0.0, 1 - told / (1000 * seconds)) if counts else None)
    figures.bound("wrong stacks in a profile, the worst CPython", worst_wrong, "%", 0.1)
    figures.bound("dropped of it, the worst CPython", worst_dropped, "%", 1)


def costs(figures, options):
    """At 100 Hz, by threads, and at 1 kHz."""
    seconds = 3 if options.quick else 6
    python = max((one for one in pythons.found() if not one.root and not one.container), key=lambda one: one.version)
    for count in (30, 160):
        with of_root(python, "parked.py", count) as target:
            target.settle()
            ours, theirs = profile(target.pid, 100, seconds), py_spy(target.pid, 100, seconds)
            figures.add("sampling at 100 Hz, {} threads".format(count), ours["core"], "% of a core", "≤ 1.5 %", ours["core"] <= 1.5,
                        "py-spy record", theirs and theirs["core"], theirs and ours["core"] / theirs["core"])
            figures.add("memory of it", ours["mb"], "MB", None, None, "py-spy record", theirs and theirs["mb"],
                        theirs and ours["mb"] / theirs["mb"])
    with of_root(python, "parked.py", 1) as target:
        target.settle()
        ours = profile(target.pid, 1000, seconds)
        figures.bound("sampling at 1 kHz, one thread", ours["core"], "% of a core", 3)
        each = 1e6 * ours["cpu"] / (ours["samples"] * seconds)
        figures.account("a sample at 1 kHz", "µs of CPU", each, *of_a_sample(target.pid, each, "slept"))


def growth(figures, options):
    """What an hour at 1 kHz comes to: the growth between two profiles, the second of four times the samples."""
    python = max((one for one in pythons.found() if not one.root and not one.container), key=lambda one: one.version)
    with of_root(python, "alternate.py", "own", 14) as target:
        with tempfile.TemporaryDirectory() as folder:
            short, long = (profile(target.pid, 10000, seconds, "--idle", path=folder + "/raw")
                           for seconds in (3, 12))
    more = max(0.0, long["mb"] - short["mb"]) / max(1.0, long["samples"] * 12 - short["samples"] * 3)
    figures.bound("memory of an hour at 1 kHz, by growth, and a timeline's buffers", long["mb"] + more * 3.6e6 + TIMELINE_MB,
                  "MB", 60)


def mean_step(job):
    """Of the steps since the last call; of one at least."""
    told = job.period()
    while not told["steps"]:
        time.sleep(0.05)
        told = job.period()
    return told["mean"]


BEGIN, WINDOW, TURN = 1.2, 0.8, 0.4  # seconds: until a command samples, of a period, and of a turn


def ticks(pid):
    """Processor time of a process, seconds."""
    with open("/proc/{}/stat".format(pid)) as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def pair(job, command):
    """Steps of a period without and of one with the command, which began before: how much longer (%), the command's share
    of a core (%), and what it said."""
    job.period()
    time.sleep(WINDOW)
    alone = mean_step(job)
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(list(map(str, command)), stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        time.sleep(BEGIN)
        job.period()
        before = ticks(child.pid)
        time.sleep(WINDOW)
        slower = 100 * (mean_step(job) / alone - 1)
        core = 100 * (ticks(child.pid) - before) / WINDOW
        child.wait(60)
        said.seek(0)
        return slower, core, said.read().decode("utf-8", "replace")


def turns(job, command, count):
    """Pairs of short periods, one with the command stopped (SIGSTOP) and one while it goes on, in changing order: how much
    longer the steps of each are then (%), and the command's share of a core while it goes on (%)."""
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
    try:
        time.sleep(BEGIN)
        before, slower = ticks(child.pid), []
        for number in range(count):
            means = {}
            for goes_on in (True, False)[::1 if number % 2 else -1]:
                child.send_signal(signal.SIGCONT if goes_on else signal.SIGSTOP)
                time.sleep(TURN / 10)
                job.period()
                time.sleep(TURN)
                means[goes_on] = mean_step(job)
            slower.append(100 * (means[True] / means[False] - 1))
        return slower, 100 * (ticks(child.pid) - before) / (count * TURN * 1.1)
    finally:
        child.send_signal(signal.SIGCONT)
        child.kill()
        child.wait()


def error_of(values):
    """Of their median, by the spread of the middle half (a normal distribution's 1.349 sigma; a median's 1.253 sigma / √n)."""
    low, _, high = statistics.quantiles(values, n=4)
    return 1.253 * (high - low) / 1.349 / len(values) ** 0.5


def stolen():
    """Milliseconds of this machine's CPUs that its host gave to others (proc_stat(5), steal)."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * 1e3 / os.sysconf("SC_CLK_TCK")


def slow_down(figures, options, job):
    """Mean training step beside a profile at 100 Hz: by turns where the profiler may stand at any time, which stops nobody, by
    pairs of periods without and with it where it may not; and beside nothing, for the machine's own noise."""
    count, seconds = (20, BEGIN + 2 * WINDOW) if options.quick else (100, BEGIN + 2 * WINDOW)
    ours = [live.PROBING, "-v", "-t", job.pid, "profile", "-r", 100, "-f", "collapsed", "-o", "/dev/null", "-d"]
    for name, command, bound in (("nothing", ["sleep", 1000], None), ("`profile` at 100 Hz", ours + [1000], 1)):
        found, core = turns(job, command, count)
        slower = statistics.median(found)
        figures.add("training step of 160 threads beside " + name, slower, "% longer (± {:.1f}; {:.1f} % of a core)".format(
            error_of(found), core), bound and "≤ {} %".format(bound), bound and slower <= bound)
    found, lost = [], []
    for _ in range(2 if options.quick else 24):
        before = stolen()
        found.append(pair(job, ours + [seconds, "--native"]))
        lost.append(stolen() - before)
    slower, core = (statistics.median(values) for values in list(zip(*found))[:2])
    figures.add("training step of 160 threads beside `profile --native` at 100 Hz", slower,
                "% longer (± {:.1f}; {:.1f} % of a core)".format(error_of([one[0] for one in found]), core), "≤ 5 %", slower <= 5)
    stops = [(float(told[1]), away) for told, away in zip((STOPPED.search(one[2]) for one in found), lost) if told]
    longest, away = max(stops)
    figures.bound("longest stop of a thread by it, of {} profiles (the host took {:g} ms of CPU meanwhile)".format(len(stops), away),
                  longest, "ms", 0.2)
    figures.add("longest stop of a thread by it, the median profile", statistics.median(one[0] for one in stops), "ms")
    if peer("py-spy"):
        theirs = [peer("py-spy"), "record", "-r", 100, "-d", int(seconds), "-f", "raw", "-o", "/dev/null", "-i", "-t",
                  "-p", job.pid]
        found = [pair(job, theirs) for _ in range(2)]  # one takes many seconds
        figures.add("training step of 160 threads beside `py-spy record` at 100 Hz", statistics.median(one[0] for one in found),
                    "% longer ({:.1f} % of a core)".format(statistics.median(one[1] for one in found)))


def parts(training_job, cpython_sampler, torch_python, wrong_share):
    def profiling_rates(figures, options):
        rates(figures, options, cpython_sampler)
        beside_py_spy(figures, options)

    def profiling_truth(figures, options):
        truth(figures, options, cpython_sampler, wrong_share)

    def profiling_costs(figures, options):
        costs(figures, options)

    def profiling_growth(figures, options):
        growth(figures, options)

    def profiling_slow_down(figures, options):
        if not torch_python():
            print("  no Python with torch: left out", file=sys.stderr)
            return
        job = training_job(160)
        try:
            slow_down(figures, options, job)
        finally:
            job.target.end()
    return [profiling_rates, profiling_truth, profiling_costs, profiling_growth, profiling_slow_down]
