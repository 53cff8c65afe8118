"""Recording on, and turned on and off meanwhile: a training job, PyTorch, pickle and profilers do to the bit what they do without.

PROBING_TRAINING_LONG=20000 is how often it is turned on and off while the job trains; else it is a few hundred times.
"""

import contextlib
import json
import os
import subprocess

import pytest

from support import pythons
from support.target import TARGETS, Target, probing, query
from support.torch_python import torch_python

TOGGLE = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "toggle")
TURNS = int(os.environ.get("PROBING_TRAINING_LONG", 0)) or 300
LONG = 3600  # seconds
THINGS = ["saved", "copied", "in_a_process", "compiled", "compiled_ahead", "exported", "traced", "profiled", "profiled_in_python", "hooked",
          "in_threads"]


@pytest.fixture(scope="module")
def job():
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    target = Target(python, "torch_unharmed.py", [], folder=TARGETS)
    yield target
    target.end()


def ask(job, name):
    job.child.stdin.write((name + "\n").encode())
    job.child.stdin.flush()
    return json.loads(job.line(280))  # some compile


def turn(job, spec):
    done = probing("-t", job.pid, "config", "probing.torch.profiling=" + spec, check=False)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def toggled(job, turns):
    """Turned on and off meanwhile, until all turns are done."""
    turn(job, "off")
    child = subprocess.Popen([TOGGLE, str(job.pid), str(turns)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    try:
        yield child
        out, err = child.communicate(timeout=LONG)
        assert (child.returncode, err) == (0, ""), err
        assert json.loads(out)["turns"] == turns
    finally:
        child.kill()
        child.communicate()


def test_training_while_it_is_turned_on_and_off(job):
    """The losses and the parameters are the same to the bit, and in the end it records as ever."""
    before = ask(job, "trained")
    with toggled(job, TURNS) as child:
        while child.poll() is None:
            assert ask(job, "trained") == before
    turn(job, "rate=1")
    assert ask(job, "trained") == before
    rows, = query(job.pid, "SELECT count(*) AS n, count(DISTINCT module) AS modules FROM python.torch_trace WHERE operation_name = 'Linear.forward'")
    assert rows["n"] >= 100 * 5
    turn(job, "off")


@pytest.mark.parametrize("thing", THINGS)
def test_nothing_else_sees_it(job, thing):
    turn(job, "off")
    ask(job, thing)  # what the first time leaves behind is PyTorch's own
    before = ask(job, thing)
    turn(job, "rate=1")
    assert ask(job, thing) == before, "on"
    turn(job, "off")
    assert ask(job, thing) == before, "after it"
    with toggled(job, 30) as child:
        while child.poll() is None:
            assert ask(job, thing) == before, "turned on and off meanwhile"


def test_names_are_looked_for_again(job):
    """config --names changes no setting; where nothing is recorded it does nothing."""
    turn(job, "off")
    assert probing("-t", job.pid, "config", "--names").stdout == ""
    assert probing("-t", job.pid, "config", "probing.torch.profiling").stdout == "off\n"
    turn(job, "rate=1")
    assert probing("-t", job.pid, "config", "--names").stdout == ""
    assert probing("-t", job.pid, "config", "probing.torch.profiling").stdout == "rate=1\n"
    turn(job, "off")
    refused = probing("-t", job.pid, "config", "--names", "probing.torch.profiling", check=False)
    assert refused.returncode == 2 and "--names is alone" in refused.stderr
