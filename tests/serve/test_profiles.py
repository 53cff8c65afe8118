"""Profiles that are read while they are taken: by POST, over the WebSocket, compared."""

import json

import pytest

from serving import until
from websocket import WebSocket


@pytest.fixture
def busy(start, any_python):
    """Its main thread sleeps."""
    return start(any_python, "turns.py").settle(only=True)


def begin(server, job, **more):
    answer = server.post("/api/v1/profiles", dict({"target": str(job.pid), "seconds": 60}, **more))
    assert answer.status == 201, answer.text
    return answer.json


def get(server, path):
    answer = server.ask("/api/v1/profiles" + path)
    assert answer.status == 200, answer.text
    return answer.json


def sampled(server, made, samples=20):
    until(lambda: get(server, "/" + made["id"])["samples"] > samples)


def end(server, *made):
    for one in made:
        assert server.ask("/api/v1/profiles/" + one["id"], "DELETE").json == {"id": one["id"], "deleted": True}


def names(told, node):
    """Outermost first."""
    path = []
    while node:
        parent, frame = told["nodes"][node]
        assert parent < node
        path.append(told["frames"][frame]["name"])
        node = parent
    return path[::-1]


def threads(told):
    return {told["threads"][weight[0]]["name"] for weight in told["weights"]}


def test_while_it_is_taken(server, busy):
    made = begin(server, busy)
    assert (made["pid"], made["mode"], made["rate"], made["done"]) == (busy.pid, "active", 100, False)
    assert made["id"] in [one["id"] for one in get(server, "")["profiles"]]
    sampled(server, made)
    told = get(server, "/" + made["id"])
    assert told["nodes"][0] == [0, -1]
    found = {names(told, node)[-1]: samples for thread, node, samples, ns in told["weights"] if ns}
    assert "turn" in found
    until(lambda: threads(get(server, "/" + made["id"])) >= {"turn-0", "turn-1"})
    before = told["samples"]
    until(lambda: get(server, "/" + made["id"])["samples"] > before)  # it goes on
    end(server, made)
    assert server.ask("/api/v1/profiles/" + made["id"]).status == 404


@pytest.mark.parametrize("form", ["collapsed", "speedscope", "flamegraph", "pprof", "perfetto", "chrome", "firefox"])
def test_files(server, busy, form):
    made = begin(server, busy)
    sampled(server, made)
    answer = server.ask("/api/v1/profiles/{}?format={}".format(made["id"], form))
    assert answer.status == 200
    if form == "collapsed":
        assert "turn" in answer.text
    elif form in ("speedscope", "chrome", "firefox"):
        assert "turn" in answer.text and answer.json
    elif form == "flamegraph":
        assert answer.text.startswith(("<?xml", "<svg"))
    else:
        assert answer.body
    end(server, made)


def test_of_its_seconds(server, busy):
    made = begin(server, busy, seconds=2, rate=50, mode="wall")
    until(lambda: get(server, "/" + made["id"])["done"])
    told = get(server, "/" + made["id"])
    assert 1.9 < told["seconds"] < 50 and told["samples"] and told["mode"] == "wall"
    assert "turn" in server.ask("/api/v1/profiles/{}?format=collapsed".format(made["id"])).text
    end(server, made)


def test_slow_rate(server, busy):
    """Who reads one that sleeps between samples does not wait for the next."""
    made = begin(server, busy, rate=1)
    until(lambda: get(server, "/" + made["id"])["seconds"] > 0)
    end(server, made)


def test_increments(server, busy):
    """What came behind a place, put behind what came before it, is the whole."""
    made = begin(server, busy)
    frames, nodes, threads, weights, place = [], [], [], {}, ""
    for samples in (10, 20, 40):
        sampled(server, made, samples)
        told = get(server, "/{}{}".format(made["id"], "?from=" + place if place else ""))
        assert (told["first_frame"], told["first_node"], told["first_thread"]) == (len(frames), len(nodes), len(threads))
        frames += told["frames"]
        nodes += told["nodes"]
        threads += told["threads"]
        weights.update({(thread, node): value for thread, node, value, ns in told["weights"]})
        place = told["next"]
    assert sum(weights.values()) > 20 and all(node < len(nodes) for thread, node in weights)
    assert all(parent < len(nodes) and frame < len(frames) for parent, frame in nodes)
    assert server.ask("/api/v1/profiles/{}?from=x".format(made["id"])).status == 400
    end(server, made)


def test_compared(server, busy):
    first, second = begin(server, busy), begin(server, busy, mode="wall")
    for one in (first, second):
        sampled(server, one)
    told = get(server, "/{}/diff/{}".format(first["id"], second["id"]))
    assert len(told["before"]) == len(told["after"]) == len(told["nodes"])
    assert sum(told["before"]) == told["before_total"] > 0 and sum(told["after"]) == told["after_total"] > 0
    keys = {json.dumps(frame) for frame in told["frames"]}
    assert len(keys) == len(told["frames"])
    only_after = {names(told, node)[-1] for node, count in enumerate(told["after"]) if count and not told["before"][node]}
    assert "<module>" in only_after  # the main thread sleeps
    picture = server.ask("/api/v1/profiles/{}/diff/{}?format=flamegraph".format(first["id"], second["id"]))
    assert picture.status == 200 and "<svg" in picture.text
    assert server.ask("/api/v1/profiles/{0}/diff/{0}?format=flamegraph".format(first["id"])).status == 400
    assert server.post("/api/v1/profiles", {"target": str(busy.pid)}).status == 409  # two run already
    end(server, first, second)


def test_refused(server, busy):
    for body, status in (({}, 400), ({"target": str(busy.pid), "rate": 0}, 400), ({"target": str(busy.pid), "mode": "x"}, 400),
                         ({"target": str(busy.pid), "seconds": 601}, 400), ({"target": "1.1"}, 410), ({"target": str(1 << 22)}, 404)):
        assert server.post("/api/v1/profiles", body).status == status, body
    for path in ("/p0", "/s1x", "/p1/diff/p2"):
        assert server.ask("/api/v1/profiles" + path).status == 404
    assert server.ask("/api/v1/profiles/p0", "DELETE").status == 404


def test_flame_graph_that_grows(server, busy):
    with WebSocket(server) as one, WebSocket(server) as other:
        number = one.subscribe("flame", target=busy.pid, every=0.3)
        same = other.subscribe("flame", target=busy.pid, every=0.3)
        frames, weights = [], {}
        while sum(weights.values()) < 50:
            told = one.value(number)["value"]
            assert told["first_frame"] == len(frames)
            frames += told["frames"]
            weights.update({(thread, node): value for thread, node, value, ns in told["weights"]})
        assert "turn" in [frame["name"] for frame in frames]
        assert other.value(same)["value"]["id"] == told["id"]  # one is taken for both
        one.send(id=number, op="unsub")
        assert other.value(same)
        assert not get(server, "")["profiles"]
        made = begin(server, busy, seconds=0.5)
        seen = one.subscribe("flame", profile=made["id"], every=0.1)
        until(lambda: one.value(seen).get("value", {}).get("done"))
        assert one.ask(op="sub", topic="flame", target=busy.pid, rate=0)["error"]["code"] == "usage"
        missing = one.subscribe("flame", profile="p0")
        assert one.next(missing)["error"]["code"] == "not found"
        end(server, made)
    until(lambda: server.ask("/api/v1/profiles/" + told["id"]).status == 404)  # nobody looks any more


def test_target_that_ends(server, busy):
    made = begin(server, busy)
    sampled(server, made)
    busy.end()
    until(lambda: get(server, "/" + made["id"])["done"])
    end(server, made)
