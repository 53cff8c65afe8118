"""Frame evaluation (CPython 3.6 to 3.11) without the rest of the debugger: evaluation_target.py runs each case in an
interpreter of its own, with the module evaluation.c as the core."""

import os
import re
import subprocess

import pytest

from support import pythons

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "evaluation_target.py")
MODULE = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "dap", ".libs", "evaluation.so")
with open(TARGET) as source:
    CASES = re.findall(r"^def case_(\w+)\(", source.read(), re.MULTILINE)


def run(python, case):
    done = subprocess.run(python.command(TARGET, MODULE, case), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=120)
    return done.returncode, done.stdout.decode(errors="replace").strip()


HERES = [python for python in pythons.found() if not python.root]
OLD = [python for python in HERES if python.minor < (3, 12)]
NEW = [python for python in HERES if python.minor >= (3, 12)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("interpreter", OLD, ids=lambda python: python.id)
def test_case(interpreter, case):
    assert run(interpreter, case) == (0, "passed")


@pytest.mark.parametrize("interpreter", NEW, ids=lambda python: python.id)
def test_newer_has_it_not(interpreter):
    """Where tracing cannot be confined that is said, and nothing is touched."""
    returned, text = run(interpreter, CASES[0])
    assert returned == 0 and text.startswith("unusable: "), text
