"""Connections: strangers are few and have 10 s, nobody keeps others out, who has shown who he is stays."""

import contextlib
import os
import resource
import shutil
import socket
import subprocess
import time

import pytest

from serving import DEADLINE, received, received_until, until
from test_access import serve_words
from test_protocol import GET, is_idle, status
from websocket import WebSocket

STRANGERS, KNOWN, SECONDS = 64, 1100, 10
LATE = 60  # s: ended by then, on a busy machine


def ends(one, seconds):
    """The server ends it, in so many s from now."""
    one.settimeout(seconds)
    with contextlib.suppress(ConnectionResetError):
        while one.recv(4096):
            pass


def is_open(one):
    one.setblocking(False)
    try:
        return one.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_they_are_told(server):
    limits = server.ask("/api/v1").json["limits"]
    assert (limits["connections"], limits["strangers"], limits["waiting_of_a_target"]) == (KNOWN, STRANGERS, 16)


@pytest.fixture
def other():
    """other(script, *words): Python of another user, with the connections of `script`; ended with the test."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    started = []

    def begin(script, *words):
        started.append(subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, *map(str, words)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", cwd="/"))
        return started[-1]

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def test_a_stranger_has_ten_seconds(serve, other):
    """Whatever he has sent; a page that opens connections ahead of time does no harm by them."""
    server = serve()
    beginnings = [b"", b"GE", b"GET / HTTP/1.1\r\nHost:", b"POST /api/v1/p/1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx"]
    text = other("import socket, sys, time; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.sendall(b'tok'); t = time.monotonic(); s.recv(1);"
                 "print(time.monotonic() - t)", server.port)
    opened = [server.connected() for _ in beginnings]
    for one, sent in zip(opened, beginnings):
        one.sendall(sent)
    known = WebSocket(server)
    quiet = server.connected(False)  # by the Unix socket one is known, and yet has to say something
    began = time.monotonic()
    with contextlib.suppress(OSError), server.connected() as dripping:
        dripping.sendall(b"GET / HTTP/1.1\r\nX: ")
        while time.monotonic() - began < 2 * LATE:
            dripping.sendall(b"x")
            time.sleep(0.2)
    assert time.monotonic() - began < LATE
    for one in (*opened, quiet):
        ends(one, LATE)
    assert float(text.communicate(timeout=DEADLINE)[0]) < LATE
    assert known.ask(op="sub", topic="processes")["ok"]
    known.close()


def test_there_are_no_more_of_them(serve):
    """In whatever state; who has shown the token is not among them."""
    server = serve()
    known = [WebSocket(server) for _ in range(20)]
    running = server.connected()
    running.sendall(GET.replace(b"/api/v1", b"/api/v1/p/%d/profile?seconds=100" % os.getpid()) % server.token.encode())
    opened = []
    for i in range(3 * STRANGERS):
        opened.append(server.connected())
        with contextlib.suppress(OSError):
            opened[-1].sendall((b"", b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")[i % 3])
    until(lambda: sum(map(is_open, opened)) <= STRANGERS)
    assert sum(map(is_open, opened)) >= STRANGERS // 2 and is_open(opened[-1])  # the oldest went
    assert server.ask("/api/v1", tcp=True).status == 200 and server.ask("/api/v1", tcp=True, token="").status == 401
    assert all(one.ask(op="sub", topic="processes")["ok"] for one in known) and is_open(running)
    for one in (*opened, *known, running):
        one.close()


FLOOD = """
import socket, sys
opened, count = [], 0
while True:
    try:
        opened.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5))
        opened[-1].sendall(b"GET / HTTP/1.1\\r\\n")
        count += 1
    except OSError:
        pass
    if len(opened) > 200:
        opened.pop(0).close()
    if count == int(sys.argv[2]):
        print("flooded", flush=True)
"""


def test_nobody_keeps_others_out(serve, other):
    """Another user opens connections as fast as he can: ours, slow as it is, stays; so does one with the token."""
    server = serve()
    slow = server.connected()
    slow.sendall(b"GET /api/v1 HTTP/1.1\r\n")
    flood = other(FLOOD, server.port, 5 * STRANGERS)
    assert flood.stdout.readline() == "flooded\n"  # within the time that a stranger has, which ours is yet
    for _ in range(5):
        assert server.ask("/api/v1", tcp=True).status == 200
    slow.sendall(b"Host: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % server.token.encode())
    assert status(received(slow)) == 200
    slow.close()


def test_wrong_tokens_count_for_their_user(serve, other):
    server = serve()
    told = other("import http.client, sys\n"
                 "for i in range(12):\n"
                 "    one = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1])); one.request('GET', '/api/v1', headers={'Authorization': 'Bearer wrong'})\n"
                 "    print(one.getresponse().status)", server.port).communicate(timeout=DEADLINE)[0]
    assert told.split() == ["401"] * 10 + ["429"] * 2
    assert server.ask("/api/v1", tcp=True, token="wrong").status == 401
    assert "token is wrong" in server.text("token x")


def test_wrong_tokens_of_plain_text_count_too(serve):
    server = serve()
    for _ in range(4):
        told = server.text("token x", "token x", "token x", "token x")
    assert "too many wrong tokens" in told
    answer = server.ask("/api/v1", tcp=True, token="x")
    assert answer.status == 429 and answer.headers["retry-after"] == "60"
    assert server.ask("/api/v1", tcp=True).status == 200


def test_the_last_of_the_known_ones(serve):
    """There is an end to them, too: then 503, and a wrong token still gets 401."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("not more than {} open files here".format(hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3000, hard))
    server, opened = serve(), []
    try:
        opened = [WebSocket(server) for _ in range(KNOWN)]
        answer = server.ask("/api/v1", tcp=True)
        assert answer.status == 503 and answer.headers["retry-after"] == "1" and answer.error["retryable"]
        assert server.ask("/api/v1", tcp=True, token="wrong").status == 401
        with pytest.raises(OSError):
            server.ask("/api/v1")  # the Unix socket's are known ones, too
        opened.pop().close()
        until(lambda: server.ask("/api/v1", tcp=True).status == 200)
    finally:
        for one in opened:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: server.sockets() < 100)
    assert server.end() == 0


def test_sessions_of_text(serve):
    server = serve()
    opened = [server.connected(False) for _ in range(33)]
    for one in opened[:32]:
        one.sendall(b"help\n")
        received_until(one, b"quit ")
    opened[32].sendall(b"help\n")
    assert b"too many" in received(opened[32])
    for one in opened:
        one.close()
    until(lambda: "quit" in server.text("help"))


def test_slow_questions_wait_in_a_short_line(serve, job):
    """16 for one target wait beside those that are answered; another target's are none of theirs."""
    server = serve()
    sql = "WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%2B1+FROM+n)+SELECT+max(i)+FROM+n"
    asked = (GET % server.token.encode()).replace(b"/api/v1", "/api/v1/p/{}/query?timeout=200&sql={}".format(job.pid, sql).encode())
    opened = []
    for _ in range(30):
        opened.append(server.connected())
        opened[-1].sendall(asked)
    until(lambda: sum(has_answer(one) for one in opened) >= 10)
    assert sum(has_answer(one) for one in opened) <= 14
    refused = next(one for one in opened if has_answer(one))
    refused.settimeout(DEADLINE)
    assert status(received(refused)) == 503
    for one in opened:
        one.close()


def has_answer(one):
    one.setblocking(False)
    try:
        return one.recv(9, socket.MSG_PEEK) == b"HTTP/1.1 "
    except OSError:
        return False


@pytest.mark.parametrize("beyond", [10, -100], ids=["later", "not even the spare one"])
def test_no_more_descriptors(serve, job, beyond):
    """A connection that cannot be had is turned away: it neither stays at the door nor keeps the server busy."""
    server = serve(of=job.pid)  # other processes would keep it busy, too
    assert server.alive()  # its doors are open: it has what it needs for that
    hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)[1]
    used = max(int(name) for name in os.listdir("/proc/{}/fd".format(server.pid)))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (max(used + beyond, 3), hard))
    opened = []
    for _ in range(60):
        with contextlib.suppress(OSError):
            opened.append(server.connected())
    until(lambda: is_idle(server.pid))  # when all are turned away; who stays at the door keeps it busy for good
    for one in opened:
        one.close()
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (hard, hard))
    until(lambda: server.ask("/api/v1", tcp=True).status == 200)
    assert "too many open files" in server.log


def test_the_page_is_for_strangers(serve):
    """Without a token, and while there are as many of them as there may be."""
    server = serve()
    silent = [server.connected() for _ in range(STRANGERS)]
    page = server.ask("/", tcp=True, token="")
    assert page.status == 200 and b"<!doctype" in page.body.lower()[:20]
    for one in silent:
        one.close()


def test_second_tokens_beside_full_doors(serve):
    server = serve()
    silent = [server.connected() for _ in range(2 * STRANGERS)]
    assert serve_words(server, "--url", "--allow", "eval").returncode == 0
    for one in silent:
        one.close()
