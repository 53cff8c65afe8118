"""A real probe against clients that mean harm: whatever they send, the probe serves the next client, and the target does
not notice: its loop goes on, nothing is left of them but the threads and descriptors of before."""

import contextlib
import glob
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from support import injection
from support.control import (
    BODY_MAX,
    CANCEL,
    COMPLETE,
    CONFIG_GET,
    CONFIG_LIST,
    CONFIG_SET,
    DEBUG,
    DEBUG_CALL,
    DETACH,
    END,
    EVAL,
    FAILED,
    HELLO,
    HELLO_MESSAGE,
    KEY,
    LIBRARY,
    PART,
    REQUEST,
    SOURCE,
    STATUS,
    TORCH,
    VALUE,
    VERSION,
    answer,
    connected,
    field,
    message,
)

CLIENTS_MAX, REQUESTS_MAX = 32, 16

PROGRAM = """
import ctypes, sys
class Call(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("settings", ctypes.c_char_p),
                ("how", ctypes.c_char_p), ("error", ctypes.c_char * 256), ("functions", ctypes.c_void_p)]
call = Call(1, ctypes.sizeof(Call), None, b"import")
assert ctypes.CDLL(sys.argv[1]).prb_probe_start(ctypes.byref(call)) == 0, call.error
sys.stdout.write("ready\\n")
sys.stdout.flush()
for line in sys.stdin:
    print("here", flush=True)
"""


class Probe:
    """A Python with the probe in it."""

    def __init__(self, folder):
        environment = dict(os.environ, XDG_RUNTIME_DIR=str(folder), PROBING_DATA_DIR=str(folder / "data"),
                           PROBING_EVAL_GIL_TIMEOUT=str(injection.DEADLINE))
        environment.pop("LD_LIBRARY_PATH", None)
        self.child = subprocess.Popen([sys.executable, "-c", PROGRAM, LIBRARY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      env=environment, preexec_fn=injection.die_with_parent)
        assert self.child.stdout.readline() == b"ready\n"
        found = lambda: glob.glob(str(folder / "probing" / "*.sock"))
        injection.wait_until(found)
        self.path = found()[0]
        self.good()
        with self.connect() as client:  # what the first evaluation opens stays open
            client.sendall(message(EVAL, 2, field(SOURCE, b"1")))
            while answer(client)[0] != END:
                pass
        self.before = self.held()

    def connect(self, hello=True, timeout=injection.DEADLINE):
        client = connected(self.path, timeout)
        if hello:
            client.sendall(HELLO_MESSAGE)
            assert answer(client)[0] == END
        return client

    def good(self):
        """An honest client is served."""
        with self.connect() as client:
            client.sendall(message(STATUS, 2))
            assert answer(client)[0] == END

    def held(self):
        """Threads and descriptors."""
        return len(os.listdir("/proc/{}/task".format(self.child.pid))), len(os.listdir("/proc/{}/fd".format(self.child.pid)))

    def left_alone(self):
        """No more threads and descriptors than at first."""
        until = time.monotonic() + injection.DEADLINE
        while any(now > was for now, was in zip(self.held(), self.before)):
            assert time.monotonic() < until, self.what_is_held()
            time.sleep(0.01)

    def what_is_held(self):
        folder = "/proc/{}/".format(self.child.pid)
        names = []
        for tid in os.listdir(folder + "task"):
            try:
                with open(folder + "task/" + tid + "/comm") as comm, open(folder + "task/" + tid + "/wchan") as wchan:
                    names.append(comm.read().strip() + " " + wchan.read())
            except (FileNotFoundError, ProcessLookupError):
                pass
        links = []
        for number in os.listdir(folder + "fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(folder + "fd/" + number))
        return names, links

    def rss_mb(self):
        with open("/proc/{}/statm".format(self.child.pid)) as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def unharmed(self):
        """Alive and in its loop, the probe too, nothing left behind."""
        assert self.child.poll() is None, "died with {}".format(self.child.returncode)
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline()
        served(self)
        self.left_alone()


def served(probe):
    """Served soon: room that others had comes back when they are seen to be gone."""
    until = time.monotonic() + injection.DEADLINE
    while True:
        try:
            return probe.good()
        except (OSError, AssertionError, EOFError):
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def closes(client):
    """The probe answers what it likes and closes."""
    try:
        while answer(client)[0] != END:
            pass
    except (EOFError, ConnectionError):
        return
    raise AssertionError("took it for a request")


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    one = Probe(tmp_path_factory.mktemp("runtime"))
    yield one
    one.child.kill()
    one.child.wait()


MALFORMED = {
    "length over the limit": message(STATUS, 2, length=BODY_MAX + 1),
    "length of 4 GB": message(STATUS, 2, length=0xFFFFFFFF),
    "field beyond the body": message(CONFIG_GET, 2, struct.pack("<HHI", KEY, 0, 100) + b"short"),
    "field of 4 GB": message(CONFIG_GET, 2, struct.pack("<HHI", KEY, 0, 0xFFFFFFFF) + b"x"),
    "half a field's head": message(CONFIG_GET, 2, b"\x11\0\0"),
    "number of three bytes": message(CANCEL, 2, struct.pack("<HHI", REQUEST, 0, 3) + b"abc"),
    "no bytes of sense": bytes(random.Random(1).randrange(256) for _ in range(4096)),
}


@pytest.mark.parametrize("hello", [True, False], ids=["after HELLO", "at once"])
@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_ends_the_connection(probe, what, hello):
    with probe.connect(hello) as client:
        client.sendall(MALFORMED[what])
        closes(client)
    probe.unharmed()


@pytest.mark.parametrize("first", [message(STATUS, 2), message(EVAL, 2, field(SOURCE, b"1/0")), message(DETACH, 2),
                                   message(HELLO, 1), message(HELLO, 1, field(VERSION, 999)),
                                   message(HELLO, 0, field(VERSION, 1))],
                         ids=["status", "eval", "detach", "no version", "another version", "request 0"])
def test_without_a_proper_hello_nothing_is_done(probe, first):
    with probe.connect(hello=False) as client:
        client.sendall(first)
        closes(client)
    probe.unharmed()


@pytest.mark.parametrize("kind", [0, 19, 63, PART, END, FAILED, 0xFFFF])
def test_unknown_request_fails_and_no_more(probe, kind):
    with probe.connect() as client:
        client.sendall(message(kind, 7))
        try:
            assert answer(client)[0] == FAILED
        except EOFError:  # an answer's type is malformed from a client
            pass
    probe.unharmed()


def test_names_of_pytorchs_objects_that_are_none(probe):
    """Lines that a tool would send: addresses are compared, never read."""
    with probe.connect() as client:
        client.sendall(message(CONFIG_SET, 2, field(KEY, b"probing.torch.profiling") + field(VALUE, b"on")))
        assert answer(client)[0] == END
        for hostile in (b"module 1 1 x\nanchor ffffffffffffffff\noptimizer 10 -1 y\noffset 9223372036854775807 z", b"\n" * 100000,
                        b"module " + b"f" * 5000, b"anchor\nanchor \nmodule 1\n\0\noffset -9223372036854775808 ", os.urandom(4000)):
            client.sendall(message(TORCH, 3, field(VALUE, hostile)))
            assert answer(client)[0] == END
        client.sendall(message(CONFIG_SET, 4, field(KEY, b"probing.torch.profiling") + field(VALUE, b"off")))
        assert answer(client)[0] == END
    probe.unharmed()


def test_answers_and_unknown_fields_do_no_harm(probe):
    with probe.connect() as client:
        client.sendall(message(STATUS, 2, field(9999, b"who knows") + field(VERSION, 3) * 100))
        assert answer(client)[0] == END
        for hostile in (b"", b"\0", b"\xff\xfe" * 1000, b"x" * 100000, b"a\nb\tc\0d", b"%s%n%x" * 100):
            client.sendall(message(CONFIG_GET, 3, field(KEY, hostile)))
            assert answer(client)[0] == FAILED
            client.sendall(message(CONFIG_SET, 4, field(KEY, b"probing.max_memory") + field(VALUE, hostile)))
            assert answer(client)[0] == FAILED
        client.sendall(message(CANCEL, 5, field(REQUEST, 123456)))
        client.sendall(message(STATUS, 6))
        while answer(client)[:2] != (END, 6):
            pass
    probe.unharmed()


def test_half_messages_wait_without_harm(probe):
    """As many as there may be clients, each stuck in the middle; when they go there is room again."""
    stuck = []
    for at in range(CLIENTS_MAX + 8):
        try:
            client = probe.connect(hello=False, timeout=2)
            client.sendall((HELLO_MESSAGE + message(STATUS, 2))[: at % 40])
            stuck.append(client)
        except OSError:
            pass
    probe.child.stdin.write(b"\n")
    probe.child.stdin.flush()
    assert probe.child.stdout.readline()
    for client in stuck:
        client.close()
    probe.unharmed()


def test_a_byte_at_a_time(probe):
    with probe.connect(hello=False) as client:
        for byte in HELLO_MESSAGE + message(STATUS, 2):
            client.sendall(bytes([byte]))
        assert answer(client)[:2] == (END, 1) and answer(client)[:2] == (END, 2)
    probe.unharmed()


def test_a_client_that_never_reads(probe):
    """Requests until the socket takes no more: memory is bounded, others are served."""
    before = probe.rss_mb()
    with probe.connect() as client:
        client.setblocking(False)
        sent, until = 0, time.monotonic() + 2
        flood = b"".join(message(CONFIG_LIST, 2 + n) for n in range(1000))
        while sent < 64 << 20 and time.monotonic() < until:
            try:
                sent += client.send(flood)
            except BlockingIOError:
                probe.good()
            except OSError:
                break  # thrown out: as good
        probe.good()
        assert probe.rss_mb() - before < 20
    probe.unharmed()


def test_a_large_body_costs_no_more_than_its_size(probe):
    before = probe.rss_mb()
    clients = [probe.connect() for _ in range(4)]
    for client in clients:
        client.sendall(message(CONFIG_GET, 2, length=BODY_MAX) + field(KEY, b"x" * 100))  # and never the rest
    probe.good()
    assert probe.rss_mb() - before < 4 * BODY_MAX / 1e6 + 5
    for client in clients:
        client.close()
    probe.unharmed()


def test_connections_that_come_and_go(probe):
    for number in range(400):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(injection.DEADLINE)
        try:
            client.connect(probe.path)
            if number % 3:
                client.sendall(HELLO_MESSAGE[: number % 30])
            if number % 5 == 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        client.close()
    probe.unharmed()


def test_too_many_evaluations_are_refused_or_done(probe):
    """More open requests than a client may have; all get one end, or the connection ends."""
    with probe.connect() as client:
        count = REQUESTS_MAX * 4
        client.sendall(b"".join(message(EVAL, 10 + n, field(SOURCE, b"sum(range(1000))")) for n in range(count)))
        ends = set()
        try:
            while len(ends) < count:
                kind, request, _ = answer(client)
                if kind != PART:
                    assert kind in (END, FAILED) and request not in ends
                    ends.add(request)
        except (EOFError, ConnectionError):
            pass
    probe.unharmed()


def test_the_client_goes_while_its_code_runs(probe):
    for _ in range(8):
        client = probe.connect()
        client.sendall(message(EVAL, 2, field(SOURCE, b"import time\nfor i in range(30): time.sleep(0.01); print(i)")))
        client.close()
    probe.unharmed()


def mutated(random_):
    """A conversation of proper messages in which some bytes are wrong, missing or doubled."""
    keys = list(range(1, 27))
    data = bytearray(HELLO_MESSAGE if random_.random() < 0.8 else b"")
    for _ in range(random_.randrange(1, 6)):
        kind = random_.choice([STATUS, COMPLETE, CANCEL, CONFIG_LIST, CONFIG_GET, DEBUG, DEBUG_CALL, DEBUG_CALL, 200, EVAL])
        body = b"".join(field(random_.choice(keys), random_.choice([random_.getrandbits(64), b"1", b"", b"probing.sample_rate"]))
                        for _ in range(random_.randrange(4)))
        data += message(kind, random_.randrange(5), body)
    for _ in range(random_.choice([0, 1, 1, 2, 5])):
        at = random_.randrange(len(data))
        action = random_.randrange(3)
        if action == 0:
            data[at] = random_.randrange(256)
        elif action == 1:
            del data[at:at + random_.randrange(1, 9)]
        else:
            data[at:at] = data[at:at + random_.randrange(1, 30)]
        data = data or bytearray(b"\0")
    return bytes(data)


def test_mutated_conversations(probe):
    random_ = random.Random(20261121)
    for number in range(int(os.environ.get("PROBING_HOSTILE_ROUNDS", "300"))):
        sent = mutated(random_)
        with probe.connect(hello=False) as client:
            try:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
            except OSError:
                pass
        assert probe.child.poll() is None, (number, sent)
    served(probe)
    probe.unharmed()


def test_signals_reach_the_program_and_not_the_probe(probe):
    """All of the probe's threads block every signal that can be blocked."""
    seen = 0
    for tid in os.listdir("/proc/{}/task".format(probe.child.pid)):
        try:
            with open("/proc/{}/task/{}/status".format(probe.child.pid, tid)) as status:
                told = dict(line.split(":", 1) for line in status)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended
        name, blocked = told["Name"].strip(), int(told["SigBlk"], 16)
        if name.startswith("probing"):
            seen += 1
            wanted = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPROF, signal.SIGUSR1, signal.SIGHUP]
            assert all(blocked >> (number - 1) & 1 for number in wanted), (name, hex(blocked))
    assert seen
