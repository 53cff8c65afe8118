"""probing.debug() and probing.breakpoint(): a debugger connects to a program that asked for one."""

import json
import socket

import pytest

import package
from test_real import begin, real_wheel  # noqa: F401  fixtures


class Client:
    """As much of a debugger as is needed to stop and go on."""

    def __init__(self, where):
        host, _, port = where.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), package.DEADLINE)
        self.file = self.socket.makefile("rb")
        self.seq = 0
        self.events = []

    def message(self):
        length = 0
        for line in iter(self.file.readline, b"\r\n"):
            assert line, "it hung up"
            length = int(line.split(b":")[1])
        return json.loads(self.file.read(length).decode())

    def ask(self, command, **arguments):
        self.seq += 1
        text = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        while True:
            message = self.message()
            if message["type"] == "event":
                self.events.append(message)
            elif message["request_seq"] == self.seq:
                assert message["success"], message
                return message.get("body")

    def event(self, name):
        while not any(one["event"] == name for one in self.events):
            self.events.append(self.message())
        found = next(one for one in self.events if one["event"] == name)
        self.events.remove(found)
        return found["body"]

    def close(self):
        self.file.close()
        self.socket.close()


def test_elsewhere_than_on_loopback_a_token_is_made(begin):  # noqa: F811
    """It stands behind the address, and everybody shows it."""
    lives = begin("init")
    where, _, token = lives.say("open")["where"].partition("?token=")
    assert len(token) == 32
    for arguments in ({}, {"token": token}):
        client = Client("127.0.0.1:" + where.rpartition(":")[2])
        client.ask("initialize", adapterID="probing")
        if arguments:
            client.ask("attach", **arguments)
        else:
            with pytest.raises(AssertionError, match="success': False"):
                client.ask("attach")
        client.close()
    assert lives.end() == (0, "")


def test_a_port_that_is_taken(begin):  # noqa: F811
    """As of the second rank of a job: the error names the argument, and nothing is left of the attempt."""
    lives = begin("init")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = lives.say("listen 127.0.0.1:{}".format(port))["error"]
    assert 'listen="127.0.0.1:{}"'.format(port + 1) in error and "--" not in error
    assert lives.say("debug")["where"].startswith("127.0.0.1:")
    assert lives.end() == (0, "")


def test_a_program_that_serves_debuggers(begin):  # noqa: F811
    lives = begin("init")
    said = lives.say("debug")
    assert said["where"] == said["again"] and said["where"].startswith("127.0.0.1:")
    client = Client(said["where"])
    client.ask("initialize", adapterID="probing")
    client.ask("attach")
    client.ask("configurationDone")
    lives.process.stdin.write("breakpoint\n")
    lives.process.stdin.flush()
    body = client.event("stopped")
    frames = client.ask("stackTrace", threadId=body["threadId"])["stackFrames"]
    assert any(frame.get("source", {}).get("name") == "lives.py" for frame in frames)
    client.ask("continue", threadId=body["threadId"])
    assert lives.answer() == {"went": "on"}
    client.ask("disconnect")
    client.close()
    assert lives.say("rows")["active"]
    assert lives.end() == (0, "")
