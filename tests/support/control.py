"""The control socket of a probe, spoken byte by byte: messages, a client, and a target that has a probe."""

import glob
import os
import shutil
import socket
import struct
import time

from support.injection import DEADLINE, wait_until
from support.waits import until

LIBRARY = os.path.join(os.environ.get("BUILDDIR", "."), ".libs", "libprobe.so")

# inject/probe/server/protocol.h
HELLO, STATUS, EVAL, COMPLETE, CANCEL, CONFIG_LIST, CONFIG_GET, CONFIG_SET, DETACH, DEBUG, DEBUG_CALL, TORCH = range(1, 13)
PART, END, FAILED = 64, 65, 66  # answers
# keys of fields
VERSION, TEXT, REMEDY, CODE, REQUEST, STREAM, OUTPUT, ITEM, SOURCE, NAMESPACE, THREAD, FRAME, MODE = range(1, 14)
GIL_MS, TIME_MS, CURSOR, KEY, VALUE, RAISED, INCOMPLETE, NONE, MICROSECONDS = range(14, 23)
FUNCTION = 29
NUMBERS = {CODE, STREAM, RAISED, INCOMPLETE, NONE, MICROSECONDS}
BODY_MAX = 8 << 20
# enum prb_code of probing.h
NOT_FOUND, NOT_PYTHON, PERMISSION, GONE, TIMEOUT, BUSY = 2, 3, 4, 6, 12, 13


def connected(path, timeout=DEADLINE):
    """A client of the socket at path, however long that is: an address takes 107 bytes (unix(7)), so it goes by the folder's descriptor."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(timeout)
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        client.connect("/proc/self/fd/{}/{}".format(folder, os.path.basename(path)))
    finally:
        os.close(folder)
    return client


def field(key, value):
    data = struct.pack("<Q", value) if isinstance(value, int) else value
    return struct.pack("<HHI", key, 0, len(data)) + data


def message(kind, request, body=b"", length=None, zero=0):
    return struct.pack("<IIHH", len(body) if length is None else length, request, kind, zero) + body


HELLO_MESSAGE = message(HELLO, 1, field(VERSION, 1))


def exactly(client, size):
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise EOFError("the probe closed the connection")
        data += more
    return data


def answer(client):
    length, request, kind, _ = struct.unpack("<IIHH", exactly(client, 12))
    assert length <= BODY_MAX
    return kind, request, exactly(client, length)


def fields(body):
    told = {}
    while body:
        key, _, size = struct.unpack_from("<HHI", body)
        data, body = body[8:8 + size], body[8 + size:]
        told[key] = struct.unpack("<Q", data)[0] if key in NUMBERS else data
    return told


class Answer:
    """What became of one request."""

    def __init__(self):
        self.out, self.err, self.items = bytearray(), bytearray(), []
        self.first = None  # when the first output came
        self.kind = None

    def add(self, kind, told):
        if kind != PART:
            self.kind, self.told = kind, told
            self.text = told.get(TEXT, b"").decode()
        elif ITEM in told:
            self.items.append(told[ITEM].decode())
        else:
            self.first = self.first or time.monotonic()
            if told[STREAM] == 1:
                self.out += told[OUTPUT]
            else:
                self.err += told[OUTPUT]

    @property
    def value(self):
        assert self.kind == END and not self.told[RAISED] and not self.told[NONE], (self.kind, self.told)
        return self.text

    @property
    def none(self):
        return self.kind == END and not self.told[RAISED] and bool(self.told[NONE])

    @property
    def trace(self):
        assert self.kind == END and self.told[RAISED], (self.kind, self.told)
        return self.text

    @property
    def failed(self):
        assert self.kind == FAILED, self.told
        return self.told[CODE]


class Client:
    def __init__(self, path):
        self.socket = connected(path, DEADLINE)
        self.socket.sendall(HELLO_MESSAGE)
        assert answer(self.socket)[0] == END
        self.number = 1
        self.answers = {}

    def send(self, kind, body):
        self.number += 1
        self.answers[self.number] = Answer()
        self.socket.sendall(message(kind, self.number, body))
        return self.number

    def receive(self, until):
        """Take messages until until(number of the request it was for) says so."""
        while True:
            kind, number, body = answer(self.socket)
            self.answers[number].add(kind, fields(body))
            if until(number):
                return

    def wait(self, number):
        if self.answers[number].kind is None:
            self.receive(lambda of: of == number and self.answers[number].kind is not None)
        return self.answers.pop(number)

    def begin(self, code, name_space=None, **numbers):
        keys = {"thread": THREAD, "frame": FRAME, "single": MODE, "gil": GIL_MS, "time": TIME_MS, "function": FUNCTION}
        body = field(SOURCE, code.encode() if isinstance(code, str) else code)
        if name_space is not None:
            body += field(NAMESPACE, name_space.encode())
        return self.send(EVAL, body + b"".join(field(keys[name], value) for name, value in numbers.items()))

    def eval(self, code, name_space=None, **numbers):
        return self.wait(self.begin(code, name_space, **numbers))

    def cancel(self, number):
        self.socket.sendall(message(CANCEL, self.number + 1000, field(REQUEST, number)))
        self.answers[self.number + 1000] = Answer()

    def complete(self, text, **numbers):
        body = field(SOURCE, text.encode()) + field(CURSOR, len(text.encode()))
        return self.wait(self.send(COMPLETE, body + b"".join(field(THREAD, n) for n in numbers.values()))).items

    def detach(self):
        return self.wait(self.send(DETACH, b""))

    def close(self):
        self.socket.close()


class Probed:
    """A target with the probe, and a client of it."""

    def __init__(self, start, folders, python, folder, *program, **options):
        runtime, inside = str(folder), str(folder)
        library = os.path.abspath(LIBRARY)
        if python.root:
            outside, inner = folders(python)
            inside = "{}/run-{}".format(inner, os.getpid())
            runtime = python.root + inside
            os.makedirs(runtime, mode=0o700, exist_ok=True)
            shutil.copy(library, outside)
            library = inner + "/libprobe.so"
        for old in glob.glob(runtime + "/probing/*.sock"):
            os.unlink(old)
        variables = dict({"XDG_RUNTIME_DIR": inside, "PROBING_DATA_DIR": inside + "/data", "PROBING_EVAL_GIL_TIMEOUT": str(DEADLINE)},
                         **options.pop("variables", {}))
        self.target = start(python, "probed.py", library, *program, variables=variables, **options)
        if not program:
            self.target.settle()  # "parked" is about to wait when it says that it is ready
        self.pid = self.target.pid
        pattern = runtime + "/probing/*.sock"
        wait_until(lambda: glob.glob(pattern))
        self.path = glob.glob(pattern)[0]
        self.client = until(self._connected)
        self.eval = self.client.eval

    def _connected(self):
        try:
            return Client(self.path)
        except ConnectionRefusedError:  # the socket has its name before it listens
            return None

    def step(self, word):
        """The program's own loop goes on."""
        self.target.child.stdin.write(word.encode() + b"\n")
        self.target.child.stdin.flush()
        assert self.target.line() == "step " + word
