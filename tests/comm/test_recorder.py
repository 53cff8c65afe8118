"""The Flight Recorder of torch.distributed: python.torch_nccl_flight_record and python.torch_nccl_pg_status."""

import json
import os
import pickle
import subprocess
import sys
import time

import pytest

from support.target import DEADLINE, probing, query

LIBRARIES = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "comm", ".libs")
RECORD = "SELECT * FROM python.torch_nccl_flight_record"


def ready(pid):
    """The probe is there, so that a query has nothing to say of it."""
    probing("-t", pid, "inject")


@pytest.fixture
def python():
    """python(code): a process that runs it and then waits; it says ready."""
    started = []

    def begin(code, **variables):
        code += "\nprint('ready', flush=True)\nimport sys\nsys.stdin.read()"
        started.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=dict(os.environ, **variables)))
        assert started[-1].stdout.readline() == b"ready\n"
        return started[-1].pid

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def test_loads_the_probe_and_says_so(start_job):
    job = start_job(2)
    done = probing("-t", job.pids[0], "query", "-f", "json", RECORD + " LIMIT 1", check=False)
    assert done.returncode == 0 and len(json.loads(done.stdout)) == 1
    assert "the probe was loaded into process {}".format(job.pids[0]) in done.stderr
    done = probing("-t", job.pids[1], "query", RECORD, check=False, env=dict(os.environ, PROBING_AUTO_INJECT="off"))
    assert done.returncode != 0 and "PROBING_AUTO_INJECT=off" in done.stderr


def test_agrees_with_the_program(job):
    """Each collective once, in order, created while the program was in it."""
    ready(job.pids[0])
    rows = query(job.pids[0], RECORD + " ORDER BY record_id")
    asked = time.time()
    first = rows[0]["collective_seq_id"]  # it holds the last 2,000
    truth = job.ended()[0][first - 1:]
    assert [row["collective_seq_id"] for row in rows] == list(range(first, first + len(rows)))
    assert len(truth) >= len(rows)
    for row, (begin, end) in zip(rows, truth):
        assert begin - 1e-3 <= row["time_created_ns"] / 1e9 <= end + 1e-3
        assert row["profiling_name"] == "gloo:all_reduce" and row["pg_desc"] == "default_pg" and row["rank"] == 0
        assert row["world_size"] == 2 and row["pid"] == job.pids[0]
        assert row["input_sizes"] == "[[1000]]" and row["time_discovered_completed_ns"] is None
    assert asked - DEADLINE < rows[0]["timestamp"] <= asked


def test_status_of_groups(job):
    ready(job.pids[1])
    before = len(job.tell(1))
    row, = query(job.pids[1], "SELECT * FROM python.torch_nccl_pg_status")
    after = len(job.ended()[1])
    assert (row["pg_name"], row["pg_desc"], row["rank"]) == ("0", "default_pg", 1)
    assert before <= row["last_enqueued_collective"] <= after + 1
    assert before - 1 <= row["last_completed_collective"] <= after
    assert row["last_started_collective"] is None


def test_all_ranks(job):
    for pid in job.pids:
        ready(pid)
    rows = query(job.pids[0], "SELECT rank, pid, count(*) AS n FROM python.torch_nccl_flight_record GROUP BY 1, 2 ORDER BY 1",
                 "--ranks")
    assert [(row["rank"], row["pid"]) for row in rows] == list(enumerate(job.pids)) and min(row["n"] for row in rows) > 0


def test_while_the_gil_is_held(start_job):
    """The program keeps the GIL for longer than the test takes: it is not asked for."""
    job = start_job(2)
    ready(job.pids[0])
    assert job.ask(0, "hold", 600) == "begun"
    assert query(job.pids[0], RECORD)
    done = probing("-t", job.pids[0], "eval", "1", check=False)
    assert done.returncode != 0 and "GIL" in done.stderr


def test_no_torch(python):
    pid = python("")
    done = probing("-t", pid, "query", RECORD, check=False)
    assert done.returncode != 0 and "torch is not loaded" in done.stderr


def load(name):
    return "import ctypes; ctypes.CDLL({!r})".format(os.path.join(LIBRARIES, name))


@pytest.mark.parametrize("answer", ["x" * 100, "[" * 5000, json.dumps(list(range(50)))])
def test_what_is_no_recorder_is_refused(python, answer):
    pid = python(load("libtorch_cpu.so"), FAKE_RECORDER=answer)
    ready(pid)
    done = probing("-t", pid, "query", RECORD, check=False)
    assert done.returncode != 0 and "no JSON object" in done.stderr


def test_cells_of_other_types_are_null(python):
    entry = {"record_id": "12", "pg_id": [1], "process_group": "0", "time_created_ns": 1e30, "duration_ms": 1.5,
             "input_sizes": {"a": None}, "retired": "yes", "state": 5}
    pid = python(load("libtorch_cpu.so"), FAKE_RECORDER=json.dumps({"entries": [entry, 7, None]}))
    ready(pid)
    rows = query(pid, RECORD)
    assert len(rows) == 3 and rows[0]["record_id"] == 12 and rows[0]["pg_id"] is None and rows[0]["pg_name"] is None
    assert rows[0]["time_created_ns"] is None and rows[0]["duration_ns"] == 1500000 and rows[0]["input_sizes"] == '{"a":null}'
    assert (rows[0]["retired"], rows[0]["state"], rows[1]["record_id"]) == (0, "5", None)


def test_a_pickle_is_read_as_json_is(python, tmp_path):
    """PyTorch writes both; the pickle takes half the time.  A tuple is a list, None no value."""
    entry = {"record_id": 12, "pg_id": 0, "process_group": ("0", "default_pg"), "time_created_ns": 1795748340504095746, "duration_ms": 1.5,
             "input_sizes": [[8], [2, 300]], "input_dtypes": ["Float", "Float"], "retired": True, "state": "scheduled",
             "time_discovered_started_ns": None, "timeout_ms": 1800000, "is_p2p": False, "thread_name": "pyth\u00f6n"}
    file = tmp_path / "pickle"
    other = json.loads(json.dumps(entry))  # shares no list with it, as PyTorch's entries do not
    file.write_bytes(pickle.dumps({"entries": [entry, other]}, protocol=2))
    asked = []
    for variables in {"FAKE_PICKLE": str(file), "FAKE_RECORDER": "{}"}, {"FAKE_RECORDER": json.dumps({"entries": [entry, entry]})}:
        pid = python(load("libtorch_cpu.so"), **variables)
        ready(pid)
        rows = query(pid, RECORD)
        asked.append([{key: value for key, value in row.items() if key not in ("timestamp", "snapshot_id", "pid")} for row in rows])
    assert asked[0] == asked[1] and len(asked[0]) == 2 and asked[0][0]["thread_name"] == "pyth\u00f6n"
    assert asked[0][0]["time_created_ns"] == 1795748340504095746 and asked[0][0]["input_sizes"] == "[[8],[2,300]]"


def test_a_pickle_that_would_run_something_is_not_taken(python, tmp_path):
    """It is asked for as JSON then: nothing of it is run here."""
    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    file = tmp_path / "pickle"
    file.write_bytes(pickle.dumps(Runs(), protocol=2))
    pid = python(load("libtorch_cpu.so"), FAKE_PICKLE=str(file), FAKE_RECORDER=json.dumps({"entries": [{"record_id": 4}]}))
    ready(pid)
    assert [row["record_id"] for row in query(pid, RECORD)] == [4] and not (tmp_path / "made").exists()


def test_a_recorder_that_hangs(python):
    """The query ends in bounded time, the next one says what is the matter, and the probe can be detached."""
    pid = python(load("libtorch_cpu.so"), FAKE_RECORDER="wait")
    ready(pid)
    done = probing("-t", pid, "query", "SET probing.query_timeout = 1; " + RECORD, check=False)
    assert done.returncode != 0
    done = probing("-t", pid, "query", RECORD, check=False)
    assert done.returncode != 0 and "being read" in done.stderr
    probing("-t", pid, "detach")


def test_python_writes_it_where_torch_has_no_other_way(python):
    """A torch without the C function: its Python function, called with the GIL, which the query says."""
    pid = python(load("libtorch_cuda.so") + """
import json, sys, types
torch = sys.modules["torch"] = types.ModuleType("torch")
torch._C = types.SimpleNamespace(_distributed_c10d=types.SimpleNamespace(
    _dump_nccl_trace_json=lambda: json.dumps({"entries": [{"record_id": 3}]})))
""")
    ready(pid)
    done = probing("-t", pid, "query", "-f", "json", RECORD, check=False)
    assert [row["record_id"] for row in json.loads(done.stdout)] == [3] and "under the GIL" in done.stderr
