"""The debugger's in-target Python on every CPython found, with an engine of sys.settrace instead of the probe's."""

import os
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
from support import pythons

FOUND = [one for one in pythons.found() if one.root is None and not one.container]


@pytest.mark.parametrize("one", FOUND, ids=lambda found: found.id)
def test_cases(one):
    command = one.prefix + [one.executable, os.path.join(HERE, "agent", "cases.py")]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, universal_newlines=True)
    assert ended.returncode == 0 and ended.stdout.endswith("failed: none\n"), ended.stdout
