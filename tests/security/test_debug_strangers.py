"""Clients of a debugger's port that have no token: they hold no place, no thread and no memory, and nothing is done for them."""

import json
import re
import socket
import time

import pytest

from debugger import Server, attach
from parties import DEADLINE
from support.injection import wait_until

JOB = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""
STRANGERS_MAX = 8
# What a browser, another protocol, or somebody who means harm begins with.
FRAMES = {
    "post": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 90\r\n\r\n"
            b'{"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "x"}}   ',
    "get": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "options": b"OPTIONS / HTTP/1.1\r\nOrigin: http://x\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 506,
    "huge": b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "negative": b"Content-Length: -1\r\n\r\n{}",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "more than 64 KiB": b"Content-Length: 65537\r\n\r\n" + b" " * 65537,
    "a long header": b"X: " + b"y" * 9000 + b"\r\n\r\n",
    "brackets": b"Content-Length: 60000\r\n\r\n" + b"[" * 60000,
    "zeros": b"\0" * 4096,
    "no object": b"Content-Length: 2\r\n\r\n[]",
}
REQUESTS = ["launch", "attach", "source", "evaluate", "terminate", "threads", "setBreakpoints", "continue", "pause", "restart", "modules",
            "loadedSources", "readMemory", "writeMemory", "configurationDone", "setVariable", "pydevdAuthorize", "pydevdSystemInfo",
            "completions"]


def framed(**message):
    text = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(text) + text


@pytest.fixture
def server(users, installed, python, spawn):
    """U's, for whom this test (root) is a stranger."""
    job = spawn([python, "-c", JOB], user=users[0])
    made = Server(spawn, installed, users[0], job.pid, ["--listen"])
    made.job = job
    return made


def status(server, name):
    with open("/proc/{}/status".format(server.child.pid)) as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def connect(server):
    one = socket.create_connection(server.place, DEADLINE)
    one.settimeout(DEADLINE)
    return one


def read_all(one):
    """Until the server hangs up."""
    data = b""
    try:
        while True:
            more = one.recv(65536)
            if not more:
                return data
            data += more
    except ConnectionResetError:
        return data


def test_silent_strangers(server, users, python):
    """The oldest go; whoever may come in does at once, and there are no threads but one for each that is left."""
    alone = status(server, "Threads")
    silent = [connect(server) for _ in range(80)]
    try:
        assert attach(python, users[0], [""], server.place) == {"": "in"}
        assert attach(python, users[1], [""], server.place, token=server.token) == {"": "in"}
        # The last but those that made room for the two who came.
        for one in silent[:-STRANGERS_MAX]:
            assert read_all(one) == b""
        wait_until(lambda: status(server, "Threads") <= alone + STRANGERS_MAX)
        silent[-1].settimeout(0.2)
        with pytest.raises(socket.timeout):
            silent[-1].recv(1)
    finally:
        for one in silent:
            one.close()
    wait_until(lambda: status(server, "Threads") == alone)


def test_a_stranger_is_one_thread(server):
    """Also one that has said something."""
    alone = status(server, "Threads")
    with connect(server) as one:
        one.sendall(framed(seq=1, type="request", command="initialize", arguments={"adapterID": "x"}))
        assert b'"success":true' in one.recv(65536)
        assert status(server, "Threads") == alone + 1


def test_a_stranger_does_not_end_a_server_for_one(users, installed, spawn):
    child = spawn([installed.path, "dap", "--once", "--address", "127.0.0.1:0"], user=users[0], wait_for="waiting for ",
                  env=installed.environment())
    port = int(child.line.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as one:
        one.sendall(FRAMES["get"])
        one.settimeout(DEADLINE)
        read_all(one)
    time.sleep(0.5)  # it looks five times a second whether it is done
    assert child.poll() is None


@pytest.mark.parametrize("frame", FRAMES, ids=[name.replace(" ", "_") for name in FRAMES])
def test_framing(server, users, python, frame):
    """Closed or answered; nothing is done."""
    with connect(server) as one:
        try:
            one.sendall(FRAMES[frame])
            one.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has hung up already
        assert b'"success":true' not in read_all(one)
    assert attach(python, users[0], [""], server.place) == {"": "in"}


def test_requests_before_the_token(server, users, python, tmp_path):
    """Refused one by one, and the job is not touched; too many guesses end the connection."""
    done = tmp_path / "done"
    tmp_path.chmod(0o777)
    words = {"expression": "open({!r}, 'w')".format(str(done)), "path": "/etc/passwd", "source": {"path": "/etc/passwd"},
             "program": "/bin/true", "threadId": server.job.pid, "processId": server.job.pid, "token": "wrong", "memoryReference": "0x1000",
             "debugServerAccessToken": "wrong"}
    answers = []
    for commands in (REQUESTS[2:16] + REQUESTS[17:], REQUESTS[:1], REQUESTS[1:2], REQUESTS[16:17]):
        with connect(server) as one:
            one.sendall(framed(seq=1, type="request", command="initialize", arguments={"adapterID": "x"}))
            for number, command in enumerate(commands, 2):
                one.sendall(framed(seq=number, type="request", command=command, arguments=words))
            one.shutdown(socket.SHUT_WR)
            said = read_all(one)
        agreed = set(re.findall(rb'"command":"(\w+)","success":true', said))
        assert agreed - {b"terminate"} == {b"initialize"}, said  # what is not attached is terminated at once
        answers += [said.count(b'"type":"response"') - 1]
    assert sum(answers) == len(REQUESTS)
    assert not done.exists() and server.job.poll() is None
    with open("/proc/{}/maps".format(server.job.pid)) as maps:
        assert "libprobe" not in maps.read()


def test_memory(server):
    """What strangers send and do not read takes none."""
    several = []
    try:
        for _ in range(STRANGERS_MAX):
            one = connect(server)
            one.settimeout(0.5)
            several.append(one)
            try:
                for number in range(200):
                    one.sendall(framed(seq=number, type="request", command="evaluate", arguments={"expression": "x" * 60000}))
            except OSError:
                pass
        assert status(server, "VmHWM") < 64 << 10, "kB"
    finally:
        for one in several:
            one.close()
