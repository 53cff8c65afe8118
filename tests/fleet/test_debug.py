"""A debugger on one host, a rank on another: breakpoints, flow control, and the rank goes on whoever is lost."""

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import time

import pytest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "dap"))

from client import Client, Socket, Stdio  # noqa: E402
from nats_client import Client as BusClient  # noqa: E402
from nats_client import Key, x25519
from support.target import DEADLINE, PROBING, die_with_parent  # noqa: E402
from test_agents import Cluster, host_pid, pytestmark, until  # noqa: E402, F401

LONG = bool(os.environ.get("PROBING_FLEET_LONG"))
PARTIAL, USAGE, NOT_FOUND = 15, 2, 3
PROGRAM = """
import os, sys, threading, time
threading.Thread(target=lambda: sys.stdin.read() or os._exit(0), daemon=True).start()
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
def step(number):
    number += 1
    os.pwrite(fd, b"%012d" % number, 0)  # at line
    return number
print("ready", flush=True)
number = 0
while True:
    number = step(number)
    time.sleep(0.005)
"""
LINE = 1 + next(index for index, line in enumerate(PROGRAM.splitlines()) if "# at line" in line)


class Job(Cluster):
    """Rank 0 on the first host, whose agent lets nobody in; ranks 2 and 3 on the second, whose agent allows eval."""

    def begin(self):
        self.path = os.path.join(self.bus.home, "steps.py")
        with open(self.path, "w") as file:
            file.write(PROGRAM)
        self.begin_rank(self.hosts.all[0], 0)
        for rank in (2, 3):
            self.begin_rank(self.hosts.all[1], rank)
        self.attach(self.hosts.all[0])
        self.attach(self.hosts.all[1], "--allow", "eval")

    def begin_rank(self, host, rank):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", PROBING_JOB="job")
        process = subprocess.Popen([*host.enter, sys.executable, self.path, self.counter(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=environment)
        assert process.stdout.readline() == b"ready\n"
        self.ranks[rank] = process

    def counter(self, rank):
        return os.path.join(self.bus.home, "count-{}".format(rank))

    def count(self, rank):
        with open(self.counter(rank), "rb") as file:
            return file.read()

    def moves(self, rank=2):
        """It goes on."""
        before, end = self.count(rank), time.monotonic() + DEADLINE
        while self.count(rank) == before:
            assert time.monotonic() < end, "the rank stands"
            time.sleep(0.005)

    def environment_of(self, **more):
        return dict(self.bus.environment, PROBING_STORE="off", **more)

    def client(self, rank=2):
        """A client of `probing dap` on the hub."""
        return Client(Stdio(*self.hosts.hub.enter, PROBING, "-t", "@job:{}".format(rank), "dap", env=self.environment_of()))

    def stop(self, session, **more):
        """Attached, and at the breakpoint; the frame."""
        source = {"path": self.path}
        session.attach(configure=lambda one: one.request("setBreakpoints", {"source": source, "breakpoints": [{"line": LINE}]}), **more)
        body = session.event("stopped")
        frame = session.request("stackTrace", {"threadId": body["threadId"]})["stackFrames"][0]
        assert (frame["line"], frame["name"]) == (LINE, "step"), frame
        return frame


@pytest.fixture(scope="module")
def job():
    one = Job()
    try:
        one.begin()
        yield one
    finally:
        one.end()


def test_breakpoint(job):
    """Stops on the other host, in both directions more than a window at once, and runs when the client leaves."""
    with job.client() as session:
        frame = job.stop(session)

        def evaluate(text):
            return session.request("evaluate", {"expression": text, "frameId": frame["id"], "context": "clipboard"})["result"]

        assert evaluate("os.environ['RANK']") == "2"
        assert evaluate("len('{}')".format("x" * 2500000)) == "2500000"
        asked = [session.send("evaluate", {"expression": "'y' * 1000000", "frameId": frame["id"], "context": "clipboard"}) for _ in range(3)]
        assert [session.wait(one)["result"] == "y" * 1000000 for one in asked] == [True] * 3
        session.disconnect()
    job.moves()


class Listening:
    """`probing debug` on the hub."""

    def __init__(self, job, rank, *options, address="127.0.0.1:0"):
        self.child = subprocess.Popen([*job.hosts.hub.enter, PROBING, "-t", "@job:{}".format(rank), "debug", "--address", address, *options],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                      env=job.environment_of(), preexec_fn=die_with_parent)
        self.first = self.child.stdout.readline()
        assert "waiting for a debugger on" in self.first, self.child.communicate()[1]
        self.address = self.first.split()[-1]

    def end(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        with self.child:
            return self.child.wait(DEADLINE), self.child.stdout.read(), self.child.stderr.read()


def test_listen(job):
    """On loopback: clients one after another, where the sources are, and the end by the user."""
    server = Listening(job, 3, "--pause")
    host, _, port = server.address.rpartition(":")
    assert server.first.startswith("rank 3 (node2, pid ") and "is paused" in server.first
    before = job.count(3)
    with job.hosts.hub.network():
        first = Client(Socket((host, int(port))))
    with first:
        first.attach()
        assert first.event("stopped")["reason"] == "pause"
        assert job.count(3) == before
        with job.hosts.hub.network():
            second = Client(Socket((host, int(port))))
        with second:
            second.initialize()
            assert "another client" in second.refused("attach", {})
        job.moves(2)
        first.disconnect()
    job.moves(3)
    status, said, complaints = server.end()
    assert (status, complaints) == (0, "") and '"remoteRoot": "/"' in said, (status, said, complaints)


def test_child_session(job):
    """A child's session is to come where the clients are, not where the server listens."""
    server = Listening(job, 2)
    host, _, port = server.address.rpartition(":")
    with job.hosts.hub.network():
        session = Client(Socket((host, int(port))))
    with session:
        job.stop(session, subProcess=True)
        session.send("evaluate", {"expression": "__import__('os').fork() or __import__('time').sleep(3600)", "context": "repl"})
        asked = session.reverse_request("startDebugging")
        assert asked["arguments"]["configuration"]["connect"] == {"host": host, "port": int(port)}
        child = asked["arguments"]["configuration"]["subProcessId"]
        session.reply(asked)
        with job.hosts.hub.network():
            second = Client(Socket((host, int(port))))
        with second:
            second.attach(subProcessId=child)
            second.disconnect()
        session.request("evaluate", {"expression": "__import__('os').kill({}, 9)".format(child), "context": "repl"})  # before we go
        session.disconnect()
    server.end()
    job.moves()


@pytest.mark.parametrize("lost", ["asker", "agent"] + ["link"] * LONG)
def test_lost(job, lost):
    """Whichever side goes without a word: the client's session ends, and the rank goes on; a link that is down is known after 15 s."""
    host = job.hosts.all[1]
    session = job.client()
    job.stop(session)
    before = job.count(2)
    if lost == "asker":
        session.transport.kill()
    elif lost == "agent":
        os.kill(job.agent(host), signal.SIGKILL)
    else:
        job.hosts.cut(2)
    session.wait_end()
    job.moves()
    assert job.count(2) > before
    session.kill()
    if lost == "agent":
        assert session.transport.child.returncode != 0 and b"the other side of the stream is gone" in session.transport.errors
        job.attach(host, "--allow", "eval")
    if lost == "link":
        job.hosts.join(2)
        until(job, lambda found: found["answered"] == "0,2-3")


@pytest.mark.skipif(not LONG, reason="takes 15 s: PROBING_FLEET_LONG=1")
def test_server_killed(job):
    """And the asker before the server is back: nobody tells the agent, which waits for a word."""
    session = job.client()
    frame = job.stop(session)
    os.kill(job.bus.server, signal.SIGKILL)
    session.send("evaluate", {"expression": "number", "frameId": frame["id"]})
    session.kill()
    job.moves()


def test_refused(job):
    """An agent that was not asked to allow it; several ranks; an address that others reach; a rank that nobody has."""
    hub = job.hosts.hub
    for words, status, why in (
            (("-t", "@job:0", "debug", "--address", "127.0.0.1:0"), PARTIAL, "does not allow eval"),
            (("-t", "@job:0,2", "debug", "--address", "127.0.0.1:0"), USAGE, "name one rank"),
            (("-t", "@job:2", "debug", "--address", "0.0.0.0:0"), USAGE, "not loopback"),
            (("-t", "@job:1", "dap"), PARTIAL, "rank 1 is missing")):
        done = job.at(hub, *words)
        assert (done.returncode, why in done.stderr) == (status, True), (words, done.stderr)
    # What needs a process of its own host does not take one of another host's number.
    done = job.at(job.hosts.all[0], "-t", "@job:2", "config", "--names")
    assert done.returncode == NOT_FOUND and "cluster ranks" in done.stderr, done.stderr


def test_local(job):
    """On the rank's own host no bus is needed."""
    environment = job.environment_of(PROBING_BUS="")
    session = Client(Stdio(*job.hosts.all[1].enter, PROBING, "-t", "@local:3", "dap", env=environment))
    with session:
        session.attach()
        assert session.request("evaluate", {"expression": "__import__('os').environ['RANK']", "context": "repl"})["result"] == "'3'"
        session.disconnect()
    job.moves(3)


class Liar:
    """An asker with the right key that opens a stream to rank 2 and then does not keep to the protocol."""

    def __init__(self, job, exchanges=False):
        self.host = job.hosts.all[1]
        self.file = job.bus.file("eval")
        self.key = Key(self.file["nkey"])
        with job.hosts.hub.network():
            self.client = BusClient(self.file)
        self.client.subscribe("_INBOX.eval.liar.*")
        self.client.refused()
        self.number = 0
        secret, end = os.urandom(32), time.monotonic() + DEADLINE
        body = b"is not obeyed"
        while b"is not obeyed" in body:  # a go is waited for two seconds, which is short beside other load
            assert time.monotonic() < end
            body = self.begin({"exchange": x25519(secret).hex()} if exchanges else {})
        answer = json.loads(body[body.rindex(b"{"):].decode())
        self.stream, self.secret = answer["stream"], None
        if exchanges:
            theirs = bytes.fromhex(answer["exchange"])
            self.secret = hmac.digest(x25519(secret, theirs), x25519(secret) + theirs, "sha256")

    def begin(self, args):
        """The answer to a go."""
        id_ = os.urandom(16).hex()
        request = json.dumps({"v": 1, "id": id_, "kind": "debug", "job": "job", "ranks": "2", "budget_ms": 60000, "args": args})
        self.client.publish("probing.v1.job.eval.all", {"v": 1, "id": id_, "prepare": request}, "_INBOX.eval.liar.1")
        answers = [self.client.next(), self.client.next()]
        ready = next(one for one in answers if b"nonce" in one.body)
        agent, nonce = ready.headers["Probing-Host"], ready.json["ready"]["nonce"]
        text = "probing.v1.go\n{}\n{}\n{}\n{}\n".format(id_, agent, nonce, hashlib.sha256(request.encode()).hexdigest())
        self.client.publish("probing.v1.job.eval.h." + agent, {"v": 1, "id": id_, "go": {"nonce": nonce, "key": self.key.text,
                                                                                       "signature": self.key.sign(text.encode()).hex()}},
                            "_INBOX.eval.liar.1")
        return self.client.next().body

    def sign(self, text):
        return hmac.digest(self.secret, text, "sha256") if self.secret else self.key.sign(text)

    def send(self, kind, connection=0, body=b"", number=None, passed=0, key=None, signed=True):
        self.number += 1
        text = "{} {} {} {}".format(number or self.number, kind, connection, passed)
        reply = "_INBOX.eval.liar.2"
        what = "probing.v1.stream\n{}\n{}\n{}\n{}\n".format(self.stream, reply, text, hashlib.sha256(body).hexdigest())
        headers = {"Probing-Id": self.stream, "Probing-Stream": text}
        if signed:
            headers["Probing-Signature"] = (key or self).sign(what.encode()).hex()
        self.client.publish("probing.v1.job.eval.stream." + self.stream, body, reply, headers)

    def until_over(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            answer = self.client.next()
            text = answer.headers.get("Probing-Stream", "")
            if self.secret:
                what = "probing.v1.stream\n{}\n{}\n{}\n{}\n".format(self.stream, answer.reply, text, hashlib.sha256(answer.body).hexdigest())
                assert answer.headers["Probing-Signature"] == self.sign(what.encode()).hex()
            if text.split()[1:2] == ["over"]:
                return answer.body.decode()
        raise AssertionError("the stream goes on")


def unsigned(liar):
    liar.send("open", 1, signed=False)


def stranger(liar):
    liar.send("open", 1, key=Key(bytes(32)))


def signed(liar):
    """As without a secret that both sides have, which they have."""
    liar.send("open", 1, key=liar.key)


def left_out(liar):
    liar.send("open", 1, number=3)


def again(liar):
    liar.send("open", 1)
    liar.send("alive", number=2)


def too_long(liar):
    liar.send("open", 1)
    liar.send("data", 1, b"x" * 65537)


def too_much(liar):
    """What serves the rank does not read, and more comes than was asked for."""
    os.kill(host_pid(liar.host, "probing"), signal.SIGSTOP)
    liar.send("open", 1)
    for _ in range(40):
        liar.send("data", 1, b"x" * 65536)


def passed_on(liar):
    liar.send("open", 1)
    liar.send("alive", 1, passed=1 << 40)


def garbage(liar):
    liar.send("open all", 1)


LIES = [(lie, False) for lie in (unsigned, stranger, left_out, again, too_long, too_much, passed_on, garbage)]


@pytest.mark.parametrize("lie, exchanges", LIES + [(lie, True) for lie in (unsigned, stranger, signed)],
                         ids=lambda value: value.__name__ if callable(value) else "secret" if value else "")
def test_lies(job, lie, exchanges):
    """The stream ends, the agent is unharmed, and the rank runs."""
    liar = Liar(job, exchanges)
    liar.send("alive")
    lie(liar)
    if lie is again:
        liar.send("alive", number=2)
    assert liar.until_over() == "the stream broke"
    liar.client.close()
    job.moves()
    log = os.path.join(job.bus.home, ".local", "state", "probing", "agent-node2.log")
    end = time.monotonic() + DEADLINE
    while "eval stream {}: debugging of rank 2 has ended: ".format(liar.stream) not in open(log).read():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_rank_ends(job):
    """Its end is the session's."""
    session = job.client(3)
    session.attach()
    job.ranks[3].communicate()
    session.event("terminated")
    session.disconnect()
    session.wait_end()
    assert session.close() == 0
