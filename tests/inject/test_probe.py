"""The probe in a process: who may talk to it, what fork, exec, the end and a detach make of it, and what it costs."""

import contextlib
import ctypes
import glob
import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import pytest

from support.control import (
    CANCEL,
    CONFIG_GET,
    CONFIG_LIST,
    CONFIG_SET,
    DETACH,
    END,
    EVAL,
    FAILED,
    HELLO,
    HELLO_MESSAGE,
    ITEM,
    KEY,
    LIBRARY,
    PART,
    REMEDY,
    REQUEST,
    SOURCE,
    STATUS,
    TEXT,
    VALUE,
    VERSION,
    answer,
    connected,
    field,
    message,
)
from support.injection import DEADLINE, die_with_parent, thread_names, wait_until

LIBPROBING = os.path.join(os.path.dirname(LIBRARY), "libprobing.so")

# Runs each line it reads and prints what `answer` is then.
PROGRAM = """
import ctypes, os, sys, threading
class Call(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("settings", ctypes.c_char_p),
                ("how", ctypes.c_char_p), ("error", ctypes.c_char * 256), ("functions", ctypes.c_void_p)]
class Functions(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("active", ctypes.CFUNCTYPE(ctypes.c_int)),
                ("detach", ctypes.CFUNCTYPE(ctypes.c_int))]
def start(settings=None):
    global functions
    call = Call(1, ctypes.sizeof(Call), settings, b"import")
    if ctypes.CDLL(LIBRARY).prb_probe_start(ctypes.byref(call)) != 0:
        return call.error.decode()
    functions = Functions.from_address(call.functions)
    return "started"
def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def forked(told, go):
    pid = os.fork()
    if pid:
        return pid
    with os.fdopen(told, "w") as out:
        print(functions.active(), os.listdir("/proc/self/task"), file=out, flush=True)
        os.read(go, 1)
        print(start(), file=out, flush=True)
        os.read(go, 1)
    os._exit(0)
def forks_until(path):
    count = 0
    while count <= 100 or not os.path.exists(path):
        os.waitpid(os.fork() or os._exit(0), 0)
        count += 1
    return count
LIBRARY = sys.argv[1]
print("ready", flush=True)
for line in sys.stdin:
    answer = None
    exec(line)
    print(answer, flush=True)
"""


class Target:
    """A Python that does what it is told."""

    def __init__(self, folder, options=(), variables=None, arguments=(), pass_fds=()):
        self.folder = folder
        environment = dict(os.environ, XDG_RUNTIME_DIR=str(folder), PROBING_DATA_DIR=str(folder / "data"),
                           PROBING_EVAL_GIL_TIMEOUT=str(DEADLINE))
        environment.update(variables or {})
        environment.pop("LD_LIBRARY_PATH", None)
        self.child = subprocess.Popen([sys.executable, *options, "-c", PROGRAM, LIBRARY, *arguments], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, env=environment, preexec_fn=die_with_parent, pass_fds=pass_fds)
        self.pid = self.child.pid
        assert self.child.stdout.readline() == b"ready\n"

    def tell(self, line):
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()

    def do(self, line):
        self.tell(line)
        return self.child.stdout.readline().decode().rstrip("\n")

    def start(self, settings="None"):
        assert self.do("answer = start({})".format(settings)) == "started"
        return self

    def sockets_of(self, pid):
        return glob.glob(str(self.folder / "probing" / "{}-*.sock".format(pid)))

    @property
    def sockets(self):
        return self.sockets_of(self.pid)

    def connect(self, path=None):
        client = connected(path or self.sockets[0])
        client.sendall(HELLO_MESSAGE)
        assert answer(client)[0] == END
        return client

    def held(self):
        """Threads and descriptors."""
        return tuple(len(os.listdir("/proc/{}/{}".format(self.pid, what))) for what in ("task", "fd"))

    def log(self):
        return (self.folder / "probing" / "probing.log").read_text()

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()


@pytest.fixture
def begin(tmp_path):
    begun = []

    def make(*args, **options):
        begun.append(Target(tmp_path, *args, **options))
        return begun[-1]

    yield make
    for target in begun:
        target.end()


@pytest.fixture
def target(begin):
    return begin().start()


def texts(body):
    told = {}
    while body:
        key, _, size = struct.unpack_from("<HHI", body)
        told[key], body = body[8:8 + size], body[8 + size:]
    return told


def ask(client, kind, body=b"", number=2):
    """The items, and the end: (items, kind, fields)."""
    client.sendall(message(kind, number, body))
    items = []
    while True:
        got, request, body = answer(client)
        assert request == number
        if got != PART:
            return items, got, texts(body)
        items.append(texts(body).get(ITEM))


def evaluate(client, code, number=2):
    return ask(client, EVAL, field(SOURCE, code.encode()), number)[2].get(TEXT)


def refused(client):
    """The connection is over."""
    try:
        while client.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("sys", ctypes.c_int), ("addr", ctypes.c_uint64), ("text", ctypes.c_char * 360),
                ("remedy", ctypes.c_char * 360)]


def client_says(pid):
    """What the library's client says of a process: None, or why it does not connect."""
    library = ctypes.CDLL(LIBPROBING)
    library.prb_control_open.restype = ctypes.c_void_p
    library.prb_control_present.restype = ctypes.c_bool
    error = Error()
    control = library.prb_control_open(pid, ctypes.byref(error))
    if not control:
        return error.text.decode()
    assert library.prb_control_present(pid)
    library.prb_control_close(ctypes.c_void_p(control))
    return None


# ---- the library ----

def tool(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


def test_the_library_needs_libc_only_and_exports_one_symbol():
    exported = [line.split()[-1] for line in tool("nm", "-D", "--defined-only", LIBRARY).splitlines()]
    assert exported == ["prb_probe_start"]
    dynamic = tool("readelf", "-dW", LIBRARY)
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert set(needed) <= {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed
    assert "NODELETE" in dynamic
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", tool("readelf", "-VW", LIBRARY))}
    assert max(versions) <= (2, 17), max(versions)
    segments = tool("readelf", "-lW", LIBRARY)
    assert " TLS " not in segments
    assert "RWE" not in segments
    loaded = sum(int(size, 16) for size in re.findall(r"^ *LOAD +(?:0x\w+ +){3}(0x\w+)", segments, re.M))
    assert 0 < loaded <= 1e6, "bytes of its text and data; the file has debug information, too"


def test_what_it_costs(begin):
    target = begin()
    target.do("answer = start.__name__")
    before = int(target.do("answer = rss()"))
    target.start()
    with target.connect() as client:
        ask(client, STATUS)
    assert int(target.do("answer = rss()")) - before <= 2 << 20
    wait_until(lambda: thread_names(target.pid).count("probing") == 1 and target.held()[0] == 2)  # the client's has ended
    tid, = [int(tid) for tid in os.listdir("/proc/{}/task".format(target.pid)) if int(tid) != target.pid]

    def slept():
        with open("/proc/{}/task/{}/status".format(target.pid, tid)) as status:
            text = status.read()
        with open("/proc/{}/task/{}/schedstat".format(target.pid, tid)) as schedstat:
            return (schedstat.read().split()[0], re.findall(r"ctxt_switches:\s*(\d+)", text), re.search(r"SigBlk:\s*(\w+)", text)[1],
                    re.search(r"State:\s*(\w)", text)[1])

    def rests():
        once = slept()
        time.sleep(0.2)
        return slept() == once and once[3] == "S"  # it does not wait for a CPU

    wait_until(rests)  # the client's going is dealt with
    before = slept()
    time.sleep(1)
    assert slept() == before, "it ran although nobody asked"
    blocked = int(before[2], 16)
    for number in range(1, 32):
        assert number in (signal.SIGKILL, signal.SIGSTOP) or blocked >> (number - 1) & 1, number


# ---- who may talk to it ----

def socket_name(pid):
    with open("/proc/{}/stat".format(pid)) as text:
        started = text.read().rsplit(")", 1)[1].split()[19]
    return "{}-{}-{}.sock".format(pid, started, os.stat("/proc/{}/ns/pid".format(pid)).st_ino)


def test_where_the_socket_is(target, tmp_path):
    path = target.sockets[0]
    assert os.path.basename(path) == socket_name(target.pid)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(os.path.dirname(path), "probing.log")).st_mode) == 0o600
    assert client_says(target.pid) is None


@pytest.mark.parametrize("trick", ["link", "open to others", "file", "of another user"])
def test_a_folder_that_is_not_safe_is_not_used(begin, tmp_path, trick):
    folder, elsewhere = tmp_path / "probing", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if trick == "link":
        folder.symlink_to(elsewhere)
    elif trick == "file":
        folder.write_text("")
    else:
        folder.mkdir(mode=0o700)
        if trick == "open to others":
            folder.chmod(0o750)
        elif os.geteuid() != 0:
            pytest.skip("only root can give folders away")
        else:
            os.chown(folder, 65534, -1)
    target = begin().start()
    assert not target.sockets and not list(elsewhere.iterdir())
    assert client_says(target.pid) is None  # at /tmp/probing-UID, which both sides know


def as_nobody(code, *args):
    """Run a program as another user; what it prints."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")

    def become():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    return subprocess.run(["/usr/bin/python3", "-c", code, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          preexec_fn=become, encoding="utf-8", cwd="/").stdout


CONNECT = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.settimeout(60)
told = b""
try:
    client.connect(sys.argv[1])
    while True:
        more = client.recv(4096)
        if not more:
            break
        told += more
    print("closed after", told)
except OSError as error:
    print(type(error).__name__, told)
"""


def test_another_user_is_refused(target, tmp_path):
    path = target.sockets[0]
    for outer in [tmp_path, *tmp_path.parents][:-2]:
        os.chmod(outer, os.stat(outer).st_mode | 0o011)
    assert as_nobody(CONNECT, path) == "PermissionError b''\n"
    # the second wall, when somebody has opened the first
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o777)
    told = as_nobody(CONNECT, path)
    assert "closed after" in told and "you are user 65534" in told
    assert "uid=65534" in target.log() and "refused" in target.log()
    os.chmod(os.path.dirname(path), 0o700)
    with target.connect() as client:
        assert ask(client, STATUS)[1] == END


def test_the_client_is_not_fooled_by_a_squatter(begin):
    target = begin()
    folder = target.folder / "probing"
    folder.mkdir(mode=0o700)
    assert "no probe" in client_says(target.pid)
    squatter = socket.socket(socket.AF_UNIX)
    squatter.bind(str(folder / socket_name(target.pid)))
    squatter.listen(1)
    assert "held by process {}".format(os.getpid()) in client_says(target.pid)
    squatter.close()
    assert "nobody listens" in client_says(target.pid)
    target.start()  # takes the name over
    assert client_says(target.pid) is None


@pytest.mark.parametrize("options,variables,off", [
    (["-X", "disable-remote-debug"], {}, True),
    (["-u", "-Xdisable-remote-debug"], {}, True),
    (["-W", "ignore", "-X", "faulthandler", "-uX", "disable-remote-debug"], {}, True),
    ([], {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}, True),
    ([], {"PYTHON_DISABLE_REMOTE_DEBUG": ""}, False),
    (["-X", "faulthandler"], {}, False),
])
def test_switches_of_cpython(begin, options, variables, off):
    target = begin(options, variables, ["-X", "disable-remote-debug"]).start()
    with target.connect() as client:
        _, kind, told = ask(client, EVAL, field(SOURCE, b"6 * 7"))
        if off:
            assert kind == FAILED and b"remote debugging" in told[TEXT] and told[REMEDY]
        else:
            assert kind == END and told[TEXT] == b"42"
        assert ask(client, STATUS, number=3)[1] == END


def test_another_version_is_told(target):
    with target.connect() as client:
        client.sendall(message(HELLO, 2, field(VERSION, 99)))
        kind, _, body = answer(client)
        assert kind == FAILED and b"version 1" in texts(body)[TEXT]
        assert refused(client)


# ---- many ----

def test_several_clients_with_several_requests(target):
    clients = [target.connect() for _ in range(4)]
    try:
        for number, client in enumerate(clients):
            client.sendall(message(EVAL, 10, field(SOURCE, b"import time\nwhile True: time.sleep(0.01)")))
            client.sendall(message(STATUS, 11))
            client.sendall(message(EVAL, 12, field(SOURCE, str(number).encode() + b" + 100")))
        for number, client in enumerate(clients):
            told = {}
            while len(told) < 2:
                kind, request, body = answer(client)
                told[request] = kind, texts(body).get(TEXT)
            assert told[11][0] == END and told[12] == (END, str(number + 100).encode())
        for client in clients:
            client.sendall(message(CANCEL, 13, field(REQUEST, 10)))
            told = {request: kind for kind, request, _ in (answer(client), answer(client))}
            assert told[13] == END and told[10] in (END, FAILED)
    finally:
        for client in clients:
            client.close()
    wait_until(lambda: target.held()[0] <= 2)


def test_a_thousand_connections(target):
    before = target.held()
    for _ in range(1000):
        target.connect().close()
    wait_until(lambda: target.held() <= before)
    with target.connect() as client:
        assert ask(client, STATUS)[1] == END


def test_two_threads_start_it_at_once(begin):
    target = begin()
    assert target.do("told = []; crowd = [threading.Thread(target=lambda: told.append(start())) for _ in range(8)]; "
                     "[one.start() for one in crowd]; [one.join() for one in crowd]; answer = set(told)") == "{'started'}"
    assert len(target.sockets) == 1
    wait_until(lambda: target.held()[0] == 2)  # join() is told before the kernel has let a thread go


# ---- fork, exec, the end ----

def links(pid):
    folder = "/proc/{}/fd/".format(pid)
    told = []
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            told.append(os.readlink(folder + fd))
    return told


def test_a_forked_child_has_none_and_may_have_its_own(begin):
    told, tell = os.pipe()
    gone, go = os.pipe()
    target = begin(pass_fds=(tell, gone)).start()
    os.close(tell)
    os.close(gone)
    with target.connect() as client, os.fdopen(told) as told, os.fdopen(go, "wb", 0) as go:
        assert evaluate(client, "1") == b"1"
        child = int(target.do("answer = forked({}, {})".format(tell, gone)))
        assert told.readline() == "0 ['{}']\n".format(child)
        assert not [link for link in links(child) if "socket:" in link or "eventfd" in link or "probing" in link]
        assert [link for link in links(target.pid) if "socket:" in link]
        assert evaluate(client, "2", 3) == b"2"  # the parent's goes on
        assert "no probe" in client_says(child)
        go.write(b"x")
        assert told.readline() == "started\n"
        assert client_says(child) is None
        with target.connect(target.sockets_of(child)[0]) as own:
            assert evaluate(own, "__import__('os').getpid()") == str(child).encode()
        assert evaluate(client, "3", 4) == b"3"


def test_the_connection_ends_with_the_parent_although_a_child_lives(target):
    with target.connect() as client:
        child = int(evaluate(client, "__import__('subprocess').Popen(['/bin/sleep', '60'], stdin=-3, stdout=-3, stderr=-3).pid"))
        other = int(target.do("pid = os.fork(); pid or (os.close(0), os.close(1), __import__('time').sleep(60)); answer = pid"))
        try:
            os.kill(target.pid, signal.SIGKILL)
            assert refused(client)
        finally:
            os.kill(child, signal.SIGKILL)
            os.kill(other, signal.SIGKILL)


def test_a_fork_storm_leaves_the_probe_whole(target, tmp_path):
    enough = tmp_path / "enough"
    target.tell("answer = forks_until({!r})".format(str(enough)))
    served, until = 0, time.monotonic() + 2
    while served <= 10 or time.monotonic() < until:
        with target.connect() as client:
            assert ask(client, STATUS)[1] == END
            served += 1
    enough.write_text("")
    assert int(target.child.stdout.readline()) > 100


def test_exec_ends_it(target):
    with target.connect() as client:
        target.tell("os.execv('/bin/sleep', ['sleep', '60'])")
        assert refused(client)
    wait_until(lambda: open("/proc/{}/comm".format(target.pid)).read() == "sleep\n" and not any("socket:" in link for link in links(target.pid)))
    told = client_says(target.pid)
    # The kernel may still close the socket: then one is let in, and at once out again.
    assert any(words in told for words in ("nobody listens", "no probe", "the probe has gone")), told
    library = ctypes.CDLL(LIBPROBING)
    library.prb_control_present.restype = ctypes.c_bool
    assert not library.prb_control_present(target.pid)
    assert not [link for link in links(target.pid) if "socket:" in link or "probing" in link]


def test_the_end_of_the_process(begin):
    target = begin().start()
    client = target.connect()
    client.sendall(message(EVAL, 5, field(SOURCE, b"__import__('time').sleep(0.05)")))
    target.tell("import atexit; atexit.register(print, 'the end', flush=True); sys.exit(7)")
    assert target.child.wait(DEADLINE) == 7
    assert b"the end" in target.child.stdout.read()
    client.close()
    # the next one of this user removes what it left
    left = target.sockets
    begin().start()
    assert not [path for path in left if os.path.exists(path)]


@pytest.mark.parametrize("length", [80, 95, 108, 180, 240, 400])
def test_a_long_runtime_folder(begin, tmp_path, length):
    """An address takes 107 bytes, a path of ours 255: both sides find one another whatever XDG_RUNTIME_DIR has."""
    room = length - len(str(tmp_path)) - 1
    folder = tmp_path / "/".join(["d" * 50] * (room // 51) + ["e" * max(1, room % 51)])
    folder.mkdir(parents=True, mode=0o700)
    target = begin(variables={"XDG_RUNTIME_DIR": str(folder)})
    target.start()
    assert client_says(target.pid) is None
    target.child.kill()
    target.child.wait()
    again = begin(variables={"XDG_RUNTIME_DIR": str(folder)})
    again.start()  # and what was left is swept
    left = list((folder / "probing").glob("*.sock"))
    assert len(left) == (1 if length < 255 - len("/probing") else 0), left


def test_only_sockets_of_the_dead_are_removed(begin, tmp_path):
    folder = tmp_path / "probing"
    folder.mkdir(mode=0o700)
    for name in ("4194305-1-7.sock", "4194306-1-7.sock"):
        one = socket.socket(socket.AF_UNIX)
        one.bind(str(folder / name))
        if name.startswith("4194306"):
            one.listen(4)
            alive = one  # as if in another pid namespace
        else:
            one.close()
    (folder / "4194307-1-7.sock").write_text("no socket")
    (folder / "notes").write_text("somebody's")
    begin().start()
    assert {"4194306-1-7.sock", "4194307-1-7.sock", "notes"} <= set(os.listdir(folder))
    assert "4194305-1-7.sock" not in os.listdir(folder)
    alive.close()


# ---- detach ----

def test_detach_leaves_nothing_but_text_and_a_second_start_arms_it_again(begin):
    target = begin()
    target.do("answer = start.__name__")
    before = target.held()
    took, until = [], time.monotonic() + DEADLINE
    while len(took) < 3 or min(took) >= 1:  # nothing waits for what was never on, but it may for a CPU
        assert time.monotonic() < until, took
        target.start()
        with target.connect() as client:
            assert evaluate(client, "40 + 2") == b"42"
            if not took:
                ask(client, CONFIG_SET, field(KEY, b"probing.max_memory") + field(VALUE, b"2GB"), 3)
            assert ask(client, CONFIG_GET, field(KEY, b"probing.max_memory"), 4)[2][VALUE] == b"2GB"
            with target.connect() as other:
                began = time.monotonic()
                assert ask(client, DETACH, number=5)[1] == END
                took.append(time.monotonic() - began)
                assert refused(client) and refused(other)
        assert not target.sockets
        wait_until(lambda: target.held() == before)
        assert target.do("answer = functions.active()") == "0"
        assert "libprobe" in open("/proc/{}/maps".format(target.pid)).read()
    target.start()
    assert target.do("answer = functions.detach(), functions.active()") == "(0, 0)"
    wait_until(lambda: target.held() == before)
    assert "detach" in target.log()


def test_detach_does_not_wait_for_a_client_that_hangs(target):
    stuck = target.connect()
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for number in range(2, 200):  # less than the probe stops reading at
        stuck.sendall(message(CONFIG_LIST, number))
    with target.connect() as client:
        began = time.monotonic()
        assert ask(client, DETACH)[1] == END
        assert time.monotonic() - began < DEADLINE
    assert refused(stuck)
    wait_until(lambda: not target.sockets)


# ---- settings and log ----

def test_settings(begin):
    target = begin(variables={"PROBING_MAX_MEMORY": "3GiB", "PROBE_ADDR": "127.0.0.1:3344", "PROBING_SERVE_PROGRAM": "/bin/true", "PROBING_RETENTION_DAYS": "soon",
                              "PROBING_TORCH_PROFILING": "on,exprs=loss@train"}).start("b'probing.sample_rate = 0.25\\n'")
    assert "retention_days must be a time" in target.log()
    with target.connect() as client:
        items = {item.decode().split("\t")[0]: item.decode().split("\t")[1:] for item in ask(client, CONFIG_LIST)[0]}
        assert items["probing.max_memory"][:3] == ["3GiB", "256MiB", "bytes"]
        assert items["probing.listen"][0] == "127.0.0.1:3344"
        assert items["probing.sample_rate"][0] == "0.25"
        assert items["probing.retention_days"][0] == "7"
        assert items["probing.torch.profiling"][0] == "on,exprs=loss@train"
        assert all(len(told) == 4 and told[3] for told in items.values())
        for number, (key, value, kind, word) in enumerate([
                ("probing.max_memory", "1GB", END, "1GB"), ("probing.retention_days", "36h", END, "1.5"),
                ("probing.crash_term", "no", END, "off"), ("probing.listen", "x", FAILED, "HOST:PORT"),
                ("probing.sample_rate", "2", FAILED, "from 0 to 1"),
                ("probing.max_memory", "much", FAILED, "bytes"), ("probing.max_memroy", "1GB", FAILED, "no setting"),
                ("", "1", FAILED, "no setting"), ("probing.crash_dir", "x" * 600, FAILED, "at most"),
                ("probing.crash_dir", "a\nb", FAILED, "one line")], 10):
            _, got, told = ask(client, CONFIG_SET, field(KEY, key.encode()) + field(VALUE, value.encode()), number)
            assert got == kind and word in (told.get(VALUE) or told[TEXT]).decode(), (key, value, told)
        told = ask(client, CONFIG_GET, field(KEY, b"probing.max_memroy"), 30)[2]
        assert told[REMEDY] == b"did you mean probing.max_memory?"
    assert "no setting" in target.do("answer = start(b'probing.max_memory=1GB\\nprobing.nonsense=1')")
    assert target.do("answer = start(b'probing.max_memory=4GB')") == "started"
    with target.connect() as client:
        assert ask(client, CONFIG_GET, field(KEY, b"probing.max_memory"))[2][VALUE] == b"4GB"


def test_a_bad_spec_of_torch_tracing_is_named_in_the_log(begin):
    target = begin(variables={"PROBING_TORCH_PROFILING": "on,ratee=1", "PROBE_TORCH_EXPRS": "loss"}).start()
    assert 'no key "ratee"' in target.log() and '"loss" cannot be watched' in target.log()


def test_the_limits_of_evaluations_are_settings(target):
    with target.connect() as client:
        ask(client, CONFIG_SET, field(KEY, b"probing.eval.timeout") + field(VALUE, b"200ms"))
        _, kind, told = ask(client, EVAL, field(SOURCE, b"import time\nwhile True: time.sleep(0.01)"), 3)
        assert kind == FAILED or b"KeyboardInterrupt" in told[TEXT]
        ask(client, CONFIG_SET, field(KEY, b"probing.eval.timeout") + field(VALUE, b"0"), 5)
        assert evaluate(client, "1", 4) == b"1"


def test_the_log_tells_who_did_what(target):
    with target.connect() as client:
        evaluate(client, "'\x1b[2J\n' + \"\u00e4\"\r\n# pid=1 forged")
        ask(client, CONFIG_SET, field(KEY, b"probing.max_memory") + field(VALUE, b"1GB"), 3)
        evaluate(client, "#" * 5000, 4)
    lines = target.log().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z pid=\d+ ", line) for line in lines), lines
    assert all(character.isprintable() for line in lines for character in line)
    who = "uid={} by={} (".format(os.geteuid(), os.getpid())
    assert "import " in lines[0]
    assert who in lines[1] and r'evaluate "' in lines[1] and r"\x1b[2J" in lines[1] and "\u00e4" in lines[1]
    assert 'config "probing.max_memory" "1GB"' in lines[2]
    assert len(lines[3]) < 600 and len(lines) == 4


def test_the_log_is_bounded(target, tmp_path):
    log = tmp_path / "probing" / "probing.log"
    log.write_text("x" * (1 << 20))
    with target.connect() as client:
        for number in range(2, 30):
            evaluate(client, "1", number)
    assert (tmp_path / "probing" / "probing.log.1").stat().st_size == 1 << 20
    assert target.log().count("evaluate") == 28
    log.unlink()
    log.symlink_to(tmp_path / "elsewhere")  # is not followed
    with target.connect() as client:
        assert evaluate(client, "1") == b"1"
    assert not (tmp_path / "elsewhere").exists()


# ---- LD_PRELOAD ----

@pytest.mark.parametrize("variables,starts", [
    ({"PROBE": "1"}, True), ({"PROBE_PPROF": "1", "PROBING_CRASH_PROGRAM": "/bin/true"}, True), ({"PROBE_ADDR": "127.0.0.1:1", "PROBING_SERVE_PROGRAM": "/bin/true"}, True), ({"PROBING": "2"}, True),
    ({"PROBE_TORCH_EXPRS": "loss@train"}, True), ({"PROBING": "init:setup.py+1"}, True), ({}, False), ({"PROBE": "0"}, False), ({"PROBING": "0"}, False),
    ({"PROBING": "regex:train"}, False),
])
def test_preload(begin, variables, starts):
    target = begin(variables=dict(variables, LD_PRELOAD=LIBRARY))
    assert bool(target.sockets) == starts
    if starts:
        assert "preload" in target.log()
        assert client_says(target.pid) is None
        assert target.do("answer = start()") == "started"
        looks = "PROBE_TORCH_EXPRS" in variables  # a thread that waits for PyTorch
        wait_until(lambda: target.held()[0] == 2 + looks)


def test_preload_leaves_other_programs_alone(tmp_path):
    environment = dict(os.environ, LD_PRELOAD=LIBRARY, PROBE="1", PROBING="1", XDG_RUNTIME_DIR=str(tmp_path))
    subprocess.run(["/bin/sh", "-c", "/bin/true; ls / >/dev/null"], env=environment, check=True)
    assert not list(tmp_path.iterdir())


def cpu_ns(pid):
    """What all threads of a process have used."""
    used = 0
    for tid in os.listdir("/proc/{}/task".format(pid)):
        with open("/proc/{}/task/{}/schedstat".format(pid, tid)) as schedstat:
            used += int(schedstat.read().split()[0])
    return used


@pytest.mark.parametrize("limit", [20, 1])
def test_fewer_descriptors_than_clients(begin, limit):
    """A program may have but a few descriptors, or none any more: the probe answers all the same, or waits, and burns no time."""
    target = begin().start()
    held = target.connect()
    target.do("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0}))".format(limit))
    assert evaluate(held, "6 * 7") == b"42"
    if limit > 1:
        assert evaluate(target.connect(), "6 * 7") == b"42"
    before = cpu_ns(target.pid)
    time.sleep(1)  # in which nothing is to happen
    assert cpu_ns(target.pid) - before < 0.1e9
