"""Servers that a process starts beside itself: PROBE_ADDR, PROBE_BG, PROBING_PORT, a setting while it runs."""

import fcntl
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile

import pytest

from serving import DEADLINE, PROBING, UnixConnection, until
from support.target import free_port
from test_own import ask, end_servers, servers

LIBRARY = os.path.join(os.environ["BUILDDIR"], ".libs", "libprobe.so")


class Place:
    """A runtime folder of the test, and what servers say of themselves there."""

    def __init__(self):
        self.runtime = tempfile.mkdtemp(prefix="own-")
        self.folder = os.path.join(self.runtime, "probing")

    def variables(self, **more):
        return dict({"LD_PRELOAD": LIBRARY, "XDG_RUNTIME_DIR": self.runtime, "PROBING_STORE": "off"}, **more)

    @property
    def log(self):
        with open(os.path.join(self.folder, "probing.log")) as file:
            return file.read()

    def says(self, *words):
        try:
            return all(word in self.log for word in words)
        except FileNotFoundError:
            return False

    def url(self):
        """Of the only server; it is known when its file is there."""
        until(lambda: servers(self))
        (pid,) = servers(self)
        with open(os.path.join(self.folder, "serve-{}.json".format(pid))) as file:
            told = json.load(file)
        with open(told["token_file"]) as file:
            return "{}/#token={}".format(told["url"], file.read().strip())


@pytest.fixture
def place():
    one = Place()
    yield one
    end_servers(one)
    shutil.rmtree(one.runtime, ignore_errors=True)


@pytest.mark.parametrize("variables", [{"PROBE_ADDR": "127.0.0.1:0"}, {"PROBE_BG": "1"}, {"PROBE": "1", "PROBING_PORT": "RANDOM"},
                                       {"PROBING": "1", "PROBING_SERVER_ADDR": "127.0.0.1:0"}], ids=lambda given: " ".join(given))
def test_the_environment_starts_one(place, start, any_python, variables):
    job = start(any_python, "threads.py", variables=place.variables(**variables)).settle()
    url = place.url()
    assert [row["pid"] for row in ask(url, "/api/v1/processes")[1]["processes"]] == [job.pid]
    status, told = ask(url, "/api/v1/p/{}/stacks".format(job.pid))
    assert status == 200 and told["threads"]
    assert ask(url, "/api/v1")[1]["grants"] == ["look"]
    until(lambda: place.says("serving on " + url.partition("#")[0]))
    assert url.partition("#token=")[2] not in place.log
    (pid,) = servers(place)
    with open("/proc/{}/stat".format(pid)) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    assert int(fields[3]) == pid and int(fields[16]) >= 10  # a session of its own; nicer than the job
    assert open("/proc/{}/oom_score_adj".format(pid)).read().strip() == "500"


CHILDREN = """
import os, signal, sys, time
heard = []
signal.signal(signal.SIGCHLD, lambda *what: heard.append(what))
while sys.stdin.readline():
    try:
        children = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        children = None
    print(children, len(heard), len(os.listdir("/proc/self/fd")), flush=True)
"""


def test_the_job_does_not_see_it(place, any_python):
    """No child, no signal, no descriptor."""
    told = []
    for variables in ({}, place.variables(PROBE_ADDR="127.0.0.1:0")):
        with subprocess.Popen(any_python.command("-c", CHILDREN), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                              env=dict(os.environ, **variables)) as job:
            if variables:
                until(lambda: place.says("serving on"))

            def ask():
                job.stdin.write("\n")
                job.stdin.flush()
                told.append(job.stdout.readline().split())
                return told[-1]

            assert ask()[:2] == ["None", "0"]
            if variables:
                plain = int(told[0][2])
                until(lambda: int(ask()[2]) <= plain + 4)  # what the probe itself has, but for a moment
            assert ask()[:2] == ["None", "0"]
            job.stdin.close()


def test_ranks_share_a_port(place, start, any_python):
    """All have the same variable: one listens, the others are served by it, and each can be looked at."""
    port = str(free_port())
    jobs = [start(any_python, "threads.py", variables=place.variables(PROBE="1", PROBING_PORT=port, RANK=str(rank))) for rank in range(3)]
    for job in jobs:
        job.settle()
    until(lambda: place.says() and place.log.count("serving on") == 3)
    url = place.url()
    assert url.startswith("http://127.0.0.1:{}/".format(port))
    assert {row["rank"] for row in ask(url, "/api/v1/processes")[1]["processes"]} == {0, 1, 2}
    for job in jobs:
        assert ask(url, "/api/v1/p/{}/stacks".format(job.pid))[0] == 200


def test_ranks_wait_for_who_begins(place, start, any_python):
    """However slow the first one is: one that is just beginning has the port, and the lock until it is told where it is."""
    def waits():
        with open("/proc/locks") as locks:
            return any("->" in line and "FLOCK" in line and ":{} ".format(inode) in line for line in locks)

    os.mkdir(place.folder, 0o700)
    lock = os.open(place.folder, os.O_RDONLY)
    inode = os.fstat(lock).st_ino
    fcntl.flock(lock, fcntl.LOCK_EX)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:{}".format(taken.getsockname()[1])
        job = start(any_python, "threads.py", variables=place.variables(PROBE_ADDR=address)).settle()
        until(waits)
    os.close(lock)
    until(lambda: place.says("serving on http://" + address))
    assert ask(place.url(), "/api/v1/p/{}/stacks".format(job.pid))[0] == 200


def test_what_cannot_be_is_a_line_in_the_log(place, start, any_python):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:{}".format(taken.getsockname()[1])
        job = start(any_python, "threads.py", variables=place.variables(PROBE_ADDR=address)).settle()
        until(lambda: place.says("listen={}: no server".format(address)))
    start(any_python, "threads.py", variables=place.variables(PROBE_ADDR="127.0.0.1:0", PROBING_SERVE_PROGRAM="/nowhere")).settle()
    until(lambda: place.says("probing.serve_program is no program: /nowhere"))
    start(any_python, "threads.py", variables=place.variables(PROBE="1", PROBE_ADDR="nonsense")).settle()
    until(lambda: place.says("ignored in the environment", "an address is HOST:PORT"))
    assert not servers(place) and job.child.poll() is None


def test_a_setting_starts_one_while_it_runs(place, start, any_python):
    job = start(any_python, "threads.py", variables=place.variables(PROBE="1")).settle()
    environment = dict(os.environ, XDG_RUNTIME_DIR=place.runtime)

    def config(word):
        return subprocess.run([PROBING, "-p", str(job.pid), "config", word], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=DEADLINE, env=environment)

    refused = config("probing.listen=nonsense")
    assert refused.returncode == 2 and "HOST:PORT" in refused.stderr
    assert config("probing.listen=127.0.0.1:0").returncode == 0
    assert ask(place.url(), "/api/v1/p/{}".format(job.pid))[0] == 200
    assert config("probing.listen=127.0.0.1:0").returncode == 0 and config("probing.sample_rate=0.5").returncode == 0
    assert len(servers(place)) == 1  # the same again, or another setting, starts no second


def test_grants_come_from_the_environment(place, start, any_python):
    start(any_python, "threads.py", variables=place.variables(PROBE_BG="1", PROBING_SERVE_ALLOW="eval")).settle()
    assert ask(place.url(), "/api/v1")[1]["grants"] == ["look", "control", "eval"]


def test_its_own_socket_needs_no_token(place, start, any_python):
    start(any_python, "threads.py", variables=place.variables(PROBE_BG="1")).settle()
    address = re.match(r"http://([^/]+)/", place.url())[1]
    connection = UnixConnection(os.path.join(place.folder, "serve-{}.sock".format(address)))
    connection.request("GET", "/api/v1")
    assert json.loads(connection.getresponse().read())["grants"] == ["look", "control", "eval"]
    connection.close()


def test_the_address_is_printed_again(place, start, any_python):
    """`serve --url` prints that of an own server where none is for all."""
    start(any_python, "threads.py", variables=place.variables(PROBE_BG="1")).settle()
    url = place.url()
    done = subprocess.run([PROBING, "serve", "--url"], stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                          env=dict(os.environ, XDG_RUNTIME_DIR=place.runtime))
    assert done.returncode == 0 and done.stdout == url + "\n"
