"""A training job: tensors, arrays, modules and optimizers as variables; the countdown of a pause; workers and examples/train.py."""

import base64
import os
import struct
import time

import pytest

from debuggee import evaluate, local_variables, python_frames, stack, stop_at, stopped, top, variables
from support import pythons
from support.target import DEADLINE, SRCDIR, free_port
from support.target import children as processes_of
from support.torch_python import torch_python
from training import Job, finish

pytestmark = pytest.mark.skipif(not torch_python(), reason="needs a Python with torch (./bootstrap check has one)")


def lazily(session, rows, name):
    row = rows[name]
    assert row["presentationHint"]["lazy"], row
    value, = variables(session, row["variablesReference"])
    return value["value"]


def children(session, reference):
    """All children by name, those within groups, too."""
    rows = {}
    for row in variables(session, reference, filter="named"):
        rows[row["name"]] = row
    return rows


@pytest.fixture
def at_step(shared_job):
    program, session = shared_job()
    body, frame = stop_at(session, program, "step", "step")
    yield program, session, frame, body["threadId"]
    finish(session, program, body["threadId"])


def test_values(at_step):
    _, session, frame, _ = at_step
    told = local_variables(session, frame)
    assert told["data"]["value"] == "Tensor float32 [3, 4] cpu"
    assert told["half"]["value"] == "Tensor bfloat16 [2, 3] cpu"
    assert told["loss"]["value"].startswith("Tensor float32 [] cpu grad")
    assert "int32 [2, 3]" in told["array"]["value"]
    weight = evaluate(session, "model.first.weight", frame)
    assert "float32 [8, 4] cpu grad" in weight["result"]


def test_children_of_a_tensor(at_step):
    _, session, frame, _ = at_step
    rows = children(session, local_variables(session, frame)["data"]["variablesReference"])
    assert rows["shape"]["value"] == "(3, 4)" and rows["stride"]["value"] == "(4, 1)"
    assert {"storage", "dtype", "device"} <= set(rows)
    assert float(lazily(session, rows, "min")) == 0 and float(lazily(session, rows, "max")) == 11
    assert float(lazily(session, rows, "mean")) == 5.5
    assert abs(float(lazily(session, rows, "norm")) - sum(i * i for i in range(12)) ** 0.5) < 1e-3
    assert lazily(session, rows, "NaN count") == "0"
    weight = evaluate(session, "model.first.weight", frame)
    assert "float32 [8, 4] cpu" in children(session, weight["variablesReference"])["grad"]["value"]


def test_odd_numbers_are_counted(at_step):
    _, session, frame, _ = at_step
    rows = children(session, local_variables(session, frame)["odd"]["variablesReference"])
    assert lazily(session, rows, "NaN count") == "1" and lazily(session, rows, "Inf count") == "1"


def test_children_of_an_array(at_step):
    _, session, frame, _ = at_step
    array = local_variables(session, frame)["array"]
    rows = children(session, array["variablesReference"])
    assert rows["shape"]["value"] == "(2, 3)" and lazily(session, rows, "max") == "5"
    page = variables(session, array["variablesReference"], filter="indexed", start=1, count=1)
    assert page[0]["name"] in ("1", "[1]")
    assert "[3, 4, 5]" in evaluate(session, "array[1].tolist()", frame)["result"]


def test_slices(at_step):
    _, session, frame, _ = at_step
    assert evaluate(session, "data[1, :2]", frame)["result"] == "Tensor float32 [2] cpu"
    assert evaluate(session, "data[1, :2].tolist()", frame)["result"] == "[4.0, 5.0]"


def test_memory_of_tensors(at_step):
    _, session, frame, _ = at_step
    told = local_variables(session, frame)
    answer = session.request("readMemory", {"memoryReference": told["data"]["memoryReference"], "count": 100})
    assert struct.unpack("12f", base64.b64decode(answer["data"])) == tuple(range(12))
    assert answer["unreadableBytes"] == 100 - 48
    answer = session.request("readMemory", {"memoryReference": told["array"]["memoryReference"], "count": 24})
    assert struct.unpack("6i", base64.b64decode(answer["data"])) == tuple(range(6))


def test_module_and_optimizer(at_step):
    _, session, frame, _ = at_step
    model = evaluate(session, "model", frame)
    rows = children(session, model["variablesReference"])
    text = " ".join(rows) + " ".join(row["value"] for row in rows.values())
    assert "first" in text and "second" in text
    optimizer = evaluate(session, "optimizer", frame)
    rows = children(session, optimizer["variablesReference"])
    assert any("state" in name for name in rows) and any("group" in name for name in rows), rows


def test_a_pause_warns_of_the_time_out(shared_job):
    program, session = shared_job()
    program.say("group")
    program.until("done group")
    session.request("pause", {"threadId": 0})
    stopped(session, "pause")
    said = session.event("output", lambda body: body.get("category") == "important")
    assert "time-out" in said["output"] or "timeout" in said["output"], said
    session.disconnect()
    program.say("step")
    program.until("done step")


def test_countdown_of_a_real_group(start, folders, client):
    """Two ranks over gloo: one is paused, the other waits in all_reduce; the client is told of the group's own time-out."""
    port = str(free_port())
    ranks = [Job(start, folders, variables={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank),
                                            "WORLD_SIZE": "2"}) for rank in range(2)]
    for command in ("ranks", "reduce"):
        for one in ranks:
            one.say(command)
        for one in ranks:
            one.until("done " + command)
    session = client()
    session.attach(ranks[0].pid)
    session.request("pause", {"threadId": 0})
    began = time.monotonic()
    stopped(session, "pause")
    for one in ranks:
        one.say("reduce")  # rank 1 waits for rank 0, which stands

    def counted(text):
        return lambda body: body.get("category") == "important" and text in body["output"]

    said = session.event("output", counted("may end the job"))["output"]
    assert "gloo" in said and "(35 s)" in said, said
    session.event("output", counted("30 s until the time-out"))
    assert 3 < time.monotonic() - began < 35
    session.request("continue", {"threadId": 0})
    for one in ranks:
        one.until("done reduce")
    session.disconnect()
    assert not session.seen("output", counted("10 s until"))


def begin_example(start, *arguments):
    """examples/train.py, when its first step is done, and its path."""
    path = os.path.realpath(os.path.join(SRCDIR, "examples", "train.py"))
    python = pythons.Python([], torch_python(), (3, 0, 0), "torch")
    target = start(python, "train.py", *arguments, folder=os.path.dirname(path), ready=False)
    assert target.line(2 * DEADLINE).startswith("ready ")
    return target, path


def test_workers_become_sessions(start, client):
    """The DataLoader's workers of examples/train.py as child sessions: each attaches, shows where it is, and leaves."""
    target, path = begin_example(start, "--pause", "0.05", "--every", "5")
    parent = client()
    of_parent = {"preLaunchTask": "build", "postDebugTask": "clean", "presentation": {"hidden": True},
                 "serverReadyAction": {"action": "openExternally"}, "internalConsoleOptions": "neverOpen"}
    parent.attach(target.pid, subProcess=True, justMyCode=False, **of_parent)
    wanted = []
    for _ in range(2):
        request = parent.reverse_request("startDebugging")
        parent.reply(request)
        assert request["arguments"]["request"] == "attach"
        wanted.append(request["arguments"]["configuration"])
        assert not of_parent.keys() & wanted[-1].keys() and wanted[-1]["justMyCode"] is False
    pids = [int(one.get("processId") or 0) for one in wanted]
    assert len(set(pids)) == 2 and set(pids) <= set(processes_of(target.pid)), wanted
    for configuration in wanted:
        with client() as child:
            child.attach(**configuration)
            child.request("pause", {"threadId": 0})
            body = stopped(child, "pause")
            names = [frame["name"].split(".")[-1] for frame in python_frames(stack(child, body["threadId"]))]
            assert "_worker_loop" in names, names
            child.disconnect()
    parent.disconnect()
    assert target.line().startswith("step ") and target.line().startswith("step ")
    assert set(pids) <= set(processes_of(target.pid))


def test_top_of_train_step(start, client):
    """What the README promises: a breakpoint in the loop of examples/train.py, with tensors on screen."""
    target, path = begin_example(start, "--workers", "0", "--every", "5")
    with open(path) as file:
        line = next(number for number, text in enumerate(file, 1) if "loss.backward()" in text)
    session = client()
    session.attach(target.pid)
    session.request("setBreakpoints", {"source": {"path": path}, "breakpoints": [{"line": line}]})
    body = stopped(session, "breakpoint")
    frame = top(session, body["threadId"])
    told = local_variables(session, frame)
    assert frame["name"].endswith("train_step") and told["loss"]["value"].startswith("Tensor float32 [] cpu grad")
    assert told["tokens"]["value"] == "Tensor int64 [8, 32] cpu"
    session.disconnect()
    assert target.line().startswith("step ")
