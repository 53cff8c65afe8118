"""gpu_metrics and gpu_processes, on a stand-in for NVIDIA's management library (nvml.c)."""

import json
import os
import subprocess
import sys

import pytest

from support import gpus
from support.target import PROBING, children, probing, query

PROGRAM = "import sys; print('ready', flush=True); sys.stdin.read()"
OF_THE_MACHINE = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"  # the first pid namespace has always this number


@pytest.fixture
def job():
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    """nvml(words): the driver's library is there, and does what these say."""
    return lambda words="": gpus.pretend(monkeypatch, tmp_path, words)


def told(pid, sql):
    """(rows, notes)"""
    done = probing("-t", pid, "query", "-f", "json", sql, check=False)
    assert done.returncode == 0, done
    return query(pid, sql) if not done.stderr else [], done.stderr


def test_what_the_driver_says(job, nvml):
    nvml()
    first, second = query(job, "SELECT * FROM gpu_metrics ORDER BY gpu_id")
    assert (first["pid"], first["gpu_id"], first["uuid"], first["name"], first["backend"]) == (job, 0, "GPU-0", "NVIDIA Fake 9000", "nvml")
    assert (first["gpu_util"], first["mem_util"]) == (87, 40)
    assert (first["memory_used_mb"], first["memory_total_mb"]) == (10240, 81920)
    assert (first["temperature_c"], first["power_w"], first["energy_j"]) == (71, 651.5, 1234567)
    assert (first["sm_clock_mhz"], first["mem_clock_mhz"]) == (1980, 2619)
    assert first["throttle"] == "software thermal" and first["ecc_errors"] == 3
    assert (second["gpu_id"], second["throttle"], second["ecc_errors"]) == (1, None, None)
    assert (first["nvlink_rx_mb"], first["nvlink_tx_mb"]) == (3072, 20480)
    assert (second["nvlink_rx_mb"], second["nvlink_tx_mb"]) == (None, None)
    assert (first["sm_active"], first["xid"]) == (None, None), "of one reading"
    assert query(job, "SELECT avg(gpu_util) AS mean FROM gpu_metrics WHERE timestamp > now() - 60") == [{"mean": 43.5}]


def test_numbers_that_cannot_be(job, nvml):
    nvml("nonsense")
    for row in query(job, "SELECT nvlink_rx_mb, nvlink_tx_mb FROM gpu_metrics"):
        assert row == {"nvlink_rx_mb": None, "nvlink_tx_mb": None}


def test_who_uses_it(job, nvml):
    nvml(str(job))
    rows = query(job, "SELECT gpu_id, gpu_pid, memory_mb, sm_util FROM gpu_processes ORDER BY gpu_pid")
    if not OF_THE_MACHINE:
        assert [row["gpu_pid"] for row in rows] == [None, None]
        return
    assert rows == [{"gpu_id": 0, "gpu_pid": 1, "memory_mb": None, "sm_util": None},
                    {"gpu_id": 0, "gpu_pid": job, "memory_mb": 512, "sm_util": 63}] or job == 1


# Runs in a pid namespace of its own: a job, and a driver that names a process of the machine which has the same pid there.
INSIDE = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
for command in ("query", "-f", "json", "SELECT gpu_id, gpu_pid, memory_mb FROM gpu_processes"), ("memory",):
    done = subprocess.run([os.environ["PROBING"], "-t", str(child.pid), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, PRB_FAKE_NVML=str(child.pid)))
    print(done.stdout.decode().strip())
child.kill()
child.communicate()
"""


def test_from_within_a_pid_namespace(nvml):
    """The driver counts the machine's pids: a process here with such a number is another one."""
    nvml()
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", INSIDE], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", env=dict(os.environ, PROBING=os.path.abspath(PROBING)))
    if done.returncode and "unshare failed" in done.stderr:
        pytest.skip("no pid namespace can be made here")
    rows, memory = done.stdout.split("]\n", 1)
    assert json.loads(rows + "]") == [{"gpu_id": 0, "gpu_pid": None, "memory_mb": 512}, {"gpu_id": 0, "gpu_pid": None, "memory_mb": None}], done
    assert "512" not in memory and "GPU" not in memory, memory


def test_of_a_job_in_a_pid_namespace(nvml):
    """Seen from the machine it has the machine's pid, as the driver names it."""
    child = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if child.stdout.readline() != b"ready\n" or not OF_THE_MACHINE:
            pytest.skip("no pid namespace can be made here, or this is one")
        pid, = children(child.pid)
        nvml(str(pid))
        assert query(pid, "SELECT memory_mb, sm_util FROM gpu_processes WHERE gpu_pid = {}".format(pid)) == [{"memory_mb": 512, "sm_util": 63}]
        assert "512" in probing("-t", pid, "memory").stdout
    finally:
        child.stdin.close()
        child.wait()


def test_what_is_not_supported_is_null(job, nvml):
    nvml("silent")
    row = query(job, "SELECT * FROM gpu_metrics")[0]
    assert row["name"] == "NVIDIA Fake 9000"
    assert all(row[name] is None for name in row if name not in ("timestamp", "pid", "gpu_id", "uuid", "name", "backend", "resolution"))


def test_functions_that_an_old_driver_lacks(job, tmp_path, monkeypatch):
    """By their first names; what has no function is NULL, and nobody is said to use it."""
    gpus.pretend(monkeypatch, tmp_path, library="host/nvml_old.so")
    row, = query(job, "SELECT * FROM gpu_metrics")
    assert (row["gpu_id"], row["name"], row["backend"], row["uuid"]) == (0, "NVIDIA Fake 100", "nvml", None)
    assert all(row[name] is None for name in row if name not in ("timestamp", "pid", "gpu_id", "name", "backend", "resolution"))
    assert query(job, "SELECT * FROM gpu_processes") == []
    assert query(job, "SELECT avg(gpu_util) AS mean FROM gpu_metrics") == [{"mean": None}]


def test_a_library_that_is_another(job, tmp_path, monkeypatch):
    """Without the functions that are needed it is named, with the first that it lacks."""
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a GPU")
    gpus.pretend(monkeypatch, tmp_path, library="targets/counted.so")
    rows, notes = told(job, "SELECT * FROM gpu_metrics")
    assert not rows and "libnvidia-ml.so.1 has no nvmlInit_v2" in notes


def test_a_device_that_is_lost(job, nvml):
    nvml("lost")
    assert [row["gpu_id"] for row in query(job, "SELECT gpu_id FROM gpu_metrics")] == [0]


@pytest.mark.parametrize("words, note", [(None, "NVIDIA's driver is not installed"), ("driver", "Driver Not Loaded")])
def test_no_gpu_is_a_note(job, nvml, monkeypatch, words, note):
    if words is None:
        monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    else:
        nvml(words)
    rows, notes = told(job, "SELECT * FROM gpu_metrics")
    if rows or os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a GPU")
    assert note in notes and "no GPU is seen here" in notes
