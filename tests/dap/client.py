"""A client of the Debug Adapter Protocol for tests: requests, events, and a judge of every message both ways.

A fault (a message that the schema does not allow, a second answer, an answer to nothing, a gap in seq, broken framing)
is kept in `faults` and fails the test when the client is closed.
"""

import json
import os
import socket
import subprocess
import threading
import time

import protocol
from support.target import DEADLINE, PROBING, die_with_parent

ENDED = object()
CLIENT = {"clientID": "tests", "adapterID": "probing", "linesStartAt1": True, "columnsStartAt1": True, "pathFormat": "path",
          "supportsVariableType": True, "supportsVariablePaging": True, "supportsMemoryReferences": True,
          "supportsProgressReporting": True, "supportsInvalidatedEvent": True, "supportsMemoryEvent": True,
          "supportsStartDebuggingRequest": True}


class Failed(AssertionError):
    """A request was answered with success false."""

    def __init__(self, answer):
        AssertionError.__init__(self, "{command}: {message}: {body}".format(**dict({"message": None, "body": None}, **answer)))
        self.message = answer.get("message")
        self.error = (answer.get("body") or {}).get("error")


class Stdio:
    """`probing dap` as a child process."""

    def __init__(self, *command, **more):
        self.child = subprocess.Popen(list(command) or [PROBING, "dap"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, preexec_fn=die_with_parent, **more)
        self.pid = self.child.pid
        self.errors = b""
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()

    def _read_errors(self):
        self.errors = self.child.stderr.read()

    def read(self):
        return os.read(self.child.stdout.fileno(), 1 << 16)

    def write(self, data):
        while data:
            data = data[os.write(self.child.stdin.fileno(), data):]

    def hang_up(self):
        self.child.stdin.close()

    def kill(self):
        self.child.kill()
        self.child.wait(DEADLINE)

    def close(self):
        """Its exit status, once nothing more is sent to it."""
        if not self.child.stdin.closed:
            self.child.stdin.close()
        try:
            status = self.child.wait(DEADLINE)
        finally:
            if self.child.poll() is None:
                self.kill()
        self._drain.join(DEADLINE)
        self.child.stderr.close()
        return status


class Socket:
    """A listening server: ("127.0.0.1", 9922), or the path of a Unix socket."""

    def __init__(self, address):
        self.pid = None
        self.errors = b""
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(address)
        self.socket.settimeout(None)

    def read(self):
        try:
            return self.socket.recv(1 << 16)
        except OSError:
            return b""

    def write(self, data):
        self.socket.sendall(data)

    def hang_up(self):
        self.socket.shutdown(socket.SHUT_WR)

    def kill(self):
        """As when the network goes: without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        return 0


def framed(message):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: " + str(len(text)).encode() + b"\r\n\r\n" + text


class Client:
    def __init__(self, transport=None, strict=True):
        self.transport = transport or Stdio()
        self.strict = strict
        self.faults = []
        self.seq = 0
        self.pending = {}   # seq: command
        self.answers = {}   # seq: response
        self.log = []       # every message that came, in order
        self.events = []    # those of them that are events
        self.position = 0   # events before it were taken by event()
        self.requests = []  # reverse requests
        self.ended = False
        self.capabilities = {}
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # ---- what comes ----

    def _messages(self):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = self.transport.read()
                if not more:
                    if data:
                        self.faults.append("ended in the middle of {!r}".format(data[:100]))
                    return
                data += more
            head, data = data.split(b"\r\n\r\n", 1)
            if not head.startswith(b"Content-Length: ") or b"\n" in head:
                self.faults.append("not our framing: {!r}".format(head[:100]))
                return
            size = int(head[16:])
            while len(data) < size:
                more = self.transport.read()
                if not more:
                    self.faults.append("ended within a message")
                    return
                data += more
            yield data[:size]
            data = data[size:]

    def _read(self):
        try:
            last = 0
            for text in self._messages():
                message = json.loads(text.decode("utf-8", "strict"), parse_constant=self._no_constant)
                with self._changed:
                    if self.strict:
                        self.faults += protocol.faults_of(message)
                        if message.get("seq") != last + 1:
                            self.faults.append("seq {} follows {}".format(message.get("seq"), last))
                    last = message.get("seq")
                    self._take(message)
                    self._changed.notify_all()
        except (ValueError, OSError) as error:
            self.faults.append("cannot be read: {}".format(error))
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _no_constant(self, text):
        self.faults.append("{} is no JSON".format(text))

    def _take(self, message):
        message["at"] = time.monotonic()
        self.log.append(message)
        kind = message.get("type")
        if kind == "event":
            self.events.append(message)
        elif kind == "request":
            self.requests.append(message)
        elif kind == "response":
            seq = message.get("request_seq")
            command = self.pending.pop(seq, None)
            if command is None:
                self.faults.append("an answer to nothing: {!r}".format(message)[:300])
            elif command != message.get("command"):
                self.faults.append("{} is answered as {}".format(command, message.get("command")))
            self.answers[seq] = message

    def _wait(self, what, told, seconds):
        """what() once it is not None; ENDED when nothing comes any more."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                got = what()
                if got is not None:
                    return got
                if self.ended:
                    raise AssertionError("the adapter ended while waiting for {}: {}\nlast: {}".format(
                        told(), self.transport.errors.decode(errors="replace"), self.log[-3:]))
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise AssertionError("no {} within {} s; last: {}".format(told(), seconds, self.log[-5:]))

    # ---- requests ----

    def send(self, command, arguments=None, check=True, null=False, **more):
        """Send a request; its number.  null: with "arguments": null."""
        self.seq += 1
        message = dict({"seq": self.seq, "type": "request", "command": command}, **more)
        if arguments is not None or null:
            message["arguments"] = arguments
        if check and self.strict:
            faults = protocol.faults_of(message)
            assert not faults, "the test itself sends what the protocol does not allow: {}".format(faults)
        with self._changed:
            self.pending[self.seq] = command
        self.transport.write(framed(message))
        return self.seq

    def answer(self, seq, seconds=DEADLINE):
        """The response to a request, whatever it says."""
        return self._wait(lambda: self.answers.pop(seq, None), lambda: "answer to request {}".format(seq), seconds)

    def wait(self, seq, seconds=DEADLINE):
        answer = self.answer(seq, seconds)
        if not answer.get("success"):
            raise Failed(answer)
        return answer.get("body") or {}

    def request(self, command, arguments=None, seconds=DEADLINE, **more):
        """Ask and wait; the body of the response.  Failed when success is false."""
        return self.wait(self.send(command, arguments, **more), seconds)

    def refused(self, command, arguments=None, **more):
        """The message with which it is answered, success false."""
        answer = self.answer(self.send(command, arguments, **more))
        assert answer["success"] is False, answer
        assert answer.get("message"), answer
        return answer["message"]

    def reply(self, request, body=None, success=True, **more):
        """Answer a reverse request."""
        self.seq += 1
        self.transport.write(framed({"seq": self.seq, "type": "response", "request_seq": request["seq"], "success": success,
                                     "command": request["command"], "body": body or {}, **more}))

    # ---- events ----

    def event(self, name, which=lambda body: True, seconds=DEADLINE):
        """The body of the next event of that name for which it holds; those before it are passed over."""

        def found():
            for index in range(self.position, len(self.events)):
                event = self.events[index]
                if event.get("event") == name and which(event.get("body") or {}):
                    self.position = index + 1
                    return event.get("body") or {}
            return None

        return self._wait(found, lambda: "event {}".format(name), seconds)

    def said(self, text, seconds=DEADLINE):
        """Wait until the output so far has it, in however many events: print() writes piece by piece."""
        return self.event("output", lambda _: text in "".join(one["output"] for one in self.seen("output")), seconds)

    def seen(self, name, which=lambda body: True):
        """Bodies of all events of that name up to now."""
        with self._changed:
            return [event.get("body") or {} for event in self.events
                    if event.get("event") == name and which(event.get("body") or {})]

    def reverse_request(self, command, seconds=DEADLINE):
        def found():
            for index, request in enumerate(self.requests):
                if request["command"] == command:
                    return self.requests.pop(index)
            return None

        return self._wait(found, lambda: "request {}".format(command), seconds)

    def wait_end(self, seconds=DEADLINE):
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended, seconds), "the adapter does not end: {}".format(self.log[-3:])

    # ---- a session ----

    def initialize(self, **more):
        self.capabilities = self.request("initialize", dict(CLIENT, **more))
        return self.capabilities

    def attach(self, pid=None, configure=None, **arguments):
        """initialize, attach, whatever configure(self) asks for, configurationDone."""
        if not self.capabilities:
            self.initialize()
        if pid is not None:
            arguments["processId"] = pid
        attach = self.send("attach", arguments)
        self.ready(attach)
        if configure:
            configure(self)
        self.request("configurationDone", {})
        return self.wait(attach)

    def ready(self, attach):
        """Wait for `initialized`; a refused attach is told instead."""

        def found():
            answer = self.answers.get(attach)
            if answer is not None and not answer["success"]:
                raise Failed(self.answers.pop(attach))
            return next((event for event in self.events if event.get("event") == "initialized"), None)

        self._wait(found, lambda: "event initialized", DEADLINE)

    def disconnect(self, **arguments):
        self.request("disconnect", arguments)

    def kill(self):
        """The client is gone, without a word."""
        self.transport.kill()
        with self._changed:
            self._changed.wait_for(lambda: self.ended, DEADLINE)
        self.strict = False
        self.faults = []

    def close(self):
        """Hang up; no fault may have been seen."""
        try:
            status = self.transport.close()
        finally:
            self._reader.join(DEADLINE)
        assert not self.faults, self.faults[:10]
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.close()
            return False
        try:
            self.transport.kill()
        except OSError:
            pass
        if self.faults:
            error.args = ("{}\nfaults of messages: {}".format(error, self.faults[:10]),)
        return False
