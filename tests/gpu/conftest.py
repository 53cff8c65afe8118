"""Jobs on a CUDA device."""

import json
import subprocess

import pytest

from support import pythons
from support.target import TARGETS, Target, probing
from support.torch_python import torch_python
from support.waits import until


@pytest.fixture(scope="session", autouse=True)
def device():
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if not torch_python() or subprocess.run([torch_python(), "-c", code]).returncode:
        pytest.skip("needs a CUDA device, and a PyTorch that knows it")


class Job:
    def __init__(self, target, pid):
        self.target, self.pid = target, pid

    def ask(self, expression):
        """What an expression gives in the program, as JSON."""
        self.tell(expression)
        return json.loads(self.target.line())

    def tell(self, statement):
        self.target.child.stdin.write(statement.encode() + b"\n")
        self.target.child.stdin.flush()

    def config(self, *words):
        done = probing("-t", self.pid, "config", *words, check=False)
        assert done.returncode == 0, done

    def query(self, sql):
        done = probing("-t", self.pid, "query", "-f", "json", sql, check=False)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def rows(self, sql, least):
        """Once there are so many."""
        return until(lambda: (lambda rows: rows if len(rows) >= least else None)(self.query(sql)))


@pytest.fixture
def start():
    started = []

    def begin(program, *args, variables=None):
        python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
        started.append(Target(python, program, args, folder=TARGETS, variables=variables))
        return Job(started[-1], started[-1].pid)

    yield begin
    for target in started:
        target.end()


@pytest.fixture
def job(start):
    return start("torch_gpu.py")
