"""Acting on ranks over a bus: a signed go within two seconds, once; `down` ends the agents."""

import hashlib
import json
import os
import time

import pytest

from nats_client import Client, Key
from test_agents import DEADLINE, Cluster, host_rank, pytestmark, until_gone  # noqa: F401

ID = "0123456789abcdef" * 2
REQUEST = json.dumps({"v": 1, "id": ID, "kind": "nothing", "job": "job", "ranks": "", "budget_ms": 1000, "args": {}})


@pytest.fixture(scope="module")
def acting():
    """One host whose agent allows control, and not eval."""
    one = Cluster()
    try:
        one.start(one.hosts.all[0], 0)
        one.attach(one.hosts.all[0], "--allow", "control")
        yield one
    finally:
        one.end()


class Asker:
    def __init__(self, cluster):
        self.file = cluster.bus.file("control")
        self.key = Key(self.file["nkey"])
        with cluster.hosts.hub.network():
            self.client = Client(self.file)
        self.client.subscribe("_INBOX.control.me.*")
        self.client.refused()

    def send(self, what, id_=ID):
        """What the agent answers: (its key, the body)."""
        self.client.publish("probing.v1.job.control.all", dict({"v": 1, "id": id_}, **what), "_INBOX.control.me.1")
        answer = self.client.next()
        return answer.headers["Probing-Host"], answer.body

    def prepare(self, id_=ID):
        agent, body = self.send({"prepare": REQUEST.replace(ID, id_)}, id_)
        return agent, json.loads(body.decode())["ready"]["nonce"]

    def go(self, agent, nonce, key=None, request=REQUEST, id_=ID, **changed):
        key = key or self.key
        text = "probing.v1.go\n{}\n{}\n{}\n{}\n".format(id_, agent, nonce, hashlib.sha256(request.replace(ID, id_).encode()).hexdigest())
        return self.send({"go": dict({"nonce": nonce, "key": key.text, "signature": key.sign(text.encode()).hex()}, **changed)}, id_)[1]

    def in_time(self, go):
        """(agent, nonce, the answer to go(agent, nonce)) of one that came within two seconds, which is much for a signature here beside other load."""
        end = time.monotonic() + DEADLINE
        while True:
            agent, nonce = self.prepare()
            answer = go(agent, nonce)
            if b"is not obeyed" not in answer:
                return agent, nonce, answer
            assert time.monotonic() < end, answer


@pytest.fixture(scope="module")
def asker(acting):
    return Asker(acting)


def test_fresh_go_runs_once(asker):
    """It gets as far as its kind, which there is none of; the same go again is refused."""
    agent, nonce, answer = asker.in_time(asker.go)
    assert b"no kind of question" in answer
    assert b"no request waits for that go" in asker.go(agent, nonce)


@pytest.mark.parametrize("how, why", [("unsigned", b"not signed"), ("stranger", b"does not trust"), ("other", b"signature"), ("nonce", b"no request waits")])
def test_wrong_go(asker, how, why):
    _, _, answer = asker.in_time({
        "unsigned": lambda agent, nonce: asker.go(agent, nonce, signature=""), "stranger": lambda agent, nonce: asker.go(agent, nonce, Key(bytes(32))),
        "other": lambda agent, nonce: asker.go(agent, nonce, request=REQUEST + " "), "nonce": lambda agent, nonce: asker.go(agent, "0" * 32)}[how])
    assert why in answer, answer


def test_late_go(asker):
    agent, nonce = asker.prepare()
    time.sleep(2.2)  # longer than a go is waited for
    assert b"is not obeyed" in asker.go(agent, nonce)


def test_other_class(acting, asker):
    """Control is no eval, and a look is no way around either."""
    assert b"neither prepare nor go" in asker.send(json.loads(REQUEST))[1]
    with acting.hosts.hub.network():
        client = Client(acting.bus.file("eval"))
    client.subscribe("_INBOX.eval.me.*")
    client.refused()
    client.publish("probing.v1.job.eval.all", {"v": 1, "id": ID, "prepare": REQUEST}, "_INBOX.eval.me.1")
    assert b"does not allow eval" in client.next().body
    client.publish("probing.v1.job.look.all", json.loads(REQUEST) | {"kind": "eval", "args": {"code": "1"}}, "_INBOX.eval.me.2")
    assert b"is not asked as look" in client.next().body
    client.close()


def test_loading_a_probe_is_control(acting):
    """A hang's look alone loads none (test_agents.py); its --deep does, and is signed."""
    done = acting.ask("hang", "--deep", "--every", "0.1", "--format", "json")
    assert done.returncode in (0, 15), done.stderr  # 15: ranks 1 to 3 are missing
    with open("/proc/{}/maps".format(host_rank(acting, 0))) as file:
        assert "libprobe" in file.read()
    with open(os.path.join(acting.bus.home, ".local", "state", "probing", "agent-node1.log")) as file:
        assert "hang_deep of ranks" in file.read()


def test_log(acting):
    """Each refusal is written down."""
    with open(os.path.join(acting.bus.home, ".local", "state", "probing", "agent-node1.log")) as file:
        log = file.read()
    for why in ("no request waits for that go", "not signed", "does not trust", "is not obeyed", "does not allow eval"):
        assert "refused " in log and why in log, why


def test_down_ends_agents(acting):
    assert acting.at(acting.hosts.hub, "cluster", "down").stdout == "the bus has ended\n"
    until_gone(acting.hosts.all[0], "probing-agent")
