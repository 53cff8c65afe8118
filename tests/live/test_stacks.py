"""Known stacks: every program in every interpreter, names, lines and columns of all frames."""

import json
import os
import shutil

import pytest

from support import pythons
from support.compare import entry_of, python_frames, same
from support.target import TARGETS, backtrace, inner_tids, probing, query

# program: how many threads it has with Python frames
PROGRAMS = {
    "recursion.py": 1,
    "generators.py": 1,
    "coroutines.py": 1,
    "comprehensions.py": 1,
    "decorators.py": 1,
    "callbacks.py": 1,
    "executed.py": 1,
    "positions.py": 1,
    "threads.py": 5,
    "names.py": 2,
    "collecting.py": 2,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_stacks(start, python, program):
    target = start(python, program).settle()
    entries = backtrace(target.pid)
    same(target, entries)
    assert len(entries) == len(target.truth) == PROGRAMS[program]


def test_many_threads(start, python):
    target = start(python, "many_threads.py").settle()
    entries = backtrace(target.pid)
    same(target, entries)
    assert len(entries) == 401


def test_deep(start, python):
    target = start(python, "deep.py").settle()
    entries = backtrace(target.pid)
    same(target, entries)
    assert max(len(entry["frames"]) for entry in entries) > 5000


FRAMES_MAX = 100000  # PRB_FRAMES_MAX


def frames_kind(python):
    """3.11 and later each have frames of their own kind; those before share one."""
    return max(python.minor, (3, 10))


def test_too_deep(start, python):
    """A stack that is cut is told as far as it goes, and no thread is called unstable for it."""
    kind = frames_kind(python)
    if python is not next(one for one in pythons.found() if not one.container and frames_kind(one) == kind):
        pytest.skip("one of each kind of frames is enough: all read deep.py's 5,000")
    target = start(python, "deep.py", FRAMES_MAX + 1000).settle()
    deep, = [entry for entry in backtrace(target.pid) if len(entry["frames"]) > 1000]
    assert not deep["unstable"]
    assert [frame["kind"] for frame in deep["frames"]] == ["python"] * FRAMES_MAX + ["broken"]
    assert "more frames than the limit" in deep["frames"][-1]["name"]


def test_a_snapshot_of_chains_that_break(start, python, tmp_path):
    """What was read while it changed is not told as whole."""
    if python.minor < (3, 13) or python.container or "t" in python.how.split("-"):
        pytest.skip("the target finds the pointers to its frames from 3.13 on")
    target, path = start(python, "broken_chain.py"), tmp_path / "job.snap"
    for _ in range(20):
        told = json.loads(probing("-t", target.pid, "snapshot", "--json", path).stdout)
        ends = sum(entry["frames"][-1]["kind"] == "broken" for entry in backtrace(path) if entry["frames"])
        assert ends <= told["moved"]


def test_subinterpreters(start, python):
    target = start(python, "subinterpreters.py").settle()
    entries = backtrace(target.pid, "--all-interpreters")
    same(target, entries)
    assert {entry["interpreter"] for entry in entries} == {0, 1, 2}
    assert {entry["interpreter"] for entry in backtrace(target.pid)} == {0}


def test_file_name(start, python, folders, tmp_path):
    """A file name beyond ASCII."""
    outside, inner = folders(python)
    if python.root is None:
        outside = inner = str(tmp_path)
    folder, name = "größe", "нейм 日本 💩.py"
    os.makedirs(os.path.join(outside, folder), exist_ok=True)
    for source, copy in (("names.py", name), ("oracle.py", "oracle.py")):
        shutil.copy(os.path.join(TARGETS, source), os.path.join(outside, folder, copy))
    target = start(python, name, folder=os.path.join(inner, folder)).settle()
    entries = backtrace(target.pid)
    same(target, entries)
    assert any(frame["filename"].endswith(name) for entry in entries for frame in entry["frames"])
    assert name in probing("-t", target.pid, "backtrace").stdout


def test_text(start, python):
    """The text names every thread and every function."""
    target = start(python, "threads.py").settle()
    text = probing("-t", target.pid, "backtrace").stdout
    for truth in target.truth:
        if truth["thread_name"]:
            assert truth["thread_name"] in text
        for frame in truth["frames"]:
            assert frame["name"] in text and ":{}".format(frame["line"]) in text
    for command in (["bt"], ["b"], ["backtrace", "--group"]):
        assert "plain" in probing("-t", target.pid, *command).stdout
    assert "plain" in probing(str(target.pid), "backtrace").stdout


def test_sql(start, python):
    """The same stacks as rows."""
    target = start(python, "threads.py").settle()
    here = inner_tids(target.pid)
    rows = query(target.pid, "SELECT * FROM python.backtrace")
    entries = backtrace(target.pid)
    for truth in target.truth:
        tid = here[truth["os_thread_id"]]
        mine = [row for row in rows if row["os_thread_id"] == tid]
        told = [(row["func"], row["file"], row["line"]) for row in sorted(mine, key=lambda row: row["depth"])]
        frames = python_frames(entry_of(entries, tid))
        assert told == [(frame["name"], frame["filename"], frame["line"]) for frame in frames]
