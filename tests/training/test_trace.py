"""python.torch_trace and python.torch_step_timing: what the probe recorded is what the program did, step by step."""

import json

import pytest

from support import pythons
from support.target import TARGETS, Target, probing, query
from support.torch_python import torch_python

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
RANKED = ("ddp", "fsdp")


class Job:
    """A program of tests/targets/torch_programs.py, traced."""

    def __init__(self, shape, spec="rate=1", **variables):
        if not torch_python():
            pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
        launcher = [torch_python(), *TORCHRUN] if shape in RANKED else []
        python = pythons.Python(launcher, torch_python(), pythons.ask([torch_python()])[0], "torch")
        self.target = Target(python, "torch_programs.py", [shape], folder=TARGETS, variables=variables)
        self.pid = next(int(note.split()[1]) for note in self.target.notes if note.startswith("pid "))
        self.target.pid = self.pid
        if spec:
            self.config(spec)

    def config(self, spec):
        return probing("-t", self.pid, "config", "probing.torch.profiling=" + spec, check=False)

    def steps(self, count):
        """Do so many, and say what happened in each."""
        self.target.child.stdin.write("{}\n".format(count).encode())
        self.target.child.stdin.flush()
        while True:
            line = self.target.line()
            if line.startswith("["):
                return json.loads(line)

    def rows(self, where="1"):
        return query(self.pid, "SELECT * FROM python.torch_trace WHERE {} ORDER BY thread, local_step, seq".format(where))

    def timing(self):
        return query(self.pid, "SELECT * FROM python.torch_step_timing ORDER BY local_step")


@pytest.fixture
def job():
    started = []

    def begin(shape, spec="rate=1", **variables):
        started.append(Job(shape, spec, **variables))
        return started[-1]

    yield begin
    for one in started:
        one.target.end()


def events_of(rows, kinds):
    """As the program tells them: [what, name, depth, recompute]."""
    found = []
    for row in rows:
        if row["stage"] not in kinds:
            continue
        name = {"forward": row["module"], "optimizer": (row["optimizer"] or "").split("#")[0],
                "zero_grad": (row["optimizer"] or "").split("#")[0], "scope": row["operation_name"]}.get(row["stage"], "")
        forward = row["stage"] == "forward"
        found.append([row["stage"], name, row["depth"] if forward else 0, row["recompute"]])
    return found


def by_step(rows):
    found = {}
    for row in rows:
        found.setdefault(row["local_step"], []).append(row)
    return found


ONE_THREAD = ["plain", "gan", "accumulate", "checkpoint", "reentrant", "two_optimizers", "repeated", "lbfgs", "skipped", "generate", "pipeline"]


@pytest.mark.parametrize("shape", ONE_THREAD)
def test_each_step_has_what_the_program_did(job, shape):
    """Every call, in order.  The step during which recording began has no row of its own."""
    one = job(shape)
    one.steps(1)
    told = one.steps(4)
    one.config("off")
    steps = by_step(one.rows())
    timing = {row["local_step"]: row for row in one.timing()}
    for number, truth in enumerate(told, min(timing)):
        kinds = {what for what, *_ in truth["events"]}
        assert events_of(steps[number], kinds) == truth["events"], (shape, number)
        row = timing[number]
        assert row["micro_steps"] == truth["micro_steps"]
        if truth["optimizers"]:
            assert row["optimizer_class"] in truth["optimizers"] and row["sampled"] == 1
        parts = sum(row[name] for name in ("data", "forward", "backward", "optimizer", "comm_wait", "other"))
        assert parts == pytest.approx(row["step_duration_sec"])
        assert 0 < row["overhead"] < 0.5 and row["events"] >= len(truth["events"])
    assert len(timing) == len(told)
