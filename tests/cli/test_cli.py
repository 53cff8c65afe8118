"""The command line: what it prints, where, and with which status."""

import os
import subprocess

PROBING = os.environ["PROBING"]


def probing(*args):
    return subprocess.run([PROBING, *args], capture_output=True, text=True, timeout=30)


def test_version():
    done = probing("--version")
    assert done.returncode == 0 and done.stdout.startswith("probing ")
