"""Hosts that fail in any way, the bus, too, while looks go on: each rank's state is the true one, and no stack is another's.

PROBING_FLEET_NEMESIS: how many rounds (4); PROBING_FLEET_SEED: where to begin, as a failure prints it.
"""

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time

import pytest

from bus import DEADLINE as LONGEST
from bus import Bus, missing
from fakes import Fakes, Record, members, shown, states

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
ROUNDS = int(os.environ.get("PROBING_FLEET_NEMESIS", 4))
SEED = int(os.environ.get("PROBING_FLEET_SEED", time.time_ns() % 1000000))
HOSTS, EACH, HALF = 32, 4, 16
WORLD = HOSTS * EACH
PARTIAL, PERMISSION = 15, 5
DEADLINE = 60
RECORD = Record()
JOBS = ("llama", "other")

# What a rank of a host that fails so may be: (its first rank, the others).
STATES = {
    "honest": ("answered", "answered"), "absent": ("silent", "silent"), "stopped": ("silent", "silent"), "mute": ("silent", "silent"),
    "late": ("silent", "silent"), "midway": ("silent", "silent"), "stuck": ("silent", "silent"), "twice": ("answered", "answered"),
    "cut": ("failed", "failed"), "damaged": ("failed", "failed"), "noise": ("answered failed silent", "answered failed silent"),
    "old": ("failed silent", "failed silent"), "thief": ("failed", "failed"), "lost": ("missing", "answered"), "ended": ("gone", "answered"),
    "refused": ("failed", "answered"), "truncated": ("answered", "answered"), "release": ("answered", "answered"), "claims": ("answered", "answered")}
WAITS = ("stopped",)  # a look for hosts waits for these


class Asker:
    """Looks at a job, and checks what each must have."""

    def __init__(self, bus):
        self.bus, self.questions, self.error = bus, set(), None

    def look(self, job, budget=DEADLINE):
        """(states, coverage) of an answer whose rows are those of the ranks that answered; None: nobody could be asked."""
        done = self.bus.run("-t", "@" + job, "--timeout", str(budget), "backtrace", "--json")
        if done.returncode not in (0, PARTIAL):
            assert done.stderr and not done.stdout, done.stdout
            self.error = done.stderr
            return None
        told = json.loads(done.stdout)
        found = states(told["coverage"])
        assert done.returncode == (0 if set(found.values()) == {"answered"} and not told["coverage"]["truncated"] else PARTIAL)
        return found, told

    def look_at_faults(self, job, may):
        """As look; a host that only this machine makes late has more time.  may(budget): {rank: states that it may have}."""
        for budget in (0.4, 4, DEADLINE):
            answer = self.look(job, budget)
            allowed = may(budget)
            wrong = {state for rank, state in (answer[0].items() if answer else ()) if state not in allowed[rank]}
            if wrong != {"silent"}:
                break
        return answer, allowed

    def check(self, told, job, exact):
        """Rows are those of the ranks of exact, each once, of this question and job."""
        rows = shown(told["rows"])
        questions = {frames[0][3] for (thread, frames), (ranks, _) in rows.items() if thread == "MainThread" and ranks & exact}
        assert len(questions) == (1 if exact else 0) and not questions & self.questions, "an answer to an earlier question"
        self.questions |= questions
        wanted = RECORD.groups(exact, job, question=max(questions, default=0))
        assert {key: ranks & exact for key, (ranks, _) in rows.items() if ranks & exact} == {key: ranks for key, (ranks, _) in wanted.items()}
        alone = [key for key, (ranks, _) in rows.items() if ranks <= exact]
        assert [rows[key][1] for key in alone] == [wanted[key][1] for key in alone], "a thread is counted twice"


def ended(one):
    with contextlib.suppress(OSError):  # the other side was sooner
        one.shutdown(socket.SHUT_RDWR)


class Proxy(threading.Thread):
    """Between some hosts and the bus: carries bytes, and at will none."""

    def __init__(self, bus, path):
        super().__init__(daemon=True)
        self.to, self.path, self.pairs, self.flows = bus.address, path, [], threading.Event()
        self.flows.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        told = dict(bus.file("agent"), servers=["tls://127.0.0.1:{}".format(self.listener.getsockname()[1])])
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(told, file)
        self.start()

    def run(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(self.to)
            except OSError:  # the bus is not there
                near.close()
                continue
            self.pairs += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source, sink):
        try:
            while True:
                data = source.recv(1 << 16)
                self.flows.wait()
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        ended(source)
        ended(sink)

    def cut(self):
        self.flows.clear()

    def mend(self):
        """What was on its way is lost."""
        pairs, self.pairs = self.pairs, []
        for one in pairs:
            ended(one)
        self.flows.set()

    def end(self):
        self.listener.close()
        self.mend()


class World:
    """Two jobs on the hosts of two processes; the second reaches the bus by a proxy."""

    def __init__(self):
        self.bus = Bus()
        self.bus.up()
        self.proxy = Proxy(self.bus, os.path.join(self.bus.home, "agent-by-proxy"))
        self.fakes = [Fakes(os.path.join(self.bus.folder, "agent"), JOBS, 0, HALF, EACH, 2), Fakes(self.proxy.path, JOBS, HALF, HALF, EACH)]
        for one in self.fakes:
            self.tell(one)
        self.asker = Asker(self.bus)

    def tell(self, one):
        one.order("world", WORLD)
        one.order("marked")

    def fault(self, host, name):
        self.fakes[host >= HALF].order("fault", host, host, name)

    def whole(self):
        """Until all answer again."""
        end = time.monotonic() + DEADLINE
        while True:
            told = self.asker.look("llama")
            if told and set(told[0].values()) == {"answered"}:
                return
            assert time.monotonic() < end, told and told[1]["coverage"]

    def end(self):
        for one in self.fakes:
            one.kill()
        self.proxy.end()
        self.bus.remove()


@pytest.fixture(scope="module")
def world():
    one = World()
    yield one
    one.end()


def allowed(faults, budget):
    """{rank: states that it may have}; of claims the rank is failed that two have."""
    found = {}
    for host, name in enumerate(faults):
        for i in range(EACH):
            found[host * EACH + i] = set(STATES[name][i > 0].split()) | ({"answered"} if name == "late" and budget > 1 else set())
    for host, name in enumerate(faults):
        if name == "claims":  # who does not tell of the rank claims none
            found[(host + 1) * EACH] = {"silent" if faults[host + 1] in ("lost", "absent", "stopped") else "failed"}
    return found


@pytest.mark.parametrize("number", range(ROUNDS))
def test_hosts_that_fail(world, number):
    """Some of the hosts fail, each in its own way; the others are whole."""
    seed = SEED + number
    choose = random.Random(seed)
    names = [name for name in STATES if name != "honest" and (name not in WAITS or number % 3 == 2)]
    faults = [choose.choice(names) if choose.random() < 0.4 else "honest" for _ in range(HOSTS - 1)] + ["honest"]
    try:
        for host, name in enumerate(faults):
            world.fault(host, name)
        world.fakes[0].order("clock", 0, HALF // 2, choose.uniform(-7200, 7200))
        for job in JOBS:
            answer, may = world.asker.look_at_faults(job, lambda budget: allowed(faults, budget))
            assert answer, world.asker.error
            found, told = answer
            wrong = {rank: (state, faults[rank // EACH]) for rank, state in found.items() if state not in may[rank]}
            assert not wrong, wrong
            exact = {rank for rank, state in found.items() if state == "answered" and faults[rank // EACH] != "noise"}
            world.asker.check(told, job, exact)
            assert members(told["coverage"]["truncated"]) == {host * EACH for host in range(HOSTS) if faults[host] == "truncated" and
                                                              faults[host - 1] != "claims"}
    except AssertionError:
        print("PROBING_FLEET_SEED={} of {}".format(seed, faults))
        raise


def first_half(found):
    return {found[rank] for rank in range(HALF * EACH)}


def second_half(found):
    return {found[rank] for rank in range(HALF * EACH, WORLD)}


@pytest.fixture
def honest(world):
    for one, first in zip(world.fakes, (0, HALF)):
        one.order("fault", first, first + HALF - 1, "honest")
        one.order("clock", first, first + HALF - 1, 0)
    world.whole()
    return world


def test_hosts_killed(honest):
    """All of half the hosts at once, and they come back."""
    honest.fakes[1].kill()
    found, told = honest.asker.look("llama")
    assert first_half(found) == {"answered"} and second_half(found) == {"silent"}
    honest.asker.check(told, "llama", set(range(HALF * EACH)))
    honest.fakes[1].start()
    honest.tell(honest.fakes[1])
    honest.whole()


def test_cut_off(honest):
    """Nothing goes to half of the hosts or comes from them; the bus has not seen it."""
    honest.proxy.cut()
    try:
        found, told = honest.asker.look("other")
    finally:
        honest.proxy.mend()
    assert first_half(found) == {"answered"} and second_half(found) == {"silent"}
    honest.asker.check(told, "other", set(range(HALF * EACH)))
    honest.whole()


def test_stopped(honest):
    """What lay in their sockets meanwhile is no answer to what is asked later."""
    os.kill(honest.fakes[1].process.pid, signal.SIGSTOP)
    try:
        found, _ = honest.asker.look("llama")
    finally:
        os.kill(honest.fakes[1].process.pid, signal.SIGCONT)
    assert first_half(found) == {"answered"} and second_half(found) == {"silent"}
    honest.whole()


@pytest.mark.parametrize("fault, state", [("stopped", "silent"), ("busy", "answered")])
def test_not_known_to_be_lost(honest, fault, state):
    """Who gives no sign of life costs no budget, which here is longer than a command may take; who does is waited for."""
    honest.fault(3, fault)
    try:
        found, told = honest.asker.look("llama", budget=2 * LONGEST)
    finally:
        honest.fault(3, "honest")
    assert {rank for rank in found if found[rank] != "answered"} == (set(range(3 * EACH, 4 * EACH)) if state == "silent" else set()), found
    assert {found[rank] for rank in range(3 * EACH, 4 * EACH)} == {state}
    honest.asker.check(told, "llama", {rank for rank in found if found[rank] == "answered"})


def test_bus_killed_while_it_is_asked(honest):
    """At any moment of a look: an error, or an answer that says what it lacks; and whole again soon."""
    choose = random.Random(SEED)
    for _ in range(2):
        killer = threading.Timer(choose.uniform(0, 0.15), os.kill, (honest.bus.server, signal.SIGKILL))
        killer.start()
        told = honest.asker.look("llama", budget=0.4)
        killer.join()
        if told:
            honest.asker.check(told[1], "llama", {rank for rank, state in told[0].items() if state == "answered"})
        honest.whole()


def test_wrong_key(honest):
    """Another bus's key: nothing is said, and nothing heard."""
    other = Bus()
    try:
        other.run("cluster", "up", "--print")
        path = os.path.join(other.home, "look")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(dict(honest.bus.file("look"), nkey=other.file("look")["nkey"]), file)
        done = honest.bus.run("--bus", path, "-t", "@llama", "backtrace", "--json")
        assert done.returncode == PERMISSION and not done.stdout and "key" in done.stderr, done.stderr
    finally:
        other.remove()
