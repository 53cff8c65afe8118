"""A bus, jobs whose ranks are plain programs, and jobs over gloo that hang."""

import json
import os
import subprocess
import sys
import time

import pytest

from bus import Bus
from support.target import PROBING, TARGETS
from support.torch_python import torch_python

DEADLINE = 120
# How long ranks have to answer, which is 2 s where nobody says anything: a busy machine takes longer.
BUDGET = 60
os.environ.update(PROBING_CLUSTER_LOOK_BUDGET=str(BUDGET), PROBING_CLUSTER_EVAL_BUDGET=str(BUDGET), PROBING_CLUSTER_NICE="0")

PROGRAM = """
import os, sys, threading, time
def innermost(): sys.stdin.read()
def odd(): innermost()
def usual(): innermost()
threading.Thread(target=time.sleep, args=(3600,), name="loader-%s" % os.environ["RANK"], daemon=True).start()
print("ready", flush=True)
(odd if os.environ["RANK"] == "2" else usual)()
"""


class Done:
    def __init__(self, *args):
        args = [str(arg) for arg in args]
        if any(arg.startswith("@") for arg in args):
            args[:0] = ["--timeout", str(BUDGET)]  # some commands set their own
        done = subprocess.run([PROBING, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              encoding="utf-8", timeout=DEADLINE)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(scope="module")
def bus():
    """A bus that runs, on this host."""
    one = Bus()
    one.up()
    yield one
    one.remove()


@pytest.fixture(scope="session")
def ask():
    """ask(*args): one run of the command."""
    return Done


class Ranks:
    """A job of plain ranks, started one by one."""

    def __init__(self, name, world, program=PROGRAM, ranks=None, **variables):
        self.name, self.processes = name, {}
        for rank in range(world) if ranks is None else ranks:
            self.start(rank, world, program, **variables)

    def start(self, rank, world, program=PROGRAM, **variables):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world), "PROBING_JOB": self.name, **variables}
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.processes.setdefault(rank, process)
        assert process.stdout.readline() == b"ready\n"
        return process

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.communicate()


@pytest.fixture
def start_ranks():
    """start_ranks(world, prefix="job", **variables): a job with a name of its own."""
    jobs = []

    def begin(world, prefix="job", **options):
        jobs.append(Ranks("{}-{}-{}".format(prefix, os.getpid(), len(jobs)), world, **options))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.end()


def uses(pid):
    """What its main thread has used."""
    with open("/proc/{0}/task/{0}/status".format(pid)) as file:
        switches = [line for line in file if line.startswith(("State", "voluntary_ctxt_switches"))]
    with open("/proc/{0}/task/{0}/schedstat".format(pid)) as file:
        return switches, file.read().split()[0]


def wait_until_still(pids):
    """Until none of the main threads has run for half a second."""
    until, since, last = time.monotonic() + DEADLINE, time.monotonic(), None
    while time.monotonic() - since < 0.5:
        assert time.monotonic() < until
        now = [uses(pid) for pid in pids]
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.02)


@pytest.fixture(scope="session")
def until_still():
    """until_still(pids): see wait_until_still."""
    return wait_until_still


@pytest.fixture(scope="module")
def hang():
    """hang(case, guilty rank): (address, pids) of a job of four gloo ranks that is made to hang."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    program = subprocess.Popen([torch_python(), os.path.join(TARGETS, "hang_jobs.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               encoding="utf-8")
    assert program.stdout.readline() == "ready\n"

    def begin(case, guilty):
        name = "hang-{}-{}".format(os.getpid(), case)
        program.stdin.write("{} {} {}\n".format(case, guilty, name))
        program.stdin.flush()
        words = program.stdout.readline().split()
        assert words[:1] == ["pids"]
        pids = [int(word) for word in words[1:]]
        if case != "slow":
            wait_until_still([pid for rank, pid in enumerate(pids) if case not in ("loop", "gil") or rank != guilty])
        return "@" + name, pids

    yield begin
    program.stdin.close()
    program.wait(DEADLINE)
