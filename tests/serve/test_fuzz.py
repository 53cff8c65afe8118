"""Damaged requests, frames, lines, messages of MCP and TLS records: the server goes on, and a build with sanitizers reports nothing.

PROBING_SERVE_FUZZ: seconds that each kind goes on with ever new seeds (3 if not given).  What is damaged as a whole comes with a token that
may look: a request that is about another process by chance does nothing to it.
"""

import collections
import glob
import json
import os
import random
import re
import socket
import ssl
import time

import pytest

import test_mcp
from serving import DEADLINE, Server, until
from test_protocol import GET, REFUSED, headers
from test_tls import make, openssl_is_there
from websocket import WebSocket, frame

SECONDS = float(os.environ.get("PROBING_SERVE_FUZZ", "3"))
ENDED = r"==\d+==Unable to get registers from thread \d+\.\n"  # LeakSanitizer, of a thread that ends while it looks; no leak
KEPT = 30  # of what was sent last, to tell when something breaks
WORDS = [b"\r\n", b"\0", b"%00", b": ", b"\xff\xfe", b"-1", b"\r\n\r\n", b"4294967296", b"Content-Length: 5\r\n", b"Upgrade: websocket\r\n", b"%", b"?", b"&", b"=", b"\n",
         b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"../", b"{", b"[", b'"', b"\x80", b"\xc3", b"e9999", b"\t", b"Connection: Upgrade\r\n"]
HOSTILE = [None, True, -1, 0, 1, 2**31, 2**53, 2**63, -2**63, 1.5, 1e308, "", "x", "\0", "a" * 5000, "\u20ac\ud800", [], {}, [[[]]], [None] * 50, {"a": {"b": [1]}}, "[" * 200]


class Sent:
    """What was sent last; the seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.last = collections.deque(maxlen=KEPT)
        self.count = 0

    def __call__(self, data):
        self.count += 1
        self.last.append(bytes(data[:3000]))
        return data

    def told(self):
        return "seed {}, after {} of them, the last: {!r}".format(self.seed, self.count, list(self.last))


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at:at + rng.randint(1, 12)]
        elif kind == 2:
            data[at:at] = data[at:at + rng.randint(1, 60)]
        elif kind == 3:
            data[at:at] = rng.choice(WORDS)
        elif kind == 4 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            data[at:at] = bytes([rng.randrange(256)]) * rng.choice((1, 3, 100, 5000))
    return bytes(data) or b"x"


def changed(rng, value, depth=0):
    """A JSON value with parts put in, taken out and made something else."""
    chance = rng.random()
    if chance < 0.12:
        return rng.choice(HOSTILE)
    if isinstance(value, dict) and depth < 8:
        made = {name: changed(rng, part, depth + 1) for name, part in value.items() if rng.random() < 0.95}
        if rng.random() < 0.1:
            made[rng.choice(["id", "x", "", "\0", "target", "params"])] = rng.choice(HOSTILE)
        return made
    if isinstance(value, list) and depth < 8:
        return [changed(rng, part, depth + 1) for part in value for _ in range(rng.choice((1, 1, 1, 1, 0, 2)))]
    return value


def talk(one, data, rng, wait=0.01):
    """Send it, whole or in two, and read a little."""
    try:
        at = rng.randrange(len(data) + 1) if rng.random() < 0.2 else len(data)
        one.sendall(data[:at])
        if at < len(data):
            one.sendall(data[at:])
        one.settimeout(wait)
        while one.recv(65536):
            pass
    except OSError:
        pass


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """One of plain HTTP and one of TLS; both must end well, and no sanitizer may have said a word."""
    folder = tmp_path_factory.mktemp("fuzz")
    options = "log_path={}:detect_leaks=1".format(folder / "report")
    variables = {"ASAN_OPTIONS": options, "UBSAN_OPTIONS": "print_stacktrace=1:log_path={}".format(folder / "report"), "PROBING_CRASH_DIR": str(folder)}
    started = [Server(variables=variables)]
    if openssl_is_there():
        pair = make(folder, "localhost")
        started.append(Server("--cert", pair[0], "--key", pair[1], variables=variables, trusted=pair[0]))
    yield started
    statuses = [one.end() for one in started]
    for one in started:
        one.remove()
    reports = [re.sub(ENDED, "", open(path).read())[:6000] for path in glob.glob(str(folder / "report*"))]
    assert not any(reports), "\n".join(reports)
    assert statuses == [0] * len(started)


@pytest.fixture
def server(servers):
    return servers[0]


def go_on(server, sent, step):
    """Until the time is over; now and then it must be alive."""
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end:
            step()
            if sent.count % 50 == 0:
                assert server.alive()
        until(server.alive)
        until(lambda: server.sockets() < 100)
    except Exception as error:
        raise AssertionError("{!r}: {}".format(error, sent.told())) from error


def seeds_of_http(server, job):
    token = server.token.encode()
    more = b"Host: localhost\r\nAuthorization: Bearer " + token + b"\r\nAccept-Encoding: gzip\r\n"
    base = "/api/v1/p/{}".format(job.pid).encode()
    paths = [b"/", b"/api/v1", b"/api/v1/openapi.json", b"/api/v1/processes?format=text", base, base + b"/stacks?native=1&locals=1", base + b"/stacks?format=pyspy",
             base + b"/query?sql=SELECT+*+FROM+python.backtrace&format=jsonl", base + b"/tables/python.threads?format=csv", base + b"/tasks", base + b"/threads",
             base + b"/history?after=-600&until=0", base + b"/source?frame=threads.py:3", base + b"/object/0x7f0000000000?start=0&count=100",
             base + b"/tensor/0x10?slice=0,2:4&statistics=1&bins=20", base + b"/config/probing.max_memory", b"/api/v1/crashes", b"/metrics", b"/health", b"/api/v1/skills",
             b"/assets/x/main.js", b"/api/v1/p/file:x.snap/stacks", base + b".1/stacks"]
    seeds = [b"GET " + path + b" HTTP/1.1\r\n" + more + b"If-None-Match: \"1\"\r\n\r\n" for path in paths]
    bodies = [(base + b"/query", {"sql": "SELECT 1"}), (b"/api/v1/profiles", {"target": str(job.pid), "seconds": 0.2, "rate": 10, "mode": "wall", "native": True}),
              (b"/api/v1/command", {"words": ["list"]}), (b"/api/v1/tokens", {"allow": "eval"}), (base + b"/skills/crash", {"seconds": 0.1}),
              (b"/api/v1/targets", {"pid": job.pid})]
    for path, body in bodies:
        text = json.dumps(body).encode()
        seeds.append(b"POST " + path + b" HTTP/1.1\r\n" + more + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    return seeds + [GET % token, headers("Connection: keep-alive"), REFUSED["websocket"], REFUSED["chunked"], REFUSED["h2c"], b"DELETE /api/v1/profiles/p1 HTTP/1.1\r\n" + more + b"\r\n"]


def test_requests(server, job):
    sent = Sent(random.randrange(2**32))
    seeds = seeds_of_http(server, job)

    def step():
        with server.connected() as one:
            talk(one, sent(damaged(sent.random, sent.random.choice(seeds))), sent.random)

    go_on(server, sent, step)


def test_bodies(server, job):
    """Whole requests to what may do something, with bodies of the wrong make: by the Unix socket, to our own job."""
    sent = Sent(random.randrange(2**32))
    base = "/api/v1/p/{}".format(job.pid)
    bodies = [("POST", base + "/eval", {"code": "1 + 1", "thread": 1, "frame": 0, "namespace": "n", "timeout": 1, "id": "x"}), ("POST", base + "/complete", {"text": "imp", "cursor": 2}),
              ("POST", base + "/query", {"sql": "SELECT count(*) FROM python.backtrace"}), ("POST", base + "/inject", {"settings": {"probing.nothing": "1"}}),
              ("PUT", base + "/config/probing.sample_rate", {"value": "0"}), ("PUT", base + "/crash", {"on": False, "hold": 0}), ("POST", base + "/skills/crash", {"seconds": 0}),
              ("POST", "/api/v1/profiles", {"target": str(job.pid), "seconds": 0.1}), ("POST", "/api/v1/tokens", {"allow": "control"}), ("DELETE", "/api/v1/tokens", {})]
    slow = 0

    def step():
        nonlocal slow
        method, path, body = sent.random.choice(bodies)
        if path.endswith(("/inject", "/eval", "/crash", "/skills/crash", "/complete")):
            slow += 1
            if slow % 20:  # these take their time
                return
        text = json.dumps(changed(sent.random, body)).encode()
        text = damaged(sent.random, text) if sent.random.random() < 0.3 else text
        head = "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n".format(method, path, len(text)).encode()
        with server.connected(False) as one:
            talk(one, sent(head + text), sent.random, 0.05)

    go_on(server, sent, step)


def test_agents(server, job):
    sent = Sent(random.randrange(2**32))
    target = str(job.pid)
    seeds = [test_mcp.request("tools/list"), test_mcp.request("server/discover"), test_mcp.request("resources/list"), test_mcp.request("prompts/list"),
             test_mcp.request("resources/read", {"uri": "probing://schema/python.threads"}), test_mcp.request("prompts/get", {"name": "hang", "arguments": {"target": target}}),
             test_mcp.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}, meta=None),
             test_mcp.call("processes", match="x"), test_mcp.call("stacks", target=target, native=True, limit=3), test_mcp.call("query", target=target, sql="SELECT 1", limit=5),
             test_mcp.call("schema", target=target), test_mcp.call("eval", target=target, code="1"), {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}]

    def step():
        message = sent.random.choice(seeds)
        text = json.dumps(changed(sent.random, message)).encode()
        text = damaged(sent.random, text) if sent.random.random() < 0.4 else text
        named = message["params"].get("name", "") if isinstance(message.get("params"), dict) else ""
        head = ("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                "MCP-Protocol-Version: {}\r\nMcp-Method: {}\r\nMcp-Name: {}\r\nContent-Length: {}\r\n\r\n").format(server.token, test_mcp.NEWEST, message["method"], named, len(text))
        with server.connected() as one:
            talk(one, sent(head.encode() + text), sent.random, 0.05)

    go_on(server, sent, step)


def test_frames(server, job):
    sent = Sent(random.randrange(2**32))
    target = str(job.pid)
    messages = [{"id": 2, "op": "sub", "topic": topic, "target": target, "every": 0.1} for topic in ("stacks", "tasks", "history")]
    messages += [{"id": 3, "op": "sub", "topic": "processes"}, {"id": 4, "op": "sub", "topic": "query", "target": target, "sql": "SELECT 1"}, {"id": 2, "op": "unsub"},
                 {"id": 5, "op": "sub", "topic": "flame", "target": target, "rate": 20, "mode": "wall"}, {"id": 2, "op": "set", "every": 5},
                 {"id": 1, "op": "token", "token": "wrong"}]

    def frames():
        rng = sent.random
        for _ in range(rng.randint(1, 6)):
            payload = json.dumps(changed(rng, rng.choice(messages))).encode()
            if rng.random() < 0.5:
                yield frame(payload)
            elif rng.random() < 0.5:
                yield damaged(rng, frame(payload))
            else:
                cut = rng.randrange(len(payload) + 1)
                opcode, length = rng.choice((1, 1, 2, 8, 9, 10, rng.randrange(16))), rng.choice((None, None, None, 0, 2**16, 2**63, 2**64 - 1))
                yield frame(payload[:cut], opcode, rng.random() < 0.5, rng.choice((0, 0, 0, 4)), rng.random() < 0.8, length, length and 64) + frame(payload[cut:], 0)

    def step():
        try:
            with WebSocket(server) as one:
                for data in frames():
                    one.socket.sendall(sent(data))
                one.socket.settimeout(0.02)
                while one.socket.recv(65536):
                    pass
        except OSError:
            sent.count += 1

    go_on(server, sent, step)


def test_lines(server, job):
    sent = Sent(random.randrange(2**32))
    target = "pid {}\n".format(job.pid).encode()
    lines = [b"list\n", b"help\n", target, target + b"bt\n", target + b"bt --native --locals\n", target + b"query SELECT * FROM python.threads\n", b"tables\n", b"token x\n", b"config\r\n",
             target + b"tasks --tree\n", target + b"profile 0.1\n", target + b"inspect threads\n", b"quit\n", b"pid 1\nbt\n", target + b"memory\n", b"crashes\n", b"skill list\n"]

    def step():
        with server.connected() as one:
            talk(one, sent(damaged(sent.random, sent.random.choice(lines) + sent.random.choice(lines))), sent.random)

    go_on(server, sent, step)


def test_records(servers):
    """A client's first messages of TLS, and what follows once both agree."""
    if len(servers) < 2:
        pytest.skip("no openssl to make a certificate with")
    server, sent = servers[1], Sent(random.randrange(2**32))
    seeds = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, version
        context.set_alpn_protocols(["http/1.1", "h2"])
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with pytest.raises(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
        seeds.append(outgoing.read())
    asked = GET % server.token.encode()

    def step():
        if sent.random.random() < 0.7:
            with socket.create_connection((server.host, server.port), DEADLINE) as one:
                talk(one, sent(damaged(sent.random, sent.random.choice(seeds))), sent.random)
            return
        with server.connected() as one:
            if sent.random.random() < 0.5:
                talk(one, sent(damaged(sent.random, asked)), sent.random)
            else:  # beside the library's back
                with socket.socket(fileno=os.dup(one.fileno())) as bare:
                    talk(bare, sent(damaged(sent.random, b"\x17\x03\x03\x00\x30" + bytes(48))), sent.random)

    go_on(server, sent, step)
