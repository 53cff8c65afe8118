"""The WebSocket: who gets in, topics, slow readers, a thousand of them; frames that are wrong."""

import json
import resource
import time

import pytest

from serving import until
from websocket import Closed, WebSocket


@pytest.fixture
def live(server):
    """live(**options): a WebSocket of the server, or of=another; closed with the test."""
    opened = []

    def begin(of=server, **more):
        opened.append(WebSocket(of, **more))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


def go_on(job):
    job.child.stdin.write(b"\n")
    job.child.stdin.flush()


def names(told, stack):
    return {told["frames"][at]["name"].rsplit(".", 1)[-1] for at in told["stacks"][stack]}


def closed(one):
    with pytest.raises(Closed) as told:
        while True:
            one.text()
    return told.value.code


# ---- who gets in ----


def test_token(server, live):
    one = live(token=None)
    one.send(id=1, op="token", token=server.token)
    assert one.next() == {"id": 1, "ok": True}
    wrong = live(token=None)
    wrong.send(id=1, op="token", token="x" * 64)
    closed(wrong)
    none = live(token=None)
    none.send(id=1, op="token", token="")
    closed(none)
    before = live(token=None)
    before.send(id=1, op="sub", topic="processes")
    closed(before)
    local = live(tcp=False)
    assert "value" in local.value(local.subscribe("processes"))
    began = time.monotonic()
    closed(live(token=None))  # silent
    assert 4 < time.monotonic() - began < 50
    assert server.alive()


def test_handshake(server, live):
    """What lws 4.1.6 would take."""
    assert live().status == 101
    for wrong in ({"path": "/"}, {"path": "/api/v1/processes"}, {"Sec_WebSocket_Version": "12"}, {"Sec_WebSocket_Key": "abc"},
                  {"Upgrade": "h2c"}, {"Authorization": "Bearer wrong"}):
        assert live(token=None, **wrong).status >= 400, wrong
    assert live(tcp=False, Origin="http://elsewhere.example", Host="localhost").status == 403
    assert live(tcp=False, Origin="http://localhost", Host="attacker.example").status == 421
    assert live(tcp=False, Origin="http://localhost", Host="localhost").status == 101
    assert server.alive()


# ---- topics ----


def test_stacks(live, moved):
    """A value when it moves; when not, a word that says so."""
    one = live()
    number = one.subscribe("stacks", target=moved.pid, every=0.2)
    first = one.value(number)
    assert any("before" in names(first["value"], stack) for stack in range(len(first["value"]["stacks"])))
    assert one.value(number).get("same")
    go_on(moved)
    while True:
        message = one.value(number)
        if any("after" in names(message["value"], stack) for stack in range(len(message.get("value", {}).get("stacks", ())))):
            break
    for more in ({"op": "set", "every": 0.5}, {"op": "unsub"}):
        one.send(id=number, **more)
        while "ok" not in one.next(number):
            pass
    other = one.subscribe("processes")
    for _ in range(2):
        assert one.next()["id"] == other  # nothing more of the first one


def test_topics(live, moved):
    one = live()
    listed = one.value(one.subscribe("processes"))["value"]["processes"]
    assert moved.pid in [row["pid"] for row in listed]
    rows = one.value(one.subscribe("query", target=str(moved.pid), sql="SELECT 1 AS a"))["value"]
    assert rows["columns"] == ["a"] and rows["rows"] == [[1]]
    one.value(one.subscribe("tasks", target=moved.pid))
    native = one.value(one.subscribe("stacks", target=moved.pid, native=True))["value"]
    assert any(frame["kind"] == "native" for frame in native["frames"])


def test_history(server, live, moved):
    """Each message goes on where the last one ended, and is whole in itself."""
    until(lambda: server.ask("/api/v1/p/{}/history".format(moved.pid)).status == 200)
    one = live()
    number = one.subscribe("history", target=moved.pid, every=1)
    times = []
    while len(times) < 4:
        told = one.value(number).get("value", {})
        if told.get("moments"):
            stacks = len(told["moments"][0]["stacks"])
            times += [moment["time"] for moment in told["moments"]]
    assert times == sorted(set(times)) and stacks == 2


def test_errors(live, moved):
    one = live()
    for message, code in (({"op": "sub", "topic": "nothing"}, "not found"), ({"op": "sub"}, "not found"),
                          ({"op": "fly"}, "usage"), ({}, "usage"), ({"op": "sub", "topic": "stacks"}, "usage"),
                          ({"op": "sub", "topic": "stacks", "target": "1/../2"}, "usage"),
                          ({"op": "sub", "topic": "query", "target": moved.pid}, "usage"),
                          ({"op": "sub", "topic": "processes", "every": 0.001}, "usage"),
                          ({"op": "sub", "topic": "processes", "every": "1"}, "usage"),
                          ({"op": "sub", "topic": "processes", "sql": "x"}, "usage"),
                          ({"op": "unsub"}, "not found"), ({"op": "set", "every": 1}, "not found")):
        assert one.ask(**message)["error"]["code"] == code, message
    number = one.subscribe("stacks", target=1 << 22)
    assert one.next(number)["error"]["code"] == "not found"
    assert one.ask(op="sub", topic="query", target=moved.pid, sql="SELEC")["ok"]
    assert one.next(one.number)["error"]["code"] == "query"
    for _ in range(32):
        one.subscribe("processes", every=60)
    assert "too many" in one.ask(op="sub", topic="processes")["error"]["message"]


def test_target_that_ends(live, moved):
    one = live()
    number = one.subscribe("stacks", target=moved.pid, every=0.1)
    one.value(number)
    moved.end()
    while True:
        message = one.next(number)
        if "error" in message:
            break
    assert message["error"]["code"] in ("gone", "not found")


# ---- frames ----


def test_wrong_frames(server, live):
    for opcode, payload in ((1, b"\xff\xfe"), (1, b"{"), (1, b"[]"), (1, b'{"id":1,"id":2}'), (2, b"{}"), (3, b""), (1, b"x" * 70000)):
        one = live()
        one.send_frame(payload, opcode)
        closed(one)
    assert server.alive()


def test_fragments_and_pings(live):
    one = live()
    text = json.dumps({"id": 7, "op": "sub", "topic": "processes", "every": 60, "x": "y" * 3000}).encode()
    one.send_frame(text[:5], 1, final=False)
    one.send_frame(b"are you there", 9)
    one.send_frame(text[5:], 0)
    assert one.frame() == (10, True, b"are you there")
    assert "has no" in one.next(7)["error"]["message"]
    one.send_frame(b"\x03\xe8", 8)
    assert closed(one) == 1000


# ---- many ----


def memory(pid):
    return int(next(line for line in open("/proc/{}/status".format(pid)) if line.startswith("VmRSS")).split()[1])


def settled(pid):
    """Its memory, once it has what it needs: it grows no more."""
    before, now = -1, memory(pid)
    while abs(now - before) > 500:
        time.sleep(2)
        before, now = now, memory(pid)
    return now


def test_slow_readers(serve, live, moved):
    """Who does not read gets fewer values, holds nobody up and costs no memory."""
    server = serve(of=moved.pid)  # what else runs here costs it nothing
    slow = [live(of=server) for _ in range(10)]
    for one in slow:
        one.subscribe("query", target=moved.pid, every=0.1,
                      sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000) SELECT i, i, now() FROM n")
    before = settled(server.pid)
    quick = live(of=server)
    number = quick.subscribe("stacks", target=moved.pid, every=0.1)
    for _ in range(30):
        quick.value(number)  # the slow ones never read: who waits for them waits for ever
    assert memory(server.pid) < before + 20000  # KiB
    assert server.ask("/api/v1/p/{}/stacks".format(moved.pid)).status == 200
    told = [slow[0].value(slow[0].number) for _ in range(4)]
    assert len({message["time"] for message in told}) == 4


def test_one_look_for_all(server, live, moved):
    """Subscribers that want the same get the same values."""
    several = [live() for _ in range(20)]
    numbers = [one.subscribe("stacks", target=moved.pid, every=0.5) for one in several]
    for one, number in zip(several, numbers):
        for _ in range(2):
            one.value(number)
    times = [{one.value(number)["time"] for _ in range(6)} for one, number in zip(several, numbers)]
    assert len(set.union(*times)) < 40  # of 120 messages


def test_a_thousand(serve, moved):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("{} descriptors at the most".format(hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    one = serve(of=moved.pid)
    opened = []
    try:
        opened += [WebSocket(one) for _ in range(10)]
        before = settled(one.pid)
        sockets = one.sockets()
        opened += [WebSocket(one) for _ in range(990)]
        grown = memory(one.pid) - before
        assert grown < 20 << 10, grown  # KiB
        assert one.alive()
        last = opened[-1]
        assert "value" in last.value(last.subscribe("processes"))
    finally:
        for client in opened:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: one.sockets() <= sockets)
    assert one.alive()
