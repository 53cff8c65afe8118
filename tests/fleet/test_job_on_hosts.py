"""A real job of four gloo ranks, one on each of four hosts, from nothing: the third command names the rank that hangs, and its line."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from bus import DEADLINE, PROBING, Bus, missing
from conftest import BUDGET
from hosts import Hosts, can
from support.injection import wait_until
from support.target import TARGETS
from support.torch_python import torch_python

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not can(), reason="needs root, ip, and namespaces of network and processes"),
              pytest.mark.skipif(not torch_python(), reason="needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")]
RANKS = 4
PARTIAL = 15
PROGRAM = os.path.join(TARGETS, "hang_jobs.py")


class Job:
    """Hosts node1 to node4 with a rank each, a bus at the hub, and agents once they are attached."""

    def __init__(self):
        self.hosts, self.bus = Hosts(RANKS), Bus()
        self.program = subprocess.Popen([torch_python(), PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        assert self.program.stdout.readline() == "ready\n"

    def at(self, host, *words):
        return subprocess.run([*host.enter, PROBING, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              encoding="utf-8", timeout=DEADLINE, env=dict(self.bus.environment, PROBING_STORE="off"))

    def start(self, case, guilty):
        """pids of the ranks, as this test sees them."""
        spaces = [host.pid for host in self.hosts.all]
        self.name = "llama" if case == "reader" else "llama-" + case
        print(case, guilty, self.name, self.hosts.all[0].address, "e0", *spaces, file=self.program.stdin, flush=True)
        words = self.program.stdout.readline().split()
        assert words[:1] == ["pids"] and len(words) == RANKS + 1
        return [int(word) for word in words[1:]]

    def hang(self, every=0.5):
        done = self.at(self.hosts.hub, "--timeout", BUDGET, "-t", "@" + self.name, "hang", "--every", every, "-f", "json")
        return done, json.loads(done.stdout)

    def end(self):
        for host in self.hosts.all:
            self.at(host, "cluster", "detach")
        self.at(self.hosts.hub, "cluster", "down")
        self.program.stdin.close()
        self.program.wait(DEADLINE)
        self.hosts.end()
        shutil.rmtree(self.bus.home, ignore_errors=True)


@pytest.fixture(scope="module")
def job():
    one = Job()
    yield one
    one.end()


def pid_inside(pid):
    with open("/proc/{}/status".format(pid)) as file:
        return next(int(line.split()[-1]) for line in file if line.startswith("NSpid:"))


def has_ended(pid):
    try:
        with open("/proc/{}/stat".format(pid)) as file:
            return file.read().rpartition(") ")[2][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def line_of(text):
    with open(PROGRAM) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_third_command(job, until_still):
    """Up, attach, and the rank that hangs; then it dies."""
    guilty = 2
    pids = job.start("reader", guilty)
    until_still(pids)
    up = job.at(job.hosts.hub, "cluster", "up")
    assert up.returncode == 0, up.stderr
    for rank, host in enumerate(job.hosts.all):
        attached = job.at(host, *up.stdout.splitlines()[-1].split()[1:])
        assert attached.returncode == 0 and "rank {} of @llama".format(rank) in attached.stdout, attached.stdout + attached.stderr
    told = job.at(job.hosts.hub, "--timeout", BUDGET, "-t", "@llama", "hang", "--every", 1)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0] == "llama: 4 ranks on 4 hosts, all answered", told.stdout
    assert lines[2].startswith("cause    rank 2 (node3, pid {}) is in no collective, and 3 ranks wait for it: it sleeps".format(pid_inside(pids[guilty]))), told.stdout
    assert "Rank.read_shard (hang_jobs.py:{})".format(line_of("time.sleep(3600)")) in lines[3], told.stdout
    assert lines[4].startswith("waiting  ranks 0-1,3 all_reduce at "), told.stdout

    inside = pid_inside(pids[guilty])
    # The others are not told that it died, as when a machine dies, and wait on; stopped, it does nothing about being cut off.
    os.kill(pids[guilty], signal.SIGSTOP)
    job.hosts.part(guilty + 1, True)
    try:
        os.kill(pids[guilty], signal.SIGKILL)
        wait_until(lambda: has_ended(pids[guilty]))
        done, verdict = job.hang()
    finally:
        job.hosts.part(guilty + 1, False)  # the next job's ranks would look for each other for ever
    assert done.returncode == PARTIAL and verdict["hung"], done.stdout
    assert [(cause["ranks"], cause["kind"]) for cause in verdict["cause"]] == [(str(guilty), "gone")], done.stdout
    assert [(cause["host"], cause["pid"]) for cause in verdict["cause"]] == [("node3", inside)], done.stdout
    assert (verdict["coverage"]["answered"], verdict["coverage"]["gone"]) == ("0-1,3", str(guilty)), verdict["coverage"]


def test_stopped(job, until_still):
    pids = job.start("stop", 1)
    until_still(pids)
    done, verdict = job.hang()
    assert done.returncode == 0 and verdict["hung"], done.stdout
    assert [(cause["ranks"], cause["host"], cause["pid"], cause["kind"]) for cause in verdict["cause"]] == [("1", "node2", pid_inside(pids[1]), "stopped")]


def test_slow(job):
    """The others wait for it, but collectives pass."""
    job.start("slow", 3)
    done, verdict = job.hang(1)
    assert done.returncode == 0 and not verdict["hung"] and verdict["coverage"]["answered"] == "0-3", done.stdout
