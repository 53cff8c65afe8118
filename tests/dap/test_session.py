"""A session from its begin to its end: order, capabilities, refusals, disconnect in each of its forms, a second client."""

import os
import shutil
import signal

import pytest

from client import CLIENT, Failed, Socket, Stdio, framed
from debuggee import go_on, marks, resume, set_lines, stop_at, stopped, top
from support.injection import wait_until
from support.target import DEADLINE, PROBING, TARGETS, probing

CAPABILITIES = [
    "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints", "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints", "supportsEvaluateForHovers", "supportsSetVariable", "supportsSetExpression",
    "supportsGotoTargetsRequest", "supportsStepInTargetsRequest", "supportsCompletionsRequest", "supportsModulesRequest",
    "supportsExceptionInfoRequest", "supportTerminateDebuggee",
    "supportsDelayedStackTraceLoading", "supportsLoadedSourcesRequest", "supportsLogPoints", "supportsTerminateRequest",
    "supportsDataBreakpoints", "supportsReadMemoryRequest", "supportsDisassembleRequest", "supportsCancelRequest",
    "supportsBreakpointLocationsRequest", "supportsClipboardContext", "supportsExceptionFilterOptions", "supportsExceptionOptions",
    "supportsValueFormattingOptions",
]
# What VS Code or another client may send though nothing announces it.
NOT_OURS = ["stepBack", "reverseContinue", "restartFrame", "restart", "terminateThreads", "locations",
            "setInstructionBreakpoints", "noSuchRequest", "runInTerminal"]


def copied(folder):
    for name in ("debugged.py", "debugged_late.py"):
        shutil.copy(os.path.join(TARGETS, name), str(folder))
    return folder


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


def test_files_outside_the_mappings(debuggee, client, any_python, tmp_path):
    """The client is on another machine when a local root is not here: what no mapping covers comes as text."""
    program = debuggee(any_python)
    for local, elsewhere in ((str(tmp_path), False), ("/no/such/folder", True)):
        session = client()
        session.attach(program.pid, pathMappings=[{"localRoot": local, "remoteRoot": "/not/the/program"}])
        body, frame = stop_at(session, program, "cold", "cold")
        reference = frame["source"].get("sourceReference", 0)
        assert frame["source"]["path"] == program.path and bool(reference) == elsewhere
        if elsewhere:
            with open(program.path, encoding="utf-8") as file:
                assert session.request("source", {"sourceReference": reference, "source": frame["source"]})["content"] == file.read()
            answer = session.request("setBreakpoints", {"source": frame["source"], "breakpoints": [{"line": program.line("cold_next")}]})
            assert answer["breakpoints"][0]["verified"]
            resume(session, body["threadId"])
            stopped(session, "breakpoint")
        session.disconnect()
        session.close()
        program.until("done cold")


@pytest.mark.parametrize("arguments", [{"subProcess": True, "justMyCode": False, "redirectOutput": True, "pathMappings": [],
                                        "showReturnValue": True, "debugOptions": ["RedirectOutput"], "rules": [],
                                        "clientOS": "unix", "name": "Attach", "type": "debugpy", "request": "attach",
                                        "__sessionId": "x", "unknownToUs": {"a": [1]}}])
def test_debugpy_arguments(attached, any_python, arguments):
    program, session = attached(any_python, **arguments)
    body, _ = stop_at(session, program, "cold", "cold")
    go_on(session, program, body["threadId"], "cold")


def test_attach_by_name(debuggee, client, any_python, tmp_path):
    """processName: a part of the command line; what is not one process is refused."""
    if any_python.root:
        pytest.skip("another root does not see the folder")
    program = debuggee(any_python, folder=str(copied(tmp_path)))
    session = client()
    session.attach(processName=str(tmp_path))
    assert session.event("process")["systemProcessId"] == program.pid
    other = client()
    other.initialize()
    other.refused("attach", {"processName": "no such program " + str(tmp_path)})


def test_stop_on_entry(attached, any_python):
    program, session = attached(any_python, "hot", stopOnEntry=True)
    body = stopped(session)
    assert body["reason"] in ("entry", "pause"), body
    program.stands("hot")
    resume(session, body["threadId"])
    program.moves("hot")


def test_ranks_become_sessions(debuggee, client, any_python):
    """`ranks`: the other processes of its job on this machine, by RANK of their environment."""
    ranks = [debuggee(any_python, "hot", variables={"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}) for rank in range(2)]
    session = client()
    session.attach(ranks[0].pid, ranks=True)
    asked = session.reverse_request("startDebugging")
    session.reply(asked)
    configuration = asked["arguments"]["configuration"]
    assert asked["arguments"]["request"] == "attach" and configuration["processId"] == ranks[1].pid, configuration
    other = client()
    other.attach(**configuration)
    body, _ = stop_at(other, ranks[1], "cold", "cold")
    go_on(other, ranks[1], body["threadId"], "cold")
    assert not [one for one in other.requests if one["command"] == "startDebugging"]


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


def test_disconnect_that_ends_it(attached, python):
    program, session = attached(python)
    session.disconnect(terminateDebuggee=True)
    wait_until(lambda: program.target.child.poll() is not None)


def test_terminate(attached, python):
    program, session = attached(python, onTerminate="SIGTERM")
    session.request("terminate", {})
    session.event("exited")
    session.event("terminated")
    wait_until(lambda: program.target.child.poll() is not None)


def test_terminate_leaves_what_was_attached_to(attached, python):
    """And so does dape's way of closing: terminate, and disconnect with terminateDebuggee when the session has ended."""
    program, session = attached(python, "hot")
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


def test_the_program_is_killed_while_stopped(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "cold", "cold")
    program.target.child.kill()
    session.event("terminated")
    session.refused("stackTrace", {"threadId": body["threadId"]})
    session.disconnect()


def test_requests_after_disconnect(attached, any_python):
    """Those that were on their way are answered or not, but nothing comes but answers, and the adapter ends."""
    program, session = attached(any_python, "hot")
    sent = [("disconnect", {}), ("threads", None), ("evaluate", {"expression": "1"}), ("disconnect", {})]
    text = b""
    for command, arguments in sent:
        session.seq += 1
        session.pending[session.seq] = command
        text += framed(dict({"seq": session.seq, "type": "request", "command": command}, **({"arguments": arguments} if arguments else {})))
    first = session.seq - len(sent) + 1
    session.transport.write(text)
    session.wait_end()
    answers = [session.answers[seq] for seq in range(first, session.seq + 1) if seq in session.answers]
    assert {answer["command"] for answer in answers if answer["success"]} == {"disconnect"}, answers
    program.moves("hot")


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
        program.until("done cold")
    program.moves("hot")
    program.run("cold")


def test_a_client_that_hangs_up(attached, any_python):
    """The window is closed: no disconnect, only the end of the stream."""
    program, session = attached(any_python, "hot")
    stop_at(session, program, "cold", "cold")
    session.transport.hang_up()
    session.wait_end()
    program.until("done cold")
    program.moves("hot")


@pytest.mark.parametrize("how", ["a Unix socket", "TCP", "stdio"])
def test_a_client_that_only_listens_any_more(debuggee, client, serve, any_python, tmp_path, how):
    """It shut down its sending side: what it asked is answered all the same."""
    program = debuggee(any_python, "hot")
    if how == "stdio":
        session = client()
    else:
        server = serve(program, "--listen", **({} if how == "TCP" else {"address": str(tmp_path / "socket")}))
        session = client(Socket(server.address))
    session.attach(program.pid)
    stop_at(session, program, "cold", "cold")
    asked = [session.send("evaluate", {"expression": str(n)}) for n in range(8)]  # it has 2 s for all of them
    session.transport.hang_up()
    assert [session.wait(one)["result"] for one in asked] == [str(n) for n in range(8)]
    session.wait_end()
    program.until("done cold")
    program.moves("hot")


def test_a_target_that_was_stopped_by_a_signal(attached, any_python):
    """It cannot answer: that is told, and the client may leave."""
    program, session = attached(any_python, "hot")
    program.moves("hot")
    os.kill(program.pid, signal.SIGSTOP)
    try:
        waiting = session.send("evaluate", {"expression": "1 + 1"})
        assert "is stopped" in session.refused("threads")
        assert not session.answer(waiting)["success"]
        session.disconnect()
        session.wait_end()
    finally:
        os.kill(program.pid, signal.SIGCONT)
    program.moves("hot")
    program.run("cold")


def test_a_gil_that_is_not_given(start, client, any_python):
    """A native call keeps it: who, and where, is told, and the session goes on when it is given."""
    target = start(any_python, "hung.py")
    session = client()
    session.initialize()
    refused = session.answer(session.send("attach", {"processId": target.pid}))
    assert not refused["success"] and "held by thread {}".format(target.pid) in refused["message"], refused


def test_a_process_that_forbids_loading_the_probe(start, client, any_python):
    """PROBING_AUTO_INJECT=off in the process's environment holds for the debugger, too."""
    target = start(any_python, "hung.py", variables={"PROBING_AUTO_INJECT": "off"})
    session = client()
    session.initialize()
    refused = session.answer(session.send("attach", {"processId": target.pid}))
    assert not refused["success"] and "AUTO_INJECT=off" in refused["message"], refused
    assert probing(target.pid, "detach", check=False).returncode != 0


def test_a_client_that_hangs_up_while_its_code_runs(attached, any_python):
    """It may have gone: the target is not held for longer than a moment."""
    program, session = attached(any_python, "hot", evaluateTimeout=200)
    stop_at(session, program, "cold", "cold")
    session.send("evaluate", {"expression": "[0 for _ in iter(int, 1)]"})
    session.transport.hang_up()
    session.wait_end()
    program.until("done cold")
    program.moves("hot")


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


def test_an_interpreter_without_a_gil(debuggee, client, python):
    """It says so (here: falsely); that it cannot be stopped is an answer, and it can be looked at."""
    if python.minor < (3, 13):
        pytest.skip("always has its GIL")
    program = debuggee(python, "hot")
    probing("-t", program.pid, "inject", check=False)
    probing("-t", program.pid, "eval", "--gil-timeout", DEADLINE, "import sys; sys._is_gil_enabled = lambda: False")
    session = client()
    session.attach(program.pid)
    session.refused("setBreakpoints", {"source": program.source(), "breakpoints": [{"line": program.line("hot")}]})
    session.refused("pause", {"threadId": 0})
    assert session.request("threads")["threads"]
    session.disconnect()
    program.moves("hot")
    other = client()
    other.attach(program.pid, look=True)
    other.request("pause", {"threadId": 0})
    body = stopped(other)
    assert other.request("stackTrace", {"threadId": body["threadId"]})["stackFrames"]
    program.moves("hot")
