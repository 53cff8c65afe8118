"""Tasks of asyncio, against what the target itself says of them (asyncio.all_tasks, the chains of awaits, the links of 3.14)."""

import json
import os
import resource

import pytest

from support.target import SRCDIR, Target, probing, query

SCHEMA = os.path.join(SRCDIR, "lib", "format", "tasks.schema.json")


def tasks(pid, *options):
    return json.loads(probing("-t", pid, "tasks", "--json", *options).stdout)


def truth_of(target):
    """{id: what the target told}"""
    return {line["task"]["id"]: line["task"] for line in target.truth if "task" in line}


@pytest.fixture
def all_ways(start, python):
    return start(python, "tasks.py").settle()


def test_each_task(all_ways, python):
    truth, read = truth_of(all_ways), tasks(all_ways.pid)
    assert {task["id"] for task in read} == set(truth)
    assert len(truth) == len(read) >= 25
    labels = {told["id"]: told["label"] for told in truth.values()}
    for task in read:
        told = truth[task["id"]]
        where = told["label"]
        assert task["coroutine"] == (told["coroutine"] if python.minor >= (3, 5) else None), where
        assert [[frame["name"], frame["line"]] for frame in task["frames"]] == told["stack"], where
        assert task["name"] == told.get("name"), where
        assert (task["loop"], task["thread_name"]) == (told["loop"], told["loop_thread"]), where
        assert task["state"] == "waiting" and not task["unstable"], where
        assert task["cancels"] == told.get("cancels", 0), where
        assert sorted(labels[waiter] for waiter in task["awaited_by"]) == told["awaited_by"], where
        if "links" in told:
            assert sorted(task["awaited_by"]) == told["links"], where
        for awaited in task["awaits"]:
            assert task["id"] in next(other for other in read if other["id"] == awaited)["awaited_by"]
    if python.minor >= (3, 11):
        assert [task["cancels"] for task in read if labels[task["id"]] == "stubborn"] == [1]


def test_schema(all_ways):
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    with open(SCHEMA) as text, open(os.path.join(os.path.dirname(SCHEMA), "backtrace.schema.json")) as frames:
        schema, other = json.load(text), json.load(frames)
    registry = referencing.Registry().with_resource("backtrace.schema.json", referencing.Resource.from_contents(other))
    valid = jsonschema.Draft202012Validator(schema, registry=registry).validate
    valid(tasks(all_ways.pid))
    with pytest.raises(jsonschema.ValidationError):
        valid([{"id": 1}])


def test_tree(all_ways, python):
    """Each task once as a branch below one that waits for it (shared ones again, without their branches)."""
    truth = truth_of(all_ways)
    lines = probing("-t", all_ways.pid, "tasks", "--tree", "-v").stdout.splitlines()
    path, seen = [], set()
    names = {told.get("name"): told["label"] for told in truth.values()} if python.minor >= (3, 8) else {
        "Task 0x%x" % told["id"]: told["label"] for told in truth.values()}
    for line in lines:
        if "── " not in line:
            continue
        indent, rest = line.split("── ", 1)
        depth = (len(indent) - 1) // 4
        label = names[max((name for name in names if rest.startswith(name + " ")), key=len)]
        del path[depth:]
        told = next(told for told in truth.values() if told["label"] == label)
        if told["awaited_by"]:
            assert path[-1] in told["awaited_by"], line
        else:
            assert not path, line
        path.append(label)
        seen.add(label)
    assert seen == {told["label"] for told in truth.values()}


def test_running(start, python):
    """A task that blocks its loop stands on its thread's stack, and says so."""
    target = start(python, "tasks.py", "running").settle()
    read = {task["coroutine"]: task for task in tasks(target.pid)}
    assert set(read) == {"runs", "waits"}
    assert read["runs"]["state"] == "running"
    assert [frame["name"] for frame in read["runs"]["frames"]] == ["blocking", "runs"]
    assert read["waits"]["state"] == "waiting"
    assert read["waits"]["awaits"] == [read["runs"]["id"]]
    assert read["runs"]["awaited_by"] == [read["waits"]["id"]]
    assert read["runs"]["thread_name"] == "MainThread"
    assert read["runs"]["os_thread_id"] == read["waits"]["os_thread_id"] == target.pid


def test_many(start, python):
    """Ten thousand tasks below one; the tree folds them."""
    if python.container:
        pytest.skip("the same interpreter as in its root")
    target = start(python, "tasks.py", "many", 10000).settle()
    read = tasks(target.pid)
    assert len(read) == 10001
    root = [task for task in read if not task["awaited_by"]]
    assert [task["coroutine"] for task in root] == ["many"] and len(root[0]["awaits"]) == 10000
    assert {tuple(frame["name"] for frame in task["frames"]) for task in read if task["awaited_by"]} == {
        ("sleep", "sleeping")}
    tree = probing("-t", target.pid, "tasks", "--tree").stdout
    assert "9998 more with the same stack" in tree and len(tree.splitlines()) < 20


def test_busy(start, python):
    """Tasks that come and go: what is shown is a stack that can be, unless it is marked."""
    target = start(python, "tasks.py", "busy")
    possible, shown = ("hop", "spin"), 0
    for _ in range(10):
        for task in tasks(target.pid):
            names = [frame["name"] for frame in task["frames"] if frame["kind"] == "python"]
            if task["unstable"] or task["coroutine"] not in ("spin", "hop"):
                continue
            shown += 1
            while names and names[0] not in possible:
                names.pop(0)  # sleep, and what it calls
            hops = names[:-1] if task["coroutine"] == "spin" else names
            assert hops == ["hop"] * len(hops), names
            if task["coroutine"] == "spin":
                assert names[-1] == "spin", names
    assert shown


def test_sql(all_ways, python):
    truth = truth_of(all_ways)
    rows = query(all_ways.pid, "SELECT task_id, name, coroutine, state, awaited_by, stack FROM python.tasks")
    assert {row["task_id"] for row in rows} == set(truth)
    for row in rows:
        told = truth[row["task_id"]]
        assert row["name"] == told.get("name") and row["state"] == "waiting"
        assert row["stack"].count("\n") + 1 == len(told["stack"])
        assert row["stack"].startswith(told["stack"][0][0] if python.minor < (3, 11) else "")
    waiting = query(all_ways.pid, "SELECT t.task_id AS task, w.value AS waiter FROM python.tasks t, json_each(t.awaited_by) w")
    labels = {told["id"]: told["label"] for told in truth.values()}
    told = {(one["label"], waiter) for one in truth.values() for waiter in one["awaited_by"]}
    assert {(labels[row["task"]], labels[row["waiter"]]) for row in waiting} == told


def test_nothing(start, python):
    target = start(python, "alone.py")
    assert tasks(target.pid) == []
    assert "has not loaded asyncio" in probing("-t", target.pid, "tasks").stdout


def test_backtrace(start, python):
    """Between the frames of the task that runs and those of its loop: the task that waits for it."""
    target = start(python, "tasks.py", "running").settle()
    (thread,) = json.loads(probing("-t", target.pid, "backtrace", "--async", "--json").stdout)
    rows = [(frame["kind"], frame["name"]) for frame in thread["frames"]]
    names = [None, None]
    if python.minor >= (3, 8):
        by_coroutine = {task["coroutine"]: task["name"] for task in tasks(target.pid)}
        names = [by_coroutine["runs"], by_coroutine["waits"]]
    assert rows[:2] == [("python", "blocking"), ("python", "runs")]
    assert rows[2][0] == "task" and rows[2][1] == (names[0] or rows[2][1])
    assert rows[3] == ("python", "waits")
    assert rows[4][0] == "task" and rows[4][1] == (names[1] or rows[4][1])
    plain = json.loads(probing("-t", target.pid, "backtrace", "--json").stdout)[0]["frames"]
    assert [frame["name"] for frame in plain] == [name for kind, name in rows[:2] + rows[5:]]
    assert "run_forever" in {name for _, name in rows[5:]}
    text = probing("-t", target.pid, "backtrace", "--async").stdout
    assert text.index("blocking") < text.index("waits") < text.index("run_forever")


def test_chains_that_multiply(start, any_python):
    """Each chain is within its limit and so is the number of tasks; together they are cut, in bounded time and memory."""
    target = start(any_python, "chains.py", 600, 4000)

    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    tree = probing("-t", target.pid, "tasks", "--tree", preexec_fn=bounded).stdout
    assert "more awaits in all than the limit" in tree
    assert tree.count("    link (chains.py:") >= 4000 and "main" in tree


RING = """
import asyncio, os
async def main():
    async def first(): await second_task
    async def second(): await first_task
    first_task = asyncio.ensure_future(first())
    second_task = asyncio.ensure_future(second())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    os.write(1, b"ready\\n")
    await asyncio.sleep(1000)
asyncio.get_event_loop().run_until_complete(main()) if not hasattr(asyncio, "run") else asyncio.run(main())
"""


def test_ring(any_python, tmp_path):
    """Tasks that wait for each other: drawn once, as one more root, and only the last root ends the trunk."""
    (tmp_path / "ring.py").write_text(RING)
    target = Target(any_python, "ring.py", folder=str(tmp_path)).settle()
    try:
        lines = probing("-t", target.pid, "tasks", "--tree").stdout.splitlines()
    finally:
        target.end()
    trunk = [line for line in lines if line[:1] in ("├", "└")]
    assert [line[0] for line in trunk] == ["├", "└"], lines
    assert "main" in trunk[0] and sum("see above" in line for line in lines) == 1, lines
