"""packaging/containers/README.md: its table of places and rights, in containers made of namespaces, a filter of system calls and capabilities, as
Docker and Kubernetes give them; and what it says of ssh, through a server of one's own."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import pytest

from support.target import SRCDIR, children, die_with_parent, free_port

PAGE = os.path.join(SRCDIR, "packaging", "containers", "README.md")
BUILDDIR = os.environ.get("BUILDDIR", ".")
SSHD = "/usr/sbin/sshd"
PYTHON = "/usr/bin/python3"  # that any user may run
SECONDS = 120
USER = 12345
DOCKER = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"
NONE, PTRACE = "-all", "-all,+sys_ptrace"
JOB = """
import time
n = 0
def step():
    global n
    print("ready", flush=True)
    while True:
        n += 1
        time.sleep(0.5)
step()
"""
# Then runs its arguments, under a filter that refuses add_key(2) alone: seccomp(2), a filter program over struct seccomp_data.
FILTERED = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 248, "aarch64": 217}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
if libc.prctl(22, 2, ctypes.addressof(program), 0, 0):
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
"""
NAMESPACES = ["--mount", "--pid", "--uts", "--ipc", "--net", "--fork", "--kill-child"]
# $1: a folder that is not in the image.
IMAGE = 'mount -t proc proc /proc; mount -t tmpfs shm /dev/shm; [ -z "$1" ] || mount -t tmpfs none "$1"; shift; exec "$@"'
BESIDE = 'mount -t proc proc /proc; exec "$@"'

if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "setpriv", PYTHON))):
    pytest.skip("needs root, util-linux and " + PYTHON, allow_module_level=True)


def contained(capabilities, user=None, escalation=True):
    """What Docker and Kubernetes put before a container's command."""
    identity = ["--reuid={}".format(user), "--regid={}".format(user), "--clear-groups"] if user else []
    return [PYTHON, "-I", "-c", FILTERED, "setpriv", "--bounding-set=" + capabilities, "--inh-caps=-all", *identity, *([] if escalation else ["--no-new-privs"])]


@pytest.fixture(scope="module")
def tool():
    """The folder /tmp/tool of the page, which any user may read."""
    folder = tempfile.mkdtemp(prefix="prb-tool-", dir="/tmp")
    os.chmod(folder, 0o755)
    for name in (".libs/probing", ".libs/libprobing.so.0", ".libs/libprobe.so", "probing-serve", ".libs/probing-serve"):
        path = os.path.realpath(os.path.join(BUILDDIR, name))
        if os.path.exists(path):
            shutil.copy(path, os.path.join(folder, os.path.basename(name)))
    yield folder
    shutil.rmtree(folder)


class Container:
    """A job in one: its process on the host is `pid`, in the container 1."""

    def __init__(self, tool, hidden=True, rootless=False, user=None):
        own = ["setpriv", "--reuid={}".format(USER), "--regid={}".format(USER), "--clear-groups"] if rootless else []
        spaces = (["--user", "--map-root-user"] if rootless else []) + NAMESPACES
        words = [*own, "unshare", *spaces, "sh", "-ec", IMAGE, "sh", tool if hidden else "", *contained(DOCKER, user), PYTHON, "-I", "-c", JOB]
        self.tool, self.pid = tool, None
        self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd="/",
                                      env={"PATH": os.environ["PATH"]}, preexec_fn=die_with_parent)
        if self.child.stdout.readline() != "ready\n":
            self.end()
            pytest.skip("no container can be made here: " + self.told)
        (self.pid,) = children(self.child.pid)

    def end(self):
        """The job first: one that became another user has lost the signal that it gets when its parent ends."""
        for pid in filter(None, (self.pid, self.child.pid)):
            os.kill(pid, signal.SIGKILL)
        _, self.told = self.child.communicate(timeout=SECONDS)

    def run(self, prefix, *words):
        """The tool behind what enters the place; (status, everything that it said)."""
        done = subprocess.run([*prefix, self.tool + "/probing", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", timeout=SECONDS, cwd="/", env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": self.tool, "HOME": "/"})
        return done.returncode, done.stdout

    def evaluated(self, prefix, pid):
        """Root reads the job's filters from a thread that waits: a busy machine may give it none at the first try."""
        until = time.monotonic() + SECONDS
        while True:
            status, told = self.run(prefix, pid, "eval", "n > 0")
            if status == 0 or "filter that may kill it" not in told or prefix or time.monotonic() > until:
                return status == 0 and told.endswith("True\n"), told

    def inside(self, *after):
        return ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--uts", "--ipc", "--net", "--", *after]

    def beside(self, *after):
        """Another container in the job's pid namespace."""
        return ["nsenter", "--target", str(self.pid), "--pid", "--", "unshare", "--mount", "sh", "-ec", BESIDE, "sh", *after]


@pytest.fixture
def container(tool):
    made = []

    def make(**how):
        made.append(Container(tool, **how))
        return made[-1]

    yield make
    for one in made:
        one.end()


# (the page's words for the place, how the job runs, how it is entered and by what pid, what a refusal says)
PLACES = [
    ("on the host, root", {}, lambda one: ([], one.pid), ()),
    ("on the host, the container's own user (podman without root)", {"rootless": True},
     lambda one: (["setpriv", "--reuid={}".format(USER), "--regid={}".format(USER), "--clear-groups", "--bounding-set=-all"], one.pid), ("filter", "PROBING=1")),
    ("in the container, `podman exec`, `docker exec`", {"hidden": False}, lambda one: (one.inside(*contained(DOCKER)), 1), ()),
    ("another container in the job's pid namespace, the same capabilities", {}, lambda one: (one.beside(*contained(DOCKER)), 1), ()),
    ("the same with fewer capabilities than the job's, `--cap-drop ALL`", {}, lambda one: (one.beside(*contained(NONE)), 1),
     ("CAP_SYS_PTRACE", "--cap-add=SYS_PTRACE", "securityContext.capabilities.add: [SYS_PTRACE]")),
    ("the same, `--cap-drop ALL --cap-add SYS_PTRACE`", {}, lambda one: (one.beside(*contained(PTRACE)), 1), ()),
    ("the same, another user and no capability", {}, lambda one: (one.beside(*contained(NONE, USER)), 1), ("user id",)),
    ("the same, the job's user and no capability", {"user": USER}, lambda one: (one.beside(*contained(NONE, USER, escalation=False)), 1), ()),
]


def promised():
    """{place: (whether one may look, whether eval works)} of the page's table."""
    with open(PAGE, encoding="utf-8") as text:
        lines = re.findall(r"^\| (.+?) \| (yes|no)\b.*? \| (yes|no)\b.*? \| run \|$", text.read(), re.M)
    return {place: (look == "yes", act == "yes") for place, look, act in lines}


def test_all_places_are_tried():
    assert list(promised()) == [place for place, *_ in PLACES]


@pytest.mark.parametrize("place, how, enter, refusal", PLACES, ids=[place for place, *_ in PLACES])
def test_place(container, place, how, enter, refusal):
    look, act = promised()[place]
    job = container(**how)
    prefix, pid = enter(job)
    status, told = job.run(prefix, pid, "backtrace")
    assert (status == 0 and re.search(r"^    step \(<string>:\d+\)$", told, re.M) is not None) == look, told
    refused = "" if look else told
    done, told = job.evaluated(prefix, pid)
    assert done == act, told
    assert act or all(words in refused + told for words in refusal), refused + told


def test_a_pods_sidecar(container):
    """Kubernetes' shareProcessNamespace: root with SYS_PTRACE alone, which can gain nothing by a program's bits."""
    job = container()
    prefix = job.beside(*contained(PTRACE, escalation=False))
    status, told = job.run(prefix, "list")
    assert status == 0 and re.search(r"^ *1 .*python3", told, re.M), told
    done, told = job.evaluated(prefix, 1)
    assert done, told


# ---- ssh, and VS Code over it ----


class Node:
    """A machine that one reaches by ssh: this one, by a server of its own."""

    def __init__(self, tool):
        self.tool, self.folder, self.port, self.started = tool, tempfile.mkdtemp(prefix="prb-ssh-", dir="/tmp"), free_port(), []
        for key in ("host", "own"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(self.folder, key)], check=True, timeout=SECONDS)
        os.makedirs("/run/sshd", exist_ok=True)
        settings = {"Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": self.folder + "/host", "AuthorizedKeysFile": self.folder + "/own.pub",
                    "PidFile": "none", "StrictModes": "no", "UsePAM": "no", "PermitRootLogin": "prohibit-password", "X11Forwarding": "no"}
        with open(os.path.join(self.folder, "sshd"), "w") as file:
            file.writelines("{} {}\n".format(*setting) for setting in settings.items())
        self.begin([SSHD, "-D", "-e", "-f", self.folder + "/sshd"])
        self.answers(self.port)

    def begin(self, words, **how):
        child = subprocess.Popen(words, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent, cwd="/", encoding="utf-8", **how)
        self.started.append(child)
        return child

    def end(self):
        for child in reversed(self.started):
            child.kill()
            child.wait(SECONDS)
            for stream in filter(None, (child.stdin, child.stdout)):
                stream.close()
        shutil.rmtree(self.folder)

    def answers(self, port, wanted=True):
        """Wait until something listens there, or nothing does any more."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), SECONDS).close()
                if wanted:
                    return
            except OSError:
                if not wanted:
                    return
            time.sleep(0.05)
        raise AssertionError("port {}: {}".format(port, "nothing listens" if wanted else "something listens still"))

    def words(self, options, command):
        return ["ssh", "-F", "none", "-p", str(self.port), "-i", self.folder + "/own", "-o", "UserKnownHostsFile=" + self.folder + "/known",
                "-o", "StrictHostKeyChecking=no", *options, "127.0.0.1",
                "LD_LIBRARY_PATH={0} XDG_RUNTIME_DIR={1} PROBING_DATA_DIR={1} {0}/probing {2}".format(self.tool, self.folder, command)]

    def run(self, command):
        return subprocess.run(self.words([], command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=SECONDS, cwd="/")

    def forwarded(self, command):
        """(a port here that leads to one there, which is {port} of the command; the ssh, which has a terminal there)."""
        here, there = free_port(), free_port()
        ssh = self.begin(self.words(["-tt", "-o", "ExitOnForwardFailure=yes", "-L", "{}:localhost:{}".format(here, there)], command.format(port=there)),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return here, there, ssh


@pytest.fixture
def node(tool):
    if not all(map(shutil.which, (SSHD, "ssh", "ssh-keygen"))):
        pytest.skip("needs an ssh server: openssh-server")
    one = Node(tool)
    yield one
    one.end()


@pytest.fixture
def rank(node):
    """Rank 0 of the job ssh-PID of this test."""
    job = "ssh-{}".format(os.getpid())
    child = node.begin([PYTHON, "-I", "-c", JOB], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       env={"PATH": os.environ["PATH"], "RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": job})
    assert child.stdout.readline() == "ready\n"
    return job, child.pid


def test_stacks_by_ssh(node, rank):
    done = node.run("-t @{} backtrace".format(rank[0]))
    assert done.returncode == 0 and re.search(r"^ *step \(<string>:\d+\)", done.stdout, re.M), done.stdout


def test_the_page_by_ssh(node):
    """The address that it prints opens through the tunnel; the server ends with the ssh."""
    if not os.path.exists(node.tool + "/probing-serve"):
        pytest.skip("without probing-serve")
    here, there, ssh = node.forwarded("serve -a 127.0.0.1:{port}")
    address = ssh.stdout.readline()
    token = re.search(r"http://127\.0\.0\.1:{}/\S*#(?:\w+=)?(\S+)".format(there), address)
    assert token, address
    asked = urllib.request.Request("http://127.0.0.1:{}/api/v1/processes".format(here), headers={"Authorization": "Bearer " + token[1], "Host": "127.0.0.1:{}".format(there)})
    with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
        assert answer.status == 200 and b"pid" in answer.read()
    ssh.kill()
    node.answers(there, wanted=False)


def test_a_debugger_by_ssh(node, rank):
    """What VS Code asks first, and its attach, through the tunnel: the same user comes in without a token."""
    here, there, ssh = node.forwarded("{} debug -a 127.0.0.1:{{port}}".format(rank[1]))
    node.answers(there)
    with socket.create_connection(("127.0.0.1", here), SECONDS) as client:
        client.settimeout(SECONDS)
        for seq, (command, arguments) in enumerate((("initialize", {"adapterID": "debugpy"}), ("attach", {"connect": {"port": here}})), 1):
            body = json.dumps({"seq": seq, "type": "request", "command": command, "arguments": arguments}).encode()
            client.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        told = b""
        while b'"event":"initialized"' not in told.replace(b" ", b""):
            more = client.recv(1 << 16)
            assert more, told
            told += more
    ssh.kill()
    node.answers(there, wanted=False)
