"""python.torch_phases: shares of a step's phases and modules beside what the program measured itself, and the step clock."""

import subprocess

import pytest

from loops import report
from support.target import probing, query
from support.torch_python import torch_python

PHASES = ["data", "forward", "backward", "optimizer", "zero_grad"]


def sampled(target, seconds=3):
    """(rows, what the program says of the same time)."""
    report(target)
    rows = query(target.pid, "SET probing.query_timeout = 120; SELECT * FROM python.torch_phases({})".format(seconds))
    return rows, report(target)


def shares(rows):
    found = {}
    for row in rows:
        found[row["phase"]] = found.get(row["phase"], 0) + row["share"]
    return found


def agreeing(target, samples=150, apart=0.02):
    """(rows, truth) of a time in which they agree: of four, each longer, as the sampler of a busy machine takes few and misses moments that are
    not random."""
    for seconds in (3, 3, 10, 40):
        rows, truth = sampled(target, seconds)
        try:
            agree(rows, truth, samples, apart)
        except AssertionError:
            if seconds == 40:
                raise
        else:
            return rows, truth


def agree(rows, truth, samples=150, apart=0.02):
    """Each phase within four standard deviations, and what it may be apart for the time around the query."""
    told, n = shares(rows), sum(row["samples"] for row in rows)
    assert n >= samples, rows
    for phase in PHASES:
        share = told.get(phase, 0)
        error = (max(truth[phase], share, 1 / n) * (1 - truth[phase]) / n) ** 0.5
        assert abs(share - truth[phase]) <= 4 * error + apart, (phase, share, truth, told)


def counted(row, steps):
    """The steps of the query are among those between two reports: most of them, but for the time in which the command comes to it."""
    assert 0.1 * steps <= row["steps"] <= steps, (row, steps)


@pytest.mark.parametrize("shape", ["plain", "closure", "recompute", "sgd", "inference"])
def test_shares_are_those_that_the_program_measured(loop, shape):
    target = loop(shape)
    rows, truth = agreeing(target)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    for row in rows:
        assert row["error"] == pytest.approx((row["share"] * (1 - row["share"]) * row["share"] / row["samples"]) ** 0.5)
        assert row["pid"] == target.pid and row["thread"] == target.pid and row["rank"] is None
    recomputed = [row for row in rows if row["activity"] == "recompute"]
    assert bool(recomputed) == (shape == "recompute") and all(row["phase"] == "backward" for row in recomputed)


def test_a_rank_under_torchrun(loop):
    """The gradients' exchange is a part of backward: its hooks run there, in C++."""
    target = loop("ddp")
    # Backward waits for the other rank, on a busy machine for as long as that one waits for a CPU: samples come in bursts.
    rows, truth = agreeing(target, samples=100, apart=0.08)
    assert {row["rank"] for row in rows} == {0} and {row["pid"] for row in rows} == {target.pid}
    modules = {row["module"] for row in rows if row["phase"] == "forward"} - {None}
    assert any(name.startswith("module.blocks.") for name in modules), modules


@pytest.mark.parametrize("name, clock", [("transformers", "TrainerState.global_step"),
                                         ("lightning", "_TrainingEpochLoop._batches_that_stepped")])
def test_trainers_of_frameworks(loop, name, clock):
    """Their own loops, with all their wrappers: the same phases, and the steps that their logs count."""
    if subprocess.run([torch_python() or "false", "-c", "import " + name], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no Python with torch and " + name)
    target = loop(name, "torch_frameworks.py")
    agreeing(target)
    before = report(target)["steps"]
    rows, truth = sampled(target)
    # Of a busy collector's lists a part may be missing: then the optimizer's own number serves.
    assert {row["clock"] for row in rows} <= {clock, CLOCKS["plain"]}, rows
    counted(rows[0], truth["steps"] - before)


def test_modules(loop):
    """A forward's time is the innermost module's."""
    target = loop("plain")
    rows, _ = sampled(target)
    inside = {row["module"]: row for row in rows if row["phase"] == "forward" and row["module"] is not None}
    wide = {name: row for name, row in inside.items() if name.endswith(".wide")}
    assert wide and set(wide) <= {"blocks.{}.wide".format(k) for k in range(4)}
    assert all(row["type"] == "torch.nn.modules.linear.Linear" for row in wide.values())
    assert not [row for row in rows if row["phase"] == "optimizer" and row["module"]]


# The first that counts: the optimizer's own, else the loader's batches.
CLOCKS = {"plain": 'AdamW.state[…]["step"]', "sgd": "_SingleProcessDataLoaderIter._num_yielded"}


@pytest.mark.parametrize("shape", sorted(CLOCKS))
def test_the_step_clock(loop, shape):
    target = loop(shape)
    before = report(target)["steps"]
    rows, truth = sampled(target)
    assert set(row["clock"] for row in rows) == {CLOCKS[shape]}
    row = rows[0]
    counted(row, truth["steps"] - before)
    assert 0.1 * row["steps"] / 3 <= row["steps_per_second"] <= 1.4 * row["steps"] / 3


def test_what_has_no_phases(start, python):
    """Any Python may be asked; a loop's number serves as the clock."""
    target = start(python, "counting.py")
    rows = query(target.pid, "SELECT * FROM python.torch_phases(1)")
    assert [row["phase"] for row in rows] == ["other"] * len(rows)
    assert rows[0]["clock"] == "step of main" and rows[0]["steps"] >= 3


def test_refusals(loop, tmp_path, start, any_python):
    target = start(any_python, "steady.py")
    for sql in ("SELECT * FROM python.torch_phases(0)", "SELECT * FROM python.torch_phases('x')",
                "SELECT * FROM python.torch_phases(1, 1e9)"):
        assert "must be a number above 0" in probing("-t", target.pid, "query", sql, check=False).stderr
    done = probing("-t", target.pid, "query", "SELECT * FROM python.torch_phases(1000)", check=False)
    assert "SET probing.query_timeout" in done.stderr
    path = str(tmp_path / "a.snapshot")
    probing("-t", target.pid, "snapshot", path)
    done = probing("-t", path, "query", "SELECT * FROM python.torch_phases", check=False)
    assert done.returncode == 2 and "does not run" in done.stderr, done
