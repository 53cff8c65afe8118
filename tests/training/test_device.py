"""Steps and watched variables of a program on a CUDA device, of which a stand-in tells here (fake_cuda.c)."""

import json
import shutil
import subprocess
import time

import pytest

from support import pythons
from support.injection import built
from support.target import DEADLINE, TARGETS, Target, probing
from support.torch_python import torch_python


@pytest.fixture
def job(tmp_path):
    code = "import sys, torch; sys.exit(bool(torch.version.cuda))"
    if not torch_python() or subprocess.run([torch_python(), "-c", code]).returncode:
        pytest.skip("no Python with a torch that has no CUDA of its own")
    for name in ("libcuda.so.1", "libc10_cuda.so"):
        shutil.copy(built("training/fake_cuda.so"), str(tmp_path / name))
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    target = Target(python, "torch_device.py", [], folder=TARGETS, variables={"LD_LIBRARY_PATH": str(tmp_path)})
    yield target
    target.end()


def ask(target, expression):
    target.child.stdin.write(expression.encode() + b"\n")
    target.child.stdin.flush()
    return target.line().strip()


def rows_of(pid, sql, least):
    until = time.monotonic() + DEADLINE
    while True:
        rows = query(pid, sql)
        if len(rows) >= least:
            return rows
        assert time.monotonic() < until, rows
        time.sleep(0.05)  # rows have no event


def query(pid, sql):
    """Notes may stand beside it."""
    done = probing("-t", pid, "query", "-f", "json", sql, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def begin(target, spec):
    done = probing("-t", target.pid, "config", "probing.torch.profiling=" + spec, check=False)
    assert done.returncode == 0, done


TIMED = "SELECT * FROM python.torch_step_timing WHERE gpu_forward IS NOT NULL"


def test_times_of_the_device(job):
    """Where the device goes along with the CPU, its phases take what the CPU's do."""
    begin(job, "on,rate=1")
    rows = rows_of(job.pid, TIMED, 20)
    for row in rows:
        assert 0.004 <= row["gpu_forward"] <= row["step_duration_sec"], row
        for phase in ("forward", "backward", "optimizer"):
            assert row["gpu_" + phase] == pytest.approx(row[phase], abs=0.02), row
    assert max(row["overhead"] for row in rows) > 0  # a step of a busy machine may be so long that it is 0 to five places
    assert ask(job, "get('harm')") == "0" and ask(job, "set(told.values())") == "{(0, 0)}"
    assert "torch_device" not in probing("-t", job.pid, "query", "SHOW TABLES").stdout  # which the other is read with


def test_values_come_later(job):
    """The device is behind: each value has the step it is of; nothing asks for longer than needed, no error is left."""
    ask(job, "put('lag', 3)")
    begin(job, "on,exprs=loss@train,number@train")
    both = ("SELECT a.number AS loss, b.number FROM python.variables a JOIN python.variables b USING (local_step) "
            "WHERE a.name = 'loss' AND b.name = 'number' AND a.number IS NOT NULL AND local_step > 5")
    rows = rows_of(job.pid, both, 30)
    assert all(row["loss"] == row["number"] for row in rows), rows
    assert len({row["loss"] for row in rows}) == len(rows)
    assert ask(job, "get('harm')") == "0" and ask(job, "set(told.values())") == "{(0, 0)}"


@pytest.mark.parametrize("name, value", [("capturing", 1), ("error", 700), ("no_context", 1)])
def test_nothing_is_asked_of_the_device(job, name, value):
    """While a graph is captured, an error of the program's stands, or it has no device (yet)."""
    ask(job, "put({!r}, {})".format(name, value))
    begin(job, "on,rate=1,exprs=loss@train")
    rows = rows_of(job.pid, "SELECT number, value FROM python.variables WHERE name = 'loss' AND local_step > 5", 10)
    assert {row["number"] for row in rows} == {None}
    assert not query(job.pid, TIMED) and ask(job, "get('records') + get('copies') + get('harm')") == "0"
    assert ask(job, "get({!r})".format(name)) == str(value)
    ask(job, "put({!r}, 0)".format(name))
    rows_of(job.pid, TIMED, 3)
    assert ask(job, "get('harm')") == "0"


def test_what_the_allocator_has(job):
    """python.memory: as PyTorch tells it, once there is a probe, and only once the program uses CUDA."""
    memory = "SELECT torch_allocated, torch_reserved, torch_peak, memory_mb > 0 AS beside FROM python.memory"
    nothing = {"torch_allocated": None, "torch_reserved": None, "torch_peak": None, "beside": 1}
    done = probing("-t", job.pid, "query", "-f", "json", memory, check=False)
    assert json.loads(done.stdout) == [nothing] and "has none: probing {} inject".format(job.pid) in done.stderr
    probing("-t", job.pid, "inject")
    assert query(job.pid, memory) == [nothing]
    assert ask(job, "use_allocator([(5 << 20, 8 << 20, 6 << 20), (1 << 20, 2 << 20, 1 << 20)])") == "None"
    assert query(job.pid, memory) == [{"torch_allocated": 6, "torch_reserved": 10, "torch_peak": 7, "beside": 1}]
    assert query(job.pid, "SELECT gc_objects > 0 AS walked, torch_peak FROM python.memory") == [{"walked": 1, "torch_peak": 7}]
    assert ask(job, "get('harm')") == "0"


MEMORY = ("allocated", "max_allocated", "cached", "max_cached", "allocated_delta", "max_allocated_delta")


def memory_of(job, stage, least, where="1"):
    sql = "SELECT DISTINCT {} FROM (SELECT * FROM python.torch_trace WHERE stage = '{}' AND {} ORDER BY timestamp DESC LIMIT {})"
    rows_of(job.pid, "SELECT 1 FROM python.torch_trace WHERE stage = '{}' AND {}".format(stage, where), least)
    return [tuple(row[name] for name in MEMORY) for row in query(job.pid, sql.format(", ".join(MEMORY), stage, where, least))]


def test_memory_of_each_row(job):
    """What a module, a backward and an optimizer allocated, by the allocator's own numbers; NULL until it is used, and nothing is asked of
    CUDA for it: while a graph is captured, too."""
    begin(job, "on,rate=1,gpu=off")
    assert memory_of(job, "forward", 5) == [(None,) * 6]
    ask(job, "put('capturing', 1)")
    ask(job, "init_allocator()")
    rows_of(job.pid, "SELECT 1 FROM python.torch_trace WHERE allocated_delta > 0", 1)
    assert memory_of(job, "forward", 5, "allocated > 0") == [(9, 9, 9, 9, 3, 0)]
    assert memory_of(job, "backward", 5, "allocated > 0") == [(6, 9, 9, 9, -3, 0)]
    assert memory_of(job, "optimizer", 5, "allocated > 0") == [(6, 9, 9, 9, 0, 0)]
    assert ask(job, "get('harm') + get('records')") == "0"
    ask(job, "fake.cuda_allocate(1, 20)")
    rows_of(job.pid, "SELECT 1 FROM python.torch_trace WHERE allocated = 29 AND max_allocated = 29 AND cached = 29", 3)


def test_allocations_of_a_later_arming(job):
    """Found when recording begins; a table that asks for other columns has all rows."""
    ask(job, "init_allocator()")
    begin(job, "on,rate=1,gpu=off")
    assert memory_of(job, "forward", 5) == [(9, 9, 9, 9, 3, 0)]
    rows = query(job.pid, "SELECT count(*) AS n, count(allocated) AS known FROM python.torch_trace WHERE stage = 'forward'")
    assert rows[0]["n"] == rows[0]["known"] > 0
    assert query(job.pid, "SELECT count(DISTINCT stage) AS n FROM python.torch_trace_events")[0]["n"] >= 4
    begin(job, "off")
    assert query(job.pid, "SELECT min(allocated) AS least FROM python.torch_trace")[0]["least"] == 6


def test_off(job):
    begin(job, "on,rate=1,gpu=off")
    rows_of(job.pid, "SELECT 1 FROM python.torch_step_timing", 10)
    assert ask(job, "get('records')") == "0"
