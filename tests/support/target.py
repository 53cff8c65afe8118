"""A running target program, what it told about itself, and `probing` looking at it."""

import ctypes
import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time

DEADLINE = 120  # seconds that anything here may take: torch alone takes one, and beside much other work thirty
PROBING = os.environ.get("PROBING", "probing")
SRCDIR = os.environ.get("SRCDIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TARGETS = os.path.join(SRCDIR, "tests", "targets")


_ports = itertools.count(os.getpid() * 101)


def free_port():
    """One for a program that is started now: outside those that the kernel deals out, so that nobody gets it meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as told:
        first = min(int(told.read().split()[0]), 32768)
    for number in itertools.islice(_ports, 1000):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", 10000 + number % max(1, first - 10000)))
            except OSError:
                continue
            return one.getsockname()[1]
    raise AssertionError("no port is free from 10000 to {}".format(first))


_DROPPED = re.compile(r"probing: note: (\d+) of (\d+) stacks were dropped: no two readings were equal\n")


def few_dropped(told):
    """What a command wrote, without its note that at most one stack in ten was dropped: the machine was busy."""
    return _DROPPED.sub(lambda note: "" if 10 * int(note[1]) <= int(note[2]) else note[0], told)


def probing(*args, timeout=DEADLINE, check=True, **more):
    """Run the command; with check, it must succeed and say nothing on standard error (but what few_dropped leaves out)."""
    done = subprocess.run([PROBING, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, encoding="utf-8", stdin=subprocess.DEVNULL, **more)
    if check:
        assert done.returncode == 0, "{}: {}\n{}".format(args, done.returncode, done.stderr)
        assert not few_dropped(done.stderr), done.stderr
    return done


def backtrace(pid, *options):
    return json.loads(probing("-t", pid, "backtrace", "--json", *options).stdout)


def query(target, sql, *options):
    """Rows of a statement, as dicts."""
    return json.loads(probing("-t", target, "query", "-f", "json", *options, sql).stdout)


def children(pid):
    try:
        with open("/proc/{0}/task/{0}/children".format(pid)) as listed:
            return [int(word) for word in listed.read().split()]
    except OSError:
        return []


def task_states(pid):
    """{tid: (state letter, context switches)} of all tasks."""
    states = {}
    for tid in os.listdir("/proc/{}/task".format(pid)):
        try:
            with open("/proc/{}/task/{}/status".format(pid, tid), errors="replace") as status:
                lines = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        except OSError:
            continue
        states[int(tid)] = (lines["State"][0], lines["voluntary_ctxt_switches"], lines["nonvoluntary_ctxt_switches"])
    return states


def inner_tids(pid):
    """{thread id inside the target's pid namespace: the id here}."""
    told = {}
    for tid in os.listdir("/proc/{}/task".format(pid)):
        with open("/proc/{}/task/{}/status".format(pid, tid), errors="replace") as status:
            inner = next(line.split()[-1] for line in status if line.startswith("NSpid:"))
        told[int(inner)] = int(tid)
    return told


class Target:
    def __init__(self, python, program, args=(), folder=TARGETS, variables=None, ready=True):
        """Start folder/program (paths as the target sees them) and wait until it says that it is ready."""
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1", LC_ALL="C.UTF-8", PYTHONIOENCODING="utf-8")
        environment.pop("LD_LIBRARY_PATH", None)
        if python.root:
            environment.pop("TMPDIR", None)  # a folder of ours
        environment.update(variables or {})
        self.python = python
        self.truth = []  # what its threads told, in order
        self.notes = []  # lines that are no JSON
        self.child = subprocess.Popen(python.command(os.path.join(folder, program), *map(str, args)),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.pid = self.child.pid
        self._text = b""
        try:
            if ready:
                self.wait_ready()
        except BaseException:
            self.end()
            raise

    def line(self, deadline=DEADLINE):
        """The next line of its output; None at the end."""
        until = time.monotonic() + deadline
        output = self.child.stdout.fileno()
        while b"\n" not in self._text:
            assert select.select([output], [], [], max(0, until - time.monotonic()))[0], "the target says nothing"
            data = os.read(output, 1 << 20)
            if not data:
                return None
            self._text += data
        line, self._text = self._text.split(b"\n", 1)
        return line.decode()

    def wait_ready(self):
        while True:
            line = self.line()
            if line is None:
                code = self.child.wait(DEADLINE)
                if code == 77:
                    import pytest

                    pytest.skip("this interpreter has no such thing")
                raise AssertionError("the target ended with status {}".format(code))
            if line == "ready":
                break
            if line.startswith("{"):
                self.truth.append(json.loads(line))
            else:
                self.notes.append(line)
        if self.python.container:
            self.pid = children(self.child.pid)[0]

    def settle(self, only=False):
        """Until every thread (only: the main one) sleeps in the kernel and stays there."""
        until = time.monotonic() + DEADLINE
        last = None
        while True:
            states = task_states(self.pid)
            if only:
                states = {self.pid: states[self.pid]}
            if states == last and all(state[0] == "S" for state in states.values()):
                return self
            assert time.monotonic() < until, "the target does not come to rest: {}".format(states)
            last = states
            select.select([], [], [], 0.002)  # the kernel has no event for this

    def end(self):
        """Kill it, and what it started."""
        others = set() if self.child.poll() is not None else set(children(self.pid)) | {self.pid}
        self.child.kill()
        for pid in others - {self.child.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.child.wait(DEADLINE)
        self.child.stdin.close()
        self.child.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.end()
        return False


def die_with_parent():
    """For preexec_fn: no test leaves a process behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def copy_targets(destination):
    """The target programs, where an interpreter of another root can see them."""
    os.makedirs(destination, exist_ok=True)
    for name in os.listdir(TARGETS):
        if name.endswith(".py"):
            shutil.copy(os.path.join(TARGETS, name), destination)
    shutil.rmtree(os.path.join(destination, "fake_torch"), ignore_errors=True)
    shutil.copytree(os.path.join(TARGETS, "fake_torch"), os.path.join(destination, "fake_torch"))
    return destination
