"""Frame evaluation (CPython 3.6 to 3.11) without the rest of the debugger: evaluation/run.py runs each case of the files
beside it in an interpreter of its own, with the module evaluation.c as the core."""

import os
import re
import subprocess

import pytest

from support import pythons

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "evaluation")
RUN = os.path.join(FOLDER, "run.py")
MODULE = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "dap", ".libs", "evaluation.so")
CASES = []
for name in sorted(os.listdir(FOLDER)):
    if name.endswith(".py"):
        with open(os.path.join(FOLDER, name)) as source:
            CASES += re.findall(r"^def case_(\w+)\(", source.read(), re.MULTILINE)


def run(python, case):
    done = subprocess.run(python.command(RUN, MODULE, case), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=240)
    return done.returncode, done.stdout.decode(errors="replace").strip()


PYTHONS = [python for python in pythons.found() if not python.root]
OLD = [python for python in PYTHONS if python.minor < (3, 12)]
NEW = [python for python in PYTHONS if python.minor >= (3, 12)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("interpreter", OLD, ids=lambda python: python.id)
def test_case(interpreter, case):
    assert run(interpreter, case) == (0, "passed")


@pytest.mark.parametrize("interpreter", NEW, ids=lambda python: python.id)
def test_newer_pythons_refuse(interpreter):
    """Newer interpreters say that they have no such hook, and nothing is changed."""
    returned, text = run(interpreter, CASES[0])
    assert returned == 0 and text.startswith("unusable: "), text
