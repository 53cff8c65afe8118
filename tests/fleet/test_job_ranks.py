"""`-t @JOB[:RANKS]` on this host: which ranks are meant, what is said of those that do not answer, and merged stacks."""

import os
import re
import signal

import pytest


def headings(text):
    """[(ranks, of)] of each group, in the order in which they stand."""
    found = re.findall(r"^ranks? (\S+)(?: \((\d+) of (\d+)\))?$", text, re.M)
    return [(ranks, int(of) if of else None) for ranks, _, of in found]


def test_odd_rank_first(start_ranks, ask):
    job = start_ranks(4)
    done = ask("-t", "@" + job.name, "backtrace")
    assert done.status == 0
    assert headings(done.out) == [("2", None), ("0-1,3", 4), ("0-3", 4)], done.out
    assert "    odd (" in done.out.split("ranks 0-1,3")[0]
    assert "loader-#" in done.out and "4 of 4 ranks answered" in done.err


def test_json(start_ranks, ask):
    job = start_ranks(4)
    answer = ask("-t", "@" + job.name, "backtrace", "--json").json
    assert [(row["ranks"], row["count"], row["thread"]) for row in answer["rows"]] == [
        ("2", 1, "MainThread"), ("0-1,3", 3, "MainThread"), ("0-3", 4, "loader-#")]
    assert [frame["name"] for frame in answer["rows"][0]["frames"]] == ["innermost", "odd", "<module>"]
    assert answer["coverage"] == {"expected": 4, "answered": "0-3", "failed": [], "silent": "", "missing": "", "gone": "", "late": "",
                                  "truncated": ""}


def test_chosen_ranks(start_ranks, ask):
    job = start_ranks(4)
    answer = ask("-t", "@{}:1-2".format(job.name), "backtrace", "--json", "--thread", "MainThread").json
    assert [row["ranks"] for row in answer["rows"]] == ["1", "2"] and answer["coverage"]["expected"] == 2
    beyond = ask("-t", "@{}:4".format(job.name), "backtrace")
    assert beyond.status == 2 and "0 to 3" in beyond.err and not beyond.out


def test_locals_and_one_rank(start_ranks, ask):
    """What takes one process takes the address of one rank."""
    job = start_ranks(2)
    done = ask("-t", "@{}:1".format(job.name), "query", "-f", "csv", "SELECT pid FROM system.process")
    assert done.status == 0 and done.out.split() == ["pid", str(job.processes[1].pid)], done.err
    inspected = ask("-t", "@" + job.name, "inspect", "threads")
    assert inspected.status == 0 and "loader-0" in inspected.out and "loader-1" in inspected.out, inspected.err
    several = ask("-t", "@" + job.name, "config", "--names")
    assert several.status == 2 and "one process" in several.err


def test_ranks_of_jobs_with_one_parent(start_ranks, ask):
    """As where their launchers have ended: the ranks of a process are those of its own job."""
    jobs = [start_ranks(2), start_ranks(2, PROBING_JOB="", TORCHELASTIC_RUN_ID="none", MASTER_ADDR="127.0.0.1", MASTER_PORT="1"), start_ranks(2)]
    for job in jobs:
        done = ask(job.processes[1].pid, "query", "--ranks", "-f", "csv", "SELECT pid FROM system.process ORDER BY rank")
        assert done.out.split() == ["pid"] + [str(job.processes[rank].pid) for rank in range(2)], done.err


def test_missing_rank(start_ranks, ask):
    """The hole is seen from the size that the others know; with --strict there are no rows."""
    job = start_ranks(4, ranks=[0, 1, 3])
    done = ask("-t", "@" + job.name, "backtrace", "--json")
    assert done.status == 15 and done.json["coverage"]["missing"] == "2" and done.json["coverage"]["answered"] == "0-1,3"
    text = ask("-t", "@" + job.name, "backtrace")
    assert text.status == 15 and "3 of 4 ranks answered; missing 2" in text.err
    strict = ask("-t", "@" + job.name, "--strict", "backtrace")
    assert strict.status == 15 and not strict.out and "missing 2" in strict.err


def test_stopped_rank_answers(start_ranks, ask):
    """It is read from outside, like any other."""
    job = start_ranks(3)
    os.kill(job.processes[1].pid, signal.SIGSTOP)
    done = ask("-t", "@" + job.name, "backtrace", "--json")
    assert done.status == 0 and done.json["coverage"]["answered"] == "0-2"
    verdict = ask("-t", "@" + job.name, "hang", "--every", 0.2, "-f", "json").json
    assert verdict["hung"] and [(cause["ranks"], cause["kind"]) for cause in verdict["cause"]] == [("1", "stopped")]


def test_two_claim_a_rank(start_ranks, ask):
    job = start_ranks(2)
    twin = job.start(1, 2)
    try:
        done = ask("-t", "@" + job.name, "backtrace", "--json")
        failed = done.json["coverage"]["failed"]
        assert done.status == 15 and [one["rank"] for one in failed] == [1]
        assert {str(job.processes[1].pid), str(twin.pid)} <= set(re.findall(r"\d+", failed[0]["reason"]))
    finally:
        twin.kill()
        twin.communicate()


def test_earlier_attempt_is_no_rank(start_ranks, ask):
    job = start_ranks(2, ranks=[0], TORCHELASTIC_RESTART_COUNT="0")
    new = [job.start(rank, 2, TORCHELASTIC_RESTART_COUNT="1") for rank in range(2)]
    job.processes.update({10: new[0], 11: new[1]})
    done = ask("-t", "@" + job.name, "backtrace", "--json")
    assert done.status == 0 and done.json["coverage"]["answered"] == "0-1", done.err


def test_several_jobs_are_listed(start_ranks, ask):
    jobs = [start_ranks(1, "0-job"), start_ranks(1, "0-job")]  # the first: other tests have jobs, too, of which a message takes some
    done = ask("-t", "@", "backtrace")
    assert done.status == 2 and all("@" + job.name in done.err for job in jobs)
    unknown = ask("-t", "@no-such-job", "backtrace")
    assert unknown.status == 3 and jobs[0].name in unknown.err


@pytest.mark.parametrize("address", ["@:", "@x:", "@" + "x" * 200])
def test_wrong_addresses(ask, address):
    assert ask("-t", address, "backtrace").status == 2


def test_eval_says_who_says_what(start_ranks, ask):
    """Equal answers are one; what is assigned is not the program's."""
    job = start_ranks(3)
    done = ask("-t", "@" + job.name, "eval", "import os; x = 'mine'; int(os.environ['RANK']) // 2")
    assert done.status == 0 and re.findall(r"^ranks? .*", done.out, re.M) == ["ranks 0-1 (2 of 3):", "rank 2:"], done.out + done.err
    assert done.out.split("\n")[1::2][:2] == ["    0", "    1"]
    main = ask("-t", "@" + job.name, "eval", "import __main__; hasattr(__main__, 'x')")
    assert "ranks 0-2 (3 of 3):\n    False\n" == main.out
    raised = ask("-t", "@{}:1".format(job.name), "eval", "1 / 0")
    assert raised.status == 1 and "rank 1: raised" in raised.out and "ZeroDivisionError" in raised.out
    told = ask("-t", "@" + job.name, "eval", "-f", "json", "import os; 1 / (int(os.environ['RANK']) - 1)")
    rows = told.json["rows"]
    assert told.status == 1 and sorted((one["ranks"], one["count"], one["raised"]) for one in rows) == [("0", 1, False), ("1", 1, True), ("2", 1, False)], told.out
    assert {one["ranks"]: one["text"] for one in rows if not one["raised"]} == {"0": "-1.0", "2": "1.0"} and told.json["coverage"]["answered"] == "0-2"


@pytest.mark.parametrize("variables, name", [
    ({"RAY_JOB_ID": "{}"}, "ray-{}"),
    ({"RAY_JOB_ID": "ffffffff", "MASTER_PORT": "{}"}, "127.0.0.1-{}"),  # of Ray's workers that it started before their job
    ({"SLURM_JOB_ID": "{}", "SLURM_STEP_ID": "0", "RAY_JOB_ID": "02000000"}, "slurm-{}.0"),
], ids=["ray", "ray-early", "slurm"])
def test_what_names_a_job(start_ranks, ask, variables, name):
    mine = {key: value.format(os.getpid()) for key, value in variables.items()}
    job = start_ranks(1, PROBING_JOB="", TORCHELASTIC_RUN_ID="none", MASTER_ADDR="127.0.0.1", **mine)
    done = ask("-t", "@" + name.format(os.getpid()), "query", "-f", "csv", "SELECT pid FROM system.process")
    assert str(job.processes[0].pid) in done.out, done.err
