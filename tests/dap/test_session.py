"""A session from its begin to its end: order, capabilities, refusals, disconnect in each of its forms, a second client."""

import os
import shlex
import signal
import subprocess
import time

import pytest

from client import CLIENT, Failed, Stdio
from debuggee import evaluate, go_on, marks, python_frames, resume, set_lines, stack, stop_at, stopped, top
from hard import wait_until
from target import PROBING, die_with_parent

CAPABILITIES = [
    "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints", "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints", "supportsEvaluateForHovers", "supportsSetVariable", "supportsSetExpression",
    "supportsGotoTargetsRequest", "supportsStepInTargetsRequest", "supportsCompletionsRequest", "supportsModulesRequest",
    "supportsExceptionInfoRequest", "supportTerminateDebuggee",
    "supportsDelayedStackTraceLoading", "supportsLoadedSourcesRequest", "supportsLogPoints", "supportsTerminateRequest",
    "supportsDataBreakpoints", "supportsReadMemoryRequest", "supportsDisassembleRequest", "supportsCancelRequest",
    "supportsBreakpointLocationsRequest", "supportsClipboardContext", "supportsExceptionFilterOptions",
    "supportsValueFormattingOptions",
]
# What VS Code or another client may send though nothing announces it.
NOT_OURS = ["stepBack", "reverseContinue", "restartFrame", "restart", "terminateThreads", "locations",
            "setInstructionBreakpoints", "noSuchRequest", "runInTerminal"]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_initialize(client):
    session = client()
    told = session.initialize()
    missing = [name for name in CAPABILITIES if not told.get(name)]
    assert not missing, missing
    filters = {one["filter"]: one for one in told["exceptionBreakpointFilters"]}
    assert {"raised", "uncaught", "userUnhandled"} <= set(filters)
    assert all(one.get("supportsCondition") for one in filters.values())
    assert "." in told["completionTriggerCharacters"]
    assert not told.get("supportsStepBack") and not told.get("supportsRestartFrame")


def test_initialized_comes_after_the_answer_to_initialize(debuggee, client, any_python):
    session = client()
    session.attach(debuggee(any_python).pid)
    names = [message.get("event") or message.get("command") for message in session.log]
    assert names.index("initialize") < names.index("initialized") < names.index("configurationDone")


def test_a_second_initialize_is_refused(client):
    session = client()
    session.initialize()
    session.refused("initialize", CLIENT)


def test_requests_before_initialize_are_refused(client):
    session = client()
    session.refused("threads")
    session.initialize()
    session.refused("stackTrace", {"threadId": 1})
    session.refused("setBreakpoints", {"source": {"path": "/x.py"}, "breakpoints": []})


@pytest.mark.parametrize("command", NOT_OURS)
def test_what_we_do_not_have_is_answered(client, command):
    session = client()
    session.initialize()
    session.refused(command, {}, check=False)


def test_attach_without_a_process(client):
    session = client()
    session.initialize()
    session.refused("attach", {})


def test_attach_to_what_is_not_there(client):
    session = client()
    session.initialize()
    with pytest.raises(Failed) as failed:
        session.ready(session.send("attach", {"processId": 2 ** 22 + 5}))
    assert str(2 ** 22 + 5) in failed.value.message


def test_null_arguments(attached, any_python):
    """Helix sends them."""
    _, session = attached(any_python)
    assert session.wait(session.send("threads", null=True, check=False))["threads"]


@pytest.mark.parametrize("arguments", [{"subProcess": True, "justMyCode": False, "redirectOutput": True, "pathMappings": [],
                                        "showReturnValue": True, "debugOptions": ["RedirectOutput"], "rules": [],
                                        "clientOS": "unix", "name": "Attach", "type": "debugpy", "request": "attach",
                                        "__sessionId": "x", "unknownToUs": {"a": [1]}}])
def test_debugpy_arguments(attached, any_python, arguments):
    program, session = attached(any_python, **arguments)
    body, _ = stop_at(session, program, "cold", "cold")
    go_on(session, program, body["threadId"], "cold")


def test_process_event(attached, python):
    program, session = attached(python)
    body = session.event("process")
    assert body["systemProcessId"] == program.pid and body["startMethod"] == "attach"


def test_threads_while_it_runs(attached, python):
    program, session = attached(python, "hot", "sleeper")
    threads = session.request("threads")["threads"]
    names = " ".join(thread["name"] for thread in threads)
    assert len({thread["id"] for thread in threads}) == len(threads) >= 3
    assert "MainThread" in names and "hot" in names and "sleeper" in names
    if not python.container:
        assert program.pid in {thread["id"] for thread in threads}
    program.moves("hot")


def test_path_mappings(debuggee, client, any_python, tmp_path):
    program = debuggee(any_python)
    session = client()
    session.attach(program.pid, pathMappings=[{"localRoot": str(tmp_path), "remoteRoot": program.folder}])
    mapped = {"path": str(tmp_path / "debugged.py")}
    answer = session.request("setBreakpoints", {"source": mapped, "breakpoints": [{"line": marks()["cold"]}]})
    assert answer["breakpoints"][0]["verified"], answer
    program.say("cold")
    body = stopped(session, "breakpoint")
    assert top(session, body["threadId"])["source"]["path"] == mapped["path"]
    session.request("setBreakpoints", {"source": mapped, "breakpoints": []})
    resume(session, body["threadId"])
    program.until("done cold")


def test_lines_from_0(debuggee, client, any_python):
    program = debuggee(any_python)
    session = client()
    session.initialize(linesStartAt1=False, columnsStartAt1=False)
    session.attach(program.pid)
    wanted = program.line("cold") - 1
    answer = session.request("setBreakpoints", {"source": program.source(), "breakpoints": [{"line": wanted}]})
    assert answer["breakpoints"][0]["line"] == wanted
    program.say("cold")
    body = stopped(session)
    frame = top(session, body["threadId"])
    assert frame["line"] == wanted and frame["column"] >= 0
    go_on(session, program, body["threadId"], "cold")


# ---- the end ----

@pytest.mark.parametrize("where", ["running", "stopped"])
def test_disconnect_leaves_it_running(attached, python, where):
    program, session = attached(python, "hot")
    if where == "stopped":
        stop_at(session, program, "cold", "cold")
        program.stands("hot")
    else:
        set_lines(session, program, "cold")
        program.say("cold")
        stopped(session)
    session.disconnect(terminateDebuggee=False)
    program.until("done cold")
    program.moves("hot")
    program.run("cold")  # and the breakpoint is no more
    assert session.close() == 0


def test_disconnect_from_a_running_one(attached, python):
    program, session = attached(python, "hot")
    session.disconnect()
    program.moves("hot")
    program.run("steps")


def test_disconnect_that_ends_it(attached, any_python):
    program, session = attached(any_python)
    session.disconnect(terminateDebuggee=True)
    wait_until(lambda: program.target.child.poll() is not None)


def test_terminate(attached, any_python):
    program, session = attached(any_python, onTerminate="SIGTERM")
    session.request("terminate", {})
    session.event("exited")
    session.event("terminated")
    wait_until(lambda: program.target.child.poll() is not None)


def test_terminate_leaves_what_was_attached_to(attached, any_python):
    """And so does dape's way of closing: terminate, and disconnect with terminateDebuggee when the session has ended."""
    program, session = attached(any_python, "hot")
    stop_at(session, program, "cold", "cold")
    session.request("terminate", {})
    session.event("terminated")
    program.until("done cold")
    program.moves("hot")
    session.disconnect(terminateDebuggee=True)
    program.run("cold")


def test_terminate_after_attach_only_detaches(attached, any_python):
    """Clients send it when their user leaves: a training job must survive that."""
    program, session = attached(any_python, "hot")
    session.request("terminate", {})
    session.event("terminated")
    session.request("terminate", {})
    program.moves("hot")


def test_the_program_ends_by_itself(attached, python):
    program, session = attached(python)
    program.say("end")
    session.event("terminated")
    names = [event["event"] for event in session.events]
    assert names.index("exited") < names.index("terminated")


def test_the_program_is_killed_while_stopped(attached, any_python):
    program, session = attached(any_python)
    body, _ = stop_at(session, program, "cold", "cold")
    program.target.child.kill()
    session.event("terminated")
    session.refused("stackTrace", {"threadId": body["threadId"]})
    session.disconnect()


def test_requests_after_disconnect(attached, any_python):
    _, session = attached(any_python)
    session.disconnect()
    session.wait_end()
    assert not session.pending


def test_a_second_client_is_told(attached, client, any_python):
    program, session = attached(any_python)
    other = client()
    other.initialize()
    with pytest.raises(Failed) as failed:
        other.ready(other.send("attach", {"processId": program.pid}))
    assert "debug" in failed.value.message
    other.close()
    body, _ = stop_at(session, program, "cold", "cold")
    go_on(session, program, body["threadId"], "cold")


def test_attach_again_and_again(debuggee, client, python):
    program = debuggee(python, "hot")
    for _ in range(3):
        session = client()
        session.attach(program.pid)
        body, _ = stop_at(session, program, "cold", "cold")
        session.disconnect()
        program.until("done cold")
        session.close()
        program.moves("hot")


@pytest.mark.parametrize("state", ["begun", "initialized", "configured", "stopped", "evaluating"])
def test_a_client_that_dies(debuggee, client, any_python, state):
    program = debuggee(any_python, "hot")
    session = client()
    if state != "begun":
        session.initialize()
        if state == "initialized":
            session.ready(session.send("attach", {"processId": program.pid}))
        else:
            session.attach(program.pid)
    if state in ("stopped", "evaluating"):
        _, frame = stop_at(session, program, "cold", "cold")
        if state == "evaluating":
            session.send("evaluate", {"expression": "__import__('time').sleep(0.3)", "frameId": frame["id"]})
    session.kill()
    if state in ("stopped", "evaluating"):
        program.until("done cold", 10)
    program.moves("hot", 10)
    program.run("cold", 10)


def test_a_client_that_hangs_up(attached, any_python):
    """The window is closed: no disconnect, only the end of the stream."""
    program, session = attached(any_python, "hot")
    stop_at(session, program, "cold", "cold")
    session.transport.hang_up()
    session.wait_end()
    program.until("done cold", 10)
    program.moves("hot", 10)


# ---- launch, cancel ----

def test_launch(client, any_python, folders, tmp_path):
    program = os.path.join(folders(any_python)[1], "debugged.py")
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    session = client()
    session.initialize()
    launch = session.send("launch", {"program": program, "python": any_python.executable, "cwd": str(tmp_path), "args": []})
    session.ready(launch)
    answer = session.request("setBreakpoints", {"source": {"path": program}, "breakpoints": [
        {"line": marks()["step_a"]}]})
    assert len(answer["breakpoints"]) == 1
    session.request("configurationDone")
    session.wait(launch)
    body = session.event("process")
    assert body["startMethod"] == "launch" and alive(body["systemProcessId"])
    session.event("output", lambda output: "ready" in output["output"])
    session.disconnect(terminateDebuggee=True)
    wait_until(lambda: not alive(body["systemProcessId"]))


def test_launch_stops_on_entry(client, any_python, tmp_path):
    """At the first line of the program, with no frame but its own."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "short.py"
    path.write_text("x = 1\nprint('the end')\n")
    session = client()
    session.initialize()
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "stopOnEntry": True})
    session.ready(launch)
    session.request("configurationDone")
    session.wait(launch)
    body = session.event("stopped")
    frames = session.request("stackTrace", {"threadId": body["threadId"]})["stackFrames"]
    shown = [(frame["source"]["path"], frame["line"]) for frame in python_frames(frames)]
    assert body["reason"] == "entry" and shown == [(str(path), 1)], (body, frames)
    session.request("next", {"threadId": body["threadId"]})
    assert session.event("stopped")["reason"] == "step"
    session.request("continue", {"threadId": body["threadId"]})
    session.event("output", lambda output: "the end" in output["output"])
    session.event("terminated")


def test_launch_in_a_terminal(client, any_python, tmp_path):
    """The client's terminal runs what runInTerminal says, through a shell; its output stays there."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "it's a program.py"
    path.write_text("import os, sys\nname = os.environ['NAME']\nprint(sys.argv[1:], name, os.getcwd())\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "integratedTerminal",
                                     "cwd": str(tmp_path), "args": ["a b", "$HOME"], "env": {"NAME": "of env"}})
    request = session.reverse_request("runInTerminal")
    wanted = request["arguments"]
    assert wanted["kind"] == "integrated" and wanted["cwd"] == str(tmp_path) and wanted["env"] == {"NAME": "of env"}
    assert not any("\n" in word for word in wanted["args"]), wanted["args"]
    terminal = subprocess.Popen(["sh", "-c", " ".join(map(shlex.quote, wanted["args"]))], cwd=wanted["cwd"],
                                env=dict(os.environ, **wanted["env"]), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                preexec_fn=die_with_parent)
    try:
        session.reply(request, {"shellProcessId": terminal.pid})
        session.ready(launch)
        session.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": [{"line": 3}]})
        session.request("configurationDone")
        session.wait(launch)
        body = stopped(session, "breakpoint")
        frames = python_frames(stack(session, body["threadId"]))
        assert [(frame["line"], frame["name"]) for frame in frames] == [(3, "<module>")], frames
        assert evaluate(session, "name", frames[0])["result"] == "'of env'"
        resume(session, body["threadId"])
        session.event("terminated")
        assert terminal.wait(20) == 0
        assert terminal.stdout.read().decode() == "['a b', '$HOME'] of env {}\n".format(tmp_path)
        assert not session.seen("output", lambda output: output.get("category") in ("stdout", "stderr"))
    finally:
        terminal.kill()
        terminal.wait()
        terminal.stdout.close()


def test_a_terminal_that_is_refused(client, any_python, tmp_path):
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "program.py"
    path.write_text("pass\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "externalTerminal"})
    request = session.reverse_request("runInTerminal")
    assert request["arguments"]["kind"] == "external"
    session.reply(request, success=False)
    answer = session.answer(launch)
    assert answer["success"] is False and "runInTerminal" in answer["message"], answer


def test_launch_of_nothing(client):
    session = client()
    session.initialize()
    with pytest.raises(Failed):
        session.ready(session.send("launch", {"program": "/no/such/program.py"}))


def test_cancel(attached, any_python):
    program, session = attached(any_python)
    body, frame = stop_at(session, program, "cold", "cold")
    began = time.monotonic()
    seq = session.send("evaluate", {"expression": "any(x for x in iter(int, 1))", "frameId": frame["id"],
                                    "context": "repl"})
    session.request("cancel", {"requestId": seq})
    answer = session.answer(seq)
    assert answer["success"] is False and answer["message"] == "cancelled", answer
    assert time.monotonic() - began < 10
    assert stack(session, body["threadId"])


def test_cancel_of_what_waits(attached, any_python):
    program, session = attached(any_python)
    _, frame = stop_at(session, program, "cold", "cold")
    slow = session.send("evaluate", {"expression": "__import__('time').sleep(0.5)", "frameId": frame["id"]})
    waiting = session.send("evaluate", {"expression": "1", "frameId": frame["id"]})
    session.request("cancel", {"requestId": waiting})
    answer = session.answer(waiting)
    assert answer["success"] is False and answer["message"] == "cancelled"
    session.wait(slow)


def test_cancel_of_nothing(client):
    session = client()
    session.initialize()
    session.request("cancel", {"requestId": 4711})
    session.request("cancel", {})


def test_a_stuck_repr_does_not_hang_the_session(attached, any_python):
    program, session = attached(any_python)
    body, frame = stop_at(session, program, "slow", "slow_value")
    seq = session.send("evaluate", {"expression": "repr(slow_one)", "frameId": frame["id"], "context": "watch"})
    time.sleep(0.2)
    session.request("cancel", {"requestId": seq}, seconds=5)
    assert session.answer(seq, 15)["success"] is False
    assert session.request("threads", seconds=5)["threads"]
    assert session.request("evaluate", {"expression": "1 + 1", "frameId": frame["id"]}, seconds=10)["result"] == "2"
    go_on(session, program, body["threadId"], "slow_value")


def test_fork_drops_the_session_in_the_child(attached, python):
    program, session = attached(python)
    set_lines(session, program, "cold")
    assert "child 7" in program.run("forks")
    assert not session.seen("stopped")


def test_a_stopped_program_can_be_interrupted_from_outside(attached, any_python):
    program, session = attached(any_python)
    stop_at(session, program, "cold", "cold")
    os.kill(program.pid, signal.SIGTERM)
    session.event("terminated")


def test_stdio_ends_with_its_input():
    adapter = Stdio(PROBING, "dap")
    assert adapter.close() == 0
    assert not adapter.errors
