"""Merged stacks: the same Python frames in the same order, and native frames exactly where C code calls Python."""

import os

import pytest

from support.compare import entry_of, inner_tids, same
from support.target import backtrace


def threads_of(target, *options):
    """[(what the target told of a thread, its frames)] with native frames."""
    entries = backtrace(target.pid, "--native", *options)
    here = inner_tids(target.pid)
    return entries, [(truth, entry_of(entries, here[truth["os_thread_id"]], truth["interpreter"])["frames"])
                     for truth in target.truth]


def runs(frames):
    """The frames as runs of one kind: [("python", [names]), ("native", [names]), …], innermost first."""
    grouped = []
    for frame in frames:
        if not grouped or grouped[-1][0] != frame["kind"]:
            grouped.append((frame["kind"], []))
        grouped[-1][1].append(frame["name"])
    return grouped


@pytest.mark.parametrize("program", ["callbacks.py", "generators.py", "coroutines.py", "threads.py", "executed.py"])
def test_merged(start, python, program):
    target = start(python, program).settle()
    entries, threads = threads_of(target)
    same(target, entries)
    for truth, frames in threads:
        kinds = runs(frames)
        assert {kind for kind, _ in kinds} == {"native", "python"}, kinds
        # It stands in read(2), called by os.read; at the other end is what began the thread.
        assert kinds[0][0] == "native" and any("read" in name for name in kinds[0][1]), kinds[0]
        assert kinds[-1][0] == "native", kinds[-1]
        # The evaluator's own frames are what the Python frames stand for.
        assert not [name for kind, names in kinds for name in names if kind == "native" and "EvalFrame" in name]


# Python functions that only C code calls: of other libraries, and of the interpreter, whose own functions are
# told apart from the evaluator's plumbing by their names, where it has some.
CALLED_BY_LIBRARY, CALLED_BY_INTERPRETER = ["element"], ["key", "parsed", "replaced"]


def test_c_calls(start, python):
    """Between a callback and what called it stand the C functions of the call, and nowhere else any."""
    target = start(python, "callbacks.py").settle()
    _, threads = threads_of(target)
    frames = threads[-1][1]
    python_names = [frame["name"] for frame in frames if frame["kind"] == "python"]
    named = "shared" in python.how
    for name in CALLED_BY_LIBRARY + (CALLED_BY_INTERPRETER if named else []):
        at = next(i for i, frame in enumerate(frames) if frame["kind"] == "python" and frame["name"] == name)
        assert frames[at + 1]["kind"] == "native", (name, python_names)
    for inner, outer in (("park", "stand"), ("raw_decode", "decode"), ("decode", "loads")):
        at = next(i for i, frame in enumerate(frames) if frame["kind"] == "python" and frame["name"] == inner)
        assert frames[at + 1]["kind"] == "python" and frames[at + 1]["name"] == outer


def test_hung(start, python):
    """What blocks the thread that holds the GIL is its innermost frame."""
    target = start(python, "hung.py").settle()
    _, threads = threads_of(target)
    frames = next(frames for truth, frames in threads if truth.get("gil_state") == "holding")
    kind, names = runs(frames)[0]
    assert kind == "native" and any("pause" in name for name in names), names


def test_shutdown(start, python):
    """No Python frame is left: the native stack says where it hangs."""
    target = start(python, "shutdown.py").settle()
    frames = backtrace(target.pid, "--native")[0]["frames"]
    names = [frame["name"] for frame in frames]
    assert all(frame["kind"] == "native" for frame in frames)
    assert any("write" in name for name in names) and any("Finalize" in name or "Py_" in name for name in names), names


def test_subinterpreters(start, python):
    """One native thread in two interpreters: an entry for each, whose Python frames are its own."""
    target = start(python, "subinterpreters.py").settle()
    entries = backtrace(target.pid, "--native", "--all-interpreters")
    same(target, entries)


def test_running(start, python):
    """A thread that never rests: its Python frames are as they can be, its native ones lead to the thread's begin."""
    target = start(python, "busy.py").settle(only=True)
    chains = (["outer"], ["middle", "outer"], ["leaf", "middle", "outer"])
    for _ in range(5):
        entry = next(entry for entry in backtrace(target.pid, "--native") if entry["thread_name"] == "busy")
        names = [frame["name"] for frame in entry["frames"] if frame["kind"] == "python"]
        assert any(names[:len(chain)] == chain for chain in chains), names
        assert entry["frames"][-1]["kind"] == "native"
    with open("/proc/{}/status".format(target.pid)) as status:
        assert "TracerPid:\t0\n" in status.read()
    assert os.path.exists("/proc/{}".format(target.pid))
