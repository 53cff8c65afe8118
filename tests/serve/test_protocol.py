"""Bytes that nobody should send: the server answers or closes, and goes on serving."""

import random
import socket
import time

import pytest

from serving import DEADLINE, received, until

GET = b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"


@pytest.fixture(autouse=True)
def goes_on(server):
    yield
    assert server.alive()


def status(answer):
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else None


@pytest.mark.parametrize("tcp", [True, False], ids=["tcp", "unix"])
def test_split_at_every_byte(server, tcp):
    request = GET % server.token.encode()
    for at in list(range(1, 12)) + list(range(12, len(request), 17)):
        assert status(server.raw(request[:at], request[at:], tcp=tcp, pause=0.002)) == 200, at
    body = b"POST /api/v1/p/1/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 20\r\n\r\n" % server.token.encode()
    for at in (len(body), len(body) + 1, len(body) + 19):
        whole = body + b'{"sql": "SELECT 1" }'
        assert status(server.raw(whole[:at], whole[at:], tcp=tcp, pause=0.002)) in (403, 422), at
    for at in range(1, 6):
        assert b"bt " in server.raw(b"help\n"[:at], b"help\n"[at:], tcp=tcp, pause=0.002, end=True), at


def headers(*lines, method="GET", path="/api/v1", version="HTTP/1.1"):
    return "\r\n".join(["{} {} {}".format(method, path, version), "Host: localhost", *lines, "", ""]).encode()


ODD = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500,
    "TLS with a command in it": b"\x16\x03\x01\x02\x00\x01\nlist\nhelp\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "CONNECT": b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
    "TRACE": b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "NUL": b"\0" * 100,
    "SSH": b"\x00\x00\x01\x0c",
}


@pytest.mark.parametrize("name", sorted(ODD))
def test_closed_without_an_answer(server, name):
    assert server.raw(ODD[name]) == b""


REFUSED = {
    "h2c": headers("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
    "websocket": headers("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"),
    "negative length": headers("Content-Length: -1", method="POST"),
    "huge length": headers("Content-Length: 99999999999999999999", method="POST"),
    "length of 2 GB": headers("Content-Length: 2147483648", method="POST"),
    "length with a sign": headers("Content-Length: +4", method="POST"),
    "two lengths": headers("Content-Length: 4", "Content-Length: 5", method="POST"),
    "length and chunked": headers("Content-Length: 4", "Transfer-Encoding: chunked", method="POST"),
    "chunked": headers("Transfer-Encoding: chunked", method="POST") + b"4\r\nabcd\r\n0\r\n\r\n",
    "absolute": headers(path="http://evil.example/api/v1"),
    "NUL": headers(path="/api/v1%00/processes"),
    "dots": headers(path="/api/v1/p/%2e%2e%2f%2e%2e%2fetc/stacks"),
    "up": headers(path="/../../etc/passwd"),
    "slashes": headers(path="//etc/passwd"),
    "20 KB of one header": headers("X-Long: " + "x" * 20000),
    "a long path": headers(path="/" + "a" * 6000),
    "1,000 headers": headers(*["X-%d: 1" % i for i in range(1000)]),
    "no version": b"GET /api/v1\r\n\r\n",
    "lower case": b"get /api/v1 HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_no_answer_of_200(server, name):
    answer = server.raw(REFUSED[name], end=True)
    assert status(answer) != 200 and b"root:" not in answer


def test_pipelined(serve, job):
    """One answer ends a connection: nothing spins, nothing is answered twice."""
    server = serve(of=job.pid)
    ask = GET % server.token.encode()
    post = b"POST /api/v1/p/1/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}" % server.token.encode()
    for both in (ask + ask, post + post, ask + post, post + ask, post + b"x" * 5000, ask + b"GARBAGE\r\n\r\n"):
        answer = server.raw(both)
        assert answer.count(b"HTTP/1.1 ") <= 1
        assert server.alive()
    until(lambda: is_idle(server.pid))


def cpu(pid):
    words = open("/proc/{}/stat".format(pid)).read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / 100


def is_idle(pid):
    """For half a second: there is nothing to wait for."""
    began = cpu(pid)
    time.sleep(0.5)
    return cpu(pid) - began < 0.1


def test_a_prefix_does_not_spin(serve, job):
    """GE may become GET; until it does, nothing runs, on both doors."""
    server = serve(of=job.pid)  # other processes would keep it busy
    waiting = [server.connected(tcp) for tcp in (True, False) for _ in range(5)]
    for one in waiting:
        one.sendall(b"GE")
    assert is_idle(server.pid)
    for one in waiting:
        one.sendall(b"T /health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % server.token.encode())
        assert status(received(one)) == 200
        one.close()


def test_strangers_make_room(serve):
    """Connections that say nothing: the oldest goes, and who comes next is served."""
    server = serve()
    silent = [server.connected() for _ in range(100)]
    assert server.alive() and server.ask("/api/v1", tcp=True).status == 200
    silent[0].settimeout(DEADLINE)
    assert silent[0].recv(1) == b""
    for one in silent:
        one.close()


def test_slow_headers(serve):
    server = serve()
    with server.connected() as one:
        one.sendall(b"GET / HTTP/1.1\r\n")
        began = time.monotonic()
        try:
            while time.monotonic() - began < 2 * DEADLINE:
                one.sendall(b"X")
                time.sleep(0.5)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert time.monotonic() - began < DEADLINE
    assert server.alive()


def test_mutated(server):
    """Requests with bytes changed, cut, doubled: the short form."""
    seeds = [GET % server.token.encode(), headers("Connection: keep-alive"), REFUSED["websocket"], REFUSED["chunked"], REFUSED["h2c"],
             b"POST /api/v1/p/1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{\"sql\":1}", b"list\nhelp\nquit\n", b"query SELECT 1\n"]
    rng = random.Random(7)
    for turn in range(400):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                del data[at:at + rng.randint(1, 10)]
            elif kind == 2:
                data[at:at] = data[at:at + rng.randint(1, 40)]
            else:
                data[at:at] = bytes(rng.choice([b"\r\n", b"\0", b"%00", b": ", b"\xff\xfe", b"-1"]))
            data = data or bytearray(b"x")
        with server.connected(rng.random() < 0.5) as one:
            one.settimeout(0.02)
            try:
                one.sendall(bytes(data))
                one.recv(200)
            except (socket.timeout, OSError):
                pass
        if turn % 20 == 0:
            assert server.alive(), bytes(data)
    until(server.alive)
