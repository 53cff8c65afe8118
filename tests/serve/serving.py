"""A server of ours, and clients of it: HTTP over TCP and over the Unix socket, raw bytes, plain text."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

DEADLINE = 60  # s: for what hangs
PROBING = os.environ["PROBING"]
PROGRAM = os.path.join(os.path.dirname(PROBING), os.pardir, "probing-serve")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        return self.json["error"]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(self.path)


def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


class Server:
    def __init__(self, *options, files=(), variables=None, runtime=None, trusted=None, user=None, of=None):
        """trusted: the certificate that a server with TLS is known by; user: whose it is, where root starts it; of: the only process that it looks at."""
        self.own = not runtime
        self.runtime = runtime or tempfile.mkdtemp(prefix="serve-")  # short: the path of a socket has 107 bytes
        if user is not None:
            os.chown(self.runtime, user, user)
        self.environment = dict(os.environ, **dict({"XDG_RUNTIME_DIR": self.runtime, "PROBING_STORE": "off"}, **(variables or {})))
        self.folder = os.path.join(self.runtime, "probing")
        program = [PROGRAM, "--target", str(of)] if of else [PROBING, "serve"]
        self.process = subprocess.Popen([*program, *options, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        encoding="utf-8", env=self.environment, stdin=subprocess.DEVNULL,
                                        preexec_fn=None if user is None else lambda: become(user))
        self.line = self.process.stdout.readline().strip()
        assert self.line, self.process.stderr.read()
        found = re.match(r"(https?)://(.*):(\d+)/(?:#token=(\S+))?$", self.line)
        self.scheme, self.host, self.port, self.token = (found[1], found[2], int(found[3]), found[4]) if found else (None, None, None, None)
        self.tls = ssl.create_default_context(cafile=trusted) if self.scheme == "https" else None
        self.socket_path = os.path.join(self.folder, "serve-{}:{}.sock".format(self.host, self.port) if of else "serve.sock")

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        with open(os.path.join(self.folder, "serve.log")) as file:
            return file.read()

    def end(self, how=signal.SIGTERM):
        """The exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    def remove(self):
        """A folder that it was given may hold what others have yet to end."""
        if self.own:
            shutil.rmtree(self.runtime, ignore_errors=True)

    # ---- HTTP ----

    def ask(self, path, method="GET", body=None, tcp=False, token=None, **headers):
        """One request; over TCP with the server's token unless another is given ("": none)."""
        connection = (UnixConnection(self.socket_path) if not tcp else http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE) if not self.tls
                      else http.client.HTTPSConnection(self.host, self.port, timeout=DEADLINE, context=self.tls))
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        token = self.token if token is None and tcp else token
        if token:
            headers["Authorization"] = "Bearer " + token
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict((name.lower(), value) for name, value in answer.getheaders()), answer.read())
        finally:
            connection.close()

    def post(self, path, value, **more):
        return self.ask(path, "POST", json.dumps(value), **more)

    def send(self, path, value, method="POST", **more):
        """A JSON body by any method."""
        return self.ask(path, method, json.dumps(value), **more)

    def alive(self):
        return self.ask("/health").status == 200

    def sockets(self):
        """How many it has open; other descriptors are of the processes that it looks at."""
        count = 0
        for name in os.listdir("/proc/{}/fd".format(self.pid)):
            with contextlib.suppress(OSError):
                count += os.readlink("/proc/{}/fd/{}".format(self.pid, name)).startswith("socket:")
        return count

    # ---- bytes ----

    def connected(self, tcp=True):
        one = socket.create_connection((self.host, self.port), DEADLINE) if tcp else socket.socket(socket.AF_UNIX)
        one.settimeout(DEADLINE)
        if not tcp:
            one.connect(self.socket_path)
        return self.tls.wrap_socket(one, server_hostname=self.host) if tcp and self.tls else one

    def raw(self, *pieces, tcp=True, pause=0.0, end=False):
        """Send pieces, and read until the server closes."""
        with self.connected(tcp) as one:
            try:
                for piece in pieces:
                    one.sendall(piece)
                    if pause:
                        time.sleep(pause)
                if end:
                    one.shutdown(socket.SHUT_WR)
                return received(one)
            except OSError:  # it was closed meanwhile
                return b""

    def text(self, *lines, tcp=True):
        """What plain text answers to these lines and the end of input."""
        return self.raw("".join(line + "\n" for line in lines).encode(), tcp=tcp, end=True).decode()


def received_until(one, end):
    """Read until these bytes have come; the server must not close before."""
    data = b""
    while end not in data:
        piece = one.recv(65536)
        assert piece, data
        data += piece
    return data


def received(one):
    pieces = []
    try:
        while True:
            piece = one.recv(65536)
            if not piece:
                break
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def until(what, seconds=DEADLINE):
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, what
        time.sleep(0.01)
