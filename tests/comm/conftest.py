"""A job over gloo on this machine, which tells of its collectives."""

import contextlib
import json

import pytest

from support import pythons
from support.target import Target, free_port
from support.torch_python import torch_python
from support.waits import until


class Job:
    def __init__(self, target):
        self.target = target
        line = next(note for note in target.notes if note.startswith("pids "))
        self.pids = [int(word) for word in line.split()[1:]]

    def ask(self, rank, *words):
        """The line that a rank answers."""
        self.target.child.stdin.write("{} {}\n".format(rank, " ".join(map(str, words))).encode())
        self.target.child.stdin.flush()
        return self.target.line()

    def steps(self, count):
        """Wait until rank 0 has made so many collectives."""
        until(lambda: int(self.ask(0, "count")) >= count, 240)

    def ended(self):
        """What all ranks have told of a collective that none is in any more: [[begin, end], ...] of each rank."""
        self.steps(len(self.tell(0)) + 2)
        return [self.tell(rank) for rank in range(len(self.pids))]

    def tell(self, rank):
        """[begin, end] of each collective that the rank has made."""
        return json.loads(self.ask(rank, "tell"))


@contextlib.contextmanager
def jobs():
    """begin(ranks, late rank, ms, variables): such a job; all end with it."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    started = []

    def begin(*args, variables=None):
        started.append(Target(python, "collectives.py", args, variables=dict(variables or {}, MASTER_PORT=str(free_port()))))
        return Job(started[-1])

    try:
        yield begin
    finally:
        for target in started:
            target.end()


@pytest.fixture
def start_job():
    """A job of the test's own: others do not compute beside it."""
    with jobs() as begin:
        yield begin


@pytest.fixture(scope="module")
def job():
    with jobs() as begin:
        yield begin(2)
