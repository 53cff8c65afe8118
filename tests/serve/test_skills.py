"""Skills over HTTP: the same findings as the command's, at once where the server has looked."""

import json
import os
import time

import pytest

from serving import until
from support.target import probing

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "skills")
KEYS = {"severity", "finding", "where", "next", "skill"}


@pytest.fixture
def planted(start, any_python):
    return lambda kind: start(any_python, "job.py", kind, folder=JOB)


def skill(job, name):
    return "/api/v1/p/{}/skills/{}".format(job.pid, name)


def test_list(server):
    told = server.ask("/api/v1/skills").json["skills"]
    assert [one["name"] for one in told] == [one["name"] for one in json.loads(probing("skill", "list", "--json").stdout)]
    assert all(one["built_in"] and one["description"] for one in told)


def test_hang(server, planted):
    """Nobody has looked: it looks for ten seconds.  The server has: it is known."""
    job = planted("hang")
    began = time.monotonic()
    told = server.post(skill(job, "hang"), {}).json
    assert time.monotonic() - began > 8 and set(told) == {"findings", "tables", "notes"}
    found = told["findings"][0]
    assert set(found) == KEYS and found["severity"] == "high" and found["where"].endswith(" in transfer"), found
    threads = lambda: server.ask("/api/v1/p/{}/stacks".format(job.pid)).json["threads"]  # noqa: E731
    until(lambda: all((thread["since"] or 0) > 10.5 for thread in threads()))
    began = time.monotonic()
    again = server.post(skill(job, "hang"), {"seconds": 55}).json["findings"][0]
    assert again["severity"] == "high" and again["where"] == found["where"]
    assert time.monotonic() - began < 50, "it looked again, though the server knew"


def test_all(server, planted):
    told = server.ask(skill(planted("hang"), "diagnose"), "POST", tcp=True).json
    assert told["findings"][0]["skill"] == "hang" and told["findings"][0]["severity"] == "high"
    assert {found["skill"] for found in told["findings"]} >= {"hang", "health", "crash", "overhead"}


def test_seconds(server, planted):
    """It looks as long as asked for, which is twice what it does by itself."""
    job = planted("healthy")
    began = time.monotonic()
    told = server.post(skill(job, "slow"), {"seconds": 8}).json
    assert time.monotonic() - began > 7 and told["findings"], told


@pytest.mark.parametrize("name, body, status", [("nothing", {}, 404), ("../hang", {}, 404), ("hang", {"seconds": 0}, 400), ("hang", {"seconds": "x"}, 400),
                                                ("hang", {"sql": "SELECT 1"}, 400)])
def test_errors(server, job, name, body, status):
    assert server.post(skill(job, name), body).status == status


def test_a_client_that_leaves(server, planted):
    """The diagnosis ends with it: the ninth is answered while eight would still wait."""
    job = planted("hang")
    for _ in range(8):
        with server.connected(tcp=False) as one:
            one.sendall("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{{\"seconds\": 60}}".format(skill(job, "leak")).encode())
    began = time.monotonic()
    assert server.post(skill(job, "health"), {}).status == 200
    assert time.monotonic() - began < 50
