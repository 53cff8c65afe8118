"""Fixtures of the editors' tests: a training job, `probing debug --listen` beside it, what was set up of each editor."""

import os
import subprocess

import pytest

import codeserver
import training
from support.target import free_port
from support.torch_python import torch_python

BUILDDIR = os.environ.get("BUILDDIR", ".")
PROBING = os.environ.get("PROBING", "probing")
os.environ.setdefault("PROBING_EDITORS", os.path.join(BUILDDIR, "editors"))


@pytest.fixture
def pictures():
    """Where screenshots stay, as artefacts of the build."""
    folder = os.path.join(BUILDDIR, "screenshots")
    os.makedirs(folder, exist_ok=True)
    return folder


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """So that fixtures know of a failure."""
    report = (yield).get_result()
    if report.when == "call":
        item.failed = report.failed


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The folder of the programs that a file's tests debug."""
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def job(project):
    """A training job that nobody prepared; each test of a file leaves it running."""
    python = torch_python()
    if python is None:
        pytest.skip("no Python with torch (./bootstrap check installs one)")
    one = training.Training(python, project)
    yield one
    one.close()


@pytest.fixture
def listen(job):
    """listen(): `probing PID debug --listen` for the job; the port, or 0 for the path of a Unix socket."""
    started = []

    def begin(*options, path=None):
        port = 0 if path else free_port()
        started.append(subprocess.Popen(
            [PROBING, str(job.pid), "debug", "--listen", "--address", path or "127.0.0.1:{}".format(port), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        there = (lambda: taken(path)) if path else (lambda: listening(port))
        codeserver.until("the server", lambda: there() or started[-1].poll() is not None)
        assert started[-1].poll() is None, started[-1].stderr.read().decode()
        return port

    yield begin
    for one in started:
        one.terminate()
        one.wait(codeserver.DEADLINE)
        one.stderr.close()


def taken(path):
    """Whether a Unix socket takes connections: its file is there before."""
    with open("/proc/net/unix") as table:
        return any(line.split()[3] == "00010000" and line.rstrip("\n").endswith(" " + path) for line in table.readlines()[1:])


def listening(port):
    """By /proc/net/tcp, as a connection would be taken for a client."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name) as table:
            for line in table.readlines()[1:]:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    return True
    return False


class Root:
    """Another root folder, and commands in it, with /proc as systems have it; the mount is gone with the command."""

    ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'

    def __init__(self, path):
        self.path = path

    def command(self, *words):
        return ["unshare", "--mount", "sh", "-c", self.ENTER, self.path] + list(words)

    @staticmethod
    def variables(home, **more):
        return dict(HOME=home, PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8", TERM="xterm-256color", **more)


@pytest.fixture
def newer_root():
    """The one with Emacs and Helix (tests/newer-pythons.sh)."""
    root = os.environ.get("PROBING_NEWER_ROOT", os.path.join(BUILDDIR, "newer-pythons"))
    if not os.path.exists(os.path.join(root, ".clients")):
        pytest.skip("no Emacs and Helix: tests/newer-pythons.sh {} was not run, or could not".format(root))
    return Root(root)
