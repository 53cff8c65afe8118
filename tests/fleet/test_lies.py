"""Hosts on the bus that lie or are slow: their ranks are failed or silent, never counted twice, and the asker is unharmed."""

import json
import os
import struct
import threading
import time

import pytest

from bus import Bus, enroll, missing
from nats_client import Client

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
NOT_FOUND, TIMEOUT, PARTIAL = 3, 13, 15
KEY = "liar-0000000000000001"


def member(rank):
    return {"job": "lies", "rank": rank, "local_rank": rank, "world_size": 2, "attempt": 0, "pid": 100 + rank, "uid": os.geteuid(), "started": 1.0, "refused": ""}


def reply(request, ranks=(0, 1), id_=None):
    head = json.dumps({"id": id_ or request["id"], "host": "liar", "clock": 1.0, "parts": [],
                       "ranks": [{"rank": rank, "pid": 100 + rank, "state": "failed", "ms": 1.0, "reason": "as told"} for rank in ranks]}).encode()
    return struct.pack("<I", len(head)) + head


class Liar(threading.Thread):
    """An agent of two ranks that answers looks as lie(send, request) says."""

    def __init__(self, bus, lie):
        super().__init__(daemon=True)
        self.client, self.lie = Client(bus.file("agent")), lie
        enroll(self.client, {KEY: self.entry()})
        for subject in ("probing.v1.find", "probing.v1.lies.look.>"):
            self.client.subscribe(subject)
        self.client.refused()
        self.start()

    def entry(self):
        return {"v": 1, "host": "liar", "key": KEY, "release": "0", "uid": os.geteuid(), "pid": 1, "started": 1.0, "clock": 1.0,
                "members": [member(0), member(1)]}

    def run(self):
        for asked in iter(self.client.messages.get, None):
            if asked.subject == "probing.v1.find":
                self.client.publish(asked.reply, self.entry())
            elif asked.body:
                def send(body, subject=asked.reply, id_=asked.json["id"], part="1/1", **headers):
                    self.client.publish(subject, body, headers=dict({"Probing-Host": KEY, "Probing-Id": id_, "Probing-Part": part}, **headers))
                self.lie(send, asked.json)


def honest(send, request):
    send(reply(request))


def twice(send, request):
    send(reply(request))
    send(reply(request, (0,)))


def other_id(send, request):
    send(reply(request), id_="0" * 32)


def other_id_within(send, request):
    send(reply(request, id_="0" * 32))


def other_host(send, request):
    send(reply(request), **{"Probing-Host": "somebody"})


def other_rank(send, request):
    send(reply(request, (0, 7)))


def same_rank(send, request):
    send(reply(request, (0, 0)))


def garbage(send, request):
    send(b"\xff" * 100)


def empty(send, request):
    send(b"")


def never_whole(send, request):
    send(reply(request), part="1/3")


def contradicting(send, request):
    send(b"x", part="1/3")
    send(b"x", part="1/2")


def no_place(send, request):
    send(reply(request), part="9999999999/1")


def not_packed(send, request):
    send(reply(request), **{"Probing-Packed": "zstd"})


def bomb(send, request):
    """A frame that says it is 1 TiB long."""
    send(bytes.fromhex("28b52ffd") + b"\xc0" + struct.pack("<Q", 1 << 40) + b"\0" * 16, **{"Probing-Packed": "zstd"})


@pytest.mark.parametrize("lie, state", [
    (honest, "failed"), (twice, "failed"), (other_id, "silent"), (other_id_within, "failed"), (other_host, "silent"), (other_rank, "failed"),
    (same_rank, "failed"), (garbage, "failed"), (empty, "failed"), (never_whole, "silent"), (contradicting, "failed"), (no_place, "failed"),
    (not_packed, "failed"), (bomb, "failed")], ids=lambda value: getattr(value, "__name__", value))
def test_lies(bus, lie, state):
    liar = Liar(bus, lie)
    try:
        done = bus.run("-t", "@lies", "--timeout", "0.5" if state == "silent" else "60", "backtrace", "--json")
    finally:
        liar.client.messages.put(None)
        liar.join()
        liar.client.close()
    assert done.returncode == PARTIAL, done.stderr
    found = json.loads(done.stdout)["coverage"]
    ranks = {"failed": ",".join(str(one["rank"]) for one in found["failed"]), "silent": found["silent"].replace("-", ",")}
    assert found["expected"] == 2 and found["answered"] == found["missing"] == found["gone"] == "", found
    assert ranks == dict({"failed": "", "silent": ""}, **{state: "0,1"}), found
    assert lie not in (honest, twice) or {one["reason"] for one in found["failed"]} == {"as told"}


class Slow(threading.Thread):
    """An agent of one rank that is not in the roster, and tells of itself so many seconds after it is asked."""

    def __init__(self, bus, rank, seconds, uid=None):
        super().__init__(daemon=True)
        self.client, self.seconds = Client(bus.file("agent")), seconds
        uid = os.geteuid() if uid is None else uid
        key = "slow{}-{:08x}0000000{}".format(rank, uid, rank)
        self.told = {"v": 1, "host": "slow{}".format(rank), "key": key, "release": "0", "uid": uid, "pid": 1, "started": 1.0, "clock": 1.0,
                     "members": [dict(member(rank), job="slow", uid=uid)]}
        for subject in ("probing.v1.find", "probing.v1.slow.look.all"):
            self.client.subscribe(subject)
        self.client.refused()
        self.start()

    def run(self):
        for asked in iter(self.client.messages.get, None):
            if asked.subject == "probing.v1.find":
                time.sleep(self.seconds)  # what it is slow by
                self.client.publish(asked.reply, self.told)

    def end(self):
        self.client.messages.put(None)
        self.join()
        self.client.close()


def coverage_of(*those):
    """Of a look without a roster at a job, of agents that tell late: (rank, seconds, user) each."""
    one, agents = Bus(), []
    try:
        one.up()
        agents += [Slow(one, *each) for each in those]
        done = one.run("-t", "@slow", "--timeout", "0.1", "backtrace", "--json")
        return json.loads(done.stdout)["coverage"]
    finally:
        for agent in agents:
            agent.end()
        one.remove()


def test_slow_without_a_roster():
    """Who tells late is waited for where a rank is lacking; all the longer where the others are slow, too."""
    found = coverage_of((0, 0.6), (1, 1.4))
    assert (found["silent"], found["missing"]) == ("0-1", ""), found


def test_slow_of_two_users():
    """Another user's rank in a job of the same name is no rank of this one's, which is not whole without its own."""
    found = coverage_of((0, 0, os.geteuid()), (1, 0, os.geteuid() + 7), (1, 0.3, os.geteuid()))
    assert (found["silent"], found["missing"]) == ("0-1", ""), found


class Crowd(threading.Thread):
    """Agents of a rank each that tell of themselves one after the other, as on a machine that is busy, and answer looks at once."""

    def __init__(self, bus, count, world):
        super().__init__(daemon=True)
        self.client = Client(bus.file("agent"))
        self.entries = {"crowd{0}-000000000000000{0}".format(rank): rank for rank in range(count)}
        self.entries = {key: entry_of(key, rank, world) for key, rank in self.entries.items()}
        enroll(self.client, self.entries)
        for subject in ("probing.v1.find", *("probing.v1.lies.look.h." + key for key in self.entries)):
            self.client.subscribe(subject)
        self.client.refused()
        self.start()

    def run(self):
        for asked in iter(self.client.messages.get, None):
            key = asked.subject.rpartition(".")[2]
            if asked.subject == "probing.v1.find":
                for entry in self.entries.values():
                    time.sleep(0.04)  # what each is slower by than the one before
                    self.client.publish(asked.reply, entry)
            elif asked.body and key in self.entries:
                headers = {"Probing-Host": key, "Probing-Id": asked.json["id"], "Probing-Part": "1/1"}
                self.client.publish(asked.reply, reply(asked.json, [self.entries[key]["members"][0]["rank"]]), headers=headers)

    def end(self):
        self.client.messages.put(None)
        self.join()
        self.client.close()


def entry_of(key, rank, world):
    return {"v": 1, "host": key.partition("-")[0], "key": key, "release": "0", "uid": os.geteuid(), "pid": 1, "started": 1.0, "clock": 1.0,
            "members": [dict(member(rank), world_size=world)]}


def test_dead_costs():
    """A host that is cut off, which the server does not know, costs a look half a second, also where the others are not quick."""

    def look():
        began = time.monotonic()
        found = json.loads(one.run("-t", "@lies", "backtrace", "--json").stdout)["coverage"]
        assert len(found["failed"]) == 5, found  # as the crowd answers
        return time.monotonic() - began, found["silent"]

    one, crowd, dead = Bus(), None, None
    try:
        one.up()
        crowd = Crowd(one, 5, 6)
        whole = [look() for _ in range(4)]
        dead = Client(one.file("agent"))
        key = "dead-0000000000000006"
        enroll(dead, {key: entry_of(key, 5, 6)})
        dead.subscribe("probing.v1.lies.look.h." + key)
        dead.refused()
        cut = [look() for _ in range(4)]
        assert {silent for _, silent in whole} == {""} and {silent for _, silent in cut} == {"5"}, (whole, cut)
        assert min(cut)[0] - min(whole)[0] <= 0.5, (whole, cut)
    finally:
        if dead:
            dead.close()
        if crowd:
            crowd.end()
        one.remove()


def test_slow_is_not_no_job():
    """That there is no job is said only where all hosts told; with --timeout they are waited for."""
    one, agent = Bus(), None
    try:
        one.up()
        agent = Slow(one, 0, 4)
        done = one.run("-t", "@slow", "--timeout", "0.1", "backtrace")
        assert done.returncode == TIMEOUT and 'job "slow" was not found, and no host told of its ranks within 2.' in done.stderr, done.stderr
        found = json.loads(one.run("-t", "@slow", "--timeout", "60", "backtrace", "--json").stdout)["coverage"]
        assert found["missing"] == "1" and found["silent"] == "0", found
        done = one.run("-t", "@other", "--timeout", "60", "backtrace")
        assert done.returncode == NOT_FOUND and 'there is no job "other"' in done.stderr, done.stderr
    finally:
        if agent:
            agent.end()
        one.remove()
