"""Agents on a bus: ranks of two hosts as one job, and what is said when an agent, a host or the bus is not there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from bus import PROBING, Bus, missing
from conftest import PROGRAM
from hosts import Hosts, can
from nats_client import Client

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not can(), reason="needs root, ip, and namespaces of network and processes")]
DEADLINE = 60
PARTIAL = 15


class Cluster:
    """Two hosts with an agent and two ranks each, and the hub, which asks."""

    def __init__(self):
        self.hosts = Hosts(2)
        self.bus = Bus()
        self.ranks = {}
        done = self.at(self.hosts.hub, "cluster", "up")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "probing cluster attach --bus {}/agent".format(self.bus.folder)

    def at(self, host, *words, **variables):
        environment = dict(self.bus.environment, PROBING_STORE="off", **variables)
        return subprocess.run([*host.enter, PROBING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              encoding="utf-8", timeout=DEADLINE, env=environment)

    def attach(self, host, *options):
        done = self.at(host, "cluster", "attach", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *words):
        return self.at(self.hosts.hub, "-t", "@job", *words)

    def coverage(self, *options):
        """(status, coverage, seconds) of a look at all ranks; its sums are right."""
        began = time.monotonic()
        done = self.ask(*options, "backtrace", "--json")
        seconds = time.monotonic() - began
        assert done.returncode in (0, PARTIAL), done.stderr
        found = json.loads(done.stdout)["coverage"]
        sets = [members(found[name]) for name in ("answered", "silent", "missing", "gone")] + [{one["rank"] for one in found["failed"]}]
        assert sum(map(len, sets)) == len(set.union(*sets)) == found["expected"] == 4, found
        return done.returncode, found, seconds

    def start(self, host, rank):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", PROBING_JOB="job")
        process = subprocess.Popen([*host.enter, sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert process.stdout.readline() == b"ready\n"
        self.ranks[rank] = process
        return process

    def agent(self, host):
        """Its pid, as this test sees it."""
        return int(host_pid(host, "probing-agent"))

    def end(self):
        for host in self.hosts.all:
            self.at(host, "cluster", "detach")
        down = self.at(self.hosts.hub, "cluster", "down")
        for process in self.ranks.values():
            process.kill()
        self.hosts.end()
        for process in self.ranks.values():
            process.wait(DEADLINE)
            process.stdin.close()
            process.stdout.close()  # children that a rank left may have its other end
        shutil.rmtree(self.bus.home, ignore_errors=True)
        assert down.returncode == 0, down.stderr


def host_pid(host, name):
    """The oldest process of a name in a host's namespace of processes."""
    space = os.readlink("/proc/{}/ns/pid".format(host.pid))
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/{}/stat".format(pid)) as file:
                comm, _, rest = file.read().partition(" (")[2].rpartition(") ")
            if comm == name and rest[0] != "Z" and os.readlink("/proc/{}/ns/pid".format(pid)) == space:
                found.append(int(pid))
        except OSError:
            pass
    return min(found)


def members(text):
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


@pytest.fixture(scope="module")
def cluster():
    one = Cluster()
    try:
        for number, host in enumerate(one.hosts.all):
            for rank in (2 * number, 2 * number + 1):
                one.start(host, rank)
            said = one.attach(host)
            assert "is on the bus" in said and "ranks {}-{} of @job".format(2 * number, 2 * number + 1) in said
        yield one
    finally:
        one.end()


def until(cluster, wanted):
    """Look until the answer is so."""
    end = time.monotonic() + DEADLINE
    while True:
        _, found, _ = cluster.coverage()
        if wanted(found):
            return found
        assert time.monotonic() < end, found


def test_one_job(cluster):
    """All ranks of both hosts, the odd one first; who is where."""
    done = cluster.ask("backtrace")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("rank")] == ["rank 2", "ranks 0-1,3 (3 of 4)", "ranks 0-3 (4 of 4)"]
    assert "4 of 4 ranks answered" in done.stderr
    nodes = cluster.at(cluster.hosts.hub, "cluster", "nodes")
    assert [line.split()[:2] for line in nodes.stdout.splitlines()[1:]] == [["node1", "answers"], ["node2", "answers"]], nodes.stderr
    ranks = cluster.at(cluster.hosts.hub, "cluster", "ranks")
    assert sorted(line.split()[1:3] for line in ranks.stdout.splitlines()[1:]) == [["0", "node1"], ["1", "node1"], ["2", "node2"], ["3", "node2"]]
    jobs = cluster.at(cluster.hosts.hub, "cluster", "jobs")
    assert jobs.stdout.splitlines()[1].split() == ["@job", "4", "2", "0-3"]
    again = cluster.attach(cluster.hosts.all[0])
    assert "runs already" in again


def test_agent_killed(cluster):
    """Its ranks are silent at once, and back with a new one."""
    host = cluster.hosts.all[1]
    os.kill(cluster.agent(host), signal.SIGKILL)
    status, found, seconds = cluster.coverage()
    assert (status, found["answered"], found["silent"]) == (PARTIAL, "0-1", "2-3")
    assert seconds < 2, "a lost agent costs no budget"
    cluster.attach(host)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_agent_stopped(cluster):
    """Silent while it stands; nothing that was asked meanwhile is counted later."""
    pid = cluster.agent(cluster.hosts.all[1])
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(2):
            status, found, _ = cluster.coverage("--timeout", "0.5")
            assert (status, found["answered"], found["silent"]) == (PARTIAL, "0-1", "2-3")
    finally:
        os.kill(pid, signal.SIGCONT)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_cut_off(cluster):
    """A link that is down is no answer, and back when it is up."""
    cluster.hosts.cut(2)
    try:
        status, found, _ = cluster.coverage("--timeout", "0.5")
        assert (status, found["answered"], found["silent"]) == (PARTIAL, "0-1", "2-3")
    finally:
        cluster.hosts.join(2)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_server_killed(cluster):
    """It is back, and so are the agents."""
    with open(os.path.join(cluster.bus.folder, "server")) as file:
        keeper = json.load(file)["pid"]
    with open("/proc/{0}/task/{0}/children".format(keeper)) as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
    end = time.monotonic() + DEADLINE
    while cluster.ask("backtrace").returncode != 0:
        assert time.monotonic() < end


def test_rank_ended(cluster):
    """Gone, since when, and no other rank with it."""
    victim = cluster.ranks.pop(1)
    pid = int(next(line.split()[3] for line in cluster.at(cluster.hosts.hub, "cluster", "ranks").stdout.splitlines() if line.split()[1:3] == ["1", "node1"]))
    victim.kill()
    victim.communicate()
    _, found, _ = cluster.coverage()
    assert (found["answered"], found["gone"]) == ("0,2-3", "1"), found
    ranks = cluster.at(cluster.hosts.hub, "cluster", "ranks").stdout.splitlines()
    assert [line.split()[1:] for line in ranks if line.endswith("gone")] == [["1", "node1", str(pid), "gone"]], ranks
    assert "gone 1 (1: process {} was seen to end ".format(pid) in cluster.ask("backtrace").stderr
    cluster.start(cluster.hosts.all[0], 1)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_acting_is_off(cluster):
    """An agent without --allow refuses, whoever signs; and logs it."""
    with cluster.hosts.hub.network():
        client = Client(cluster.bus.file("eval"))
    client.subscribe("_INBOX.eval.me.*")
    client.refused()
    client.publish("probing.v1.job.eval.all", {"v": 1, "id": "0" * 32, "prepare": "{}"}, "_INBOX.eval.me.1")
    answers = [client.next() for _ in range(2)]
    client.close()
    assert all(b"does not allow eval" in one.body for one in answers), answers
    log = os.path.join(cluster.bus.home, ".local", "state", "probing", "agent-node1.log")
    with open(log) as file:
        assert "refused eval " + "0" * 32 in file.read()


def test_eval(cluster):
    """Where it is allowed, with a signed go; the others say that it is not."""
    host = cluster.hosts.all[0]
    assert cluster.at(host, "cluster", "detach").stdout == "this host's agent has ended\n"
    cluster.attach(host, "--allow", "eval")
    done = cluster.ask("eval", "6 * 7")
    assert done.returncode == PARTIAL, done.stderr
    assert "42" in done.stdout and "ranks 0-1 (2 of 4)" in done.stdout and "does not allow eval" in done.stderr, done.stdout + done.stderr
