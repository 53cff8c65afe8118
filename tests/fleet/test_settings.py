"""Settings of whoever asks a job and of agents: each changes what is seen, and what is out of bounds is an error.

Those of history are in tests/fleet/test_history.py.
"""

import json
import os
import re
import struct
import threading
import time
import uuid

import pytest

from bus import Bus, enroll, missing
from nats_client import Client
from support.target import SRCDIR

needs_bus = pytest.mark.skipif(bool(missing()), reason=missing())
USAGE, OVER, PARTIAL = 2, 13, 15
DEADLINE = 120
with open(os.path.join(SRCDIR, "fleet", "settings.def")) as file:
    KNOWN = re.findall(r'^S\(\w+, "([\w.]+)", (\w+), "([^"]*)", "([^"]*)", "([^"]*)"', file.read(), re.MULTILINE)


def variable(name):
    return "PROBING_CLUSTER_" + name.upper().replace(".", "_")


def test_bounds():
    """Both bounds are values; what is none, or is beyond them, is an error that says what is one."""
    bus = Bus()

    def said(**values):
        done = bus.run("-t", "@local", "list", environment={variable(name): value for name, value in values.items()})
        return done.stderr if done.returncode == USAGE else ""

    try:
        for values in zip(*(one[2:] for one in KNOWN)):
            assert "must be" not in said(**{name: value for (name, *_), value in zip(KNOWN, values)})
        for at, (name, _, _, least, most) in enumerate(KNOWN):
            number, letter = re.match(r"([\d.]+)(\w?)", most).groups()
            for value in (("x", "-1", "1e3", "1?")[at % 4], str(int(number) + 1) + letter):
                error = said(**{name: value})
                assert "{} must be a ".format(variable(name)) in error and "from {} to {}, not \"{}\"".format(least, most, value) in error, error
    finally:
        os.rmdir(bus.home)


def test_host_bytes(ask, start_ranks, monkeypatch):
    """More than it is an error where rows would be missing, and says what to raise."""
    job = start_ranks(1, **{"LARGE_{}".format(number): str(number) * 100000 for number in range(4)})
    query = "-t", "@" + job.name, "query", "-f", "json", "SELECT sum(length(value)) AS size FROM system.environment WHERE name LIKE 'LARGE_%'"
    done = ask(*query)
    assert done.status == 0 and done.json["rows"] == [{"size": 400000}], done.err
    monkeypatch.setenv("PROBING_CLUSTER_HOST_BYTES", "256K")
    done = ask(*query)
    assert done.status == OVER and "has more than 0.188 MiB" in done.err and "host_bytes" in done.err, done.err


# ---- an agent of its own ----

class Agent:
    """Of this machine, as a user's of whom nobody knows; and what the server has of it."""

    def __init__(self, bus, **settings):
        self.bus = bus
        os.makedirs(os.path.join(bus.home, "data"), mode=0o700)
        self.environment = dict({variable(name): value for name, value in settings.items()}, PROBING_DATA_DIR=os.path.join(bus.home, "data"), PROBING_STORE="off")
        said = self.run("attach")
        self.pid = int(re.search(r"is on the bus, process (\d+)", said).group(1))
        self.client = Client(bus.file("look"))
        self.client.subscribe("_INBOX.look.>")
        self.key = next(name for name in self.ask("$JS.API.STREAM.INFO.KV_probing_roster", {"subjects_filter": "$KV.>"}).json["state"]["subjects"])

    def run(self, word):
        done = self.bus.run("cluster", word, environment=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, subject, body=b""):
        """The first message that answers it."""
        reply = "_INBOX.look." + uuid.uuid4().hex
        self.client.publish(subject, body, reply)
        return next(one for one in iter(self.client.next, None) if one.subject == reply)

    def entry(self):
        """(number, ranks of a job)"""
        message = self.ask("$JS.API.DIRECT.GET.KV_probing_roster." + self.key)
        return int(message.headers["Nats-Sequence"]), {(one["job"], one["rank"]) for one in message.json["members"]}

    def until(self, good, seconds=DEADLINE):
        end = time.monotonic() + seconds
        while not good(self.entry()):
            assert time.monotonic() < end
            time.sleep(0.05)

    def end(self):
        self.client.close()
        self.run("detach")


@pytest.fixture(scope="module")
def agent(bus):
    one = Agent(bus, nice="13", heartbeat="1s", scan="0.5s", part_bytes="16K")
    yield one
    one.end()


def rows_of(job, table, column):
    """A question for all rows of one column."""
    return {"v": 1, "id": uuid.uuid4().hex, "kind": "rows", "job": job, "ranks": "", "budget_ms": 20000, "args": {
        "needs": [], "grouped": False, "tables": [dict(zip(("schema", "table"), table.split(".")), name=table.split(".")[1], columns=[column])]}}


@needs_bus
def test_agent(agent, start_ranks):
    """Its place behind others; the roster's entry again without a reason; ranks that nobody asked for; parts of an answer."""
    with open("/proc/{}/stat".format(agent.pid)) as stat:
        assert stat.read().rpartition(") ")[2].split()[16] == "13"
    first, _ = agent.entry()
    agent.until(lambda entry: entry[0] >= first + 2, 25)  # by default it is each 30 s
    until = time.monotonic() + 15  # two of the default's looks are 20 s
    job = start_ranks(2, ranks=[0], LARGE=os.urandom(50000).hex())
    agent.until(lambda entry: (job.name, 0) in entry[1], until - time.monotonic())
    job.start(1, 2)
    agent.until(lambda entry: (job.name, 1) in entry[1], until - time.monotonic())
    got = [agent.ask("probing.v1.{}.look.all".format(job.name), rows_of(job.name, "system.environment", "value"))]
    count = int(got[0].headers["Probing-Part"].partition("/")[2])
    got += [agent.client.next() for _ in range(count - 1)]
    assert count > 2 and {len(one.body) for one in got[:-1]} == {16 << 10}, [(one.headers, len(one.body)) for one in got]


# ---- hosts that are not there ----

class Crowd(threading.Thread):
    """Hosts with a rank and a connection each.  A look is answered when the server has passed on what was asked beside it, or (wait) when
    all were asked."""

    def __init__(self, bus, count):
        super().__init__(daemon=True)
        self.keys = ["crowd-{:016x}".format(number) for number in range(count)]
        self.shards = {}
        for rank, key in enumerate(self.keys):
            self.shards.setdefault(shard_of(key), []).append(rank)
        self.hosts = [Client(bus.file("agent")) for _ in self.keys]
        enroll(self.hosts[0], {key: self.entry(rank) for rank, key in enumerate(self.keys)})
        for host, key in zip(self.hosts, self.keys):
            host.subscribe("probing.v1.find")
            host.subscribe("probing.v1.crowd.look.s{:02}".format(shard_of(key)))
            host.refused()
        self.all = Client(bus.file("agent"))  # sees in which order they are asked
        self.all.subscribe("probing.v1.find")
        self.all.subscribe("probing.v1.crowd.look.>")
        self.all.refused()
        self.forget(False)
        self.start()

    def forget(self, wait):
        self.asked, self.first, self.wait, self.budgets = [], 0, wait, set()

    def entry(self, rank):
        return {"v": 1, "host": "h{}".format(rank), "key": self.keys[rank], "release": "0", "uid": os.geteuid(), "pid": 1, "started": 1.0, "clock": 1.0,
                "members": [{"job": "crowd", "rank": rank, "local_rank": 0, "world_size": len(self.keys), "attempt": 0, "pid": 1, "uid": os.geteuid(),
                             "started": 1.0, "refused": ""}]}

    def tell(self):
        for rank, host in enumerate(self.hosts):
            host.publish(host.next().reply, self.entry(rank))

    def answer(self, shard):
        for rank in self.shards[shard]:
            asked = self.hosts[rank].next()
            head = json.dumps({"id": asked.json["id"], "host": "h", "clock": 1.0, "parts": [],
                               "ranks": [{"rank": rank, "pid": 1, "state": "failed", "ms": 1.0, "reason": "as told"}]}).encode()
            self.hosts[rank].publish(asked.reply, struct.pack("<I", len(head)) + head,
                                     headers={"Probing-Host": self.keys[rank], "Probing-Id": asked.json["id"], "Probing-Part": "1/1"})

    def take(self, one, held):
        if one.subject == "probing.v1.find":
            self.tell()
        elif ".look.s" in one.subject:
            held.append(int(one.subject.rpartition(".s")[2]))
            self.asked.append(held[-1])
            self.budgets.add(one.json["budget_ms"])
        else:  # are you there?
            self.all.publish(one.reply)

    def run(self):
        held = []
        for one in iter(self.all.messages.get, None):
            self.take(one, held)
            if not held or (self.wait and len(self.asked) < len(self.shards)):
                continue
            self.all.refused()
            while not self.all.messages.empty():
                self.take(self.all.messages.get(), held)
            self.first = self.first or len(held)
            for shard in held:
                self.answer(shard)
            held = []

    def end(self):
        self.all.messages.put(None)
        self.join(DEADLINE)
        for one in (self.all, *self.hosts):
            one.close()


def shard_of(key):
    """As prb_bus_shard has it: FNV-1a, folded."""
    number = 2166136261
    for byte in key.encode():
        number = (number ^ byte) * 16777619 & 0xffffffff
    return (number ^ number >> 16) % 64


@pytest.fixture(scope="module")
def crowd(bus):
    one = Crowd(bus, 24)
    yield one
    one.end()


@needs_bus
@pytest.mark.parametrize("settings, at_once", [({"in_flight": "64K"}, False), ({}, True), ({"in_flight": "64K", "shards": "1"}, True)],
                         ids=["in_flight", "default", "shards"])
def test_in_flight(bus, crowd, settings, at_once):
    """How many hosts are asked before any answers; in one part there is nothing to hold back."""
    crowd.forget(at_once)
    done = bus.run("-t", "@crowd", "backtrace", "--json", environment=dict({variable(name): value for name, value in settings.items()}, PROBING_CLUSTER_LOOK_BUDGET="19s"))
    assert done.returncode == PARTIAL and len(json.loads(done.stdout)["coverage"]["failed"]) == 24, done.stdout + done.stderr
    assert sorted(crowd.asked) == sorted(crowd.shards) and len(crowd.shards) > 12 and crowd.budgets == {19000}
    assert crowd.first == len(crowd.shards) if at_once else crowd.first < len(crowd.shards) / 2


@needs_bus
def test_stale(bus, agent):
    """Of a host that the roster has not heard of for long nobody asks whether it is there."""
    client = Client(bus.file("agent"))

    def entry(name, rank):
        return {"v": 1, "host": name, "key": name, "release": "0", "uid": os.geteuid(), "pid": 1, "started": 1.0, "clock": 1.0, "members": [
            {"job": "old", "rank": rank, "local_rank": 0, "world_size": 2, "attempt": 0, "pid": 1, "uid": os.geteuid(), "started": 1.0, "refused": ""}]}

    for subject in ("probing.v1.old.look.h.dead-1", "probing.v1.old.look.h.dead-2"):
        client.subscribe(subject)  # the server knows somebody who hears it
    for number in (1, 2):
        client.publish("$KV.probing_roster.dead-{}".format(number), entry("dead-{}".format(number), number - 1))
    assert client.refused() == []
    for _ in range(3):  # the server's time goes on
        last, _ = agent.entry()
        agent.until(lambda found, last=last: found[0] > last)
    ask = "-t", "@old", "--timeout", "0.5", "backtrace", "--json"
    done = bus.run(*ask, environment={"PROBING_CLUSTER_STALE": "1s"})
    assert done.returncode == PARTIAL and json.loads(done.stdout)["coverage"]["silent"] == "0-1", done.stdout + done.stderr
    assert re.search(r"silent 0-1 \(0: dead-1 was last heard of \d+ s ago, 1: dead-2 was", bus.run(*ask[:-1], environment={"PROBING_CLUSTER_STALE": "1s"}).stderr)
    assert client.refused() == [] and client.messages.empty()
    done = bus.run(*ask)
    assert done.returncode == PARTIAL and json.loads(done.stdout)["coverage"]["silent"] == "0-1", done.stdout + done.stderr
    assert client.refused() == [] and {client.next().subject, client.next().subject} == {"probing.v1.old.look.h.dead-1", "probing.v1.old.look.h.dead-2"}
    for number in (1, 2):
        client.publish("$KV.probing_roster.dead-{}".format(number), b"")
    client.refused()
    client.close()
