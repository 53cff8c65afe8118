"""memory_allocations of native code: each function of an allocator, libraries loaded before and after, and what must not count."""

import json
import re
import subprocess

import pytest

from sampling import near, note, switch_off, switch_on, tell
from support.injection import built, wait_until
from support.target import probing, query
from support.torch_python import torch_python

LIBRARY = built("allocation/native.so")
WAYS = {"malloc": "by_malloc", "calloc": "by_calloc", "aligned_alloc": "by_aligned_alloc", "memalign": "by_memalign",
        "posix_memalign": "by_posix_memalign", "realloc": "by_realloc", "mmap": "by_mmap"}
COUNT, SIZE = 4000, 4096


def here(python):
    if python.root:
        pytest.skip("the library is of this root's libc")


def by_caller(pid):
    """{the native function: sums}, of what the program's function native() allocated."""
    rows = query(pid, "SELECT json_extract(stack, '$[0].function') AS caller, sum(allocated_bytes) AS allocated,"
                      " sum(live_bytes) AS live, sum(samples) AS samples, sqrt(sum(error * error)) AS error"
                      " FROM memory_allocations WHERE kind = 'native' AND function_name = 'native' GROUP BY caller")
    return {row["caller"]: row for row in rows}


def hooked(pid):
    """The libraries that had been loaded are hooked when the note says nothing more; a later one within a second or two."""
    wait_until(lambda: not note(pid))


def await_hooks(target):
    """Until the library's own slots are: it allocates a little, and is seen."""
    def seen():
        tell(target, "native", "malloc", 200, 100000, 0)
        return "by_malloc" in by_caller(target.pid)

    wait_until(seen)


def check(target):
    """Each way, of blocks that stay and of others."""
    before = by_caller(target.pid)
    for way in WAYS:
        tell(target, "native", way, COUNT, SIZE, 0)
        tell(target, "THREAD", "native", way, COUNT, SIZE, 1)
    tell(target, "native", "reservation", 100, SIZE << 10, 0)
    rows = by_caller(target.pid)
    truth = COUNT * SIZE
    for way, function in WAYS.items():
        row, old = rows[function], before.get(function, {"allocated": 0, "samples": 0, "live": 0})
        samples = row["samples"] - old["samples"]
        # realloc: half of it by malloc first, at the same place.
        times = 3 if way == "realloc" else 2
        assert samples > 400 and near(row["allocated"] - old["allocated"], times * truth, samples), (way, row)
        assert abs(row["live"] - truth) <= 5 * row["error"], (way, row)
    assert "by_reservation" not in rows
    tell(target, "unload")
    assert all(row["live"] == 0 for row in by_caller(target.pid).values())


def test_a_library_that_was_there(start, python):
    here(python)
    target = start(python, "allocating.py")
    tell(target, "load", LIBRARY)
    tell(target, "native", "malloc", 1000, 1000, 1)  # before: not known, freed like the others
    switch_on(target.pid)
    check(target)


def test_a_library_that_comes_later(start, python):
    here(python)
    target = start(python, "allocating.py")
    switch_on(target.pid)
    tell(target, "load", LIBRARY)
    await_hooks(target)
    check(target)


def slots(pid, library):
    """The values of a library's slots of allocators, as they are in the target."""
    told = subprocess.run(["readelf", "-rW", library], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    names = "malloc|calloc|realloc|free|posix_memalign|aligned_alloc|memalign|mmap|munmap"
    places = re.findall(r"^(\w+) .*(?:JUMP_SLO\w*|GLOB_DAT) +\w+ ({})@".format(names), told, re.M)
    with open("/proc/{}/maps".format(pid)) as maps:
        base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(library))
    with open("/proc/{}/mem".format(pid), "rb") as memory:
        values = {}
        for place, name in places:
            memory.seek(base + int(place, 16))
            values[name] = memory.read(8)
    return values


def test_slots_are_put_back(start, python):
    here(python)
    target = start(python, "allocating.py")
    tell(target, "load", LIBRARY)
    for way in WAYS:
        tell(target, "native", way, 1, 100, 0)  # all slots are bound
    before = slots(target.pid, LIBRARY)
    assert len(before) == 9
    switch_on(target.pid)
    during = slots(target.pid, LIBRARY)
    assert all(during[name] != before[name] for name in before), "each has a hook"
    tell(target, "native", "malloc", 1000, 1000, 1)
    switch_off(target.pid)
    wait_until(lambda: slots(target.pid, LIBRARY) == before)
    tell(target, "unload")  # blocks of the hooks, freed without
    switch_on(target.pid)
    assert slots(target.pid, LIBRARY) == during
    tell(target, "native", "malloc", 1000, 1000, 1)
    probing(target.pid, "detach")
    assert slots(target.pid, LIBRARY) == before, "a detach takes them out before it answers"
    tell(target, "unload")


def test_torch(tmp_path):
    """Tensors are of torch's own allocator, with the line of Python that made them."""
    if not torch_python():
        pytest.skip("no Python with torch")
    program = tmp_path / "tensors.py"
    program.write_text("""
import sys, torch
kept = []
def keeper(count):
    for _ in range(count):
        kept.append(torch.empty(100000, dtype=torch.uint8))
def dropper(count):
    for _ in range(count):
        torch.empty(100000, dtype=torch.uint8)
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
""")
    child = subprocess.Popen([torch_python(), str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def say(line):
        child.stdin.write(line + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == "done\n"

    def sums():
        rows = query(child.pid, "SELECT function_name, sum(allocated_bytes) AS allocated, sum(live_bytes) AS live,"
                                " sum(samples) AS samples, sqrt(sum(error * error)) AS error FROM memory_allocations"
                                " WHERE kind = 'torch_cpu' GROUP BY function_name")
        return {row["function_name"]: row for row in rows}

    try:
        assert child.stdout.readline() == "ready\n"
        say("dropper(10)")
        switch_on(child.pid)
        say("keeper(1000); dropper(1000)")
        rows = sums()
        for function in ("keeper", "dropper"):
            row = rows[function]
            assert row["samples"] > 900 and near(row["allocated"], 1000 * 100000, row["samples"])
        assert abs(rows["keeper"]["live"] - 1000 * 100000) <= 5 * rows["keeper"]["error"] + 1 and rows["dropper"]["live"] == 0
        stack, = query(child.pid, "SELECT stack FROM memory_allocations WHERE function_name = 'keeper' AND kind = 'torch_cpu' LIMIT 1")
        names = [frame["function"] for frame in json.loads(stack["stack"])]
        assert names[0].startswith("c10::") and names[1] == "keeper"
        held, = query(child.pid, "SELECT torch_cpu FROM python.memory")
        assert abs(held["torch_cpu"] - 1000 * 100000 / 2 ** 20) < 1
        say("kept.clear()")
        assert sums()["keeper"]["live"] == 0
    finally:
        child.kill()
        child.communicate()
