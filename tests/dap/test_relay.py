"""`probing dap` on standard input, where attach names a listening server by `connect`: the session is that server's."""

import json
import signal
import socket
import threading

import pytest

from client import framed
from debuggee import go_on, stop_at
from support.injection import wait_until
from support.target import DEADLINE

TOKEN = "correct-horse-battery-staple"


def place(server):
    return {"host": server.address[0], "port": server.address[1]}


def break_and_leave(session, program):
    body, _ = stop_at(session, program, "cold", "cold")
    go_on(session, program, body["threadId"], "cold")
    session.disconnect()
    session.wait_end()


def test_a_session(debuggee, client, serve, python):
    program = debuggee(python, "hot")
    server = serve(program, "--listen")
    for port in (server.address[1], str(server.address[1])):
        session = client()
        assert not session.initialize().get("supportSuspendDebuggee")
        session.attach(connect={"host": server.address[0], "port": port}, justMyCode=False)
        assert session.event("process")["systemProcessId"] == program.pid
        assert any(one["capabilities"].get("supportSuspendDebuggee") for one in session.seen("capabilities"))
        break_and_leave(session, program)
        assert session.transport.close() == 0
        program.moves("hot")
    assert server.end() == 0


def test_the_token_goes_along(debuggee, client, serve, any_python, tmp_path):
    program = debuggee(any_python)
    (tmp_path / "token").write_text(TOKEN)
    server = serve(program, "--listen", "--token-file", str(tmp_path / "token"))
    session = client()
    session.initialize()
    assert "token" in session.refused("attach", {"connect": place(server)})
    assert "token" in session.refused("attach", {"connect": place(server), "token": "wrong"})
    session.attach(connect=place(server), token=TOKEN)
    break_and_leave(session, program)


def test_a_token_that_was_made(debuggee, client, serve, any_python):
    """Of a server that asks it of everybody."""
    program = debuggee(any_python)
    server = serve(program, "--listen", address="0.0.0.0:0")
    while not server.said[-1].startswith("Other clients: "):
        server.said.append(server.child.stdout.readline())
    connect = {"host": "localhost", "port": server.address[1]}
    session = client()
    session.initialize()
    assert "token" in session.refused("attach", {"connect": connect})
    session.attach(connect=connect, token=server.said[-1].strip().rpartition("=")[2])
    break_and_leave(session, program)


def test_nobody_listens(debuggee, client, any_python):
    program = debuggee(any_python)
    session = client()
    session.initialize()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert "server" in session.refused("attach", {"connect": {"host": "127.0.0.1", "port": closed.getsockname()[1]}})
    for wrong in ({}, {"port": 0}, {"port": 65536}, {"port": "x"}, {"host": 5, "port": 1}, "here", 9922):
        assert session.refused("attach", {"connect": wrong})
    session.attach(program.pid)
    break_and_leave(session, program)


def test_a_process_beside_it(debuggee, client, any_python):
    """What is attached to is the process then, as with the Python Debugger's own configuration of both."""
    program = debuggee(any_python)
    session = client()
    session.attach(program.pid, connect={"host": "127.0.0.1", "port": 1})
    break_and_leave(session, program)


def test_the_client_goes(debuggee, client, serve, any_python):
    program = debuggee(any_python, "hot")
    server = serve(program, "--listen")
    session = client()
    session.attach(connect=place(server))
    stop_at(session, program, "cold", "cold")
    session.transport.kill()
    program.until("done cold")
    program.moves("hot")


def test_the_server_goes(debuggee, client, serve, any_python):
    program = debuggee(any_python, "hot")
    server = serve(program, "--listen")
    session = client()
    session.attach(connect=place(server))
    stop_at(session, program, "cold", "cold")
    server.end(signal.SIGKILL)
    session.event("terminated")
    session.wait_end()
    assert session.transport.close() == 0
    program.moves("hot")


class Fake:
    """A server that says what it is told to, and keeps what it heard."""

    def __init__(self, *said):
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen(1)
        self.address = self.listening.getsockname()
        self.heard = []
        self.said = said
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        self.connection, _ = self.listening.accept()
        file = self.connection.makefile("rb")
        while True:
            head = file.readline()
            if not head:
                return
            file.readline()
            self.heard.append(json.loads(file.read(int(head.split()[1])).decode()))
            if len(self.heard) == 2:  # initialize, attach
                for message in self.said:
                    self.connection.sendall(framed(message))

    def end(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.thread.join(DEADLINE)
        self.connection.close()
        self.listening.close()


def test_requests_of_the_server(client):
    """Its own number comes back, and nothing overtakes."""
    fake = Fake({"seq": 77, "type": "request", "command": "startDebugging",
                 "arguments": {"request": "attach", "configuration": {"name": "child"}}})
    session = client()
    session.initialize()
    asked = [session.send("attach", {"connect": place(fake), "token": TOKEN}), session.send("threads"),
             session.send("configurationDone", {})]
    session.reply(session.reverse_request("startDebugging"))
    asked.append(session.send("cancel", {"requestId": asked[1]}))
    wait_until(lambda: len(fake.heard) == 6)
    hello, *requests = [one for one in fake.heard if one["type"] == "request"]
    assert hello["command"] == "initialize" and hello["arguments"]["clientID"] == "tests"
    assert [one["seq"] for one in requests] == asked and requests[0]["arguments"]["token"] == TOKEN
    assert [one["request_seq"] for one in fake.heard if one["type"] == "response"] == [77]
    fake.end()
    for seq in asked:  # each has its answer
        answer = session.answer(seq)
        assert not answer["success"] and "closed the connection" in answer["message"]
    session.wait_end()


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"Content-Length: 2\r\n\r\n[]", b"Content-Length: 99999999\r\n\r\n"])
def test_what_is_no_server(client, said):
    fake = Fake()
    session = client()
    session.initialize()
    attach = session.send("attach", {"connect": place(fake)})
    wait_until(lambda: len(fake.heard) == 2)
    fake.connection.sendall(said)
    assert not session.answer(attach)["success"]
    session.wait_end()
    fake.end()
