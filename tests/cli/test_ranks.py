"""--ranks of profile and top: the ranks of a job are found from its launcher, a rank or what a rank started."""

import json
import os
import re
import subprocess
import sys

import pytest

from screen import Screen

PROBING = os.environ["PROBING"]
TARGETS = os.path.join(os.environ["SRCDIR"], "tests", "targets")


@pytest.fixture(scope="module")
def job():
    """The pids: of the launcher, the two ranks, the two workers that they started."""
    launcher = subprocess.Popen([sys.executable, os.path.join(TARGETS, "ranks.py")], stdout=subprocess.PIPE)
    words = launcher.stdout.readline().split()
    assert words[:1] == [b"ready"]
    yield [int(word) for word in words[1:]]
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()


def sampled(probing, path):
    rows = json.loads(probing("-t", path, "query", "-f", "json",
                              "SELECT DISTINCT process, rank FROM profiling_data ORDER BY rank").works())
    return [(row["process"], row["rank"]) for row in rows]


@pytest.mark.parametrize("of", ["launcher", "rank", "other rank", "worker"])
def test_profile(probing, job, tmp_path, of):
    """All ranks and nothing else, whatever the target is of the job."""
    target = job[["launcher", "rank", "other rank", "worker"].index(of)]
    probing("-t", target, "profile", "--ranks", "--idle", "-d", 1, "-o", tmp_path / "p.db").works()
    assert sampled(probing, tmp_path / "p.db") == [(job[1], 0), (job[2], 1)]


def test_profile_without_target(probing, job, tmp_path):
    """Every job's ranks, but not what they started."""
    probing("profile", "--ranks", "--idle", "-d", 1, "-o", tmp_path / "p.db").works()
    seen = {pid for pid, _ in sampled(probing, tmp_path / "p.db")}
    assert seen >= set(job[1:3]) and not seen & {job[0], *job[3:]}


def test_profile_with_children(probing, job, tmp_path):
    probing("-t", job[1], "profile", "--ranks", "-s", "--idle", "-d", 2, "-o", tmp_path / "p.db").works()
    assert {pid for pid, _ in sampled(probing, tmp_path / "p.db")} == set(job[1:])


def test_group(probing, job, tmp_path):
    probing("-t", job[0], "profile", "--ranks", "--group", "rank", "-d", 1, "-o", tmp_path / "p.txt").works()
    first = {line.split(";")[0] for line in (tmp_path / "p.txt").read_text().splitlines()}
    assert first == {"rank 0", "rank 1"}


def test_top(job):
    """Both ranks side by side, and their threads, on a terminal of 80 columns."""
    view = Screen([PROBING, "-t", str(job[0]), "top", "--ranks", "--view", "processes", "--delay", "0.3"])
    try:
        lines = view.until(lambda lines: all(any(re.match(r" *{} +{} .*computing".format(pid, rank), line)
                                                 for line in lines)
                                             for rank, pid in enumerate(job[1:3])))
        assert lines[1] == "2 processes" and not any(str(pid) in line for pid in job[3:] for line in lines)
        view.press("/rank 1\r")
        view.until(lambda lines: "filter: rank 1" in lines[0]
                   and [line.split()[0] for line in lines[4:] if line] == [str(job[2])])
        view.press("/\x1b")
        view.press("t")
        view.until(lambda lines: {line.split()[1] for line in lines[4:] if line.startswith("rank")} == {"0", "1"})
        view.press("pj\r")
        view.until(lambda lines: lines[0].startswith("probing top: threads of rank 1")
                   and {line.split()[1] for line in lines[4:] if line} == {"1"})
        view.press("\r")
        view.until(lambda lines: lines[0].startswith("probing top: stack of MainThread"))
        view.press("q")
        view.until(lambda lines: lines[0].startswith("probing top: threads of rank 1"))
        view.press("q")
        view.until(lambda lines: lines[0].startswith("probing top: processes"))
        view.press("\r")  # the same one is marked still
        view.until(lambda lines: lines[0].startswith("probing top: threads of rank 1"))
        view.press("t")
        view.until(lambda lines: {line.split()[1] for line in lines[4:] if line.startswith("rank")} == {"0", "1"})
        view.press("q")
        assert view.end() == 0
    finally:
        view.close()


def test_top_lines(probing, job):
    out = probing("-t", job[2], "top", "--ranks", "--view", "processes", "--count", 2, "--delay", "0.3").works()
    for rank, pid in enumerate(job[1:3]):
        assert re.search(r"^ *{} +{} ".format(pid, rank), out, re.M), out


def test_no_rank(probing):
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        for command in ("profile", "top"):
            probing("-t", child.pid, command, "--ranks").fails(3, "RANK")
    finally:
        child.communicate(b"\n")
