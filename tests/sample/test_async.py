"""`profile --async`: between an event loop's frames and those of its task stand the tasks that wait for that one."""

import pytest

from profiles import function, profile, stacks
from support.target import probing


def below_loop(frames):
    """The functions above the event loop's own: of those rows that compute, else None."""
    names = [function(frame) for frame in frames]
    handle = [at for at, name in enumerate(names) if name.split(".")[-1] == "_run"]
    return names[handle[-1] + 1:] if handle and "burn" in names else None


def expected(python, name):
    """What stands there: 3.12 and later wait in the task itself where wait_for made one before."""
    waiting = ["task batch", "batch"] if python.minor < (3, 12) else ["batch"]
    head = ["task working", "working", "task epochs", "epochs"]
    return {
        "gather": head + ["wait_for", *waiting, "task fetch", "fetch", "burn"],
        "named": head + ["task prefetch" if python.minor >= (3, 8) else "task fetch", "fetch", "burn"],
    }[name]


def test_who_waits(start, python, tmp_path):
    if python.container:
        pytest.skip("the same interpreter as in its root")
    if python.minor < (3, 7):
        pytest.skip("asyncio's tasks are read from 3.7 on")
    target = start(python, "tasks.py", "working")
    told = profile(target.pid, tmp_path / "p.txt", "--async", "--function", seconds=1.5, least=100)
    seen = {}
    for frames, count in stacks(tmp_path / "p.txt"):
        below = below_loop(frames)
        if below is not None:
            seen[tuple(below)] = seen.get(tuple(below), 0) + count
    gather, named = (tuple(expected(python, name)) for name in ("gather", "named"))
    assert seen.get(gather) and seen.get(named), seen
    # Each is read a moment after its stack: a task may have ended meanwhile, and is left out then, or has lost its name.
    alone = ("fetch", "burn")
    nameless = {names for names in seen if "task ?" in names
                and any(len(names) == len(whole) and all(name in ("task ?", of) for name, of in zip(names, whole))
                        for whole in (gather, named))}
    assert set(seen) - nameless <= {gather, named, alone}, seen
    assert sum(seen[names] for names in nameless | {alone} & set(seen)) <= 0.2 * sum(seen.values()), (seen, told.text)


def test_beside_native_frames(start, any_python, tmp_path):
    target = start(any_python, "tasks.py", "working")
    profile(target.pid, tmp_path / "p.txt", "--async", "--native", "--function", seconds=1.5, least=50)
    whole = [[function(frame) for frame in frames] for frames, _ in stacks(tmp_path / "p.txt")]
    rows = [names for names in whole if "burn" in names and "task fetch" in names]
    assert rows
    for names in rows:
        at = [names.index(name) for name in ("task working", "working", "task epochs", "epochs", "task fetch", "fetch",
                                             "burn")]
        assert at == sorted(at), names
    assert any("main" in name.lower() and ":" not in name for names in rows for name in names[:3]), rows[0]


def test_kept_in_a_database(start, any_python, tmp_path):
    target = start(any_python, "tasks.py", "working")
    profile(target.pid, tmp_path / "p.db", "--async", least=60)
    done = probing("-t", str(tmp_path / "p.db"), "query", "-f", "csv",
                   "SELECT DISTINCT operation_name FROM profiling_data")
    assert {"task working", "task epochs", "task fetch", "burn"} <= set(done.stdout.splitlines())
