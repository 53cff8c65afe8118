"""What commands say of a job over a bus: ranks 0 and 1 on one host, 2 and 3 on another, each command asked from a third."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from bus import PROBING, missing
from conftest import BUDGET, DEADLINE
from hosts import can
from support.injection import wait_until
from test_agents import Cluster
from test_looking import PROGRAM

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not can(), reason="needs root, ip, and namespaces of network and processes")]
HOSTS = ["node1", "node1", "node2", "node2"]


class Job(Cluster):
    def __init__(self):
        super().__init__(PROGRAM)
        self.known = None
        self.folder = tempfile.mkdtemp(prefix="commands-")
        self.crashes = os.path.join(self.folder, "crashes")
        os.mkdir(self.crashes, 0o700)

    def ask(self, *words):
        return super().ask("--timeout", str(BUDGET), *words)  # some commands set their own

    def rows(self, *words):
        done = self.ask(*words)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["coverage"]["answered"] == "0-3" and found["coverage"]["expected"] == 4, found["coverage"]
        return found["rows"]

    def pids(self):
        """As the hosts number them; they stay the same."""
        self.known = self.known or {row["rank"]: row["pid"] for row in self.rows("query", "-f", "json", "SELECT rank, pid FROM cluster.ranks, (SELECT 1 FROM system.process LIMIT 1)")}
        return self.known

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        super().end()


@pytest.fixture(scope="module")
def job():
    one = Job()
    try:
        for number, host in enumerate(one.hosts.all):
            for rank in (2 * number, 2 * number + 1):
                one.start(host, rank)
            done = one.at(host, "cluster", "attach", "--allow", "control", PROBING_CRASH_DIR=one.crashes)
            assert done.returncode == 0, done.stderr
        yield one
    finally:
        one.end()


def test_profile(job):
    path = os.path.join(job.folder, "all.txt")
    done = job.ask("profile", "-d", "1", "-f", "collapsed", "--group", "rank", "-o", path)
    assert done.returncode == 0 and "4 of 4 ranks answered" in done.stderr, done.stderr
    with open(path) as file:
        lines = file.read().splitlines()
    assert {line.split(";")[0] for line in lines} == {"rank {}".format(rank) for rank in range(4)}, lines
    assert all(("odd" in line) <= line.startswith("rank 2") for line in lines)


def test_list(job):
    rows = job.rows("list", "--json")
    assert [(row["rank"], row["host"]) for row in rows] == list(enumerate(HOSTS))
    assert {row["rank"]: row["pid"] for row in rows} == job.pids()


def test_tasks(job):
    rows = job.rows("tasks", "-f", "json")
    assert [(row["ranks"], row["threads"], row["thread"]) for row in rows] == [
        ("0-3", 4, "tasks: waiting for tasks"), ("0-3", 8, "wait: waiting for a Future")]


def test_memory(job):
    done = job.ask("memory", "-f", "csv")
    rows = sorted((int(row["rank"]), row["host"], int(row["pid"])) for row in csv.DictReader(io.StringIO(done.stdout)))
    assert done.returncode == 0 and rows == [(rank, HOSTS[rank], pid) for rank, pid in sorted(job.pids().items())], done.stdout + done.stderr


def test_top(job):
    done = job.ask("top", "--view", "processes", "--count", "1", "-d", "0.5")
    assert done.returncode == 0 and "4 processes" in done.stdout, done.stdout + done.stderr


def test_top_steps(job):
    """A row for each rank, whose programs here are no training."""
    done = job.ask("top", "--view", "steps", "--count", "2", "-d", "0.2")
    assert done.returncode == 0 and done.stdout.count("probing top: steps") == 2 and "4 of 4 ranks answered" in done.stderr, done.stdout + done.stderr
    lines = [line for line in done.stdout.split("probing top: steps")[2].splitlines() if line.startswith("rank ")]
    assert [line.split()[1] for line in lines] == ["0", "1", "2", "3"] and all("no steps recorded" in line for line in lines), done.stdout


def test_top_steps_without_a_terminal(job):
    """It prints its rows once, as of one process."""
    done = job.ask("top", "--view", "steps", "-d", "0.2")
    assert done.returncode == 0 and done.stdout.count("probing top: steps") == 1, done.stdout + done.stderr


def test_hang(job):
    done = job.ask("hang", "--every", "0.3", "-f", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["coverage"]["answered"] == "0-3", done.stderr


def test_snapshot(job):
    done = job.ask("snapshot", os.path.join(job.folder, "stuck.snap"))
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["rank {} ({})".format(rank, HOSTS[rank]) for rank in range(4)]
    rows = job.rows("snapshot", "-f", "json", os.path.join(job.folder, "again.snap"))
    assert [(row["rank"], row["host"], os.path.basename(row["path"])) for row in rows] == [
        (rank, HOSTS[rank], "again.rank{}.snap".format(rank)) for rank in range(4)]
    looked = job.at(job.hosts.hub, "-t", os.path.join(job.folder, "stuck.rank2.snap"), "backtrace")
    assert looked.returncode == 0 and "odd" in looked.stdout, looked.stderr


def test_crash_list(job):
    """A dump in a folder that the hosts share is listed once; it names the job, and no rank that runs has its process."""
    variables = dict(os.environ, PROBING_CRASH_DIR=job.crashes, PROBING_CRASH="1", RANK="1", WORLD_SIZE="4", PROBING_JOB="job")
    subprocess.run([PROBING, "launch", sys.executable, "-c", "import os; os.abort()"], env=variables,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    done = job.ask("crash", "list", "-f", "json")
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)["rows"]
    assert "SIGABRT" in row["title"] and os.path.basename(row["path"]) in os.listdir(job.crashes) and row["count"] == 1, row


def test_tables_of_the_asker(job):
    """cluster.nodes, cluster.ranks, cluster.groups; comm_metrics is the asker's, too."""
    nodes = job.ask("query", "-f", "json", "SELECT host, state, ranks, abs(clock_offset) < 5 AS near FROM cluster.nodes ORDER BY host")
    assert json.loads(nodes.stdout)["rows"] == [
        {"host": "node1", "state": "answers", "ranks": "0-1", "near": 1}, {"host": "node2", "state": "answers", "ranks": "2-3", "near": 1}], nodes.stderr
    joined = job.rows("query", "-f", "json", "SELECT r.rank, r.host, r.node_rank, r.world_size, r.pid = p.pid AS same "
                      "FROM cluster.ranks r JOIN system.process p ON p.rank = r.rank ORDER BY 1")
    assert joined == [{"rank": rank, "host": HOSTS[rank], "node_rank": rank // 2, "world_size": 4, "same": 1} for rank in range(4)]
    done = job.ask("query", "-f", "json", "SELECT 1 FROM cluster.groups UNION ALL SELECT 2 FROM comm_metrics")
    assert done.returncode == 0 and json.loads(done.stdout)["rows"] == [], done.stderr
    chosen = job.ask("query", "-f", "json", "SELECT rank, host FROM system.process WHERE rank IN (0, 3) ORDER BY 1")
    found = json.loads(chosen.stdout)
    assert [tuple(row.values()) for row in found["rows"]] == [(0, "node1"), (3, "node2")] and found["coverage"]["expected"] == 2


def test_nobody_reads(job):
    """As in `| head`: the command ends quietly, although the library of the bus has SIGPIPE ignored."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as out:
        done = subprocess.run([*job.hosts.hub.enter, PROBING, "--timeout", str(BUDGET), "-t", "@job", "tables"], stdout=out, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=DEADLINE, env=job.bus.environment)
    assert (done.returncode in (-signal.SIGPIPE, 128 + signal.SIGPIPE), done.stderr) == (True, b""), done.returncode


def test_a_job_that_is_over(bus, start_ranks):
    """It is in no list of jobs, as it cannot be asked; its host still says that its rank is gone."""
    gone, stays = start_ranks(1, "gone"), start_ranks(1, "stays")
    assert bus.run("cluster", "attach").returncode == 0
    environment = dict(bus.environment, PROBING_STORE="off", XDG_RUNTIME_DIR=tempfile.mkdtemp(prefix="run-"))

    def listed():
        table = [line.split()[0] for line in bus.run("cluster", "jobs").stdout.splitlines()[1:]]
        told = subprocess.run(["curl", "-s", "--unix-socket", path, "http://probing/api/v1/jobs"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE)
        return table, ["@" + one["id"] for one in json.loads(told.stdout.decode())["jobs"]]

    with subprocess.Popen([PROBING, "serve", "--unix"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8", env=environment) as server:
        try:
            path = server.stdout.readline().split()[-1]
            assert all({"@" + gone.name, "@" + stays.name} <= set(one) for one in listed()), listed()
            gone.end()
            wait_until(lambda: "gone" in [line.split()[-1] for line in bus.run("cluster", "ranks").stdout.splitlines() if gone.name in line])
            assert all("@" + gone.name not in one and "@" + stays.name in one for one in listed()), listed()
            assert 'there is no job "{}"'.format(gone.name) in bus.run("-t", "@" + gone.name, "list").stderr
        finally:
            server.terminate()
            bus.run("cluster", "detach")
            shutil.rmtree(environment["XDG_RUNTIME_DIR"])
