"""Code that torch runs: backward on its caller's thread and on autograd's own, the DataLoader's pin thread, torch.compile."""

import threading

import pytest

from debuggee import evaluate, local_variables, python_frames, resume, set_lines, stack, stop_at, stopped, top
from support.injection import wait_until
from support.target import DEADLINE
from support.torch_python import torch_python
from training import NAME, finish

pytestmark = pytest.mark.skipif(not torch_python(), reason="needs a Python with torch (./bootstrap check has one)")


def test_breakpoint_in_backward(shared_job):
    program, session = shared_job()
    body, frame = stop_at(session, program, "backward", "step")
    assert local_variables(session, frame)["grad"]["value"] == "Tensor float32 [3, 2] cpu"
    finish(session, program, body["threadId"])


def test_thread_locals_are_those_of_the_thread(shared_job):
    """Within backward torch's grad mode is off on that thread."""
    program, session = shared_job()
    body, frame = stop_at(session, program, "backward", "step")
    inside = evaluate(session, "torch.is_grad_enabled()", frame)["result"]
    finish(session, program, body["threadId"])
    body, frame = stop_at(session, program, "forward", "step")
    assert (inside, evaluate(session, "torch.is_grad_enabled()", frame)["result"]) == ("False", "True")
    finish(session, program, body["threadId"])


def test_a_thread_of_autograd(shared_job):
    """A native thread that never was Python's: a hundred nested backwards end on one."""
    program, session = shared_job()
    body, frame = stop_at(session, program, "nested", "nested")
    assert body["threadId"] != program.pid, "it ran on the main thread"
    names = {thread["id"]: thread["name"] for thread in session.request("threads")["threads"]}
    assert "MainThread" in names[program.pid] and body["threadId"] in names
    assert evaluate(session, "grad.tolist()", frame)["result"] == "[1.0]"
    session.request("next", {"threadId": body["threadId"]})
    assert stopped(session, "step")["threadId"] == body["threadId"]
    assert top(session, body["threadId"])["line"] == program.line("nested") + 1
    waiting = python_frames(stack(session, program.pid))
    assert any(one["name"].endswith("nested") for one in waiting), waiting
    finish(session, program, body["threadId"], "nested")
    program.run("nested")


def test_the_pin_thread(shared_job):
    """The library's thread, born while attached; the workers are forked under the debugger and end well."""
    program, session = shared_job()
    for _ in range(2):
        set_lines(session, program, "pinned", name=NAME)
        program.say("pins")
        body = stopped(session, "breakpoint")
        assert body["threadId"] != program.pid
        names = [frame["name"].split(".")[-1] for frame in python_frames(stack(session, body["threadId"]))]
        assert names[0] == "pin_memory" and "_pin_memory_loop" in names, names
        assert local_variables(session, top(session, body["threadId"]))["self"]["type"] == "Batch"
        set_lines(session, program, name=NAME)
        resume(session, body["threadId"])
        program.until("done pins")


def compiled_frames(program):
    """How many Dynamo has compiled up to now."""
    return int(program.run("compiles")[-2].split()[1])


def begun(session, program, command):
    """A thread that waits for the command's end; it lives when the program has stopped on the way."""
    before = len(session.seen("stopped"))
    waiting = threading.Thread(target=program.run, args=(command,), daemon=True)
    waiting.start()
    wait_until(lambda: len(session.seen("stopped")) > before or not waiting.is_alive())
    return waiting


def test_compiled_code(job):
    """What compiled code calls can be stopped in; the compiled lines stop, or run; Dynamo and its evaluator stay as they were."""
    program, session = job("compile")
    frames = compiled_frames(program)
    assert frames >= 1
    for _ in range(2):
        body, frame = stop_at(session, program, "helper", "step")
        assert frame["name"].endswith("helper")
        assert any(one["name"].endswith("step") for one in python_frames(stack(session, body["threadId"])))
        finish(session, program, body["threadId"])
    assert "torch.compile" in set_lines(session, program, "compiled", name=NAME)[0]["message"]
    step = begun(session, program, "step")
    if step.is_alive():
        body = stopped(session, "breakpoint")
        assert top(session, body["threadId"])["line"] == program.line("compiled")
        set_lines(session, program, name=NAME)
        resume(session, body["threadId"])
    step.join(DEADLINE)
    assert not step.is_alive()
    assert compiled_frames(program) == frames, "Dynamo compiled code of ours"
    session.disconnect()
    for _ in range(3):
        program.run("step")
    assert compiled_frames(program) == frames, "Dynamo compiled again"
