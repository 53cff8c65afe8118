"""`probing hang` on jobs of four gloo ranks, each made to hang in another way: the rank that it names is the staged one."""

import os
import re
import signal
import subprocess

import pytest

from support.injection import built
from support.target import DEADLINE, TARGETS, children, task_states
from support.torch_python import torch_python
from support.waits import until

# (case, guilty rank, kind, a function that its frames have)
CASES = [("reader", 1, "sleep", "read_shard"), ("loop", 2, "loop", "count_tokens"), ("lock", 3, "lock", "take_lock"),
         ("skip", 0, "collective", "end_step"), ("extra", 2, "collective", "extra_sync"), ("stop", 1, "stopped", None),
         ("tensor", 3, "sleep", "read_shard"), ("pipeline", 1, "sleep", "read_shard")]


@pytest.mark.parametrize("case,guilty,kind,function", CASES, ids=[case[0] for case in CASES])
def test_guilty_rank(hang, ask, case, guilty, kind, function):
    address, pids = hang(case, guilty)
    done = ask("-t", address, "hang", "--every", 0.5, "-f", "json")
    verdict = done.json
    assert done.status == 0 and verdict["hung"], done.out
    assert [(cause["ranks"], cause["pid"], cause["kind"]) for cause in verdict["cause"]] == [(str(guilty), pids[guilty], kind)]
    if function:
        assert any(frame["name"].endswith(function) for frame in verdict["cause"][0]["frames"])
    waiting = sorted(int(rank) for part in verdict["waiting"] for rank in ranks_of(part["ranks"]))
    assert waiting == [rank for rank in range(4) if rank != guilty]
    assert verdict["coverage"]["answered"] == "0-3" and verdict["since"] >= 0.5


@pytest.mark.parametrize("case,kind,holder", [("held", "lock", 'thread {} "keeper" at Rank.keep (hang_jobs.py:'), ("rlock", "lock", 'thread {} "keeper" at Rank.keep (hang_jobs.py:'),
                                              ("nest", "lock", "this thread itself"), ("gil", "gil", 'thread {} "keeper" at Rank.keep_gil (hang_jobs.py:')])
def test_holder(hang, ask, case, kind, holder):
    """Who has the lock, or the GIL, that the odd rank waits for, and where that thread stands."""
    address, pids = hang(case, 1)
    keepers = [int(tid) for tid in os.listdir("/proc/{}/task".format(pids[1]))]
    done = ask("-t", address, "hang", "--every", 0.5, "-f", "json")
    assert done.status == 0 and done.json["hung"], done.out
    (cause,) = done.json["cause"]
    assert (cause["ranks"], cause["kind"]) == ("1", kind), cause
    assert any(", held by " + holder.format(tid) in cause["text"] for tid in keepers), cause


def ranks_of(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def findings(done):
    return [(one["severity"], one["ranks"]) for one in done.json["findings"] if one["skill"] == "hang"]


@pytest.mark.parametrize("case,guilty", [("reader", 2), ("skip", 0), ("stop", 1)])
def test_skill(hang, ask, case, guilty):
    """The skill `hang` of a job is its verdict: the odd rank first, who waits below it, and no rank judged by itself."""
    address, pids = hang(case, guilty)
    done = ask("-t", address, "skill", "run", "hang", "--seconds", 0.5, "--json")
    assert done.status == 1 and findings(done) == [("high", str(guilty)), ("info", others(guilty))], done.out
    verdict = ask("-t", address, "hang", "--every", 0.5, "-f", "json").json
    (cause,), (waiting,) = verdict["cause"], verdict["waiting"]
    first, second = done.json["findings"]
    assert first["finding"].startswith("it " + cause["text"].split(":")[0]) and "hung for" in first["finding"], done.out
    assert (cause["ranks"], waiting["ranks"]) == (first["ranks"], second["ranks"])
    assert second["finding"].startswith("they wait in ") and second["where"].endswith(" in " + waiting["site"].split(" ")[0]), done.out
    assert "kill -CONT {}".format(pids[guilty]) == first["next"] if case == "stop" else "{}:{} ".format(address, guilty) in first["next"]
    text = ask("-t", address, "skill", "run", "hang", "--seconds", 0.5).out
    assert text.startswith("high   rank {}: it is ".format(guilty)) and "\ninfo   ranks {} (3 of 4): they wait in all_reduce".format(others(guilty)) in text, text


def others(guilty):
    return {0: "1-3", 1: "0,2-3", 2: "0-1,3"}[guilty]


def test_skills_of_hung_job(hang, ask):
    """All skills: the verdict comes first, and nothing that a waiting rank says of itself is as bad."""
    address, _ = hang("reader", 1)
    done = ask("-t", address, "skill", "run", "--seconds", 0.5, "--json")
    told = done.json["findings"]
    assert done.status == 1 and (told[0]["skill"], told[0]["ranks"], told[0]["severity"]) == ("hang", "1", "high"), done.out
    assert {one["ranks"] for one in told if one["severity"] == "high"} <= {"1", ""}, done.out
    assert {"health", "slow", "comm"} <= {one["skill"] for one in told}, done.out


def test_skill_of_lost_rank(hang, ask):
    """A rank that is gone is to blame, and the exit status says that not all answered."""
    address, pids = hang("reader", 3)
    for pid in pids[:3]:  # or gloo tells them that it is gone, and they end
        os.kill(pid, signal.SIGSTOP)
    until(lambda: all(state == "T" for pid in pids[:3] for state, *_ in task_states(pid).values()))
    os.kill(pids[3], 9)
    done = ask("-t", address, "skill", "run", "hang", "--seconds", 0.5, "--json")
    assert done.status == 15 and findings(done)[0] == ("high", "3") and done.json["coverage"]["answered"] == "0-2", done.out
    assert ask("--strict", "-t", address, "skill", "run", "hang", "--seconds", 0.5).out == ""


def test_skill_of_slow_job(hang, ask):
    address, _ = hang("slow", 2)
    done = ask("-t", address, "skill", "run", "hang", "--seconds", 1, "--json")
    assert done.status == 0 and done.json["findings"][-1]["finding"].startswith("the job goes on: "), done.out
    assert all(one["severity"] in ("medium", "info") for one in done.json["findings"]), done.out


def test_slow_is_not_hung(hang, ask):
    """It sleeps in each step, and the others wait for it, but collectives pass."""
    address, _ = hang("slow", 2)
    done = ask("-t", address, "hang", "--every", 1)
    assert done.status == 0 and "not hung" in done.out and "cause" not in done.out, done.out


def test_one_rank_by_its_pid(hang, ask):
    """One that waits, with a probe: its recorder alone says of nobody that he is awaited."""
    _, pids = hang("reader", 2)
    assert ask("-t", pids[0], "inject").status == 0
    done = ask("-t", pids[0], "hang", "--every", 0.5)
    assert done.status == 0 and "cause    process {} waits for other ranks in all_reduce".format(pids[0]) in done.out, done


def test_text(hang, ask):
    address, pids = hang("reader", 2)
    done = ask("-t", address, "hang", "--every", 0.5)
    assert re.search(r"rank (\d+)", done.out).group(1) == "2", done.out
    labels = [line.split()[0] for line in done.out.splitlines()[2:] if not line.startswith(" ")]
    assert labels == ["cause", "waiting", "evidence", "next"], done.out
    assert "pid {}".format(pids[2]) in done.out and "all_reduce" in done.out and "sync_grads (hang_jobs.py:" in done.out
    command = done.out.splitlines()[-1].split()[1:]
    assert command[0] == "probing"
    shown = ask(*command[1:])
    assert shown.status == 0 and "read_shard" in shown.out


def test_under_torchrun(ask, until_still):
    """One real launch: the job has torchrun's random name, and its launcher is not a rank."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    launcher = subprocess.Popen([torch_python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4",
                                 os.path.join(TARGETS, "hang_jobs.py"), "reader", "3"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
                                env={key: value for key, value in os.environ.items() if key != "PROBING_JOB"})
    try:
        pid = int(launcher.stdout.readline().split()[1])
        with open("/proc/{}/environ".format(pid)) as file:
            job = next(word.partition("=")[2] for word in file.read().split("\0") if word.startswith("TORCHELASTIC_RUN_ID="))
        until_still(children(launcher.pid))  # all have come to where they stay
        verdict = ask("-t", "@" + job, "hang", "--every", 1, "-f", "json").json
        assert verdict["hung"] and [(cause["ranks"], cause["pid"]) for cause in verdict["cause"]] == [("3", pid)], verdict
    finally:
        launcher.terminate()
        launcher.communicate(timeout=DEADLINE)


def test_one_process(start_ranks, ask, until_still):
    job = start_ranks(1)
    pid = job.processes[0].pid
    until_still([pid])  # it says that it is ready before it waits
    verdict = ask(pid, "hang", "--every", 0.3, "-f", "json").json
    assert verdict["hung"] and verdict["since_at_least"] and verdict["cause"][0]["pid"] == pid
    assert verdict["cause"][0]["frames"][0]["name"] == "innermost"


MOVING = {"cpu": "while True: pass", "switches": "while True: time.sleep(0.01)", "locals": "n = 0\n    while True: n += 1; time.sleep(0.4)"}


@pytest.mark.parametrize("how", MOVING)
def test_movement(start_ranks, ask, how):
    """Equal stacks alone are never called hung."""
    program = "import time\ndef work():\n    {}\nprint('ready', flush=True)\nwork()\n".format(MOVING[how])
    job = start_ranks(1, program=program)
    done = ask(job.processes[0].pid, "hang", "--every", 1)
    assert done.status == 0 and "not hung" in done.out, done.out


def test_part_of_a_job_that_moves(start_ranks, ask):
    """One host of several is looked at: half of the ranks are not there, and nothing is said to hang."""
    program = "import time\ndef work():\n    {}\nprint('ready', flush=True)\nwork()\n".format(MOVING["switches"])
    job = start_ranks(4, program=program, ranks=(2, 3))
    done = ask("-t", "@" + job.name, "hang", "--every", 1)
    assert done.status == 15 and "the ranks that answered move; not hung" in done.out and "missing 0-1" in done.err, (done.out, done.err)
    assert "cause" not in done.out, done.out


WAITS_FOR_THE_GPU = """import ctypes, time
cuda = ctypes.CDLL({!r})
ctypes.c_int.in_dll(cuda, "cuda_spin_ms").value = {}
def work():
    print("ready", flush=True)
    while True:
        cuda.cudaStreamSynchronize(None)
        for _ in range(100000): pass
work()
"""


def test_a_gpu_that_does_not_answer(start_ranks, ask):
    """CUDA waits for its device by spinning: that is no movement."""
    job = start_ranks(1, program=WAITS_FOR_THE_GPU.format(built("training/fake_cuda.so"), -1))
    until(lambda: "cudaStreamSynchronize" in ask(job.processes[0].pid, "backtrace", "--native").out)  # it says that it is ready before
    done = ask(job.processes[0].pid, "hang", "--every", 1)
    assert done.status == 0 and "waits for the GPU" in done.out and "no movement in" in done.out, done.out


def test_a_gpu_that_is_waited_for_in_each_step(start_ranks, ask):
    """A loop that waits for the device for most of the time, and in which no variable changes."""
    job = start_ranks(1, program=WAITS_FOR_THE_GPU.format(built("training/fake_cuda.so"), 10))
    for _ in range(5):
        done = ask(job.processes[0].pid, "hang", "--every", 1)
        assert done.status == 0 and "not hung" in done.out, done.out


def test_views(start_ranks, ask, until_still):
    """As often as is asked for, and said so."""
    program = "import time\ndef work():\n    time.sleep(3600)\nprint('ready', flush=True)\nwork()\n"
    job = start_ranks(1, program=program)
    until_still([job.processes[0].pid])
    done = ask(job.processes[0].pid, "hang", "--every", 0.2, "--views", 4)
    assert done.status == 0 and done.out.startswith("4 views in ") and "no movement" in done.out, done.out + done.err
    assert float(done.out.split()[3]) >= 0.6, "three intervals"
    assert ask("-t", "@" + job.name, "hang", "--every", 0.1, "--views", 3).out.splitlines()[1].startswith("3 views in ")
    refused = ask(job.processes[0].pid, "hang", "--views", 1)
    assert refused.status == 2 and "--views" in refused.err
