"""Questions asked again and again: ?wait= for another answer, ?every= for lines of JSON."""

import json
import subprocess
import threading
import time

import pytest

from serving import DEADLINE, UnixConnection, until


def base(job):
    return "/api/v1/p/{}".format(job.pid)


def some_lines(server, path, count):
    """The first ones of many, as they are made."""
    connection = UnixConnection(server.socket_path)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.getheader("content-type") == "application/jsonl" and answer.getheader("transfer-encoding") == "chunked"
    lines = [json.loads(answer.readline().decode()) for _ in range(count)]
    connection.close()
    return lines


def test_lines(server, job):
    """No more than asked for, until the time is over."""
    began = time.monotonic()
    answer = server.ask(base(job) + "/stacks?every=0.2s&for=1s")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.status == 200 and answer.headers["content-type"] == "application/jsonl" and answer.headers["transfer-encoding"] == "chunked"
    assert 1 <= len(lines) <= 6 and time.monotonic() - began > 0.5
    assert all(line["threads"] for line in lines) and [line["time"] for line in lines] == sorted({line["time"] for line in lines})


@pytest.mark.parametrize("path", ["/processes", "/p/{}/tasks", "/p/{}/query?sql=SELECT+depth+FROM+python.backtrace"])
def test_lines_of_other_routes(server, job, path):
    path = "/api/v1" + path.format(job.pid)
    lines = some_lines(server, path + "{}every=0.1&for=600".format("&" if "?" in path else "?"), 3)
    assert all(line is not None for line in lines)


def test_the_first_line_comes_at_once_and_leaving_ends_it(server, job):
    """`curl -N`: lines as they are made; who leaves is not looked for any more."""
    lines = some_lines(server, base(job) + "/stacks?every=0.1&for=600", 3)
    assert all(line["threads"] for line in lines) and len({line["time"] for line in lines}) == 3
    assert server.alive()


def test_a_process_that_ends(server, start, any_python):
    """The last line says so."""
    job = start(any_python, "threads.py").settle()
    connection = UnixConnection(server.socket_path)
    connection.request("GET", base(job) + "/stacks?every=0.1&for=600")
    answer = connection.getresponse()
    assert json.loads(answer.readline())["threads"]
    job.child.kill()
    job.child.wait()
    rest = answer.read().splitlines()
    connection.close()
    assert json.loads(rest[-1])["error"]["code"] and all("threads" in json.loads(line) for line in rest[:-1])


def test_nobody_reads_and_nobody_waits(serve, job):
    """One that does not read holds up nobody, and nothing is piled up for it."""
    server = serve()
    stalled = [server.connected(tcp=False) for _ in range(8)]
    for one in stalled:
        one.sendall("GET {}/stacks?every=0.1&for=60 HTTP/1.1\r\nHost: localhost\r\n\r\n".format(base(job)).encode())
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        assert server.ask(base(job) + "/stacks").status == 200
    for one in stalled:
        one.close()


MOVES = "import sys\ndef first(): sys.stdin.readline()\ndef second(): sys.stdin.readline()\nprint('x', flush=True)\nfirst()\nsecond()"


@pytest.fixture
def moving(any_python):
    """A job that goes from one function to the next at a line."""
    with subprocess.Popen(any_python.command("-c", MOVES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as job:
        job.stdout.readline()
        yield job
        job.kill()


def resting(server, path, name):
    """The ETag of its stack when it has come to where it waits: it prints before."""
    told = []

    def rests():
        told[:] = [server.ask(path)]
        (thread,) = told[0].json["threads"]
        frames = [told[0].json["frames"][at]["name"] for at in told[0].json["stacks"][thread["stack"]]]
        return frames[0] == name and thread["state"] == "S"

    until(rests)
    return told[0].headers["etag"]


def test_wait_for_another(server, moving):
    """With the ETag of what is known: 304 when nothing moves, the stacks as soon as it does."""
    path = base(moving) + "/stacks"
    tag = resting(server, path, "first")
    began = time.monotonic()
    assert server.ask(path + "?wait=1s", If_None_Match=tag).status == 304
    assert time.monotonic() - began > 0.5
    told = []
    waiting = threading.Thread(target=lambda: told.append(server.ask(path + "?wait=600s", If_None_Match=tag)))
    waiting.start()
    assert server.ask(path).headers["etag"] == tag  # others are answered meanwhile
    moving.stdin.write("\n")
    moving.stdin.flush()
    waiting.join(DEADLINE)
    assert told and told[0].status == 200 and told[0].headers["etag"] != tag
    assert resting(server, path, "second") != tag


def test_waiting_takes_no_worker(serve, job):
    server = serve()
    path = base(job) + "/stacks"
    tag = server.ask(path).headers["etag"]
    waiting = []
    for _ in range(20):
        one = server.connected(tcp=False)
        one.sendall("GET {}?wait=600 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {}\r\n\r\n".format(path, tag).encode())
        waiting.append(one)
    assert server.ask(path).status == 200  # a worker is free, though those wait for ten minutes
    for one in waiting:
        one.settimeout(0)
        with pytest.raises(BlockingIOError):
            one.recv(1)
        one.close()


@pytest.mark.parametrize("words", ["every=0", "every=0.01", "every=x", "every=1&for=0", "every=1&for=1d", "for=1", "every=1&format=text", "wait=1", "wait=-1"])
def test_wrong_words(server, job, words):
    answer = server.ask(base(job) + "/stacks?" + words)
    assert answer.status == 400 and answer.error["message"], answer.body


def test_what_does_not_repeat(server, job):
    for path in ("/config", "/threads", "/snapshot"):
        assert server.ask(base(job) + path + "?every=1").status == 400
