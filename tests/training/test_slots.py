"""Calls of modules are followed by their classes' slots: on every CPython nothing else changes, and nothing is left."""

import json
import os
import subprocess
import time

import pytest

from support import pythons
from support.target import DEADLINE, PROBING, TARGETS, Target, probing, query
from support.torch_python import torch_python

ONE_CALL = 4  # Root, and three below it


def ask(target, command):
    target.child.stdin.write((command + "\n").encode())
    target.child.stdin.flush()
    return json.loads(target.line())


def turn(target, spec):
    return probing("-t", target.pid, "config", "probing.torch.profiling=" + spec, check=False)


def calls_seen(target):
    found = query(target.pid, "SELECT count(*) AS n, max(depth) AS depth FROM python.torch_trace WHERE stage = 'forward'")
    return found[0]["n"]


@pytest.fixture
def slotted(start):
    def begin(python):
        return start(python, "torch_slots.py", "fake").settle()
    return begin


def test_on_and_off(slotted, python):
    """Each class below Module has ours while it is on, no other type ever, and all are as before afterwards."""
    target = slotted(python)
    before = ask(target, "slots")
    assert turn(target, "rate=1").returncode == 0
    armed = ask(target, "slots")
    assert {name for name in before if armed[name] != before[name]} == {
        "torch.nn.modules.module.Module", "__main__.Leaf", "__main__.Own", "__main__.Slotted", "__main__.Root"}
    assert ask(target, "calls 50") == 50
    assert calls_seen(target) == 50 * ONE_CALL
    assert turn(target, "off").returncode == 0
    assert ask(target, "slots") == before
    assert ask(target, "calls 10") == 10 and calls_seen(target) == 50 * ONE_CALL
    assert turn(target, "rate=1").returncode == 0
    assert ask(target, "calls 10") == 10 and calls_seen(target) == 60 * ONE_CALL
    probing("-t", target.pid, "detach")
    assert ask(target, "slots") == before


def test_on_and_off_at_once(slotted, any_python):
    """Walks over thousands of classes let others have the GIL: of an "on" and an "off" that meet there the last one holds, whole."""
    target = slotted(any_python)
    assert ask(target, "classes 4000") == 4000
    before = ask(target, "slots")
    command = [PROBING, "-t", str(target.pid), "config"]
    assert turn(target, "rate=1").returncode == 0
    armed = ask(target, "slots")
    assert len([name for name in before if armed[name] != before[name]]) > 1000
    for turns in range(15):
        running = [subprocess.Popen(command + ["probing.torch.profiling=" + spec], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for spec in ("rate=1", "off", "rate=1", "off")[turns % 2:]]
        for one in running:
            one.wait(DEADLINE)
        on = "rate=1" in probing("-t", target.pid, "config", "probing.torch.profiling").stdout
        until = time.monotonic() + DEADLINE
        while ask(target, "slots") != (armed if on else before):
            assert time.monotonic() < until, (turns, on)
            time.sleep(0.05)
    assert turn(target, "off").returncode == 0
    assert ask(target, "slots") == before


def test_what_calls_do_is_unchanged(slotted, python):
    target = slotted(python)
    commands = ["recursion", "raising", "keywords", "errors", "in_threads", "reassigned", "class_made_later", "forked"]
    before = [ask(target, command) for command in commands]
    assert turn(target, "rate=1").returncode == 0
    assert [ask(target, command) for command in commands] == before
    assert [ask(target, command) for command in commands] == before


def test_a_function_that_ends_a_step(slotted, python):
    target = slotted(python)
    probing("-t", target.pid, "config", "probing.torch.step=torch_slots:calls", check=False)
    turn(target, "rate=1")
    until = time.monotonic() + DEADLINE
    number = "SELECT count(*) AS n FROM python.torch_step_timing"
    while query(target.pid, number) == [{"n": 0}]:  # the first return that is seen ends the step during which recording began
        assert time.monotonic() < until
        ask(target, "calls 1")
    before = query(target.pid, number)[0]["n"]
    for count in (3, 5, 2):
        ask(target, "calls {}".format(count))
    turn(target, "off")
    rows = query(target.pid, "SELECT local_step, (SELECT count(*) FROM python.torch_trace t WHERE t.local_step = s.local_step) AS calls "
                             "FROM python.torch_step_timing s ORDER BY local_step")
    assert [row["calls"] for row in rows[before:]] == [3 * ONE_CALL, 5 * ONE_CALL, 2 * ONE_CALL]


def test_threads_and_depth(slotted, any_python):
    target = slotted(any_python)
    turn(target, "rate=1")
    ask(target, "in_threads")
    rows = query(target.pid, "SELECT thread, depth, count(*) AS n FROM python.torch_trace GROUP BY thread, depth")
    assert len({row["thread"] for row in rows}) == 6
    assert {(row["depth"], row["n"]) for row in rows} == {(0, 100), (1, 300)}


def test_it_is_armed_again(slotted, any_python):
    """torch.fx assigns Module.__call__: CPython puts its own function back into every class."""
    target = slotted(any_python)
    turn(target, "rate=1")
    armed = ask(target, "slots")
    assert ask(target, "undone")
    until = time.monotonic() + DEADLINE
    while ask(target, "slots") != armed:
        assert time.monotonic() < until
        time.sleep(0.05)
    before = calls_seen(target)
    ask(target, "calls 5")
    assert calls_seen(target) == before + 5 * ONE_CALL


def test_a_class_made_later(slotted, any_python):
    target = slotted(any_python)
    turn(target, "rate=1")
    before = calls_seen(target)
    ask(target, "class_made_later")
    assert calls_seen(target) == before, "its slot is CPython's at first"
    until = time.monotonic() + DEADLINE
    while calls_seen(target) == before:
        ask(target, "later_again")
        assert time.monotonic() < until
        time.sleep(0.2)


def test_taken_out_within_a_call(slotted, python):
    target = slotted(python)
    before = ask(target, "slots")
    turn(target, "rate=1")
    assert ask(target, "held") == "inside"
    assert turn(target, "off").returncode == 0
    assert ask(target, "") == [1, "own 1", 1]
    after = ask(target, "slots")
    assert {name: after[name] for name in before} == before


@pytest.fixture
def real():
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    target = Target(python, "torch_slots.py", [], folder=TARGETS)
    yield target.settle(only=True)
    target.end()


def test_with_pytorch_itself(real):
    """All of its classes, and the engine's method; after off and after detach they are what they were."""
    before = ask(real, "slots")
    for leave in (lambda: turn(real, "off"), lambda: probing("-t", real.pid, "detach")):
        assert turn(real, "on").returncode == 0
        armed = ask(real, "slots")
        changed = {name for name in before if armed[name] != before[name]}
        assert "run_backward" in changed and "torch.nn.modules.linear.Linear" in changed and len(changed) > 200
        leave()
        assert ask(real, "slots") == before


def test_a_version_that_is_not_known(start, any_python, monkeypatch):
    """A stand-in of its library that takes an observer and never calls it: it is given back, and what serves is said."""
    monkeypatch.setenv("TORCH_VERSION", "9.9.1")
    monkeypatch.setenv("TORCH_LIBRARY", os.path.join(os.environ["BUILDDIR"], "tests", "comm", ".libs", "libtorch_cpu.so"))
    target = start(any_python, "torch_slots.py", "fake").settle()
    done = turn(target, "rate=1")
    assert done.returncode == 0 and "PyTorch 9.9.1 is not known to this release, and labels do not arrive" in done.stderr, done
    assert "python.torch_phases" in done.stderr
    assert ask(target, "observers") == 0
    ask(target, "calls 5")
    assert calls_seen(target) == 5 * ONE_CALL, "modules are followed all the same"
    monkeypatch.setenv("TORCH_VERSION", "2.9.0+cpu")
    target = start(any_python, "torch_slots.py", "fake").settle()
    assert "labels" not in turn(target, "rate=1").stderr.replace("batches and labels", "") and ask(target, "observers") == 1
    turn(target, "off")
    assert ask(target, "observers") == 0


def test_an_unknown_version_that_serves(monkeypatch):
    """PyTorch itself, named 9.9: a label of ours is tried, is seen, and is no row."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    monkeypatch.setenv("TORCH_VERSION", "9.9.0")
    target = Target(pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch"), "torch_slots.py", [], folder=TARGETS)
    try:
        done = turn(target, "rate=1")
        assert done.returncode == 0 and "not followed" not in done.stderr, done
        assert ask(target, "labelled") == 1
        turn(target, "off")
        assert query(target.pid, "SELECT operation_name FROM python.torch_trace WHERE stage = 'scope'") == [{"operation_name": "a label"}]
    finally:
        target.end()


def test_optimizers_by_their_hooks(monkeypatch):
    """PyTorch whose labels do not arrive: steps end as its own hooks of optimizers say, which are gone afterwards."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    monkeypatch.setenv("TORCH_VERSION", "9.9.0")
    monkeypatch.setenv("TORCH_SILENT", "1")
    target = Target(pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch"), "torch_slots.py", [], folder=TARGETS)
    try:
        done = turn(target, "rate=1")
        assert done.returncode == 0 and "optimizers are followed by their hooks" in done.stderr, done
        assert ask(target, "updates 5") == [1, 1] and ask(target, "updates 5") == [1, 1]
        rows = query(target.pid, "SELECT optimizer, duration, local_step FROM python.torch_trace WHERE stage = 'optimizer' ORDER BY timestamp")
        assert len(rows) == 10 and {row["optimizer"] for row in rows} == {"AdamW#0"} and all(row["duration"] > 0 for row in rows)
        steps = query(target.pid, "SELECT * FROM python.torch_step_timing ORDER BY local_step")
        assert len(steps) >= 8 and {row["optimizer_class"] for row in steps} == {"AdamW"}
        assert all(0 < row["optimizer"] < row["step_duration_sec"] for row in steps)
        turn(target, "off")
        assert ask(target, "updates 1") == [0, 0]
    finally:
        target.end()


def test_pytorch_sees_nothing(real):
    """torch.save, deepcopy, torch.compile, torch.export, torch.profiler and the hooks' dicts: the same with and without."""
    ask(real, "looked_at")  # what the first compilation leaves behind is PyTorch's own
    before = ask(real, "looked_at")
    assert turn(real, "rate=1").returncode == 0
    assert ask(real, "looked_at") == before
    assert query(real.pid, "SELECT count(*) > 0 AS some FROM python.torch_trace WHERE operation_name = 'Linear.forward'") == [{"some": 1}]
    turn(real, "off")
    assert ask(real, "looked_at") == before
