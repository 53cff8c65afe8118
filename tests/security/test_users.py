"""Who may look at whose process: an ordinary user at his own, root at all."""

import json

import pytest

SLEEPER = """
import sys
def innermost():
    print("ready", flush=True)
    sys.stdin.read()
innermost()
"""
PERMISSION = 5
COMMANDS = [["backtrace"], ["backtrace", "--native"], ["query", "SELECT * FROM python.backtrace"], ["inject"], ["eval", "1"],
            ["snapshot", "/tmp/prb-security-never.snap"], ["profile", "-d", "0.1", "-o", "-"], ["tasks"], ["detach"], ["config"],
            ["config", "probing.sample_rate"], ["config", "probing.sample_rate=1"], ["debug", "--listen"], ["debug", "--pause"]]


def test_own_and_root(users, installed, python, spawn):
    job = spawn([python, "-c", SLEEPER], user=users[0])
    for who in (users[0], None):
        done = installed.run("-t", job.pid, "backtrace", "--json", user=who)
        if who and done.returncode == PERMISSION:
            continue  # yama lets only parents look
        assert done.returncode == 0, done.stderr
        assert "innermost" in json.dumps(json.loads(done.stdout))


@pytest.mark.parametrize("words", COMMANDS, ids=[" ".join(words[:2]) for words in COMMANDS])
def test_of_another_user(users, installed, python, spawn, words):
    job = spawn([python, "-c", SLEEPER], user=users[0])
    done = installed.run("-t", job.pid, *words, user=users[1])
    assert (done.returncode, done.stdout) == (PERMISSION, ""), done.stderr
    assert "it belongs to user id {} and you are user id {}".format(users[0], users[1]) in done.stderr
    assert "sudo probing" in done.stderr and "innermost" not in done.stderr and job.poll() is None
