"""What may come over the wire: messages in pieces, several at once, and everything that is no message."""

import json
import os
import socket
import subprocess
import time

import pytest

from client import CLIENT, Client, Failed, Stdio, framed
from support.target import DEADLINE, PROBING, die_with_parent

INITIALIZE = {"seq": 1, "type": "request", "command": "initialize", "arguments": CLIENT}
BIG = 64 << 20


@pytest.fixture
def wire():
    """wire(): `probing dap`, and its messages without a judge of order; it must end well."""
    made = []

    def begin():
        made.append(Client(Stdio()))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def test_a_message_in_pieces(wire):
    session = wire()
    session.pending[1] = "initialize"
    for byte in framed(INITIALIZE):
        session.transport.write(bytes([byte]))
    assert session.answer(1)["success"]


def test_many_in_one_write(wire):
    session = wire()
    session.initialize()
    for seq in range(2, 52):
        session.pending[seq] = "threads"
    session.transport.write(b"".join(framed({"seq": seq, "type": "request", "command": "threads"}) for seq in range(2, 52)))
    for seq in range(2, 52):
        assert session.answer(seq)["success"] is False


@pytest.mark.parametrize("head", [
    b"content-length: {}\r\n\r\n", b"Content-Length:{}\r\n\r\n", b"Content-Length:   {}  \r\n\r\n",
    b"X-Other: 1\r\nContent-Length: {}\r\n\r\n", b"Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n"])
def test_other_forms_of_the_header(wire, head):
    session = wire()
    text = json.dumps(INITIALIZE).encode()
    session.pending[1] = "initialize"
    session.transport.write(head.replace(b"{}", str(len(text)).encode()) + text)
    assert session.answer(1)["success"]


# After these nothing can be found again in the stream: it says so or is silent, and ends.
@pytest.mark.parametrize("data", [
    b"Content-Length: -5\r\n\r\n", b"Content-Length: abc\r\n\r\n", b"Content-Length: \r\n\r\n", b"X: 1\r\n\r\n", b"\r\n\r\n",
    b"Content-Length: 99999999999999999999\r\n\r\n", b"Content-Length: 10\r\nContent-Length: 20\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"Content-Length: 0x10\r\n\r\n", b"Content-Length: 1 2\r\n\r\n{}",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), b"A" * 100000, b"X" * 9000 + b": 1\r\n\r\n",
    b"Content-Length: %d\r\n\r\n" % (BIG + 1)], ids=range(14))
def test_framing_that_cannot_be_read_ends_it(data):
    session = Client(Stdio())
    try:
        session.initialize()
        try:
            session.transport.write(data)
        except BrokenPipeError:
            pass
        session.wait_end()
        assert session.transport.child.wait(DEADLINE) >= 0
    finally:
        session.transport.kill()


@pytest.mark.parametrize("size", [4 << 20, 16 << 20])
def test_big_messages(size):
    """Taken and answered, or refused by the end of the stream: never a hang, never a death by signal."""
    session = Client(Stdio())
    try:
        session.initialize()
        message = {"seq": 2, "type": "request", "command": "evaluate", "arguments": {"expression": "x" * size}}
        session.pending[2] = "evaluate"
        try:
            session.transport.write(framed(message))
        except BrokenPipeError:
            pass
        try:
            assert session.answer(2)["success"] is False
        except AssertionError:
            session.wait_end()
            assert session.transport.child.wait(DEADLINE) >= 0
    finally:
        session.transport.kill()


def test_a_length_that_is_never_filled():
    session = Client(Stdio())
    session.initialize()
    session.transport.write(b"Content-Length: 1000\r\n\r\n{")
    session.transport.hang_up()
    session.wait_end()
    assert session.transport.child.wait(DEADLINE) >= 0


# A body that is no request: an error or nothing, and either the session goes on or the stream ends.
@pytest.mark.parametrize("body", [
    b"", b"{", b"null", b"5", b"[]", b'"text"', b"{}", b"[" * 10000, b"[" * 10000 + b"]" * 10000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b"\xff\xfe\x00", b'{"seq": 2, "type": "request", "command": "\xff"}', b'{"seq": 2, "type": "request"}',
    b'{"seq": 2, "type": "event", "event": "stopped"}', b'{"seq": 2, "type": "nonsense"}', b'{"seq": "2", "type": "request"}',
    b'{"seq": 2, "type": "response", "request_seq": 77, "success": true, "command": "runInTerminal"}',
    b'{"seq": NaN}', b'{"seq": 1e999, "type": "request", "command": "threads"}', b'{"command": "threads", "command": "scopes"}',
    b'{"seq": 2, "type": "request", "command": null}', b'{"seq": 2, "type": "request", "command": 5}', b"\x00" * 100],
    ids=range(23))
def test_a_body_that_is_no_request(body):
    session = Client(Stdio(), strict=False)
    try:
        session.initialize()
        session.transport.write(framed(body))
        session.pending[100] = "threads"
        try:
            session.transport.write(framed({"seq": 100, "type": "request", "command": "threads"}))
            session.answer(100)
        except (AssertionError, BrokenPipeError):
            session.wait_end()
            assert session.transport.child.wait(DEADLINE) >= 0, "died by a signal"
    finally:
        session.transport.kill()


@pytest.mark.parametrize("body", [b'{"seq": 2, "type": "response", "request_seq": 77, "success": true, "command": "runInTerminal"}',
                                  b'{"seq": 2, "type": "event", "event": "stopped"}'])
def test_answers_and_events_of_a_client_change_nothing(wire, body):
    session = wire()
    session.initialize()
    session.transport.write(framed(body))
    session.seq = 2
    session.refused("threads")


def test_a_repeated_seq(wire):
    session = wire()
    session.initialize()
    for _ in range(3):
        session.seq = 6
        session.refused("threads")


def test_arguments_of_other_types(wire):
    session = wire()
    for arguments in ([], "x", 5, True, {"adapterID": 5}, {"adapterID": "x", "linesStartAt1": "yes"}):
        with pytest.raises(Failed):
            session.wait(session.send("initialize", arguments, check=False))
    session.initialize()


@pytest.mark.parametrize("text", ["\u20ac\U0001f600", "\u0000", "a\"b\\c\n"])
def test_text_comes_back_as_it_went(wire, text):
    session = wire()
    session.initialize()
    assert session.refused(text, check=False)
    assert session.log[-1]["command"] == text


# ---- clients that do not read ----

def test_a_slow_reader(debuggee, any_python):
    """The program prints without end, the client does not read: the program is never held up by it."""
    program = debuggee(any_python, "hot")
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    child = subprocess.Popen([PROBING, "dap"], stdin=theirs, stdout=theirs, preexec_fn=die_with_parent)
    theirs.close()
    try:
        seq = [0]

        def send(command, **arguments):
            seq[0] += 1
            ours.sendall(framed({"seq": seq[0], "type": "request", "command": command, "arguments": arguments}))

        send("initialize", **CLIENT)
        send("attach", processId=program.pid, redirectOutput=True)
        ours.settimeout(DEADLINE)
        got = b""
        while b'"initialized"' not in got:
            got += ours.recv(4096)
        send("setBreakpoints", source=program.source(), breakpoints=[
            {"line": program.line("hot"), "logMessage": "x" * 1000 + "{i}"}])
        send("configurationDone")
        for _ in range(20):
            program.moves("hot")
            time.sleep(0.02)
        program.run("cold")
        assert child.poll() is None
        with open("/proc/{}/status".format(child.pid)) as status:
            resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        assert resident < 400000, "its queue has no bound: {} kB".format(resident)
    finally:
        ours.close()
        try:
            child.wait(DEADLINE)
        finally:
            child.kill()
            child.wait()
    program.moves("hot")


def test_no_process_is_left(debuggee, any_python):
    """Hanging up in every state leaves no adapter behind."""
    program = debuggee(any_python)
    for steps in range(4):
        session = Client(Stdio())
        if steps > 0:
            session.initialize()
        if steps > 1:
            attach = session.send("attach", {"processId": program.pid})
            session.ready(attach)
        if steps > 2:
            session.request("configurationDone")
        assert session.transport.close() >= 0
        with pytest.raises(ProcessLookupError):
            os.kill(session.transport.pid, 0)
    program.run("cold")
