"""Crashes of ranks over a bus: told as they happen, listed although the rank, the job or its host is gone, fetched by who may look."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from bus import PROBING, missing
from hosts import can
from nats_client import Client
from test_agents import PARTIAL, Cluster

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not can(), reason="needs root, ip, and namespaces of network and processes")]
DEADLINE = 120
# Ranks 1 and 2 crash at the same place, rank 0 elsewhere, when they are told to.
PROGRAM = """
import ctypes, os, sys
def follow(): ctypes.memset(0, 0, 1)
def other(): os.abort()
print("ready", flush=True)
sys.stdin.readline()
(other if os.environ["RANK"] == "0" else follow)()
"""


class Job(Cluster):
    def __init__(self):
        super().__init__(PROGRAM)
        self.folder = tempfile.mkdtemp(prefix="crashes-")
        self.dumps = [os.path.join(self.folder, "node{}".format(number)) for number in (1, 2)]
        for folder in self.dumps:
            os.mkdir(folder, 0o700)

    def begin(self, number, rank, name="job"):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", PROBING_JOB=name, PROBING_CRASH="1", PROBING_STORE="off",
                           PROBING_CRASH_DIR=self.dumps[number])
        process = subprocess.Popen([*self.hosts.all[number].enter, PROBING, "launch", sys.executable, "-c", self.program], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        self.ranks[name, rank] = process
        assert process.stdout.readline() == b"ready\n"

    def crash(self, rank, name="job"):
        process = self.ranks[name, rank]
        process.communicate(b"\n", timeout=DEADLINE)
        return process

    def crashes(self, *options, status=0, words=("cluster", "crashes")):
        done = self.at(self.hosts.hub, "-t", "@job", *words, "-f", "json", *options)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done, json.loads(done.stdout)

    def end(self):
        super().end()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def job():
    one = Job()
    try:
        for number, host in enumerate(one.hosts.all):
            for rank in (2 * number, 2 * number + 1):
                one.begin(number, rank)
            one.attach(host)
        with one.hosts.hub.network():
            one.listener = Client(dict(one.bus.file("look"), servers=["tls://10.77.0.1:4222"]))
        one.listener.subscribe("probing.v1.job.event.>")  # an agent may tell of other jobs, too
        assert not one.listener.refused()
        yield one
    finally:
        one.end()


def events(client, count):
    """So many of them."""
    found = []
    while len(found) < count:
        message = client.next()
        assert message, found
        found.append((message.subject, json.loads(message.body)))
    return found


def only(folder):
    return [name for name in os.listdir(folder) if name.endswith(".snap")]


def test_none_yet(job):
    done, found = job.crashes()
    assert found["rows"] == [] and found["coverage"]["answered"] == "0-3", done.stdout


def test_told(job):
    """Each crash is one event, of the host where it was, and whoever may look hears it."""
    job.crash(1)
    job.crash(2)
    told = sorted(events(job.listener, 2), key=lambda one: one[1]["rank"])
    assert [(subject, one["rank"], one["host"], one["job"], one["v"]) for subject, one in told] == [
        ("probing.v1.job.event.crash", 1, "node1", "job", 1), ("probing.v1.job.event.crash", 2, "node2", "job", 1)], told
    assert all("SIGSEGV" in one["title"] and "follow" in one["place"] for _, one in told)
    assert [os.path.basename(one["path"]) for _, one in told] == only(job.dumps[0]) + only(job.dumps[1])
    log = os.path.join(job.bus.home, ".local", "state", "probing", "agent-node2.log")
    end = time.monotonic() + DEADLINE
    while True:  # the line comes behind the event
        with open(log) as file:
            if "crash of rank 2 of job" in file.read():
                break
        assert time.monotonic() < end
        time.sleep(0.05)


def test_listed(job):
    """Ranks that are gone are answered for by their hosts; equal crashes stand on one line; both names say the same."""
    _, found = job.crashes()
    assert [(row["count"], row["ranks"], row["told"]) for row in found["rows"]] == [(2, "1-2", 0)], found
    assert found["coverage"]["answered"] == "0-3" and found["coverage"]["gone"] == "", found["coverage"]
    assert job.crashes(words=("crash", "list"))[1]["rows"] == found["rows"]
    _, each = job.crashes("--all")
    assert sorted((row["rank"], row["host"]) for row in each["rows"]) == [(1, "node1"), (2, "node2")]
    assert all(row["bytes"] == os.stat(row["path"]).st_size for row in each["rows"])
    chosen = job.at(job.hosts.hub, "-t", "@job:2-3", "cluster", "crashes", "-f", "json")
    assert [row["ranks"] for row in json.loads(chosen.stdout)["rows"]] == ["2"], chosen.stdout + chosen.stderr


def test_recorded(job):
    """A record takes what was told, each crash once, also where no agent publishes rows; its file is asked like any other table."""
    file = os.path.join(job.folder, "crashes.db")
    for added in (2, 0):
        done = job.at(job.hosts.hub, "cluster", "record", file, "--once")
        assert done.returncode == 0 and done.stdout.startswith("{} rows were added".format(added)), done.stdout + done.stderr
        assert "only crashes are recorded" in done.stderr
    done = job.at(job.hosts.hub, "-t", file, "query", "SELECT rank, kind, title, place, path, bytes, time FROM python.crash_events ORDER BY rank", "-f", "json")
    assert done.returncode == 0, done.stderr
    told = sorted(job.crashes("--all")[1]["rows"], key=lambda row: row["rank"])
    for row, crash in zip(json.loads(done.stdout), told):
        assert [row[name] for name in ("rank", "title", "place", "path", "bytes")] == [crash[name] for name in ("rank", "title", "place", "path", "bytes")]
        assert row["kind"] == "signal" and abs(row["time"] - os.stat(crash["path"]).st_mtime) < 60, (row, crash)
    assert len(told) == 2


def test_other_jobs(job):
    """Dumps of another job in the same folder are not this one's, nor fetched as if they were."""
    job.begin(0, 0, "other")
    job.crash(0, "other")
    _, found = job.crashes("--all")
    assert sorted(row["rank"] for row in found["rows"]) == [1, 2]


def test_fetched(job):
    """One of each line, which any command reads; again it is there already."""
    folder = os.path.join(job.folder, "pulled")
    _, found = job.crashes("--pull", folder)
    path = found["rows"][0]["pulled"]
    assert os.listdir(folder) == [os.path.basename(path)] and os.stat(path).st_mode & 0o777 == 0o600 and os.stat(folder).st_mode & 0o777 == 0o700
    with open(path, "rb") as copy, open(found["rows"][0]["path"], "rb") as origin:
        assert copy.read() == origin.read()
    shown = job.at(job.hosts.hub, "crash", "show", path)
    assert shown.returncode == 0 and "SIGSEGV" in shown.stdout and "follow" in shown.stdout, shown.stderr
    before = os.stat(path).st_ino
    assert job.crashes("--pull", folder)[1]["rows"] == found["rows"] and os.stat(path).st_ino == before


def ask(job, client, args, host):
    """What an agent gives to one who asks by hand."""
    key = next(row["key"] for row in job.keys if row["host"] == host)
    client.publish("probing.v1.job.look.h." + key, json.dumps({"v": 1, "id": os.urandom(16).hex(), "kind": "crash", "job": "job", "ranks": "", "budget_ms": 20000,
                                                               "max_bytes": 1 << 26, "args": args}).encode(), "_INBOX.look.me.1")
    return answer(client, "_INBOX.look.me.1").body


def answer(client, subject):
    """The next message on it; those before are events."""
    return next(message for message in iter(client.next, None) if message.subject == subject)


def test_only_dumps_of_the_job(job):
    """What an asker says of folders and ranks does not count; links, other files and other jobs' dumps are not given."""
    client = job.listener
    client.subscribe("_INBOX.look.me.*")
    client.publish("probing.v1.find", b'{"v":1}', "_INBOX.look.me.0")
    job.keys = [json.loads(answer(client, "_INBOX.look.me.0").body) for _ in range(2)]
    folder = job.dumps[0]
    secret = os.path.join(job.folder, "secret")
    with open(secret, "w") as file:
        file.write("hidden words")
    os.symlink(secret, os.path.join(folder, "crash-20261126T000000Z-rank1-pid1.snap"))
    shutil.copy(secret, os.path.join(folder, "crash-20261126T000000Z-rank1-pid2.snap"))
    other = next(os.path.join(folder, name) for name in only(folder) if "rank0" in name)
    good = next(os.path.join(folder, name) for name in only(folder) if "rank1-pid" in name and not name.startswith("crash-20261126T000000Z"))
    lie = {"job": "other", "folders": [{"uid": 0, "folder": job.folder}, {"uid": 0, "folder": folder}],
           "ranks": [{"rank": 1, "pid": pid, "uid": 0, "started": 1, "ended": 0} for pid in (1, 2)]}
    for path in (secret, other, os.path.join(folder, "crash-20261126T000000Z-rank1-pid1.snap"), os.path.join(folder, "crash-20261126T000000Z-rank1-pid2.snap"),
                 os.path.join(folder, "..", "secret"), "/etc/passwd", ""):
        body = ask(job, client, {"file": path, "offset": 0, "host": lie}, "node1")
        assert b"hidden" not in body and b"root:" not in body and b'"bytes"' not in body and body.endswith(b"{}\n"), (path, body[:300])
    assert len(ask(job, client, {"file": good, "offset": 0, "host": lie}, "node1")) > 1000  # it is packed
    assert b"failed" in ask(job, client, {"file": good, "offset": -1}, "node1")


def test_rights(job):
    """An agent's key neither asks nor hears; a class that acts may look, too."""
    folder = os.path.join(job.folder, "by-agent")
    done = job.at(job.hosts.hub, "--bus", os.path.join(job.bus.folder, "agent"), "-t", "@job", "cluster", "crashes", "--pull", folder)
    assert done.returncode not in (0, PARTIAL) and not os.path.exists(folder), done.stdout + done.stderr
    done = job.at(job.hosts.hub, "--bus", os.path.join(job.bus.folder, "eval"), "-t", "@job", "cluster", "crashes", "-f", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["rows"], done.stderr


def test_silent_host(job):
    """What a host told stays known when it is cut off, is marked, and cannot be fetched; --strict prints nothing."""
    agent = job.agent(job.hosts.all[1])
    os.kill(agent, signal.SIGSTOP)
    try:
        done, found = job.crashes("--all", status=PARTIAL)
        assert sorted((row["rank"], row["host"], row["told"]) for row in found["rows"]) == [(1, "node1", 0), (2, "node2", 1)], done.stdout
        assert (found["coverage"]["answered"], found["coverage"]["silent"]) == ("0-1", "2-3"), found["coverage"]
        strict = job.at(job.hosts.hub, "-t", "@job", "--strict", "cluster", "crashes")
        assert strict.returncode == PARTIAL and strict.stdout == "" and "silent 2-3" in strict.stderr, strict.stderr
        fetched = job.at(job.hosts.hub, "-t", "@job:2-3", "cluster", "crashes", "--pull", os.path.join(job.folder, "silent"))
        assert fetched.returncode == PARTIAL and "not fetched: " in fetched.stderr and not os.listdir(os.path.join(job.folder, "silent")), fetched.stderr
    finally:
        os.kill(agent, signal.SIGCONT)


def test_after_the_job(job):
    """Its last ranks end, and then its agents: what crashed is known all the same."""
    job.crash(0)
    os.kill(host_child(job, 3), signal.SIGKILL)
    job.ranks["job", 3].wait(DEADLINE)
    end = time.monotonic() + DEADLINE
    while True:
        _, found = job.crashes()
        if len(found["rows"]) == 2 or time.monotonic() > end:
            break
    assert sorted((row["count"], row["ranks"]) for row in found["rows"]) == [(1, "0"), (2, "1-2")] and found["coverage"]["answered"] == "0-3", found
    events(job.listener, 1)
    for host in job.hosts.all:
        assert job.at(host, "cluster", "detach").returncode == 0
    done, found = job.crashes(status=PARTIAL)
    assert sorted((row["count"], row["ranks"], row["told"]) for row in found["rows"]) == [(1, "0", 1), (2, "1-2", 1)], done.stdout
    assert "what the bus remembers" in done.stderr and found["coverage"]["expected"] == 0


def host_child(job, rank):
    """The rank itself, below nsenter and launch, as this test sees it."""
    pid = job.ranks["job", rank].pid
    while True:
        with open("/proc/{0}/task/{0}/children".format(pid)) as file:
            children = file.read().split()
        if not children:
            return pid
        pid = int(children[0])
