"""Agents on a bus: ranks of two hosts as one job, and what is said when an agent, a host or the bus is not there."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from bus import PROBING, Bus, missing
from conftest import PROGRAM
from hosts import Hosts, can
from nats_client import Client

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not can(), reason="needs root, ip, and namespaces of network and processes")]
DEADLINE = 120
PARTIAL, NOT_FOUND, USAGE = 15, 3, 2


class Cluster:
    """Two hosts with an agent and two ranks each, and the hub, which asks."""

    def __init__(self, program=PROGRAM):
        self.program = program
        self.hosts = Hosts(2)
        self.bus = Bus()
        self.ranks = {}
        done = self.at(self.hosts.hub, "cluster", "up")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "probing cluster attach --bus {}/agent".format(self.bus.folder)

    def at(self, host, *words, **variables):
        environment = dict(self.bus.environment, PROBING_STORE="off", **variables)
        return subprocess.run([*host.enter, PROBING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              encoding="utf-8", timeout=DEADLINE, env=environment)

    def attach(self, host, *options):
        done = self.at(host, "cluster", "attach", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *words):
        return self.at(self.hosts.hub, "-t", "@job", *words)

    def coverage(self, *options):
        """(status, coverage) of a look at all ranks; its sums are right."""
        done = self.ask(*map(str, options), "backtrace", "--json")
        assert done.returncode in (0, PARTIAL), done.stderr
        found = json.loads(done.stdout)["coverage"]
        sets = [members(found[name]) for name in ("answered", "silent", "missing", "gone")] + [{one["rank"] for one in found["failed"]}]
        assert sum(map(len, sets)) == len(set.union(*sets)) == found["expected"] == 4, found
        return done.returncode, found

    def start(self, host, rank):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="4", PROBING_JOB="job")
        process = subprocess.Popen([*host.enter, sys.executable, "-c", self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert process.stdout.readline() == b"ready\n"
        self.ranks[rank] = process
        return process

    def agent(self, host):
        """Its pid, as this test sees it."""
        return int(host_pid(host, "probing-agent"))

    def end(self):
        for host in self.hosts.all:
            self.at(host, "cluster", "detach")
        down = self.at(self.hosts.hub, "cluster", "down")
        for process in self.ranks.values():
            process.kill()
        self.hosts.end()
        for process in self.ranks.values():
            process.wait(DEADLINE)
            process.stdin.close()
            process.stdout.close()  # children that a rank left may have its other end
        shutil.rmtree(self.bus.home, ignore_errors=True)
        assert down.returncode == 0, down.stderr


def host_pid(host, name):
    """The oldest process of a name in a host's namespace of processes, which is no other's child."""
    space = os.readlink("/proc/{}/ns/pid".format(host.pid))
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/{}/stat".format(pid)) as file:
                comm, _, rest = file.read().partition(" (")[2].rpartition(") ")
            if comm == name and rest[0] != "Z" and os.readlink("/proc/{}/ns/pid".format(pid)) == space:
                found[int(pid)] = int(rest.split()[1]), int(rest.split()[19])
        except OSError:
            pass
    # Numbers begin anew, times do not; a child may be as old as its parent.
    return min((started, pid) for pid, (parent, started) in found.items() if parent not in found)[1]


def until_gone(host, name):
    """Until no process of that name is there."""
    end = time.monotonic() + DEADLINE
    with contextlib.suppress(ValueError):
        while True:
            pid = host_pid(host, name)
            assert time.monotonic() < end, pid
            time.sleep(0.05)


def members(text):
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


@pytest.fixture(scope="module")
def cluster():
    one = Cluster()
    try:
        for number, host in enumerate(one.hosts.all):
            for rank in (2 * number, 2 * number + 1):
                one.start(host, rank)
            said = one.attach(host)
            assert "is on the bus" in said and "ranks {}-{} of @job".format(2 * number, 2 * number + 1) in said
        yield one
    finally:
        one.end()


def until(cluster, wanted):
    """Look until the answer is so."""
    end = time.monotonic() + DEADLINE
    while True:
        _, found = cluster.coverage()
        if wanted(found):
            return found
        assert time.monotonic() < end, found


def test_one_job(cluster):
    """All ranks of both hosts, the odd one first; who is where."""
    done = cluster.ask("backtrace")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("rank")] == ["rank 2", "ranks 0-1,3 (3 of 4)", "ranks 0-3 (4 of 4)"]
    assert "4 of 4 ranks answered" in done.stderr
    nodes = cluster.at(cluster.hosts.hub, "cluster", "nodes")
    assert [line.split()[:2] for line in nodes.stdout.splitlines()[1:]] == [["node1", "answers"], ["node2", "answers"]], nodes.stderr
    ranks = cluster.at(cluster.hosts.hub, "cluster", "ranks")
    assert sorted(line.split()[1:3] for line in ranks.stdout.splitlines()[1:]) == [["0", "node1"], ["1", "node1"], ["2", "node2"], ["3", "node2"]]
    jobs = cluster.at(cluster.hosts.hub, "cluster", "jobs")
    assert jobs.stdout.splitlines()[1].split() == ["@job", "4", "2", "0-3"]
    again = cluster.attach(cluster.hosts.all[0])
    assert "runs already" in again


def children(pid):
    """Of all threads of a process."""
    found = []
    for tid in os.listdir("/proc/{}/task".format(pid)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            with open("/proc/{}/task/{}/children".format(pid, tid)) as file:
                found += map(int, file.read().split())
    return found


def lookers(cluster, host):
    """The processes that look at its ranks, and the one that starts them."""
    starter, = children(cluster.agent(host))
    return starter, children(starter)


def test_no_fork_with_threads(cluster):
    """A child is a copy of a process with one thread, and one that is killed is replaced."""
    host = cluster.hosts.all[0]
    assert cluster.ask("backtrace").returncode == 0
    starter, before = lookers(cluster, host)
    assert len(before) == 2 and len(os.listdir("/proc/{}/task".format(starter))) == 1
    assert len(os.listdir("/proc/{}/task".format(cluster.agent(host)))) > 1
    os.kill(before[0], signal.SIGKILL)
    until(cluster, lambda found: found["answered"] == "0-3")
    assert len(set(lookers(cluster, host)[1]) - set(before)) == 1


def test_starter_killed(cluster):
    """Nobody starts children as before, and still all ranks are looked at."""
    host = cluster.hosts.all[0]
    os.kill(lookers(cluster, host)[0], signal.SIGKILL)
    until(cluster, lambda found: found["answered"] == "0-3")
    assert cluster.at(host, "cluster", "detach").returncode == 0
    cluster.attach(host)


def unpacked(body):
    """By the library that packed it."""
    room = ctypes.create_string_buffer(1 << 20)
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = zstd.ZSTD_decompress(room, ctypes.c_size_t(len(room)), body, ctypes.c_size_t(len(body)))
    return room.raw[:size]


class Asker:
    """Questions to the agent of rank 0 as messages, with a key of a class."""

    def __init__(self, cluster):
        with cluster.hosts.hub.network():
            self.client = Client(cluster.bus.file("look"))
        self.client.subscribe("_INBOX.look.me.*")
        self.client.refused()
        self.number = time.time_ns()  # an agent answers an id once

    def ask(self, kind, budget=30, ranks="", max_bytes=None, **args):
        self.number += 1
        id_ = "{:032x}".format(self.number)
        self.client.publish("probing.v1.job.look.r.0", {"v": 1, "id": id_, "kind": kind, "job": "job", "ranks": ranks, "budget_ms": budget * 1000,
                                                        "max_bytes": max_bytes, "args": args}, "_INBOX.look.me.1")
        return id_

    def answer(self):
        """(id, the head of the reply)"""
        message = self.client.next(DEADLINE)
        body = unpacked(message.body) if "Probing-Packed" in message.headers else message.body
        size = int.from_bytes(body[:4], "little")
        return message.headers["Probing-Id"], json.loads(body[4:4 + size].decode())

    def answer_to(self, kind):
        self.ask(kind)
        return self.answer()[1]


@pytest.fixture
def asker(cluster):
    one = Asker(cluster)
    yield one
    one.client.close()


def test_a_profile_holds_up_nobody(asker):
    """Nor do two of them."""
    for seconds in (2, 8, 20):  # within the first a busy machine may not answer anybody
        long = [asker.ask("profile", budget=60, seconds=seconds + more, rate=10) for more in (1, 0)]
        short = [asker.ask("list") for _ in range(2)]
        order = [asker.answer()[0] for _ in range(4)]
        assert sorted(order) == long + short
        if sorted(order[:2]) == short:
            break
    assert sorted(order[:2]) == short


def test_a_small_bound_is_one(asker):
    """However little whoever asks takes: rows are not packed beyond it."""
    for most in (1000, 100000):
        asker.ask("rows", max_bytes=most, tables=[{"schema": "system", "name": "maps", "columns": ["start", "end"] * 20}] * 100)
        told = asker.answer()[1]
        assert {one["state"] for one in told["ranks"]} == {"answered"}, (most, told)  # it says what was too much


def test_a_statement_holds_up_nobody(cluster, asker):
    """Neither looks nor another statement wait for one that goes on."""
    host = cluster.hosts.all[0]

    def rows(column):
        return asker.ask("rows", tables=[{"schema": "system", "name": "process", "columns": [column]}])

    def until_answered(id_):
        while asker.answer()[0] != id_:
            pass

    until_answered(asker.ask("list"))
    end = time.monotonic() + DEADLINE
    while len(lookers(cluster, host)[1]) > 2:  # of statements before
        assert time.monotonic() < end
        time.sleep(0.05)
    quick = set(lookers(cluster, host)[1])
    while True:  # the children that have tables open may be gone before they are asked again
        until_answered(rows("pid"))
        stopped = set(lookers(cluster, host)[1]) - quick
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        heavy, others = rows("rss"), {asker.ask("list"), rows("command")}
        first = {asker.answer()[0] for _ in others}
        for pid in stopped & set(lookers(cluster, host)[1]):
            os.kill(pid, signal.SIGCONT)
        last, answer = asker.answer()
        assert [one["state"] for one in answer["ranks"]] == ["answered"] * 2, answer
        if stopped and first == others:
            break
        assert time.monotonic() < end
    assert last == heavy


def test_equal_looks_are_one(cluster, asker):
    """Twenty who ask the same at the same moment cost the ranks one look; another question is another look."""
    cluster.coverage()
    for pid in lookers(cluster, cluster.hosts.all[0])[1]:
        os.kill(pid, signal.SIGSTOP)
    first = asker.ask("tasks", budget=5)  # meanwhile the others come
    same = [asker.ask("list") for _ in range(20)]
    other = asker.ask("list", ranks="1")
    answers = dict(asker.answer() for _ in range(22))
    assert {one["state"] for one in answers[first]["ranks"]} == {"failed"}
    assert all(answers[id_]["id"] == id_ and [one["state"] for one in answers[id_]["ranks"]] == ["answered"] * 2 for id_ in same), answers
    assert len({answers[id_]["clock"] for id_ in same}) == 1
    assert [one["rank"] for one in answers[other]["ranks"]] == [1]
    newest, end = max(one["clock"] for one in answers.values()), time.monotonic() + DEADLINE
    while asker.answer_to("list")["clock"] <= newest:  # for 20 ms a look serves those who come later, too
        assert time.monotonic() < end


def test_a_look_loads_nothing(cluster, asker):
    """What loads a probe is asked as control."""
    asker.ask("hang_deep", every=0.1)
    assert "is not asked as look" in json.dumps(asker.answer()[1])
    asker.ask("hang", every=0.1, deep=True)
    assert {one["state"] for one in asker.answer()[1]["ranks"]} == {"answered"}
    with open("/proc/{}/maps".format(host_rank(cluster, 0))) as file:
        assert "libprobe" not in file.read()


def inner(pid):
    """As its own namespace numbers it."""
    with open("/proc/{}/status".format(pid)) as file:
        return int(next(line for line in file if line.startswith("NSpid:")).split()[-1])


def host_rank(cluster, rank):
    """The pid of a rank, whose parent entered its host."""
    return children(cluster.ranks[rank].pid)[0]


def test_agent_killed(cluster):
    """Its ranks are silent at once, and back with a new one."""
    host = cluster.hosts.all[1]
    os.kill(cluster.agent(host), signal.SIGKILL)
    status, found = cluster.coverage("--timeout", 2 * DEADLINE)  # a lost agent costs no budget: this one is longer than a command may take
    assert (status, found["answered"], found["silent"]) == (PARTIAL, "0-1", "2-3")
    cluster.attach(host)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_agent_stopped(cluster):
    """Silent while it stands; nothing that was asked meanwhile is counted later."""
    pid = cluster.agent(cluster.hosts.all[1])
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(2):
            status, found = cluster.coverage()  # not waited for: the budget is for the other host
            assert (status, found["answered"], found["silent"]) == (PARTIAL, "0-1", "2-3")
    finally:
        os.kill(pid, signal.SIGCONT)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_cut_off(cluster):
    """A link that is down is no answer, and back when it is up."""
    cluster.hosts.cut(2)
    try:
        status, found = cluster.coverage()
        assert (status, found["answered"], found["silent"]) == (PARTIAL, "0-1", "2-3")
    finally:
        cluster.hosts.join(2)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_cut_off_costs(cluster):
    """Half a second, where somebody asks all the time, so that the server does not ask the host itself."""

    def fastest():
        began, seconds = time.monotonic(), []
        for _ in range(4):
            cluster.coverage()
            seconds.append(time.monotonic() - began)
            began += seconds[-1]
        return min(seconds)

    whole = fastest()
    cluster.hosts.cut(2)
    try:
        cut = fastest()
    finally:
        cluster.hosts.join(2)
    assert cut - whole <= 0.5
    until(cluster, lambda found: found["answered"] == "0-3")


def wait_dead(pid):
    """Until it is a zombie, which its parent may be kept from waiting for."""
    end = time.monotonic() + DEADLINE
    while True:
        with open("/proc/{}/stat".format(pid)) as file:
            if file.read().rpartition(") ")[2][0] == "Z":
                return
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("store", ["kept", "empty"])
def test_server_killed(cluster, store):
    """It is back, and so are the agents; who they are is known again also where it has lost what it kept."""
    with open(os.path.join(cluster.bus.folder, "server")) as file:
        keeper = json.load(file)["pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        server, = children(keeper)
        os.kill(server, signal.SIGKILL)
        wait_dead(server)  # it writes nothing any more
        if store == "empty":
            shutil.rmtree(os.path.join(cluster.bus.folder, "store"))
    finally:
        os.kill(keeper, signal.SIGCONT)
    end = time.monotonic() + DEADLINE
    while cluster.ask("backtrace").returncode != 0:
        assert time.monotonic() < end
    # An agent writes itself down after it has answered: once it answers again, it has.
    until(cluster, lambda found: found["answered"] == "0-3")
    host = cluster.hosts.all[1]
    os.kill(cluster.agent(host), signal.SIGKILL)
    until(cluster, lambda found: (found["answered"], found["silent"]) == ("0-1", "2-3"))
    cluster.attach(host)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_rank_ended(cluster):
    """Gone, since when, and no other rank with it."""
    victim = cluster.ranks.pop(1)
    pid = int(next(line.split()[3] for line in cluster.at(cluster.hosts.hub, "cluster", "ranks").stdout.splitlines() if line.split()[1:3] == ["1", "node1"]))
    victim.kill()
    victim.communicate()
    until(cluster, lambda found: (found["answered"], found["gone"]) == ("0,2-3", "1"))  # what has closed its files may not have ended yet
    ranks = cluster.at(cluster.hosts.hub, "cluster", "ranks").stdout.splitlines()
    assert [line.split()[1:] for line in ranks if line.endswith("gone")] == [["1", "node1", str(pid), "gone"]], ranks
    assert "gone 1 (1: process {} was seen to end ".format(pid) in cluster.ask("backtrace").stderr
    cluster.start(cluster.hosts.all[0], 1)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_acting_is_off(cluster):
    """An agent without --allow refuses, whoever signs; and logs it."""
    with cluster.hosts.hub.network():
        client = Client(cluster.bus.file("eval"))
    client.subscribe("_INBOX.eval.me.*")
    client.refused()
    client.publish("probing.v1.job.eval.all", {"v": 1, "id": "0" * 32, "prepare": "{}"}, "_INBOX.eval.me.1")
    answers = [client.next() for _ in range(2)]
    client.close()
    assert all(b"does not allow eval" in one.body for one in answers), answers
    log = os.path.join(cluster.bus.home, ".local", "state", "probing", "agent-node1.log")
    with open(log) as file:
        assert "refused eval " + "0" * 32 in file.read()


def test_eval(cluster):
    """Where it is allowed, with a signed go; the others say that it is not."""
    host = cluster.hosts.all[0]
    assert cluster.at(host, "cluster", "detach").stdout == "this host's agent has ended\n"
    cluster.attach(host, "--allow", "eval")
    done = cluster.ask("eval", "6 * 7")
    assert done.returncode == PARTIAL, done.stderr
    assert "42" in done.stdout and "ranks 0-1 (2 of 4)" in done.stdout and "does not allow eval" in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT"])
@pytest.mark.parametrize("value", ["2147483647", "-1"])
def test_odd_environment(cluster, name, value):
    """A process whose environment says what no launcher does takes no rank from its host, and is looked at itself."""
    host = cluster.hosts.all[1]
    environment = dict(os.environ, RANK="0", WORLD_SIZE="1", PROBING_JOB="odd")
    environment[name] = value
    with subprocess.Popen([*host.enter, sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as rank:
        try:
            assert rank.stdout.readline() == b"ready\n"
            assert cluster.at(host, "cluster", "detach").returncode == 0
            cluster.attach(host)
            assert cluster.coverage()[1]["answered"] == "0-3"
            done = cluster.at(cluster.hosts.hub, "-t", "@odd:0", "backtrace")
            assert "innermost" in done.stdout, done.stderr
        finally:
            rank.stdin.close()


def test_ranks_of_others(cluster):
    """Those of another user are none of this host's, though root may look, unless its agent was told to serve them."""
    host = cluster.hosts.all[1]
    program = of_user(65534)
    environment = dict(os.environ, RANK="0", WORLD_SIZE="1", PROBING_JOB="theirs")

    def ask_anew(*options):
        assert cluster.at(host, "cluster", "detach").returncode == 0
        cluster.attach(host, *options)
        return cluster.at(cluster.hosts.hub, "-t", "@theirs", "backtrace")

    with subprocess.Popen([*host.enter, sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as rank:
        try:
            assert rank.stdout.readline() == b"ready\n"
            done = ask_anew()
            assert done.returncode == NOT_FOUND and 'no job "theirs"' in done.stderr and not done.stdout, done.stderr
            done = ask_anew("--all-users")
            assert done.returncode == 0 and "innermost" in done.stdout, done.stderr
            assert 'no job "theirs"' in ask_anew().stderr
        finally:
            rank.stdin.close()


def of_user(uid):
    """PROGRAM, of another user."""
    return PROGRAM.replace('print("ready"', 'os.setgroups([]); os.setgid({0}); os.setuid({0}); print("ready"'.format(uid))


@contextlib.contextmanager
def ranks_of(host, job, *users):
    """A rank 0 of each, and their agent, which serves all."""
    environment = dict(os.environ, RANK="0", WORLD_SIZE="1")
    environment["PROBING_JOB"] = job
    ranks = []
    try:
        for uid in users:
            ranks.append(subprocess.Popen([*host.enter, sys.executable, "-c", of_user(uid) if uid else PROGRAM], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, env=environment))
            assert ranks[-1].stdout.readline() == b"ready\n"
        yield [inner(children(one.pid)[0]) for one in ranks]
    finally:
        for one in ranks:
            one.communicate()


def test_two_users(cluster):
    """A job's name that two users have is two jobs: each sees the own one, whoever else has one is said, and none is mixed with another."""
    host, hub = cluster.hosts.all[1], cluster.hosts.hub
    assert cluster.at(host, "cluster", "detach").returncode == 0
    with ranks_of(host, "both", 0, 65534, 65533) as pids:
        cluster.attach(host, "--all-users", "--allow", "eval")
        done = cluster.at(hub, "-t", "@both", "list", "-f", "json")
        assert [(row["pid"], row["rank"]) for row in json.loads(done.stdout)["rows"]] == [(pids[0], 0)], done.stdout + done.stderr
        assert "a job of this name, too: its ranks are not asked" in done.stderr and done.stdout.count("\"answered\": \"0\"") == 1, done.stdout + done.stderr
        asked = cluster.at(hub, "-t", "@both:0", "eval", "import os; os.getpid(), os.geteuid()")
        assert asked.stdout == "rank 0:\n    ({}, 0)\n".format(pids[0]), asked.stdout + asked.stderr
        told = json.loads(cluster.at(hub, "cluster", "ranks", "-f", "json").stdout)
        assert {(row["pid"], row["user"]) for row in told if row["job"] == "both"} == set(zip(pids, (0, 65534, 65533))), told
        jobs = [line.split() for line in cluster.at(hub, "cluster", "jobs").stdout.splitlines()]
        assert jobs[0][-1] == "user" and sorted(line[-1] for line in jobs if line[0] == "@both") == ["0", "65533", "65534"], jobs
    with ranks_of(host, "theirs", 65534, 65533):
        done = cluster.at(hub, "-t", "@theirs", "list")
        assert done.returncode == USAGE and not done.stdout and 'users 65533 and 65534 each have a job "theirs"' in done.stderr, done.stderr
    assert cluster.at(host, "cluster", "detach").returncode == 0
    cluster.attach(host)


def test_a_name_that_is_no_text(cluster):
    """Its bytes that are no UTF-8 are written as \\xE9, and named so or as they are."""
    host = cluster.hosts.all[1]
    with ranks_of(host, b"caf\xe9", 0) as pids:
        end = time.monotonic() + DEADLINE
        while "@caf\\xE9 " not in cluster.at(cluster.hosts.hub, "cluster", "jobs").stdout:  # an agent does not look for ranks at each question
            assert time.monotonic() < end
        for address in ("@caf\\xE9", b"@caf\xe9"):
            done = cluster.at(cluster.hosts.hub, "-t", address, "query", "-f", "csv", "SELECT pid FROM system.process")
            assert done.stdout.split() == ["pid", str(pids[0])], done.stderr


def test_serve(cluster):
    """`probing serve` as the agent: one process, which attach finds, and whose ranks are answered for; it lends them to debuggers."""
    host = cluster.hosts.all[1]
    assert cluster.at(host, "cluster", "detach").returncode == 0
    folder = os.path.join(cluster.bus.home, "run")
    os.mkdir(folder, 0o700)
    environment = dict(cluster.bus.environment, PROBING_STORE="off", XDG_RUNTIME_DIR=folder)
    with subprocess.Popen([*host.enter, PROBING, "--bus", cluster.bus.folder, "serve", "--unix", "--agent", "--allow", "eval"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment) as server:
        try:
            assert server.stdout.readline().endswith("serve.sock\n"), server.stderr.read()
            pid = host_pid(host, "probing-serve")
            assert "runs already, and stays as it is, process {}\n".format(inner(pid)) in cluster.attach(host)
            with pytest.raises(ValueError):
                host_pid(host, "probing-agent")
            until(cluster, lambda found: found["answered"] == "0-3")
            asked = cluster.at(cluster.hosts.hub, "-t", "@job:2", "eval", "6 * 7")
            assert (asked.returncode, asked.stdout) == (0, "rank 2:\n    42\n"), asked.stderr
            words = [*cluster.hosts.hub.enter, PROBING, "-t", "@job:2", "debug", "--address", "127.0.0.1:0"]
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=cluster.bus.environment, encoding="utf-8") as debug:
                said = debug.stdout.readline()
                debug.terminate()
            assert "rank 2 (node2" in said, said
            ended = cluster.at(host, "cluster", "detach", XDG_RUNTIME_DIR=folder)
            assert ended.stdout == "this host's agent has ended\n" and server.poll() is None, ended.stderr
        finally:
            os.kill(host_pid(host, "probing-serve"), signal.SIGTERM)
        assert server.wait(DEADLINE) == 0
    until(cluster, lambda found: (found["answered"], found["silent"] + found["missing"]) == ("0-1", "2-3"))
    cluster.attach(host)
    until(cluster, lambda found: found["answered"] == "0-3")


def test_serve_becomes_the_agent(cluster):
    """`attach` beside a server makes that process the agent, which `detach` ends; the server goes on.  Where the agent has ended no lock is left."""
    host = cluster.hosts.all[1]
    assert cluster.at(host, "cluster", "detach").returncode == 0
    folder = os.path.join(cluster.bus.home, "beside")
    os.mkdir(folder, 0o700)
    variables = {"PROBING_DATA_DIR": folder, "XDG_RUNTIME_DIR": folder}

    def locks():
        return [name for name in os.listdir(folder) if name.startswith("agent-")]

    with subprocess.Popen([*host.enter, PROBING, "serve", "--unix"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", env=dict(cluster.bus.environment, PROBING_STORE="off", **variables)) as server:
        try:
            assert server.stdout.readline().endswith("serve.sock\n"), server.stderr.read()
            pid = inner(host_pid(host, "probing-serve"))
            for _ in range(2):
                done = cluster.at(host, "cluster", "attach", "--allow", "eval", **variables)
                assert done.stdout.startswith("this host's agent is on the bus, process {}\n".format(pid)), done.stdout + done.stderr
                assert len(locks()) == 1
                with pytest.raises(ValueError):
                    host_pid(host, "probing-agent")
                until(cluster, lambda found: found["answered"] == "0-3")
                asked = cluster.at(cluster.hosts.hub, "-t", "@job:2", "eval", "6 * 7")
                assert (asked.returncode, asked.stdout) == (0, "rank 2:\n    42\n"), asked.stderr
                again = cluster.at(host, "cluster", "attach", **variables)
                assert "runs already, and stays as it is, process {}\n".format(pid) in again.stdout, again.stdout + again.stderr
                assert cluster.at(host, "cluster", "detach", **variables).stdout == "this host's agent has ended\n"
                assert locks() == [] and server.poll() is None
            assert cluster.at(host, "cluster", "detach", **variables).stdout == "no agent of yours runs on this host\n"
            refused = cluster.at(host, "--bus", "/nowhere", "cluster", "attach", **variables)
            assert refused.returncode == NOT_FOUND and "the bus file /nowhere: No such file" in refused.stderr, refused.stderr
            assert locks() == []
        finally:
            os.kill(host_pid(host, "probing-serve"), signal.SIGTERM)
        assert server.wait(DEADLINE) == 0
    cluster.attach(host)


def test_launch(cluster):
    """The agent begins beside a job's launcher, and ends with it."""
    host = cluster.hosts.add(3)
    cluster.hosts.all.append(host)
    environment = dict(cluster.bus.environment, PROBING_STORE="off", RANK="0", WORLD_SIZE="1", PROBING_JOB="launched")
    with subprocess.Popen([*host.enter, PROBING, "launch", "--cluster", sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=environment) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            end = time.monotonic() + DEADLINE
            while True:  # an agent does not look for ranks at each question
                done = cluster.at(cluster.hosts.hub, "-t", "@launched", "backtrace")
                if done.returncode == 0:
                    break
                assert time.monotonic() < end, done.stderr
            assert "1 of 1 rank answered" in done.stderr and host_pid(host, "probing-agent")
        finally:
            program.stdin.close()
        assert program.wait(DEADLINE) == 0
    until_gone(host, "probing-agent")


def test_launch_without_a_bus(cluster):
    """The job runs all the same.  The hub has this machine's processes: another test's agent is found by a lock in the usual folder."""
    done = cluster.at(cluster.hosts.hub, "--bus", "/nowhere", "launch", "--cluster", "true", PROBING_DATA_DIR=cluster.bus.home)
    assert done.returncode == 0 and "note: this host is not on the bus" in done.stderr, done.stderr
