"""PROBING_STORE=on, from the job's start to after its end: a training loop with the package, killed by SIGKILL."""

import os
import shutil

import pytest

from support import pythons
from support.injection import wait_until
from support.target import PROBING, SRCDIR, TARGETS, Target, probing, query
from support.torch_python import torch_python

STEPS = "SELECT local_step AS step FROM python.torch_step_timing ORDER BY timestamp"


@pytest.fixture
def package(tmp_path):
    """The package with this build's libraries, as an interpreter finds it at its start."""
    folder = tmp_path / "package"
    native = folder / "probing_c" / "native"
    shutil.copytree(os.path.join(SRCDIR, "python"), str(folder))
    shutil.copy(os.path.join(SRCDIR, "python", "probing_c.pth"), str(folder / "sitecustomize.py"))
    native.mkdir()
    for name in ("probing", "libprobe.so", "libprobing.so.0"):
        shutil.copy(os.path.join(os.path.dirname(PROBING), name), str(native))
    return folder


def test_a_job_that_is_killed(store, package, tmp_path):
    """All of its steps, the variable of each, and what the machine said meanwhile, from the store alone."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    target = Target(python, "torch_watched.py", ["function"], folder=TARGETS, variables={
        "PYTHONPATH": str(package), "PROBING": "1", "PROBING_STORE": "on", "PROBING_DATA_DIR": str(store.data),
        "XDG_RUNTIME_DIR": str(tmp_path), "PROBING_TORCH_PROFILING": "on,exprs=loss@in_a_function"})
    collector = None
    try:
        collector = store.collector_of_its_own()
        wait_until(lambda: len(query(target.pid, STEPS)) >= 60)
        wait_until(lambda: len(query(target.pid, "SELECT * FROM memory_usage")) >= 2)
        told = query(target.pid, STEPS)
        target.child.stdin.write(b"told\n")
        target.child.stdin.flush()
        losses = [loss for loss, _ in eval(target.line())]
    except BaseException:
        if collector:
            store.end(collector)
        raise
    finally:
        target.end()  # by SIGKILL
    store.end(collector)  # SIGTERM: it drains
    (file,) = store.files()
    kept = query(file, STEPS)
    assert kept[:len(told)] == told and [row["step"] for row in kept] == list(range(kept[0]["step"], kept[0]["step"] + len(kept)))
    seen = [row["number"] for row in query(file, "SELECT number FROM python.variables WHERE step > 0 AND number IS NOT NULL ORDER BY timestamp")]
    first = losses.index(seen[0])
    both = min(len(seen), len(losses) - first)
    assert both >= 30 and seen[:both] == losses[first:first + both]
    assert query(file, "SELECT * FROM probing.gaps") == []
    machine, = query(file, "SELECT count(*) AS n, max(memory_mb) AS mb FROM memory_usage")
    assert machine["n"] >= 2 and machine["mb"] > 50
    assert "tier 1, kept" in probing("-t", target.pid, "top", "--view", "steps").stdout
