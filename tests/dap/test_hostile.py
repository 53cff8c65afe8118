"""Clients that mean harm: the server's memory stays bounded, the next client is served, the program runs, the token is told nobody."""

import json
import os
import random
import socket
import time

import pytest

from client import Failed, Socket, Stdio, framed
from debuggee import stack, stopped
from support.target import DEADLINE, PROBING

TOKEN = "correct-horse-battery-staple"
MEMORY_MAX = 400 << 10  # kB, at any moment
BUSY = 13  # another client is attached
KEYS = ["threadId", "frameId", "variablesReference", "start", "count", "filter", "format", "name", "value", "expression", "context",
        "text", "column", "line", "breakpoints", "lines", "source", "filters", "filterOptions", "targetId", "sourceReference",
        "startModule", "moduleCount", "memoryReference", "offset", "data", "instructionCount", "requestId", "startFrame", "levels"]
VALUES = [None, True, 0, -1, 2 ** 31, 2 ** 53, -2 ** 63, 1.5, "", "\u0000", "../../etc/passwd", "a" * 5000, [], [None], [[]], [{}], {},
          {"path": 5}, {"path": "/", "sourceReference": -1}, [{"line": "x"}], [{"line": 2 ** 62}], [{"name": None}], [{"filterId": 5}]]
COMMANDS = ["threads", "stackTrace", "scopes", "variables", "setVariable", "setExpression", "evaluate", "completions", "setBreakpoints",
            "setFunctionBreakpoints", "setExceptionBreakpoints", "exceptionInfo", "breakpointLocations", "stepInTargets", "pause",
            "gotoTargets", "source", "modules", "loadedSources", "readMemory", "writeMemory", "dataBreakpointInfo",
            "setDataBreakpoints", "disassemble", "cancel", "pydevdAuthorize", "setDebuggerProperty", "pydevdSystemInfo"]


@pytest.fixture
def guarded(debuggee, client, serve, any_python, tmp_path):
    """(a program, its server that wants a token, served(): somebody who has it gets in); all is well in the end."""
    (tmp_path / "token").write_text(TOKEN)
    program = debuggee(any_python, "hot")
    server = serve(program, "--listen", "--token-file", str(tmp_path / "token"))

    def attached():
        session = client(Socket(server.address))
        try:
            session.attach(token=TOKEN)
        except Failed as refused:
            assert refused.error["id"] == BUSY, refused
            session.close()
            return None
        return session

    def served():
        until = time.monotonic() + DEADLINE  # what the one before sent is read first, and then that it hung up
        session = attached()
        while not session:
            assert time.monotonic() < until, "the one before is still attached"
            time.sleep(0.1)
            session = attached()
        assert session.request("threads")["threads"]
        session.disconnect()

    yield program, server, served
    with open("/proc/{}/status".format(server.child.pid)) as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    with open("/proc/{}/cmdline".format(server.child.pid), "rb") as words, open(
            "/proc/{}/environ".format(server.child.pid), "rb") as environment:
        assert TOKEN.encode() not in words.read() + environment.read()
    program.moves("hot")
    program.run("cold")
    server.end()
    assert TOKEN not in "".join(server.said + server.errors)
    assert peak < MEMORY_MAX, "{} kB".format(peak)


def raw(server, *messages, wait=DEADLINE):
    one = socket.create_connection(server.address)
    one.settimeout(wait)
    try:
        one.sendall(b"".join(messages))
    except OSError:
        pass  # it was turned away, or is not read any more
    return one


def request(command, **arguments):
    return framed({"seq": 9, "type": "request", "command": command, "arguments": arguments})


HELLO = request("initialize", adapterID="x")


def test_sockets_that_say_nothing(guarded):
    _, server, served = guarded
    idle = [raw(server) for _ in range(60)]
    served()
    idle += [raw(server) for _ in range(60)]
    for one in idle:
        one.close()
    time.sleep(0.5)
    served()


def test_what_strangers_send(guarded):
    """Before the token was shown a message has little room."""
    _, server, served = guarded
    sent = [raw(server, b"Content-Length: 16000000\r\n\r\n", b"x" * 1000000) for _ in range(20)]
    sent += [raw(server, HELLO, request("evaluate", expression="x" * 60000) * 100) for _ in range(20)]
    for one in sent:
        one.close()
    served()


@pytest.mark.parametrize("message", [
    request("threads"), request("cancel", requestId=9), request("x" * 2000), request("evaluate", expression="1", x="y" * 1000000),
    request("evaluate", expression="1", x=[1] * 200000), request("evaluate", expression="'x' * 1000000", context="clipboard")],
    ids=["threads", "cancel", "unknown", "long", "many values", "long answers"])
def test_a_flood_that_is_not_read(guarded, message):
    _, server, served = guarded
    one = raw(server, HELLO, request("attach", token=TOKEN), request("configurationDone"))
    got = b""
    while b'"configurationDone"' not in got:
        more = one.recv(65536)
        assert more, got
        got += more
    one.settimeout(1)
    try:
        for _ in range(max(1, (32 << 20) // len(message) // 50)):
            one.sendall(message * 50)
    except OSError:
        pass
    one.close()
    served()


def test_every_argument_of_every_type(guarded, client):
    """Answered, by an error or not, and never by one of ours."""
    _, server, served = guarded
    session = client(Socket(server.address), strict=False)
    session.attach(token=TOKEN)
    session.request("pause", {"threadId": 0})
    thread = stopped(session, "pause")["threadId"]
    frame = stack(session, thread)[0]["id"]
    chance = random.Random(5)
    for command in COMMANDS:
        for key in KEYS:
            arguments = {"threadId": thread, "frameId": frame, "expression": "1"} if chance.random() < 0.5 else {}
            arguments[key] = chance.choice(VALUES)
            answer = session.answer(session.send(command, arguments, check=False))
            text = json.dumps(answer)
            assert "Traceback" not in text and TOKEN not in text, (command, arguments, answer)
            assert answer["success"] or answer["body"]["error"]["id"] != 70, (command, arguments, answer)
    session.disconnect()
    served()


def test_guesses_end_the_connection(guarded, client):
    _, server, served = guarded
    session = client(Socket(server.address))
    session.initialize()
    for number in range(3):
        with pytest.raises((Failed, AssertionError, OSError)):
            session.wait(session.send("attach", {"token": "guess {} of many more".format(number)}))
    session.wait_end()
    served()


def test_the_token_is_no_programs(any_python, client, tmp_path):
    """A program that is launched does not inherit it."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "program.py"
    path.write_text("import os\nprint('TOKEN {}'.format(os.environ.get('PROBING_DEBUG_TOKEN')), flush=True)\n")
    session = client(Stdio(PROBING, "dap", env=dict(os.environ, PROBING_DEBUG_TOKEN=TOKEN)))
    session.initialize()
    launch = session.send("launch", {"program": str(path), "python": any_python.executable})
    session.ready(launch)
    session.request("configurationDone")
    session.wait(launch)
    assert "TOKEN None" in session.event("output", lambda one: "TOKEN" in one["output"])["output"]
    session.event("terminated")
