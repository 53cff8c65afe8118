"""Every request and every event of an attached session on every CPython found: one walk through a program, in one session.

What each of them does in detail is in the file of its concern, which may run on fewer interpreters (conftest.py).
"""

import base64

import protocol
from debuggee import evaluate, local_variables, resume, scope, set_lines, stack, stop_at, stopped, top, variables
from test_session import NOT_OURS

# launch and runInTerminal: test_launching.py, which runs on every CPython, too; startDebugging: the tests of jobs.
ELSEWHERE = {"launch", "startDebugging"}
EVENTS = {"initialized", "process", "capabilities", "stopped", "thread", "output", "breakpoint", "invalidated", "memory",
          "progressStart", "progressEnd", "terminated"}


def all_requests():
    """The commands that the protocol has, but for those that are answered with an error."""
    kinds = [definition["properties"]["command"] for name, definition in protocol.DEFINITIONS.items() if name.endswith("Request")]
    return {one["enum"][0] for one in kinds if "enum" in one} - set(NOT_OURS) - ELSEWHERE


class Walk:
    def __init__(self, program, session):
        self.program, self.session = program, session
        self.used = set()
        send = session.send

        def noted(command, *arguments, **more):
            self.used.add(command)
            return send(command, *arguments, **more)

        session.send = noted

    def at(self, mark, command):
        body, frame = stop_at(self.session, self.program, mark, command)
        self.thread = body["threadId"]
        return frame

    def step(self, how, reason="step", **more):
        self.session.request(how, dict({"threadId": self.thread}, **more))
        stopped(self.session, reason)
        return top(self.session, self.thread)

    def leave(self, command):
        set_lines(self.session, self.program)
        resume(self.session, self.thread)
        self.program.until("done " + command)


def use_breakpoints(walk):
    program, session = walk.program, walk.session
    lines = session.request("breakpointLocations", {"source": program.source(), "line": program.line("cold")})["breakpoints"]
    assert program.line("cold") in [one["line"] for one in lines]
    point, = set_lines(session, program, "late", name="debugged_late.py")
    assert point["verified"]
    program.say("late")
    assert session.event("breakpoint")["breakpoint"]["id"] == point["id"]
    thread = stopped(session, "breakpoint")["threadId"]
    set_lines(session, program, name="debugged_late.py")
    resume(session, thread)
    program.until("done late")
    assert session.request("setFunctionBreakpoints", {"breakpoints": [{"name": "double"}]})["breakpoints"][0]["verified"]
    program.say("steps")
    walk.thread = stopped(session, "function breakpoint")["threadId"]
    session.request("setFunctionBreakpoints", {"breakpoints": []})
    walk.leave("steps")
    session.request("setExceptionBreakpoints", {"filters": ["raised"]})
    program.say("caught")
    walk.thread = stopped(session, "exception")["threadId"]
    assert session.request("exceptionInfo", {"threadId": walk.thread})["exceptionId"].endswith("ValueError")
    session.request("setExceptionBreakpoints", {"filters": []})
    walk.leave("caught")


def use_steps(walk):
    program, session = walk.program, walk.session
    frame = walk.at("step_b", "steps")
    assert walk.step("stepIn")["name"].endswith("double")
    assert walk.step("stepOut")["name"].endswith("steps")
    while frame["line"] != program.line("step_c"):
        frame = walk.step("next")
    targets = session.request("stepInTargets", {"frameId": frame["id"]})["targets"]
    add = next(target for target in targets if target["label"].startswith("add"))
    assert walk.step("stepIn", targetId=add["id"])["name"].endswith("add")
    walk.leave("steps")
    walk.at("jump_third", "jumps")
    targets = session.request("gotoTargets", {"source": program.source(), "line": program.line("jump_second")})["targets"]
    assert walk.step("goto", "goto", targetId=targets[0]["id"])["line"] == program.line("jump_second")
    walk.leave("jumps")
    frame = walk.at("cold", "new_thread")
    session.event("thread", lambda event: event["threadId"] == walk.thread and event["reason"] == "started")
    walk.leave("new_thread")
    session.event("thread", lambda event: event["threadId"] == walk.thread and event["reason"] == "exited")
    session.request("pause", {"threadId": 0})
    walk.thread = stopped(session, "pause")["threadId"]
    assert program.pid in [one["id"] for one in session.request("threads")["threads"]] or program.python.container
    resume(session, walk.thread)


def use_values(walk):
    session = walk.session
    frame = walk.at("values", "values")
    rows = local_variables(session, frame)
    assert variables(session, rows["point"]["variablesReference"])
    place = scope(session, frame)["variablesReference"]
    assert session.request("setVariable", {"variablesReference": place, "name": "integer", "value": "40 + 3"})["value"] == "43"
    session.event("invalidated")
    assert session.request("setExpression", {"expression": "point.y", "value": "9", "frameId": frame["id"]})["value"] == "9"
    assert evaluate(session, "integer, point.y", frame, "repl")["result"] == "(43, 9)"
    told = session.request("completions", {"text": "long_l", "column": 7, "frameId": frame["id"]})["targets"]
    assert "long_list" in [one["label"] for one in told]
    memory = rows["array"]["memoryReference"]
    session.request("writeMemory", {"memoryReference": memory, "offset": 1, "data": base64.b64encode(b"zz").decode()})
    assert session.event("memory")["memoryReference"] == memory
    told = session.request("readMemory", {"memoryReference": memory, "offset": 0, "count": 4})
    assert base64.b64decode(told["data"]) == b"\0zz\3"
    slow = session.send("evaluate", {"expression": "[0 for _ in iter(int, 1)]", "frameId": frame["id"], "context": "repl"})
    begun = session.event("progressStart")
    session.request("cancel", {"requestId": slow})
    assert session.answer(slow)["message"] == "cancelled"
    session.event("progressEnd", lambda event: event["progressId"] == begun["progressId"])
    walk.leave("values")


def use_code(walk):
    program, session = walk.program, walk.session
    frame = walk.at("cold", "executed")
    made = next(one for one in stack(session, walk.thread) if (one.get("source") or {}).get("name") == "<made>")["source"]
    assert "cold_body(x)" in session.request("source", {"source": made, "sourceReference": made["sourceReference"]})["content"]
    code = frame.get("instructionPointerReference") or evaluate(session, "cold_body", frame)["memoryReference"]
    assert len(session.request("disassemble", {"memoryReference": code, "instructionCount": 5})["instructions"]) == 5
    assert "__main__" in [one["name"] for one in session.request("modules", {})["modules"]]
    assert program.path in [one.get("path") for one in session.request("loadedSources")["sources"]]
    box = evaluate(session, "box", frame)["variablesReference"]
    shown = [row["name"] for row in variables(session, box)]
    told = session.request("dataBreakpointInfo", {"variablesReference": box, "name": next(name for name in shown if "x" in name)})
    assert session.request("setDataBreakpoints", {"breakpoints": [{"dataId": told["dataId"], "accessType": "write"}]})
    walk.leave("executed")
    program.say("watched")
    walk.thread = stopped(session, "data breakpoint")["threadId"]
    session.request("setDataBreakpoints", {"breakpoints": []})
    walk.leave("watched")


def test_every_request_and_event(debuggee, client, python):
    program, session = debuggee(python), client()
    walk = Walk(program, session)
    session.attach(program.pid, redirectOutput=True, allowWriteMemory=True)
    use_breakpoints(walk)
    use_steps(walk)
    use_values(walk)
    use_code(walk)
    program.run("prints")
    session.event("output", lambda body: "to standard output" in body["output"])
    session.request("terminate", {})
    session.event("terminated")
    session.disconnect()
    program.run("cold")
    assert all_requests() - walk.used == set()
    assert EVENTS - {event["event"] for event in session.events} == set()
