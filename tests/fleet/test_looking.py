"""What commands say of all ranks of a job: samples, processes, memory, tasks."""

import csv
import io
import os
import signal

import pytest

from conftest import Ranks

# Each rank computes, rank 2 in another function than the others, and has two tasks that wait.
PROGRAM = """
import asyncio, os, threading
def burn():
    for i in range(200000): pass
def usual():
    while True: burn()
def odd():
    while True: burn()
async def wait(): await asyncio.get_running_loop().create_future()
async def tasks():
    waiting = [asyncio.create_task(wait()) for _ in range(2)]
    print("ready", flush=True)
    await asyncio.gather(*waiting)
threading.Thread(target=odd if os.environ["RANK"] == "2" else usual, name="train", daemon=True).start()
asyncio.run(tasks())
"""


@pytest.fixture(scope="module")
def job():
    ranks = Ranks("looking-{}".format(os.getpid()), 4, program=PROGRAM)
    yield ranks
    ranks.end()


@pytest.fixture
def without_one(job):
    """The job while rank 1 is stopped: what reads from outside still does."""
    pid = job.processes[1].pid
    os.kill(pid, signal.SIGSTOP)
    yield job
    os.kill(pid, signal.SIGCONT)


def test_profile(job, ask, tmp_path):
    """One tree, or a row for each rank; who is elsewhere is said."""
    path = tmp_path / "all.txt"
    done = ask("-t", "@" + job.name, "profile", "-d", 1, "--function", "-o", path)
    assert done.status == 0 and "4 of 4 ranks answered" in done.err, done.err
    stacks = dict(line.rpartition(" ")[::2] for line in path.read_text().splitlines())
    assert all("rank" not in stack and "process" not in stack for stack in stacks)
    assert all(int(count) > 0 for count in stacks.values())
    assert any("usual" in stack and "burn" in stack for stack in stacks) and any("odd" in stack for stack in stacks)
    apart = ask("-t", "@" + job.name, "profile", "-d", 1, "-f", "collapsed", "--group", "rank", "-o", "-")
    assert {line.split(";")[0] for line in apart.out.splitlines()} == {"rank 0", "rank 1", "rank 2", "rank 3"}, apart.err


def test_profile_of_some(job, ask, tmp_path):
    done = ask("-t", "@{}:1-2".format(job.name), "profile", "-d", 1, "-o", tmp_path / "some.svg")
    text = (tmp_path / "some.svg").read_text()
    assert done.status == 0 and "(ranks 1 to 2)" in text and '"rank 1"' in text and '"rank 3"' not in text
    refused = ask("-t", "@" + job.name, "profile", "-d", 0.3, "-o", tmp_path / "when.pftrace")
    assert refused.status == 2 and "perfetto" in refused.err and not (tmp_path / "when.pftrace").exists()


def test_top(job, ask):
    done = ask("-t", "@" + job.name, "top", "--view", "processes", "--count", 2, "-d", 0.3)
    assert done.status == 0 and done.out.count("probing top: processes") == 2
    last = done.out.split("probing top: processes")[-1]
    assert "4 processes" in last and all(str(one.pid) in last for one in job.processes.values()), done.out


def test_list(job, ask):
    rows = ask("-t", "@" + job.name, "list", "--json").json
    assert [(row["rank"], row["pid"]) for row in rows["rows"]] == [(rank, job.processes[rank].pid) for rank in range(4)]
    assert rows["coverage"]["answered"] == "0-3" and len({row["host"] for row in rows["rows"]}) == 1
    text = ask("-t", "@{}:3".format(job.name), "list")
    assert text.status == 0 and text.out.split()[:3] == ["PID", "HOST", "RANK"] and "3/4" in text.out


def test_memory(job, ask):
    text = ask("-t", "@" + job.name, "memory")
    assert [line.split()[:2] for line in text.out.splitlines()[1:]] == [
        [str(job.processes[rank].pid), str(rank)] for rank in range(4)], text.out
    rows = csv.DictReader(io.StringIO(ask("-t", "@" + job.name, "memory", "-f", "csv").out))
    assert sorted((int(row["rank"]), int(row["pid"])) for row in rows) == [(rank, job.processes[rank].pid) for rank in range(4)]


def test_tasks(job, ask):
    rows = ask("-t", "@" + job.name, "tasks", "--json").json["rows"]
    assert [(row["ranks"], row["threads"], row["thread"]) for row in rows] == [
        ("0-3", 4, "tasks: waiting for tasks"), ("0-3", 8, "wait: waiting for a Future")]
    assert [frame["name"] for frame in rows[1]["frames"]] == ["wait"]
    text = ask("-t", "@" + job.name, "tasks")
    assert text.status == 0 and "ranks 0-3 (4 of 4)" in text.out and "wait: waiting for a Future, 8 tasks" in text.out


def test_snapshot(job, ask, tmp_path):
    done = ask("-t", "@{}:1-2".format(job.name), "snapshot", tmp_path / "stuck.snap")
    assert done.status == 0 and sorted(path.name for path in tmp_path.iterdir()) == ["stuck.rank1.snap", "stuck.rank2.snap"], done.err
    assert [line.split(" (")[0] for line in done.out.splitlines() if line.startswith("rank")] == ["rank 1", "rank 2"]
    assert "odd" in ask("-t", tmp_path / "stuck.rank2.snap", "backtrace").out
    nowhere = ask("-t", "@{}:0".format(job.name), "snapshot", tmp_path / "none" / "stuck.snap")
    assert nowhere.status == 15 and "failed 0" in nowhere.err


@pytest.mark.parametrize("words", [["list"], ["memory"], ["tasks"], ["top", "--count", 1, "-d", 0.2], ["profile", "-d", 0.2, "-f", "collapsed", "-o", "-"]],
                         ids=lambda words: words[0])
def test_missing_rank(job, ask, words):
    """Exit status 15 where a rank is missing, and no output with --strict."""
    process = job.processes.pop(3)
    process.kill()
    process.communicate()
    try:
        done = ask("-t", "@" + job.name, *words)
        assert done.status == 15 and done.out and "3 of 4 ranks answered; missing 3" in done.err
        strict = ask("--strict", "-t", "@" + job.name, *words)
        assert strict.status == 15 and (not strict.out or words[0] == "top") and "missing 3" in strict.err
    finally:
        job.start(3, 4, PROGRAM)


def test_stopped_rank(without_one, ask):
    done = ask("-t", "@" + without_one.name, "list", "--json")
    assert done.status == 0 and len(done.json["rows"]) == 4


def test_skills(ask, start_ranks):
    """Each rank is looked at; what several have is said once, with commands for the rank; who is gone is said."""
    still = start_ranks(3)
    os.kill(still.processes[1].pid, signal.SIGSTOP)
    done = ask("-t", "@" + still.name, "skill", "run", "health")
    assert done.status == 1 and done.out.startswith("high   rank 1: the process is stopped") and "\ninfo   ranks 0,2 (2 of 3): it runs" in done.out, done.out
    still.processes[0].kill()
    still.processes[0].wait()
    done = ask("-t", "@{}".format(still.name), "skill", "run", "hang", "--seconds", "0.5", "--json")
    assert done.status == 15 and done.json["coverage"]["answered"] == "1-2", done.out + done.err
    assert any("-t @{}:".format(still.name) in (one["next"] or "") for one in done.json["findings"]), done.out
    done = ask("-t", "@" + still.name, "skill", "run", "comm", "--seconds", "0.5", "--json")
    assert done.status == 15 and [one["ranks"] for one in done.json["findings"]] == [""] and "2 ranks wait in collectives" in done.json["findings"][0]["finding"], done.out + done.err
    done = ask("-t", "@" + still.name, "skill", "run", "crash")
    assert done.status == 2 and "not for all ranks" in done.err
