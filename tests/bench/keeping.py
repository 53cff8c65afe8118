"""Figures of the store and its collector: bytes of rows, speed, a statement over millions of rows, and what collecting takes."""

import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import tracing
from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE, in_turn

SPEED = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "store_speed")
SHARED = "/dev/shm"
TABLES = [("torch_trace", "module row", 4.6), ("torch_step_timing", "step row", 14)]


@contextlib.contextmanager
def folders():
    """A user's folders of their own, rings in shared memory as they are by default: the store's file once it is there is files()."""
    before = {name: os.environ.get(name) for name in ("PROBING_DATA_DIR", "XDG_STATE_HOME")}
    with tempfile.TemporaryDirectory(dir=SHARED if os.access(SHARED, os.W_OK) else None) as rings, tempfile.TemporaryDirectory() as top:
        for name, folder in zip(before, (rings, top)):
            os.environ[name] = os.path.join(folder, name)
            os.mkdir(os.environ[name], 0o700)
        try:
            yield top
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def files():
    return glob.glob(os.path.join(os.environ["XDG_STATE_HOME"], "probing", "store", "*.db"))


def recorded_job(steps):
    """A file of the store with the rows of a job."""
    with tracing.Job(torch_python()) as job:
        job.record("rate=1")
        for _ in range(steps // 300):
            job.ask("steps", 300)
            live.probing("collect", "--once", check=False)
    file, = files()
    return file


@tracing.needs_torch
def store(figures, options):
    """Of real rows: 31 rows a step, of 28 modules; beside rows of SQLite's."""
    with folders() as top:
        file = recorded_job(600 if options.quick else 6000)
        for table, name, bar in TABLES:
            copy = os.path.join(top, table + ".db")
            shutil.copy(file, copy)
            many = 300000 if options.quick else 3000000
            told = json.loads(subprocess.run([SPEED, file, table, copy, str(many if table == "torch_trace" else 100000)],
                                             stdout=subprocess.PIPE, check=True).stdout)
            figures.add("store: a {} in chunks ({:,} rows of {} columns)".format(name, told["rows"], told["columns"]), told["bytes"], "bytes",
                        "≤ {:g} bytes".format(bar), told["bytes"] <= bar, "rows of SQLite", told["sqlite"], told["bytes"] / told["sqlite"])
            figures.add("the same", told["bytes"], "bytes", peer="rows of SQLite with an index of time", theirs=told["indexed"],
                        ratio=told["bytes"] / told["indexed"])
            for word, bar in ("encode", 300), ("decode", 1000):
                figures.add("{} a {}".format(word, name), told[word], "MB/s of cells", "≥ {} MB/s".format(bar), told[word] >= bar)
            figures.bound("a chunk's commit, {}s".format(name), told["commit_ms"], "ms", 0.2)
            if table == "torch_trace":
                statement(figures, options, copy, told)


def statement(figures, options, file, told):
    """One row in a hundred of a file of millions, by time; less what a statement takes that reads nothing."""
    begin = told["first"] + 0.6 * (told["last"] - told["first"])
    sql = "SELECT count(*), avg(duration) FROM python.torch_trace WHERE timestamp BETWEEN {!r} AND {!r}".format(
        begin, begin + 0.01 * (told["last"] - told["first"]))
    rows = next(iter(live.query(file, sql)[0].values()))
    none, some = in_turn(options.rounds, [live.PROBING, "-t", file, "query", "select 1"], [live.PROBING, "-t", file, "query", sql])
    figures.bound("a statement over {:,} rows, {:,} of them by time, more than `select 1`, CPU time".format(told["grown"] + told["rows"], rows),
                  some["cpu_ms"] - none["cpu_ms"], "ms", 5)


def cpu_ns(pid):
    """Of all threads."""
    spent = 0
    for path in glob.glob("/proc/{}/task/*/schedstat".format(pid)):
        with open(path) as told:
            spent += int(told.read().split()[0])
    return spent


def peak_mb(pid):
    with open("/proc/{}/status".format(pid)) as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def share_of(pid, seconds):
    """Percent of a core, over so many seconds."""
    began, spent = time.monotonic(), cpu_ns(pid)
    time.sleep(seconds)
    return 100 * (cpu_ns(pid) - spent) * 1e-9 / (time.monotonic() - began)


@tracing.needs_torch
def collector(figures, options):
    """Beside a job of 30 threads that is recorded by default settings; host tables once a second."""
    seconds = 10 if options.quick else 60
    with folders():
        job = live.Target(pythons.Python([], torch_python(), (3, 0, 0), "torch"), "train.py", [30], folder=HERE)
        child = None
        try:
            live.probing("-t", job.pid, "config", tracing.SETTING + "on", check=False)
            child = subprocess.Popen([live.PROBING, "collect"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(5)  # it has found the job, and made its file
            figures.bound("collector, a job of 30 threads, {} s".format(seconds), share_of(child.pid, seconds), "% of a core", 0.05)
            figures.bound("the same, peak memory", peak_mb(child.pid), "MB", 8)
            live.probing("-t", job.pid, "config", tracing.SETTING + "off", check=False)
            time.sleep(15)  # what stands in its rings is moved
            figures.bound("the same, when the job records nothing more: host tables alone", share_of(child.pid, seconds), "% of a core", 0.05)
            child.send_signal(signal.SIGTERM)
            child.wait(60)
        finally:
            if child and child.poll() is None:
                child.kill()
                child.wait()
            job.end()


PARTS = [store, collector]
