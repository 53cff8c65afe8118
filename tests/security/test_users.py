"""Who may look at whose process: an ordinary user at his own, root at all."""

import json
import os

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


# Its function says that it stands in the file that is named.
ELSEWHERE = """
import sys, types
def innermost():
    print("ready", flush=True)
    sys.stdin.read()
types.FunctionType(innermost.__code__.replace(co_filename=sys.argv[1], co_firstlineno=1), globals())()
"""


def test_sources_of_a_profile(users, installed, python, spawn, tmp_path):
    """Root's profile shows the lines of a file that the target's user may read, and of no other that the target names."""
    lines = "this is a line\n" * 20
    for mode, shown in ((0o644, True), (0o600, False)):
        source = os.path.join(installed.folder, "source{:o}.py".format(mode))
        with open(source, "w") as file:
            file.write(lines)
        os.chmod(source, mode)
        job = spawn([python, "-c", ELSEWHERE, source], user=users[0])
        page = str(tmp_path / "profile.html")
        done = installed.run("-t", job.pid, "profile", "-d", "0.3", "--idle", "-f", "heatmap", "-o", page)
        assert done.returncode == 0, done.stderr
        with open(page) as file:
            assert (lines.strip().split("\n")[0] in file.read()) == shown
