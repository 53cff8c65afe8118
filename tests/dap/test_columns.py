"""Columns and lengths are UTF-16 units, from 0 where the client counts so; CPython counts bytes of UTF-8."""

import pytest

from debuggee import python_frames, stack, stop_at, stopped

PROGRAM = '''def inner(text):
    return text


def outer():
    return "\u00e4\u20ac\U0001f600", inner("x")


outer()
'''


@pytest.mark.parametrize("from_1", [True, False])
def test_columns_of_a_stack_and_of_targets(client, python, tmp_path, from_1):
    if python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    session = client()
    session.initialize(linesStartAt1=from_1, columnsStartAt1=from_1)
    launch = session.send("launch", {"program": str(path), "python": python.executable})
    session.ready(launch)
    session.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": [{"line": 1 + from_1}, {"line": 5 + from_1}]})
    session.request("configurationDone")
    session.wait(launch)
    wanted = PROGRAM.splitlines()[5].index("inner") + 1 + from_1  # the emoji are two units
    body = stopped(session, "breakpoint")
    frame = python_frames(stack(session, body["threadId"]))[0]
    assert frame["line"] == 5 + from_1
    targets = session.request("stepInTargets", {"frameId": frame["id"]})["targets"]
    assert [(one["label"], one["line"], one["column"]) for one in targets] == [("inner(...)", 5 + from_1, wanted)], targets
    session.request("continue", {"threadId": body["threadId"]})
    body = stopped(session, "breakpoint")
    caller = python_frames(stack(session, body["threadId"]))[1]
    assert caller["line"] == 5 + from_1
    if python.version >= (3, 11):  # PEP 657
        assert (caller["column"], caller["endColumn"]) == (wanted, wanted + len('inner("x")')), caller
    else:
        assert caller["column"] == int(from_1)
    session.disconnect(terminateDebuggee=True)


@pytest.mark.parametrize("from_1", [True, False])
def test_columns_of_completions(debuggee, client, any_python, from_1):
    program = debuggee(any_python)
    session = client()
    session.initialize(linesStartAt1=from_1, columnsStartAt1=from_1)
    session.attach(program.pid)
    if from_1:
        _, frame = stop_at(session, program, "cold", "cold")
    else:
        session.request("pause", {"threadId": 0})
        frame = python_frames(stack(session, stopped(session, "pause")["threadId"]))[0]
    text = "'\U0001f600', threading.Thre"
    units = len(text) + 1  # the emoji is two
    targets = session.request("completions", {"frameId": frame["id"], "text": text + " and more", "column": units + from_1})["targets"]
    thread = next(one for one in targets if one["label"].startswith("Thread"))
    assert (thread["start"], thread["length"]) == (units - len("Thre") + from_1, len("Thre")), thread
