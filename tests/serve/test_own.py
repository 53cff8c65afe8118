"""Servers of their own: `inject -l`, for some processes, as long as these live."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from serving import DEADLINE, PROBING, until


@pytest.fixture
def begin():
    """begin(job, *words): `inject` with them; (its output, the servers' environment)."""
    runtime = tempfile.mkdtemp(prefix="own-")
    environment = dict(os.environ, XDG_RUNTIME_DIR=runtime, PROBING_STORE="off")

    def run(job, *words, **variables):
        return subprocess.run([PROBING, "-p", str(job.pid), "inject", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=DEADLINE, env=dict(environment, **variables), stdin=subprocess.DEVNULL)

    run.folder = os.path.join(runtime, "probing")
    run.environment = environment
    yield run
    end_servers(run)
    shutil.rmtree(runtime)


def servers(begin):
    """The pids that serve-PID.json files have and that run."""
    if not os.path.isdir(begin.folder):
        return []
    found = [re.match(r"serve-(\d+)\.json$", name) for name in os.listdir(begin.folder)]
    return [int(one[1]) for one in found if one and os.path.exists("/proc/{}".format(one[1]))]


def end_servers(begin):
    for pid in servers(begin):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until(lambda: not servers(begin))


def fetch(url, path):
    where, token = re.match(r"http://([^/]+)/#token=(\S+)$", url).groups()
    connection = http.client.HTTPConnection(where, timeout=DEADLINE)
    connection.request("GET", path, headers={"Authorization": "Bearer " + token})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def ask(url, path):
    status, body = fetch(url, path)
    return status, json.loads(body) if body[:1] in (b"{", b"[") else body


def text(url, path):
    return fetch(url, path)[1].decode()


@pytest.mark.parametrize("words", [("-b",), ("-l", "127.0.0.1:0"), ("-b", "-a", "127.0.0.1:0")], ids=" ".join)
def test_inject_starts_one(begin, job, words):
    done = begin(job, *words)
    assert done.returncode == 0 and not done.stderr, done.stderr
    first, url = done.stdout.splitlines()
    assert first.startswith("loaded in")
    status, told = ask(url, "/api/v1/p/{}/stacks".format(job.pid))
    assert status == 200 and told["threads"]
    assert ask(url, "/api/v1")[1]["grants"] == ["look"]
    (pid,) = servers(begin)
    assert os.stat("/proc/{}".format(pid)).st_uid == os.geteuid()
    assert int(open("/proc/{}/stat".format(pid)).read().rsplit(")", 1)[1].split()[3]) != os.getsid(0)  # a session of its own


def test_ranks_share_one(begin, start, any_python):
    """The first listens, the others are served by it."""
    jobs = [start(any_python, "threads.py").settle() for _ in range(3)]
    url = begin(jobs[0], "-b").stdout.splitlines()[1]
    address = re.match(r"http://([^/]+)/", url)[1]
    for job in jobs[1:]:
        done = begin(job, "-l", address)
        assert done.returncode == 0 and done.stdout.splitlines()[1] == url, done.stderr
    assert len(servers(begin)) == 1
    for job in jobs:
        assert ask(url, "/api/v1/p/{}".format(job.pid))[0] == 200


def test_a_port_of_somebody_else(begin, job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = begin(job, "-l", "127.0.0.1:{}".format(taken.getsockname()[1]))
    assert done.returncode and "listening on" in done.stderr and not servers(begin)


def test_a_port_of_ours_says_whose_it_is(begin, job):
    url = begin(job, "-b").stdout.splitlines()[1]
    (pid,) = servers(begin)
    address = re.match(r"http://([^/]+)/", url)[1]
    refused = subprocess.run([PROBING, "serve", "--address", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                             env=begin.environment)
    assert refused.returncode and not refused.stdout and "your server, process {}".format(pid) in refused.stderr, refused.stderr
    assert url.split("#token=")[1] not in refused.stderr


def test_grants_of_its_own(begin, job):
    url = begin(job, "-b", PROBING_SERVE_ALLOW="eval").stdout.splitlines()[1]
    assert ask(url, "/api/v1")[1]["grants"] == ["look", "control", "eval"]


def test_it_is_beside_the_users_server(begin, job, serve):
    """It takes no lock of the one for all processes, and is asked by its address without a token."""
    url = begin(job, "-b").stdout.splitlines()[1]
    whole = serve(runtime=os.path.dirname(begin.folder))
    assert whole.line != url
    address = re.match(r"http://([^/]+)/", url)[1]
    there = subprocess.run([PROBING, "-t", address, "-p", str(job.pid), "backtrace"], stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                           env=begin.environment)
    assert there.returncode == 0 and "thread" in there.stdout.lower()


def test_it_ends_well_and_leaves_nothing(begin, job):
    begin(job, "-b")
    assert servers(begin)
    end_servers(begin)
    until(lambda: sorted(os.listdir(begin.folder)) == ["serve.log"])


def test_it_outlives_its_process_for_a_minute(begin, start, any_python):
    """So that pages can say how it ended: here only that it does not go at once."""
    job = start(any_python, "threads.py").settle()
    url = begin(job, "-b").stdout.splitlines()[1]
    os.kill(job.pid, signal.SIGKILL)
    job.child.wait()
    assert ask(url, "/api/v1/p/{}/stacks".format(job.pid))[0] == 404
    assert servers(begin)


def test_it_ends_with_its_process(begin, start, any_python):
    job = start(any_python, "threads.py").settle()
    begin(job, "-b", PROBING_SERVE_LINGER="0.2")
    assert servers(begin)
    os.kill(job.pid, signal.SIGKILL)
    job.child.wait()
    until(lambda: not servers(begin))


def test_a_detach_is_an_end_of_it(begin, start, any_python):
    """Of the last one that has a probe; and who gets one again in time is kept."""
    jobs = [start(any_python, "threads.py").settle() for _ in range(2)]
    linger = 8  # s: on a busy machine the detaches and the next injection take their time
    url = begin(jobs[0], "-b", PROBING_SERVE_LINGER=str(linger)).stdout.splitlines()[1]
    begin(jobs[1], "-l", re.match(r"http://([^/]+)/", url)[1])

    def detach(job):
        subprocess.run([PROBING, "-p", str(job.pid), "detach"], check=True, stdout=subprocess.DEVNULL, env=begin.environment)

    ended = time.monotonic()
    for job in jobs:
        detach(job)
    assert begin(jobs[0]).returncode == 0
    while time.monotonic() < ended + linger + 2:
        assert ask(url, "/api/v1/p/{}".format(jobs[0].pid))[0] == 200
        time.sleep(0.2)
    detach(jobs[0])
    until(lambda: not servers(begin))
    assert all(job.child.poll() is None for job in jobs)


def test_while_a_process_lives(serve, job, start, any_python):
    """`serve --while`: others can join; the end after a minute is that of above."""
    server = serve("--unix", "--while", str(start(any_python, "threads.py").settle().pid))
    assert server.post("/api/v1/targets", {"pid": job.pid}).json == {"added": job.pid}
    assert server.post("/api/v1/targets", {"pid": job.pid}, Via="1.1 panel").status == 403
    assert server.alive()
    for words, told in ((("--while", "0"), "--while 0: must be a process id"), (("--while", "4194999"), "there is no process 4194999")):
        done = subprocess.run([PROBING, "serve", "--unix", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                              env=dict(server.environment, XDG_RUNTIME_DIR=tempfile.gettempdir()), stdin=subprocess.DEVNULL)
        assert done.returncode and told in done.stderr
    always = serve()
    assert always.post("/api/v1/targets", {"pid": job.pid}).status == 422


@pytest.fixture
def two(start, any_python):
    """Two jobs; the one of the lower pid, which a look at all comes to first, is not to be looked at."""
    return sorted((start(any_python, "threads.py").settle() for _ in range(2)), key=lambda job: job.pid)


def test_it_looks_at_its_process_alone(begin, two):
    other, job = two
    url = begin(job, "-b").stdout.splitlines()[1]
    until(lambda: 'pid="{}"'.format(job.pid) in text(url, "/metrics"))  # its own looks have begun
    assert 'pid="{}"'.format(other.pid) not in text(url, "/metrics")
    assert [row["pid"] for row in ask(url, "/api/v1/processes")[1]["processes"]] == [job.pid]
    assert [row["pid"] for row in ask(url, "/apis/processes/local")[1]] == [job.pid]
    assert ask(url, "/apis/overview")[1]["pid"] == job.pid
    for path in ("", "/stacks", "/history", "/query?sql=SELECT+1", "/config", "/profile?seconds=0.1", "/snapshot"):
        assert ask(url, "/api/v1/p/{}{}".format(job.pid, path.replace("/config", "")))[0] == 200, path
        status, told = ask(url, "/api/v1/p/{}{}".format(other.pid, path))
        assert status == 403 and str(job.pid) in told["error"]["message"], (path, told)


def test_commands_and_text_are_bound_to_it(begin, two):
    other, job = two
    url = begin(job, "-b").stdout.splitlines()[1]
    address = re.match(r"http://([^/]+)/", url)[1]

    def there(*words):
        return subprocess.run([PROBING, "-t", address, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                              env=begin.environment)

    assert there("-p", str(job.pid), "backtrace").returncode == 0
    for words in (("-p", str(other.pid), "backtrace"), ("-p", str(other.pid), "query", "SELECT 1")):
        refused = there(*words)
        assert refused.returncode and "not for process" in refused.stderr, words
    with socket.create_connection(address.rsplit(":", 1), DEADLINE) as one:
        one.sendall("pid {}\nbt\n".format(other.pid).encode())
        one.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: one.recv(65536), b"")).decode()
    assert "not for process" in said and "thread" in said.lower()  # then the only one that it has


def test_a_list_is_of_its_processes(begin, two):
    """Also as text, and the ranks of its job are no way to others."""
    other, job = two
    url = begin(job, "-b").stdout.splitlines()[1]
    address = re.match(r"http://([^/]+)/", url)[1]

    def pids(told):
        return {line.split()[0] for line in told.splitlines() if line.split()[:1] and line.split()[0].isdigit()}

    there = subprocess.run([PROBING, "-t", address, "list"], check=True, stdout=subprocess.PIPE, encoding="utf-8", env=begin.environment).stdout
    with socket.create_connection(address.rsplit(":", 1), DEADLINE) as one:
        one.sendall(b"list\n")
        one.shutdown(socket.SHUT_WR)
        line = b"".join(iter(lambda: one.recv(65536), b"")).decode()
    for told in (text(url, "/api/v1/processes?format=text"), there, line):
        assert pids(told) == {str(job.pid)}, told


def test_other_ranks_are_not_its_own(begin, any_python):
    """`--ranks` is for who has all of them."""
    environment = [dict(os.environ, RANK=str(rank), WORLD_SIZE="2") for rank in range(2)]
    ranks = [subprocess.Popen(any_python.command("-c", "import time; print(flush=True); time.sleep(600)"), stdout=subprocess.PIPE, env=one) for one in environment]
    try:
        for rank in ranks:
            rank.stdout.readline()
        url = begin(ranks[0], "-b").stdout.splitlines()[1]
        address = re.match(r"http://([^/]+)/", url)[1]
        words = [PROBING, "-t", address, "-p", str(ranks[0].pid), "backtrace", "--ranks"]
        refused = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, env=begin.environment)
        assert refused.returncode and "not for process {}".format(ranks[1].pid) in refused.stderr, refused
        begin(ranks[1], "-l", address)
        assert subprocess.run(words, stdout=subprocess.PIPE, timeout=DEADLINE, env=begin.environment).returncode == 0
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def test_what_a_process_starts_is_its_own(begin, any_python):
    """Workers of a data loader are of the job; a process started by somebody else is not."""
    code = ("import subprocess, sys, time\none = subprocess.Popen([sys.executable, '-c', 'import time; print(flush=True); time.sleep(600)'], stdout=subprocess.PIPE)\n"
            "one.stdout.readline()\nprint(one.pid, flush=True)\ntime.sleep(600)")
    with subprocess.Popen(any_python.command("-c", code), stdout=subprocess.PIPE, encoding="utf-8") as job:
        worker = int(job.stdout.readline())
        try:
            url = begin(job, "-b").stdout.splitlines()[1]
            assert {row["pid"] for row in ask(url, "/api/v1/processes")[1]["processes"]} == {job.pid, worker}
            assert ask(url, "/api/v1/p/{}".format(worker))[0] == 200
        finally:
            os.kill(worker, signal.SIGKILL)
            job.kill()


def test_one_that_is_added_is_looked_at(begin, two):
    other, job = two
    url = begin(job, "-b").stdout.splitlines()[1]
    until(lambda: 'pid="{}"'.format(job.pid) in text(url, "/metrics"))
    begin(other, "-l", re.match(r"http://([^/]+)/", url)[1])
    until(lambda: 'pid="{}"'.format(other.pid) in text(url, "/metrics"))
    assert ask(url, "/api/v1/p/{}/history".format(other.pid))[0] == 200
