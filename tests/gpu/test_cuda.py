"""One job on a CUDA device: what its rows say of the device, compared with what PyTorch and the driver tell the job itself."""

import json
import os
import signal
import subprocess
import time

import pytest

from support.target import PROBING, probing
from support.waits import until

MB = 1 << 20


def test_memory_of_each_row(job):
    """Each forward has the allocator's numbers as it ended, less those as it began."""
    job.config("probing.torch.profiling=on,rate=1")
    sql = ("SELECT allocated, max_allocated, cached, allocated_delta FROM python.torch_trace "
           "WHERE stage = 'forward' AND depth = 0 AND allocated IS NOT NULL")
    rows = job.rows(sql, 50)
    told = {float(key): value for key, value in job.ask("told").items()}
    for row in rows:
        begin, peak, reserved = told[row["allocated"]]
        assert row["allocated"] - row["allocated_delta"] == pytest.approx(begin, abs=1e-3), row
        assert (row["max_allocated"], row["cached"]) == (pytest.approx(peak, abs=1e-3), reserved), row
    assert len({row["allocated"] for row in rows}) >= 40


def test_memory_of_the_program(job):
    """python.memory says what torch.cuda.memory_stats says; gpu_processes has at least that."""
    job.config("probing.torch.profiling=on")
    allocated, peak, reserved = job.ask("halt()")
    row, = job.query("SELECT torch_allocated, torch_peak, torch_reserved FROM python.memory")
    assert row == {"torch_allocated": pytest.approx(allocated), "torch_peak": pytest.approx(peak), "torch_reserved": pytest.approx(reserved)}
    rows = job.query("SELECT * FROM gpu_processes WHERE pid = {}".format(job.pid))
    if not rows or rows[0]["memory_mb"] is None:
        pytest.skip("the driver tells of no processes here: {}".format(rows))
    assert rows[0]["memory_mb"] >= reserved, rows


def test_times_of_the_device(job):
    """Steps that wait for their loss take about as long as the device does: it had nothing else to do."""
    job.config("probing.torch.profiling=on,rate=1")
    rows = job.rows("SELECT *, gpu_forward + gpu_backward + gpu_optimizer AS busy FROM python.torch_step_timing WHERE gpu_forward IS NOT NULL", 100)
    assert 0.5 < sum(row["busy"] for row in rows) / sum(row["step_duration_sec"] for row in rows) < 1.05, rows[-3:]
    assert all(row["gpu_" + phase] > 0 for row in rows for phase in ("forward", "backward", "optimizer"))


def test_watched_loss(job):
    job.config("probing.torch.profiling=on,exprs=loss@train")
    rows = job.rows("SELECT number FROM python.variables WHERE name = 'loss' AND number IS NOT NULL", 50)
    losses = set(job.ask("losses"))
    assert {row["number"] for row in rows} <= losses and len(rows) >= 50


@pytest.fixture
def collector(tmp_path, monkeypatch):
    for name in ("XDG_STATE_HOME", "PROBING_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    started = []

    def begin():
        started.append(subprocess.Popen([PROBING, "collect"], stdin=subprocess.DEVNULL))

    yield begin
    for one in started:
        one.send_signal(signal.SIGTERM)
        one.wait(60)


def test_what_the_driver_says(start, collector):
    """A collector's rows have the share of the SMs' time, and the last Xid error."""
    collector()
    job = start("torch_gpu.py")
    job.config("probing.torch.profiling=on")  # it keeps rows of jobs that record
    sql = "SELECT gpu_util, sm_active, xid, memory_used_mb, nvlink_rx_mb FROM gpu_metrics WHERE sm_active > 50 ORDER BY timestamp DESC LIMIT 3"
    rows = job.rows(sql, 3)
    print(json.dumps(rows))
    assert all(row["sm_active"] <= 100 and row["gpu_util"] > 0 and row["xid"] is None for row in rows), rows
    job.ask("halt()")
    job.rows("SELECT 1 FROM gpu_metrics WHERE sm_active < 20 AND timestamp > {}".format(time.time()), 1)
    job.tell("write_nowhere()")
    row = start("torch_gpu.py").rows("SELECT xid FROM gpu_metrics WHERE xid IS NOT NULL", 1)[0]
    assert row["xid"] in (13, 31), row  # of a kernel that wrote where it may not


def test_a_kernel_that_does_not_end(job):
    """The main thread waits for the device: that is what hang says."""
    job.tell("sleep(20)")
    until(lambda: "cuStreamSynchronize" in probing("-t", job.pid, "backtrace", "--native", check=False).stdout)
    done = probing("-t", job.pid, "hang", check=False)
    assert done.returncode == 0 and "torch_gpu.py" in done.stdout and "not hung" not in done.stdout, done


def test_an_error_of_the_device(start, tmp_path):
    """What a kernel broke ends the program: its dump has the line that found it."""
    job = start("torch_gpu.py", variables={"PROBING": "1", "PROBING_CRASH": "1", "PROBING_CRASH_DIR": str(tmp_path)})
    job.tell("write_nowhere()")
    job.target.child.wait(60)
    dumps = until(lambda: os.listdir(str(tmp_path)))
    told = probing("crash", "show", str(tmp_path / dumps[0]), check=False).stdout
    assert "train (torch_gpu.py:" in told and "illegal memory access" in told, told
