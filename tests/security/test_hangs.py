"""Files of a target that never answer hold no tool that looks at all processes."""

import json
import os
import subprocess
import sys

import pytest

from parties import DEADLINE

HERE = os.path.dirname(os.path.abspath(__file__))
SLEEPER = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def unanswering(users, python, tmp_path):
    """A process of U whose program lies in a file system that answers no more."""
    server = subprocess.Popen([sys.executable, os.path.join(HERE, "fuse.py"), str(tmp_path), os.path.realpath(python)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    target = None
    try:
        said = server.stdout.readline()
        if said != "ready\n":
            pytest.skip("no FUSE here: " + said)
        target = subprocess.Popen([str(tmp_path / "python3"), "-ISc", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  encoding="utf-8")
        if target.stdout.readline() != "ready\n":
            pytest.skip("no program runs from there")
        server.stdin.write("x")
        server.stdin.flush()
        assert server.stdout.readline() == "silent\n"
        yield target.pid
    finally:
        if target:
            target.kill()
        server.stdin.close()
        server.wait(DEADLINE)
        server.stdout.close()
        if target:
            target.wait(DEADLINE)
            target.stdin.close()
            target.stdout.close()


def test_list(installed, unanswering):
    """It would wait until somebody ends the file system."""
    for words in (["list", "--json"], ["list", "-v"]):
        done = installed.run(*words)
        assert done.returncode == 0, done.stderr
        assert str(unanswering) in done.stdout
    assert unanswering in [one["pid"] for one in json.loads(installed.run("list", "--json").stdout)]
