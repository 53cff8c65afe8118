"""A job over gloo on this machine, which tells of its collectives."""

import json
import time

import pytest

from support import pythons
from support.target import Target
from support.torch_python import torch_python


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
        until = time.monotonic() + 60
        while len(self.tell(0)) < count:
            assert time.monotonic() < until
            time.sleep(0.05)

    def tell(self, rank):
        """[begin, end] of each collective that the rank has made."""
        return json.loads(self.ask(rank, "tell"))


@pytest.fixture(scope="module")
def start_job():
    """start_job(ranks, late rank, ms, variables): such a job; ended with the module's tests."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    started = []

    def begin(*args, variables=None):
        started.append(Target(python, "collectives.py", args, variables=variables))
        return Job(started[-1])

    yield begin
    for target in started:
        target.end()


@pytest.fixture(scope="module")
def job(start_job):
    return start_job(2)
