"""`probing -t HOST:PORT COMMAND`: a server's answer is what the command prints here."""

import os
import subprocess

import pytest

from serving import DEADLINE, PROBING
from support.target import probing


def ask(server, *words, where=None, variables=None, text=True):
    """Run the command line as the server's user."""
    return subprocess.run([PROBING, "-t", where or "{}:{}".format(server.host, server.port), *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8" if text else None, timeout=DEADLINE, stdin=subprocess.DEVNULL,
                          env=dict(server.environment, **(variables or {})))


LOOKS = [("backtrace",), ("bt", "--native"), ("backtrace", "--locals", "--group"), ("tasks",), ("tasks", "--json"), ("tables",),
         ("tables", "python.backtrace"), ("query", "SELECT 1 AS a, 'x' AS b"), ("query", "-f", "csv", "SELECT 1 AS a, 'x;y' AS b"),
         ("inspect", "threads"), ("inspect", "imports", "threading", "--format", "json"), ("config",), ("config", "probing.max_memory"),
         ("query", "--", "--c\nSELECT 1")]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_every_command_that_looks(server, job, words):
    here = subprocess.run([PROBING, "-p", str(job.pid), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=DEADLINE, stdin=subprocess.DEVNULL)
    there = ask(server, "-p", job.pid, *words)
    assert there.returncode == 0 == here.returncode, there.stderr + here.stderr
    assert there.stdout == here.stdout and there.stdout


def test_lists_and_measures(server, job):
    assert str(job.pid) in ask(server, "list").stdout
    assert "resident" in ask(server, "-p", job.pid, "memory").stdout
    assert ask(server, "crash", "list").returncode in (0, 3)
    assert ask(server, "-n", "threads.py", "backtrace").returncode in (0, 2)  # several may run
    assert ask(server, job.pid, "bt").stdout == ask(server, "bt", job.pid).stdout == probing(job.pid, "backtrace").stdout


def test_a_profile_goes_to_a_file(server, job, tmp_path):
    file = tmp_path / "x.pb.gz"
    told = ask(server, "-p", job.pid, "profile", "-d", "1", "--idle", "--format", "pprof", "-o", file)
    assert told.returncode == 0, told.stderr
    assert file.read_bytes().startswith(b"\n") and b"threads.py" in file.read_bytes()
    assert ";" in ask(server, "-p", job.pid, "profile", "-d", "1", "--idle", "-f", "collapsed").stdout
    assert ask(server, "-p", job.pid, "profile").returncode == 2  # for ever


def test_the_ways_to_it(server, job):
    expected = probing(job.pid, "backtrace").stdout
    foreign = {"XDG_RUNTIME_DIR": "/nowhere"}  # as on another machine: no file has the token
    assert ask(server, "-p", job.pid, "bt", where=server.socket_path).stdout == expected
    assert ask(server, "-p", job.pid, "bt", where=server.line, variables=foreign).stdout == expected
    assert ask(server, "-p", job.pid, "bt", variables=dict(foreign, PROBING_AUTH_TOKEN=server.token)).stdout == expected
    first = subprocess.run([PROBING, "{}:{}".format(server.host, server.port), "-p", str(job.pid), "bt"], stdout=subprocess.PIPE,
                           encoding="utf-8", timeout=DEADLINE, env=server.environment)
    assert first.stdout == expected
    none = ask(server, "-p", job.pid, "bt", variables=dict(foreign, PROBING_AUTH_TOKEN=""))
    assert none.returncode == 3 and "PROBING_AUTH_TOKEN" in none.stderr
    wrong = ask(server, "-p", job.pid, "bt", variables=dict(foreign, PROBING_AUTH_TOKEN="x" * 32))
    assert wrong.returncode == 5 and "token is wrong" in wrong.stderr and not wrong.stdout


def test_failures_are_those_of_the_command(server, job):
    told = ask(server, "-p", 4194304, "backtrace")
    assert told.returncode == 3 and "no process 4194304" in told.stderr and not told.stdout
    wrong = ask(server, "-p", job.pid, "query", "SELEC")
    here = probing("-p", job.pid, "query", "SELEC", check=False)
    assert wrong.returncode == here.returncode == 9 and wrong.stderr == here.stderr
    for words in (("eval", "1"), ("inject",), ("detach",), ("snapshot", "x"), ("top",), ("debug",), ("config", "probing.max_memory=1MB"),
                  ("backtrace", "--stop"), ("query", "--reveal-secrets", "SELECT 1"), ("crash", "show")):
        refused = ask(server, "-p", job.pid, *words)
        assert refused.returncode in (2, 6) and not refused.stdout, words
    closed = ask(server, "list", where="127.0.0.1:1", variables={"PROBING_AUTH_TOKEN": "x" * 16})
    assert closed.returncode == 11 and "connecting" in closed.stderr


def test_the_token_is_in_no_argument(server, job):
    """Of the program that asks: who looks at its arguments would have it."""
    child = subprocess.Popen([PROBING, "-t", server.line, "-p", str(job.pid), "profile", "-d", "100"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=server.environment)
    try:
        name = "/proc/{}/cmdline".format(child.pid)
        while b"--ask" not in open(name, "rb").read():
            assert child.poll() is None
        assert server.token.encode() not in open(name, "rb").read()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("words", [[], ["nothing"], ["backtrace", "--stop"], ["backtrace", "--output=x"], ["profile", "--duration=1", "--output=/tmp/x"],
                                   ["query"], ["query", "1", "2"], ["config", "a=b"], ["eval", "1"], ["list", "-t", "x"], ["x"] * 100,
                                   ["tables", "../x"], ["backtrace", "--th=1"], ["export", "--format=tensorboard"], ["profile"], [1], "bt"])
def test_what_the_route_refuses(server, job, words):
    answer = server.post("/api/v1/command", {"words": words, "pid": job.pid})
    assert answer.status == 400, answer.body
    assert not os.path.exists("x")
