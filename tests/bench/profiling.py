"""Profiles: what the sampler reaches, what it costs, and what it does to the job, beside py-spy and CPython 3.15's."""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

import pythons
import target as live
from timing import of_root, peer

COUNTS = re.compile(r"(\d+) samples in ([\d.]+) s .*, (\d+) of threads; (\d+) dropped")
THREADS = [1, 9, 30, 160, 400]


def used():
    told = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told.ru_utime + told.ru_stime


def profile(pid, rate, seconds, *options):
    """Samples and thread samples a second, share of a core (%), peak memory (MB), share dropped (%)."""
    before = used()
    command = [live.PROBING, "-t", pid, "profile", "-r", rate, "-d", seconds, "-f", "collapsed", "-o", "/dev/null", *options]
    child = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")
    said = child.stderr.read()
    _, status, told = os.wait4(child.pid, 0)
    child.returncode = status
    found = COUNTS.search(said)
    assert found, said
    time = float(found[2])
    return {"samples": int(found[1]) / time, "threads": int(found[3]) / time, "core": 100 * (used() - before) / time,
            "mb": told.ru_maxrss / 1024, "dropped": 100 * int(found[4]) / max(1, int(found[3]))}


def newest():
    found = [python for python in pythons.found() if not python.container and "jit" not in python.how]
    return max(found, key=lambda python: python.version)


def rates(figures, options, cpython_sampler):
    """As fast as it goes, the same target for both, names resolved and counted."""
    python, seconds = newest(), 1 if options.quick else 3
    for count in THREADS[:3] if options.quick else THREADS:
        with of_root(python, "parked.py", count) as target:
            target.settle()
            ours = profile(target.pid, 1000000, seconds, "--idle")
            name = "thread samples a second, {} threads, CPython {}".format(count + 1, python.id.split("-")[0])
            theirs = None
            if python.minor >= (3, 15):
                counts = cpython_sampler(python, target.pid, "1000khz", seconds)
                theirs = sum(counts.values()) / seconds if counts else None
            ratio = ours["threads"] / theirs if theirs else None
            figures.add(name, ours["threads"] / 1e3, "thousand (dropped {:.2f} %)".format(ours["dropped"]), "≥ 2 ×",
                        None if ratio is None else ratio >= 2, "CPython 3.15's sampler", theirs and theirs / 1e3, ratio)


def py_spy(pid, seconds, *options):
    """Share of a core that py-spy record takes at 100 Hz, %; None."""
    command = peer("py-spy")
    if not command:
        return None
    before = used()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([command, "record", "-r", "100", "-d", str(seconds), "-f", "raw", "-o", folder + "/raw", "-p",
                               str(pid), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds + 60)
    return 100 * (used() - before) / seconds if done.returncode == 0 else None


def costs(figures, options):
    """At 100 Hz and 30 threads."""
    seconds = 3 if options.quick else 10
    python = max((one for one in pythons.found() if not one.root and not one.container), key=lambda one: one.version)
    with of_root(python, "parked.py", 29) as target:
        target.settle()
        ours, theirs = profile(target.pid, 100, seconds), py_spy(target.pid, seconds)
        figures.add("sampling at 100 Hz, 30 threads", ours["core"], "% of a core", "≤ 3 %", ours["core"] <= 3, "py-spy record",
                    theirs, theirs and ours["core"] / theirs)
        figures.bound("memory of it", ours["mb"], "MB", 60)


def slow_down(figures, options, job):
    """Median training step beside a profile at 100 Hz, by pairs of periods without and with it."""
    seconds = 2 if options.quick else 5
    ways = [("profile", []), ("profile --native", ["--native"])]
    for name, more in ways:
        ratios = []
        for _ in range(2 if options.quick else 4):
            job.period()
            subprocess.run(["sleep", str(seconds)], check=True)
            alone = job.period()["median"]
            profile(job.pid, 100, seconds, *more)
            ratios.append(job.period()["median"] / alone)
        figures.bound("training step beside `{}` at 100 Hz".format(name), 100 * (statistics.median(ratios) - 1), "% longer",
                      5 if more else 1)


def parts(training_job, cpython_sampler, torch_python):
    def profiling(figures, options):
        rates(figures, options, cpython_sampler)
        costs(figures, options)
        if not torch_python():
            print("  no Python with torch: left out", file=sys.stderr)
            return
        job = training_job()
        try:
            slow_down(figures, options, job)
        finally:
            job.target.end()
    return [profiling]
