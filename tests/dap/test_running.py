"""continue, next, stepIn and its targets, stepOut, pause, goto; and that nobody runs while the program is stopped."""

import time

import pytest

from client import Failed
from debuggee import evaluate, go_on, local_variables, python_frames, resume, set_lines, stack, stop_at, stopped, top
from support.injection import wait_until


def step(session, how, thread, **more):
    """Step; the innermost Python frame after it."""
    session.request(how, dict({"threadId": thread}, **more))
    body = stopped(session)
    assert body["reason"] in ("step", "breakpoint") and body["threadId"] == thread, body
    return top(session, thread)


def test_continue(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "cold", "cold")
    for _ in range(2):
        assert resume(session, body["threadId"]).get("allThreadsContinued") is not False
        again = stopped(session, "breakpoint")
        assert again["threadId"] == body["threadId"] and again["allThreadsStopped"]
    go_on(session, program, body["threadId"], "cold")


def test_next(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "step_a", "steps")
    thread = body["threadId"]
    lines = [step(session, "next", thread)["line"] for _ in range(8)]
    marks = ["step_b", "step_c", "step_for", "step_body", "step_for", "step_body", "step_for", "step_return"]
    assert lines == [program.line(mark) for mark in marks]
    go_on(session, program, thread, "steps")


def test_next_over_a_return_goes_to_the_caller(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "double_return", "steps")
    frame = step(session, "next", body["threadId"])
    assert frame["name"].endswith("steps") and frame["line"] in (program.line("step_b"), program.line("step_c"))
    go_on(session, program, body["threadId"], "steps")


def test_step_in_and_out(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "step_b", "steps")
    thread = body["threadId"]
    frame = step(session, "stepIn", thread)
    assert frame["name"].endswith("double") and frame["line"] in (program.line("double"), program.line("double") - 1)
    frame = step(session, "stepOut", thread)
    assert frame["name"].endswith("steps") and frame["line"] in (program.line("step_b"), program.line("step_c"))
    go_on(session, program, thread, "steps")


def test_step_in_where_nothing_is_called(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "step_a", "steps")
    assert step(session, "stepIn", body["threadId"])["line"] == program.line("step_b")
    go_on(session, program, body["threadId"], "steps")


def test_a_breakpoint_within_a_step_stops(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "step_b", "steps")
    set_lines(session, program, "double")
    frame = step(session, "next", body["threadId"])
    assert frame["line"] == program.line("double")
    go_on(session, program, body["threadId"], "steps")


def test_step_in_targets(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "step_c", "steps")
    targets = session.request("stepInTargets", {"frameId": frame["id"]})["targets"]
    labels = [target["label"] for target in targets]
    assert sum("double" in label for label in labels) == 2 and sum("add" in label for label in labels) >= 1, labels
    wanted = next(target for target in targets if target["label"].startswith("add"))
    frame = step(session, "stepIn", body["threadId"], targetId=wanted["id"])
    assert frame["name"].endswith("add"), frame
    go_on(session, program, body["threadId"], "steps")


def test_step_in_library_code_with_just_my_code(attached, any_python):
    """Thread.run is the library's: stepping in from there ends in our own code or after it."""
    program, session = attached(any_python, justMyCode=True)
    body, _ = stop_at(session, program, "cold_return", "new_thread")
    set_lines(session, program)
    frame = step(session, "stepOut", body["threadId"])
    assert frame["name"].endswith("cold")
    resume(session, body["threadId"])
    program.until("done new_thread")


def test_step_through_a_generator(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "generator", "generate")
    thread = body["threadId"]
    frame = step(session, "next", thread)
    assert frame["name"].endswith("numbers") and frame["line"] == program.line("generator") + 1
    frame = step(session, "stepOut", thread)
    assert frame["name"].endswith("generate"), frame
    go_on(session, program, thread, "generate")


def test_a_step_out_of_the_outermost_frame_lets_it_run(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "native", "native")
    set_lines(session, program)
    assert step(session, "stepOut", body["threadId"])["name"].endswith("callback")
    session.request("stepOut", {"threadId": body["threadId"]})
    program.until("done native")


# ---- pause and the gate ----

def test_pause(attached, python):
    """Threads in hot loops, in one line, in a call, asleep, and the main thread that waits for input."""
    program, session = attached(python, "hot", "one_line", "sleeper", "calls")
    thread = session.request("threads")["threads"][0]["id"]
    session.request("pause", {"threadId": thread})
    body = stopped(session, "pause")
    assert body["allThreadsStopped"] is True
    before = program.stands("hot", "one_line", "sleeper", "calls")
    threads = session.request("threads")["threads"]
    for one in threads:
        if any(word in one["name"] for word in ("hot", "one_line", "sleeper", "calls", "MainThread")):
            assert python_frames(stack(session, one["id"])), one
    # An evaluation that gives up the GIL lets nobody run.
    frame = top(session, body["threadId"])
    evaluate(session, "__import__('time').sleep(0.2)", frame)
    assert program.stands("hot", "one_line", "sleeper", "calls") == before
    resume(session, body["threadId"])
    for lane in ("hot", "one_line", "sleeper", "calls"):
        program.moves(lane)


def test_pause_while_all_wait_in_native_code(attached, python):
    program, session = attached(python)
    session.request("pause", {"threadId": 0})
    body = stopped(session, "pause")
    names = [frame["name"] for frame in python_frames(stack(session, body["threadId"]))]
    assert any(name.endswith("main") for name in names), names
    program.say("cold")
    time.sleep(0.1)
    resume(session, body["threadId"])
    program.until("done cold")


@pytest.mark.parametrize("thread", [0, 1, 2 ** 31 - 1, -1])
def test_pause_of_an_unknown_thread_pauses(attached, any_python, thread):
    program, session = attached(any_python, "hot")
    session.request("pause", {"threadId": thread})
    body = stopped(session, "pause")
    program.stands("hot")
    resume(session, body["threadId"])
    program.moves("hot")


def test_pause_again_and_again(attached, python):
    program, session = attached(python, "hot", "one_line", "sleeper")
    for _ in range(10):
        session.request("pause", {"threadId": 0})
        body = stopped(session, "pause")
        resume(session, body["threadId"])
        program.moves("hot")
    program.moves("sleeper")


def test_all_stand_at_a_breakpoint(attached, python):
    program, session = attached(python, "hot", "one_line", "sleeper")
    body, _ = stop_at(session, program, "cold", "cold")
    assert body["allThreadsStopped"] is True
    program.stands("hot", "one_line", "sleeper")
    go_on(session, program, body["threadId"], "cold")
    program.moves("hot")
    program.moves("one_line")
    program.moves("sleeper")


def test_thread_events(attached, python):
    """A birth is told once, at the stop; an end, too, while the program runs."""
    program, session = attached(python)
    program.run("new_thread")
    body, _ = stop_at(session, program, "cold", "new_thread")

    def told(reason):
        return lambda event: event["threadId"] == body["threadId"] and event["reason"] == reason

    session.event("thread", told("started"))
    names = {one["id"]: one["name"] for one in session.request("threads")["threads"]}
    assert "late thread" in names[body["threadId"]]
    set_lines(session, program)
    resume(session, body["threadId"])
    program.until("done new_thread")
    session.event("thread", told("exited"))
    assert len(session.seen("thread", told("started"))) == len(session.seen("thread", told("exited"))) == 1


# ---- goto ----

def test_goto(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "jump_third", "jumps")
    thread = body["threadId"]
    before = local_variables(session, frame)["a"]["value"]
    assert before == "2"
    targets = session.request("gotoTargets", {"source": program.source(), "line": program.line("jump_second")})["targets"]
    assert targets[0]["line"] == program.line("jump_second")
    set_lines(session, program, "jump_return")
    session.request("goto", {"threadId": thread, "targetId": targets[0]["id"]})
    stopped(session, "goto")
    assert top(session, thread)["line"] == program.line("jump_second")
    resume(session, thread)
    stopped(session, "breakpoint")
    assert local_variables(session, top(session, thread))["a"]["value"] == "4"
    go_on(session, program, thread, "jumps")


def test_goto_where_it_cannot_go(attached, any_python):
    program, session = attached(any_python)
    body, _ = stop_at(session, program, "jump_third", "jumps")
    try:
        targets = session.request("gotoTargets", {"source": program.source(), "line": program.line("cold")})["targets"]
        if targets:
            session.refused("goto", {"threadId": body["threadId"], "targetId": targets[0]["id"]})
    except Failed:
        pass
    assert top(session, body["threadId"])["line"] == program.line("jump_third")
    go_on(session, program, body["threadId"], "jumps")


def test_requests_that_need_a_stop(attached, any_python):
    program, session = attached(any_python, "hot")
    for command, arguments in [("scopes", {"frameId": 1}), ("next", {"threadId": program.pid}),
                               ("stepIn", {"threadId": program.pid}), ("stepOut", {"threadId": program.pid}),
                               ("stepInTargets", {"frameId": 1}), ("goto", {"threadId": program.pid, "targetId": 1})]:
        session.refused(command, arguments)
    program.moves("hot")


def test_old_handles_are_errors(attached, any_python):
    program, session = attached(any_python)
    body, frame = stop_at(session, program, "cold", "cold")
    reference = session.request("scopes", {"frameId": frame["id"]})["scopes"][0]["variablesReference"]
    resume(session, body["threadId"])
    stopped(session)
    session.refused("variables", {"variablesReference": reference})
    session.refused("scopes", {"frameId": frame["id"]})
    go_on(session, program, body["threadId"], "cold")


# ---- one thread steps, the others are held ----

WAITS = """import threading
asked, given = threading.Event(), threading.Event()
def other():
    asked.wait()
    given.set()
def wait():
    asked.set()
    given.wait()
    return 1
thread = threading.Thread(target=other, name="the other")
thread.start()
wait()
thread.join()
print("all ended")
"""


def step_that_waits(launch, python, path, text):
    """(session, thread): it steps out of wait(), and is told that another thread, which it waits for, is held."""
    path.write_text(text)
    lines = {"source": {"path": str(path)}, "breakpoints": [{"line": 7}]}
    session, _ = launch(python, lambda one: one.request("setBreakpoints", lines), program=str(path), steppingResumesAllThreads=False)
    thread = stopped(session, "breakpoint")["threadId"]
    session.request("stepOut", {"threadId": thread})
    session.said("these threads are held meanwhile: the other")
    return session, thread


@pytest.mark.parametrize("how", ["continue", "pause"])
def test_a_step_that_waits_for_a_held_thread(launch, python, tmp_path, how):
    session, thread = step_that_waits(launch, python, tmp_path / "waits.py", WAITS)
    other = next(one["id"] for one in session.request("threads")["threads"] if one["name"].startswith("the other"))
    frame = next(one for one in python_frames(stack(session, other)) if one["name"].endswith("other"))
    assert session.request("scopes", {"frameId": frame["id"]})["scopes"]
    if how == "pause":
        session.request("pause", {"threadId": other})
        body = stopped(session, "pause")
        assert body["threadId"] == thread and not body.get("preserveFocusHint")
    resume(session, other)
    session.said("all ended")
    session.event("terminated")


def test_a_step_that_waits_for_a_thread_that_is_held_later(launch, any_python, tmp_path):
    """It is in native code when the step becomes long, and is held when that returns."""
    later = WAITS.replace("    asked.wait()\n", "    __import__('time').sleep(3)\n")
    session, thread = step_that_waits(launch, any_python, tmp_path / "later.py", later)
    resume(session, thread)
    session.said("all ended")
    session.event("terminated")


def test_frames_stay_good_when_a_native_call_returns(attached, any_python):
    """Paused in native code, which then returns into the gate: the frames are the same, and so are their ids."""
    program, session = attached(any_python)
    program.say("rests")
    program.until("resting")
    program.target.settle(only=True)
    session.request("pause", {"threadId": 0})
    thread = stopped(session, "pause")["threadId"]
    frames = python_frames(stack(session, thread))
    program.say("go on")

    def parked():
        try:
            return evaluate(session, "waits", frames[0])["result"] == "True"
        except Failed:  # it is still in read()
            return False

    wait_until(parked)
    for frame in frames:
        session.request("scopes", {"frameId": frame["id"]})
    assert [frame["id"] for frame in python_frames(stack(session, thread))] == [frame["id"] for frame in frames]
    assert len(session.seen("stopped")) == 1
    go_on(session, program, thread, "rests")
