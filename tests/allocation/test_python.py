"""memory_allocations of Python's own allocators, on every CPython found: what the program knows to have allocated."""

import json
import os

from sampling import near, switch_off, switch_on, tell
from support.target import TARGETS, probing, query


def line_of(text):
    """Of a line of the program, which it has once."""
    with open(os.path.join(TARGETS, "allocating.py")) as source:
        number, = [number for number, line in enumerate(source, 1) if line.strip() == text]
    return number


KEEPS, DROPS = line_of("blocks[i] = bytes(size)"), line_of("bytes(size)")


def by_line(pid, off=False):
    """{line: sums}, of the blocks alone: the numbers that count them are of other lines."""
    done = probing(pid, "query", "-f", "json", "SELECT lineno, sum(allocated_bytes) AS allocated, sum(allocations) AS allocations,"
                      " sum(live_bytes) AS live, sum(live_count) AS live_count, sum(samples) AS samples,"
                      " sqrt(sum(error * error)) AS error FROM memory_allocations"
                      " WHERE kind = 'python' AND function_name IN ('keeper', 'dropper') GROUP BY lineno", check=False)
    assert done.returncode == 0 and ("switched off at" in done.stderr if off else not done.stderr), done.stderr
    return {row["lineno"]: row for row in json.loads(done.stdout) if row["lineno"] in (KEEPS, DROPS)}


def test_sites_and_what_lives(start, python):
    target = start(python, "allocating.py")
    tell(target, "old", 2000, 1000)
    switch_on(target.pid)
    kept = tell(target, "keep", 10000, 1000)["bytes"]
    dropped = tell(target, "drop", 10000, 1000)["bytes"]
    rows = by_line(target.pid)
    keeper, dropper = rows[KEEPS], rows[DROPS]
    assert keeper["samples"] > 300 and dropper["samples"] > 300
    assert near(keeper["allocated"], kept, keeper["samples"]) and near(dropper["allocated"], dropped, dropper["samples"])
    assert near(dropper["allocations"], 10000, dropper["samples"])
    assert abs(keeper["live"] - kept) <= 5 * keeper["error"] and keeper["error"] < 0.1 * kept
    assert dropper["live"] < 0.01 * dropped  # with a JIT, code that it made on that line lives
    tell(target, "forget")
    tell(target, "free")
    assert by_line(target.pid)[KEEPS]["live"] < 0.01 * kept


def test_rows_say_where(start, python):
    target = start(python, "allocating.py")
    switch_on(target.pid)
    tell(target, "THREAD", "drop", 10000, 1000)
    rows = query(target.pid, "SELECT * FROM memory_allocations WHERE kind = 'python' AND function_name = 'dropper' AND lineno = {}".format(DROPS))
    assert rows
    now, = query(target.pid, "SELECT now() AS now")
    for row in rows:
        assert row["kind"] == "python" and row["pid"] == target.pid and row["rank"] is None
        assert row["since"] < now["now"] and row["since"] < row["timestamp"] < now["now"] + 2
        assert row["thread"] != target.pid
        stack = json.loads(row["stack"])
        names = [frame["function"].rsplit(".", 1)[-1] for frame in stack]
        assert names[:2] == ["dropper", "told"] and stack[0]["lineno"] == DROPS, stack
        assert stack[0]["file"].endswith("allocating.py")


def test_off_and_on_again(start, python):
    target = start(python, "allocating.py")
    switch_on(target.pid)
    tell(target, "keep", 2000, 1000)
    switch_off(target.pid)
    before = by_line(target.pid, off=True)[KEEPS]
    tell(target, "drop", 5000, 1000)
    tell(target, "free")  # blocks from before, without the hooks
    rows = by_line(target.pid, off=True)
    assert rows[KEEPS] == before and DROPS not in rows, "rows stay as they were when it was switched off"
    switch_on(target.pid)
    assert KEEPS not in by_line(target.pid), "a new record begins"
    tell(target, "drop", 5000, 1000)
    assert by_line(target.pid)[DROPS]["samples"] > 100
    probing(target.pid, "detach")
    tell(target, "keep", 1000, 1000)
    tell(target, "free")
    with open("/proc/{}/maps".format(target.pid)) as maps:
        assert "probing-allocations" not in maps.read()


def test_a_child_has_the_hooks_and_is_left_alone(start, python):
    target = start(python, "allocating.py")
    switch_on(target.pid)
    tell(target, "keep", 3000, 1000)
    before = by_line(target.pid)
    assert tell(target, "fork", 20000, 1000)["status"] == 0
    assert by_line(target.pid)[KEEPS] == before[KEEPS]
    assert tell(target, "drop", 3000, 1000)["status"] == 0
    assert by_line(target.pid)[DROPS]["samples"] > 50


def test_without_it_says_how(start, python):
    target = start(python, "allocating.py")
    done = probing(target.pid, "query", "SELECT * FROM memory_allocations", check=False)
    assert done.returncode == 0 and "config probing.memory.profile=on" in done.stderr
