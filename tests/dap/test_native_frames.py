"""Native frames in a client's stacks, and sessions that only look: by the server, as clients have them."""

import os
import re

import pytest

from debuggee import evaluate, local_variables, python_frames, resume, scope, set_lines, stack, stop_at, stopped, variables
from support import target as targets


def thread_of(session, name):
    return next(one for one in session.request("threads")["threads"] if one["name"].startswith(name))


def is_native(frame):
    return frame.get("presentationHint") == "subtle" and not (frame.get("source") or {}).get("path", "").endswith(".py") \
        and not (frame.get("source") or {}).get("sourceReference")


def test_a_thread_in_native_code(attached, python):
    program, session = attached(python, "sleeper")
    program.target.settle(only=True)
    session.request("pause", {"threadId": 0})
    stopped(session, "pause")
    main = thread_of(session, "MainThread")
    assert re.search(r"\[in native: .*read", main["name"]), main  # of its standard input
    frames = stack(session, main["id"])
    native = [frame for frame in frames if is_native(frame)]
    first = frames.index(python_frames(frames)[0])
    assert any("read" in frame["name"] for frame in frames[:first]) and all(is_native(frame) for frame in frames[:first])
    # What began the interpreter stands below all of Python.
    assert is_native(frames[-1]) and len(native) == len(frames) - len(python_frames(frames))
    for frame in native:
        assert session.request("scopes", {"frameId": frame["id"]})["scopes"] == []
    assert local_variables(session, python_frames(frames)[-1])
    resume(session, main["id"])


def test_a_parked_thread_shows_no_frame_of_ours(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "cold", "cold")
    frames = stack(session, body["threadId"])
    assert frames[0]["id"] == frame["id"], frames
    assert "native" not in thread_of(session, "MainThread")["name"]
    assert not [one for one in frames if re.search("prb_|libprobe|PyEval_EvalFrame", one["name"])], frames
    names = [one["name"] for one in python_frames(frames)]
    set_lines(session, program)
    resume(session, body["threadId"])
    program.until("done cold")
    assert names[0].endswith("cold_body") or names[0].endswith("cold")


def test_a_merged_stack_comes_in_pages(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "cold", "cold")
    thread = body["threadId"]
    whole = session.request("stackTrace", {"threadId": thread})
    count = whole["totalFrames"]
    assert count == len(whole["stackFrames"])
    paged = []
    for start in range(0, count, 2):
        page = session.request("stackTrace", {"threadId": thread, "startFrame": start, "levels": 2})
        assert page["totalFrames"] == count
        paged += [frame["name"] for frame in page["stackFrames"]]
    assert paged == [frame["name"] for frame in whole["stackFrames"]]


def test_native_frames_may_be_left_out(attached, any_python):
    program, session = attached(any_python, "sleeper", showNativeFrames=False)
    session.request("pause", {"threadId": 0})
    stopped(session, "pause")
    main = thread_of(session, "MainThread")
    assert main["name"] == "MainThread"
    frames = stack(session, main["id"])
    assert frames == python_frames(frames)


@pytest.fixture(params=["core", "snapshot"])
def looked_at(request, python, start, client, tmp_path):
    """A client on a file of tests/targets/looked_at.py, and its process id."""
    if python.root:
        pytest.skip("the files of another root")
    process = start(python, "looked_at.py").settle()
    path = str(tmp_path / "file")
    if request.param == "core":
        import shutil
        import subprocess

        if not shutil.which("gcore"):
            pytest.skip("no gcore here (package gdb)")
        subprocess.run(["gcore", "-o", path, str(process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path += ".{}".format(process.pid)
    else:
        targets.probing("-t", process.pid, "snapshot", path, "--locals", "--native")
    session = client()
    session.attach(**{request.param: path})
    return session, process.pid


def test_a_file_as_clients_see_it(looked_at):
    session, pid = looked_at
    body = stopped(session)
    assert body["threadId"] == pid and body["allThreadsStopped"] and str(pid) in body["description"]
    assert re.search(r"\[in native: .*(sleep|select)", thread_of(session, "sleeper")["name"])
    frame = next(one for one in stack(session, pid) if one["name"] == "stand")
    assert os.path.basename(frame["source"]["path"]) == "looked_at.py"
    rows = local_variables(session, frame)
    assert rows["argument"]["value"] == "'wait'" and rows["numbers"]["indexedVariables"] == 500
    page = variables(session, rows["numbers"]["variablesReference"], filter="indexed", start=10, count=2)
    assert [row["value"] for row in page] == ["10", "11"]
    assert scope(session, frame, "Globals")["expensive"]
    for context in ("hover", "watch", "repl", "clipboard", "variables"):
        assert evaluate(session, "model.layers[0][1]", frame, context)["result"] == "2"
    for command, arguments in [("continue", {"threadId": pid}), ("next", {"threadId": pid}), ("pause", {"threadId": pid}),
                               ("setVariable", {"variablesReference": 1, "name": "argument", "value": "1"})]:
        session.refused(command, arguments)
    answer = session.answer(session.send("setBreakpoints", {"source": {"path": "/x.py"}, "breakpoints": [{"line": 1}]}))
    assert not answer["success"] or not answer["body"]["breakpoints"][0]["verified"]
    session.disconnect()


def test_look_leaves_a_live_process_alone(start, client, any_python):
    process = start(any_python, "busy.py")
    session = client()
    session.attach(process.pid, look=True)
    session.request("pause", {"threadId": process.pid})
    body = stopped(session, "pause")
    assert "runs on" in body["description"]
    busy = thread_of(session, "busy")
    assert [frame["name"] for frame in python_frames(stack(session, busy["id"]))][-4] == "outer"
    with open("/proc/{}/maps".format(process.pid)) as maps:
        assert "libprobe" not in maps.read()
    resume(session, busy["id"])
    session.refused("stackTrace", {"threadId": busy["id"]})
    session.disconnect()
