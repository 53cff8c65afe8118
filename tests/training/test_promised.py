"""The SQL that users were promised, on a job that trains: PyTorch, the package's logs and spans, a probe, a stand-in for a GPU."""

import json
import os
import socket

import pytest

from loops import ranks_of
from support import gpus, pythons, timeline
from support.injection import wait_until
from support.promised import PROMISED, table_of
from support.target import SRCDIR, TARGETS, Target, probing, query
from support.torch_python import torch_python

SETTINGS = ["probing.memory.profile=on", "probing.torch.profiling=on"]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """It has trained for two epochs since the probe came."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    data = tmp_path_factory.mktemp("data")
    target = Target(python, "torch_logged.py", folder=TARGETS, variables={
        "PYTHONPATH": os.path.join(SRCDIR, "python"), "PROBING_DATA_DIR": str(data), "XDG_RUNTIME_DIR": str(data)})
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(data))
            done = probing(target.pid, "inject", check=False)
            assert done.returncode == 0, done.stderr
            for setting in SETTINGS:
                probing(target.pid, "config", setting)
            wait_until(lambda: query(target.pid, "SELECT count(*) AS n FROM python.steps")[0]["n"] >= 20)
            gpus.pretend(patch, tmp_path_factory.mktemp("gpu"))
            yield target
    finally:
        target.end()


def rows_of(job, sql):
    done = probing(job.pid, "query", "-f", "json", sql, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("sql", PROMISED)
def test_promised(job, sql):
    """Each has rows; that of a table which nobody has built yet is left out, and says so."""
    name = table_of(sql)
    known = {row["table_schema"] + "." + row["table_name"] for row in query(job.pid, "SHOW TABLES")}
    if not known & {name, "main." + name, "python." + name}:
        pytest.skip("there is no table {} yet".format(name))
    rows, told = rows_of(job, sql)
    needs = {"python.variables": "nothing is recorded", "comm_metrics": "is not a rank of a job"}  # what this job does not do
    if name in needs and not rows:
        assert needs[name] in told
        return
    assert rows, told


def test_promised_of_two_ranks(loop, tmp_path, monkeypatch):
    """What one process alone has not: variables that are watched, and who waited for whom, of torchrun's two ranks with gloo."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # no bus of this user's
    target = loop("ddp")
    for pid in ranks_of(target):
        probing(pid, "config", "probing.torch.profiling=on,exprs=loss@backward", check=False)
    for pid in ranks_of(target):
        wait_until(lambda pid=pid: query(pid, "SELECT count(number) AS n FROM python.variables")[0]["n"] >= 20)
    promised = {table_of(sql): sql for sql in PROMISED}
    rows, told = rows_of(target, promised["python.variables"])
    rows = [row for row in rows if row["step"] is not None]
    assert len(rows) >= 20 and {(row["func"], row["name"], row["type"], row["rank"]) for row in rows} == {("backward", "loss", "torch.Tensor", 0)}, told
    assert all(1 < row["number"] < 5 for row in rows) and [row["step"] for row in rows] == list(range(rows[0]["step"], rows[0]["step"] + len(rows)))
    wait_until(lambda: len(rows_of(target, promised["comm_metrics"])[0]) == 2)
    rows, told = rows_of(target, promised["comm_metrics"])
    assert {(row["src_rank"], row["dst_rank"]) for row in rows} == {(0, 1), (1, 0)} and "contradict" not in told
    assert all(0 < row["avg(latency_ms)"] < 1000 for row in rows), rows
    assert rows_of(target, promised["training_logs"])[0][0]["steps"] >= 20
    with open("/proc/{}/environ".format(target.pid)) as file:
        variables = dict(one.partition("=")[::2] for one in file.read().split("\0"))
    job = "@{}".format(variables["TORCHELASTIC_RUN_ID"])
    done = probing("-t", job, "export", "--last", "3", "-o", tmp_path / "job.pftrace", check=False)
    assert done.returncode == 0 and "of 2 processes" in done.stderr and "arrow" in done.stderr, done.stderr
    found = timeline.read(tmp_path / "job.pftrace")
    assert sorted(found) == ["rank {} ({})".format(rank, socket.gethostname()) for rank in range(2)]
    assert all({"steps", "collectives"} < set(tracks) for tracks in found.values()), found


# As they are named there; ours has more.
UPSTREAM = {
    "python.torch_trace": "timestamp micro_step local_step global_step micro_batches seq module stage allocated max_allocated cached max_cached "
                          "time_offset duration allocated_delta max_allocated_delta rank world_size role",
    "python.torch_step_timing": "timestamp local_step global_step rank world_size role step_duration_sec is_shadow sampled shadow_normal "
                                "shadow_baseline sample_rate sample_mode",
    "python.variables": "micro_step func name value",
    "python.comm_collective": "local_step global_step micro_step micro_batches rank world_size role op group_rank group_size participate_ranks "
                              "tensor_shape tensor_dtype bytes duration_ms async_op",
    "python.backtrace": "func file lineno depth frame_type",
    "python.torch_nccl_flight_record": "snapshot_id rank world_size record_id pg_id pg_name pg_desc collective_seq_id p2p_seq_id op_id profiling_name "
                                       "state input_sizes output_sizes time_created_ns time_discovered_started_ns time_discovered_completed_ns "
                                       "duration_ns timeout_ms retired",
    "cpu.utilization": "ts scope platform tid comm wall_ns delta_user_ns delta_sys_ns delta_total_ns cpu_user_pct cpu_sys_pct cpu_total_pct "
                       "cum_user_ns cum_sys_ns rss_kb thread_count delta_vol_ctxt delta_invol_ctxt state wchan",
}


@pytest.mark.parametrize("table", UPSTREAM)
def test_columns_of_the_generation_before(job, table):
    rows_of(job, "SELECT {} FROM {} LIMIT 1".format(", ".join(UPSTREAM[table].split()), table))


def test_what_the_rows_say(job):
    """The numbers are the job's."""
    epochs = query(job.pid, "SELECT epoch, avg(loss) AS mean, min(loss) AS least, count(*) AS steps FROM training_logs GROUP BY epoch ORDER BY epoch")
    assert [row["steps"] for row in epochs[1:-1]] == [8] * (len(epochs) - 2) and len(epochs) >= 3
    assert all(row["least"] <= row["mean"] for row in epochs) and epochs[-1]["mean"] < epochs[0]["mean"] * 1.5
    memory, = query(job.pid, "SELECT avg(memory_mb) AS mb FROM memory_usage WHERE timestamp > now() - interval '5 min'")
    with open("/proc/{}/status".format(job.pid)) as status:
        resident = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))
    assert memory["mb"] == pytest.approx(resident, rel=0.2)
    assert query(job.pid, "SELECT avg(gpu_util) AS mean FROM gpu_metrics WHERE timestamp > now() - 60") == [{"mean": 43.5}]
    recent = query(job.pid, "SELECT count(*) AS n FROM training_logs WHERE timestamp > now() - interval '5 minutes'")
    assert recent[0]["n"] >= 20


def test_its_timeline(job, tmp_path):
    """export: the steps that PyTorch's tracing saw, each with its phases and modules; spans and the loss beside them."""
    path = tmp_path / "steps.pftrace"
    wait_until(lambda: query(job.pid, "SELECT count(*) AS n FROM python.torch_step_timing")[0]["n"] >= 8)
    wait_until(lambda: query(job.pid, "SELECT count(*) AS n FROM python.torch_trace WHERE module = 'first'")[0]["n"] >= 8)
    done = probing(job.pid, "export", "--last", "4", "-o", path, check=False)
    assert done.returncode == 0 and "4 steps of 1 process" in done.stderr, done.stderr
    (process, tracks), = timeline.read(path).items()
    assert process.startswith("process {}: ".format(job.pid)) and "torch_logged.py" in process
    steps = [one for one in tracks["steps"] if one.name.startswith("step ")]
    numbers = [int(one.name.split()[1]) for one in steps]
    assert numbers == list(range(numbers[0], numbers[0] + 4))
    for one in steps[:3]:
        phases = [inner.name for inner in tracks["steps"] if inner.depth and one.begin <= inner.begin < one.end]
        assert [name for name in ("forward", "backward", "optimizer") if name in phases] == ["forward", "backward", "optimizer"], phases
        calls = [(call.name, call.depth, call.notes.get("module")) for call in tracks["modules"] if one.begin <= call.begin < one.end]
        assert [call for call in calls if call[0] in ("Net.forward", "Linear.forward")] == [
            ("Net.forward", 0, None), ("Linear.forward", 1, "first"), ("Linear.forward", 1, "second")], calls
        assert sum(span.name == "forward" and one.begin <= span.begin < one.end for span in tracks["spans"]) == 1
        assert sum(one.begin <= value.time < one.end for value in tracks["loss"]) == 1


def test_columns_before_the_first_row(job, start, any_python):
    """Of the package's tables: the same as those of a job that writes them, but for what it logs itself (training_logs)."""
    other = start(any_python, "hung.py").settle()
    for table in ("spans", "events", "steps"):
        told = [query(target.pid, "DESCRIBE python." + table) for target in (job, other)]
        assert told[0] == told[1], table
