"""probing.pprof: stacks that the collector samples, in SQL and as a profile, live and when the job is gone."""

import os
import re
import subprocess
import sys

import pytest

from support.injection import wait_until
from support.target import DEADLINE, probing, query, task_states

LIBRARY = os.path.join(os.environ["BUILDDIR"], ".libs", "libprobe.so")
ROWS = "SELECT timestamp, os_thread_id, state, samples, stack FROM python.stack_samples ORDER BY timestamp"
WAKES = 3  # seconds in which the collector's turns are counted


@pytest.fixture
def job(start, any_python, store):
    """A main thread that sleeps a millisecond and works, again and again, and one that waits for its input."""
    return start(any_python, "watched_calls.py", variables={"PROBING_DATA_DIR": str(store.data)})


def rows(target):
    done = probing("-t", target, "query", "-f", "csv", "SELECT count(*) FROM python.stack_samples", check=False)
    return query(target, ROWS) if done.stdout.split()[1:] not in ([], ["0"]) else []


def profile(target, *options):
    """{stack: count}, and what is said beside it."""
    done = probing("-t", target, "profile", "-f", "collapsed", "-o", "-", *options, check=False)
    assert done.returncode == 0, done.stderr
    return {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}, done.stderr


def switches(pid):
    """How often it has waited."""
    return int(task_states(pid)[pid][1])


def wakes(pid, target):
    """How often it wakes up in some of its turns, told by the rows that each leaves behind."""
    turns = "SELECT count(*) AS n FROM memory_usage"
    before, first = switches(pid), query(target, turns)[0]["n"]
    wait_until(lambda: query(target, turns)[0]["n"] >= first + WAKES)
    return switches(pid) - before


def test_from_on_to_off(job, store):
    """The probe has a collector started; its rows say where threads were; off, nobody wakes for it any more."""
    assert probing(job.pid, "config", "probing.pprof=on", check=False).returncode == 0
    collector = store.collector_of_its_own()
    try:
        wait_until(lambda: len({row["timestamp"] for row in rows(job.pid)}) >= 2)
        told = rows(job.pid)
        main = [row for row in told if row["os_thread_id"] == job.pid]
        assert {row["state"] for row in told} <= {"gil", "running", "idle"}
        inside = [row for row in main if re.search(r"Trainer\.work \(\S*watched_calls\.py:\d+\)$|;work \(\S*watched_calls\.py:\d+\)$", row["stack"])]
        assert sum(row["samples"] for row in inside) > 0.5 * sum(row["samples"] for row in main), main
        for row in main:
            assert row["stack"].startswith("<module> (")
        waiting = [row for row in told if "answer (" in row["stack"]]
        assert waiting and {row["state"] for row in waiting} == {"idle"}
        # a thread is found ten times a second, less what a busy machine is late
        times = sorted({row["timestamp"] for row in told})
        counts = [sum(row["samples"] for row in main if row["timestamp"] == time) for time in times[1:]]
        assert all(0 < count <= 1.2 * 10 * (after - before) for count, before, after in zip(counts, times, times[1:])), (counts, times)

        on = wakes(collector, job.pid)
        assert probing(job.pid, "config", "probing.pprof=off", check=False).returncode == 0
        wait_until(lambda: wakes(collector, job.pid) < on / 2)
    finally:
        store.end(collector)


def test_profile_of_it(job, store, tmp_path):
    """`profile` without -d, while it runs and when it has ended; what needs new samples takes them."""
    done = probing(job.pid, "inject", "-P", check=False)
    assert done.returncode == 0 and "release" not in done.stderr
    collector = store.collector_of_its_own()
    try:
        wait_until(lambda: rows(job.pid))
        wide, said = profile(job.pid)
        assert "samples of threads, kept since" in said and "dropped" not in said
        everything, _ = profile(job.pid, "--idle")
        assert sum(everything.values()) > sum(wide.values())
        assert any("answer (" in stack for stack in everything) and not any("answer (" in stack for stack in wide)
        counted = query(job.pid, "SELECT sum(samples) AS n FROM python.stack_samples WHERE state <> 'idle'")[0]["n"]
        assert sum(wide.values()) <= counted
        _, said = profile(job.pid, "-d", "0.5")
        assert "kept since" not in said and "dropped" in said
        drawn = tmp_path / "kept.svg"
        assert probing(job.pid, "profile", "-o", drawn, check=False).returncode == 0
        assert b"watched_calls.py" in drawn.read_bytes()

        job.child.kill()
        job.child.wait(DEADLINE)
        known = sum(everything.values())
        wait_until(lambda: sum(profile(job.pid, "--idle")[0].values()) > known)  # what was counted last comes, too
        (file,) = store.files()
        wait_until(lambda: profile(file, "--idle")[0] == profile(job.pid, "--idle")[0])  # the collector may write between the two
    finally:
        store.end(collector)


def test_older_variable(store):
    """LD_PRELOAD and PROBE_PPROF=1, with no tool beside the job; a detached job is left alone."""
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, PROBE_PPROF="1")
    spin = "import sys\nprint('ready', flush=True)\nwhile True: sum(range(20000))"
    job = subprocess.Popen([sys.executable, "-c", spin], env=environment, stdout=subprocess.PIPE)
    collector = None
    try:
        job.stdout.readline()
        collector = store.collector_of_its_own()
        wait_until(lambda: rows(job.pid))
        assert probing(job.pid, "config", "probing.store").stdout == "on\n"
        on = wakes(collector, job.pid)
        assert probing(job.pid, "detach", check=False).returncode == 0
        wait_until(lambda: wakes(collector, job.pid) < on / 2)
    finally:
        job.kill()
        job.wait(DEADLINE)
        if collector:
            store.end(collector)


def test_nothing_is_sampled(job):
    """A table without rows says how they come."""
    done = probing(job.pid, "query", "SELECT * FROM python.stack_samples", check=False)
    assert done.returncode == 0 and "config probing.pprof=on" in done.stderr
