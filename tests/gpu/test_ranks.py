"""Two ranks of NCCL on one CUDA device: whom the job waits for, by each of the ways that tell."""

import pytest

from support.target import probing
from support.waits import until


@pytest.fixture
def job(start):
    """Rank 0's; started as `probing launch` does it, with the plugin."""
    one = start("torch_nccl.py", variables={"PROBING": "1"})
    one.pids = [int(word) for word in next(note for note in one.target.notes if note.startswith("pids ")).split()[1:]]
    one.pid = one.pids[0]
    return one


def test_who_is_late(job):
    for pid in job.pids:
        probing("-t", pid, "config", "probing.torch.profiling=on", check=False)
        probing("-t", pid, "config", "probing.nccl=on", check=False)
    rows = job.rows("SELECT src_rank, wait_ms FROM comm_metrics WHERE op LIKE 'all_reduce%' AND wait_ms > 10", 20)
    assert {row["src_rank"] for row in rows} == {1}
    rows = job.rows("SELECT * FROM nccl.coll_perf WHERE coll_func = 'AllReduce' AND exec_time_ns > 0", 20)
    assert rows and job.rows("SELECT * FROM nccl.proxy_ops", 1)


def test_the_recorder(job):
    rows = job.rows("SELECT * FROM python.torch_nccl_flight_record WHERE state = 'completed'", 10)
    assert all("all_reduce" in row["profiling_name"] for row in rows), rows[0]


def test_which_rank_hangs(job):
    job.tell("stop")
    for pid in job.pids:
        probing("-t", pid, "inject", check=False)
    done = until(lambda: (lambda done: done if "cause" in done.stdout else None)(probing("-t", job.pid, "hang", check=False)))
    print(done.stdout, done.stderr)
    cause = done.stdout[done.stdout.index("cause"):].splitlines()[0]
    assert "rank 1" in done.stdout.split("waiting")[0] and "torch_nccl.py" in done.stdout, cause
