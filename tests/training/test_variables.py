"""python.variables: what is read from outside is what the program had at that step, on every CPython found."""

import json
import math
import re
import subprocess

import pytest

from support import pythons
from support.target import Target, probing
from support.torch_python import torch_python


def watch(pid, exprs, seconds=1, rate=40):
    done = told(pid, exprs, seconds, rate, "-f", "json")
    assert done.returncode == 0 and not but_dropped(done.stderr), done.stderr
    return json.loads(done.stdout)


def but_dropped(notes):
    """Of a busy machine's samples many are dropped; that is said, and what is kept is right."""
    return re.sub(r"probing: note: \d+ of \d+ stacks were dropped: no two readings were equal\n", "", notes)


def told(pid, exprs, seconds=1, rate=10, *options):
    sql = "SELECT * FROM python.variables('{}', {}, {})".format(exprs.replace("'", "''"), seconds, rate)
    return probing("-t", pid, "query", *options, sql, check=False)


@pytest.mark.parametrize("pause", ["0.002", "0"])
def test_values_are_those_of_their_step(start, python, pause):
    """Whatever is kept is right; a step of a loop without a pause takes a microsecond: most or all is dropped."""
    target = start(python, "watched_loop.py", pause)
    exprs = "loss@fit,out['loss']@fit,out[\"nested\"][1][0]@fit,text@fit,self.rate@fit,self.history[0]@fit,step@fit,name@fit"
    for seconds in (1, 4) if pause != "0" else (1,):
        done = told(target.pid, exprs, seconds, 40, "-f", "json")
        if sum(row["name"] == "step" for row in json.loads(done.stdout or "[]")) >= 10:
            break
    notes = but_dropped(done.stderr)
    if pause == "0":
        notes = re.sub(r"probing: note: fit has no \S+ that could be read meanwhile\n", "", notes)
    assert done.returncode == 0 and not notes
    rows = json.loads(done.stdout)
    of = {name: [row for row in rows if row["name"] == name] for name in {row["name"] for row in rows}}
    assert len(of) == 8 or pause == "0", sorted(of)
    steps = [row["number"] for row in of.get("step", ())]
    assert (len(steps) >= 10 or pause == "0") and steps == sorted(steps) and len(set(steps)) == len(steps)
    assert {(row["func"], row["pid"], row["clock"]) for row in rows} <= {("fit", target.pid, "step of fit")}
    right = {
        "loss": lambda row, step: row["number"] == step * 0.25 and row["type"] == "float",
        "out['loss']": lambda row, step: row["number"] == -step and row["type"] == "int",
        'out["nested"][1][0]': lambda row, step: row["number"] == step,
        "text": lambda row, step: row["value"] == "'step %d'" % step and row["number"] is None,
        "self.rate": lambda row, step: row["number"] == 1 / step,
        "self.history[0]": lambda row, step: row["number"] == step,
        "step": lambda row, step: row["number"] == step,
        "name": lambda row, step: row["value"] == "'a name'",
    }
    for name, found in of.items():
        for row in found:
            # The step is counted first: until the rest is assigned, it is that of the step before.
            assert any(step > 0 and right[name](row, step) for step in (row["step"], row["step"] - 1)), row


def test_tensors(tmp_path):
    """Of one element their value, on every kind of number; a larger one has none."""
    if not torch_python():
        pytest.skip("no Python with torch")
    program = tmp_path / "tensors.py"
    program.write_text("""
import sys, threading, time, torch
def train():
    for step in range(1 << 40):
        loss = torch.tensor(step * 0.5); half = torch.tensor([1.5], dtype=torch.bfloat16); count = torch.tensor(step)
        large = torch.zeros(3); nan = torch.tensor(float("nan")); grad = torch.tensor(2.0, requires_grad=True) * 2
        if step == 3:
            print("ready", flush=True)
        time.sleep(0.01)
threading.Thread(target=sys.stdin.read, daemon=True).start()
train()
""")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    target = Target(python, "tensors.py", [], folder=str(tmp_path))
    try:
        rows = watch(target.pid, "loss@train,half@train,count@train,large@train,nan@train,grad@train", 3)
    finally:
        target.end()
    numbers = {}
    for row in rows:
        numbers.setdefault(row["name"], set()).add(row["number"])
        if row["name"] in ("loss", "count"):
            scale = {"loss": 0.5, "count": 1}[row["name"]]
            assert row["number"] in (row["step"] * scale, (row["step"] - 1) * scale), row
    assert numbers["half"] == {1.5} and numbers["large"] == {None} and numbers["grad"] == {4.0}
    assert numbers["nan"] <= {None} or all(math.isnan(value) for value in numbers["nan"])
    assert len(numbers["loss"]) >= 10


def test_which_function(start, any_python):
    target = start(any_python, "watched_loop.py")
    assert {row["value"] for row in watch(target.pid, "loss@other")} == {"'another'"}
    assert watch(target.pid, "step@watched_loop:fit")
    done = told(target.pid, "step@elsewhere:fit")
    assert "no frame of fit was seen" in done.stderr
    if any_python.version >= (3, 11):
        assert watch(target.pid, "step@Trainer.fit")
    done = told(target.pid, "step@nobody")
    assert "no frame of nobody was seen; the main thread is in: fit" in done.stderr
    done = told(target.pid, "missing@fit")
    assert "fit has no missing that could be read" in done.stderr
    done = told(target.pid, "out['none']@fit")
    assert "fit has no out['none'] that could be read" in done.stderr


@pytest.mark.parametrize("exprs, why", [
    ("loss", "it says no function"), ("", "there is nothing"), ("@train", "does not begin with a name"),
    ("loss@", "says no function"), ("loss@fit,out['acc']@", "must be named"), ("a+b@train", "attributes, keys and indices alone"), ("f(x)@train", "attributes, keys and indices"),
    ("a[b]@train", "attributes, keys and indices"), ("a['x@train", "attributes, keys and indices"), ("a@:f", "no function"),
    (",".join("v%d@f" % i for i in range(17)), "at most 16"), ("x" * 200 + "@f", "does not begin with a name"),
    ("a" + ".b" * 9 + "@f", "attributes, keys and indices"),
])
def test_what_cannot_be_watched(start, any_python, exprs, why):
    target = start(any_python, "watched_loop.py")
    done = probing("-t", target.pid, "query", "SELECT * FROM python.variables('{}')".format(exprs.replace("'", "''")), check=False)
    assert done.returncode == 9 and why in done.stderr, done


def test_without_arguments(start, any_python, tmp_path):
    target = start(any_python, "watched_loop.py")
    done = probing("-t", target.pid, "query", "SELECT * FROM python.variables", check=False)
    assert done.returncode == 0 and "nothing is recorded" in done.stderr
    path = str(tmp_path / "one.snap")
    probing("-t", target.pid, "snapshot", path)
    done = probing("-t", path, "query", "SELECT * FROM python.variables('loss@fit')", check=False)
    assert done.returncode == 2 and "does not run" in done.stderr


def test_nothing_happens_in_the_program(start, any_python):
    """No probe, no stop: its system calls are its own."""
    target = start(any_python, "watched_loop.py", "0.05")
    before = open("/proc/{}/maps".format(target.pid)).read()
    assert watch(target.pid, "step@fit", 0.5)
    assert "libprobe" not in open("/proc/{}/maps".format(target.pid)).read() and "libprobe" not in before
    assert subprocess.run(["grep", "-c", "TracerPid:\t0", "/proc/{}/status".format(target.pid)], stdout=subprocess.DEVNULL).returncode == 0
