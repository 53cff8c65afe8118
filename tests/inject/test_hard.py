"""Injection where it is hard: allocation storms, registers that must not change, calls that must not return, threads and
processes that come and go, signals, namespaces, filters, injectors that die.  The probe is not needed: a library that
counts is loaded.  PROBING_INJECT_ROUNDS=1000 is the long form."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

import pytest

from support import injection
from support.injection import COUNTED, LOADS, ROUNDS, CTarget, clobber, inject, injector, short, wait_until

KINDS = subprocess.run([injection.built("targets/calls"), "list"], stdout=subprocess.PIPE, encoding="ascii").stdout.split()
CANARIES = ["avx", "avx512", "x87", "redzone", "general"]
REFUSED = {"timeout", "busy", "unsupported", "permission"}  # what "no safe thread" and the like may be called


@pytest.fixture
def target(tmp_path):
    """target(program, *args): ended with the test."""
    started = []

    def start(program, *args, **options):
        if program == "calls" and os.geteuid() == 0:  # its queues and semaphores end with it, however that ends
            options.setdefault("prefix", ["unshare", "--ipc"])
        started.append(CTarget(tmp_path, program, *args, **options))
        return started[-1]

    yield start
    for one in started:
        one.end()


def preloaded(allocator):
    """The variables that put an allocator before libc's."""
    if allocator == "glibc":
        return {}
    import glob

    found = glob.glob("/usr/lib/*/" + allocator)
    if not found:
        pytest.skip("not installed: " + allocator)
    return {"LD_PRELOAD": found[0]}


def all_went_in(account, count, one):
    assert account["injected"] == count and account["refused"] == 0, account
    wait_until(lambda: one.report.number(LOADS) >= count)
    assert one.report.number(LOADS) == count
    return account


# ---- the canaries see damage: a tracer that changes one thing on purpose ----


@pytest.mark.parametrize("kind, what", [("avx", "vector"), ("avx512", "vector"), ("x87", "x87"), ("x87", "mxcsr"),
                                        ("redzone", "redzone"), ("general", "general"), ("general", "flags")])
def test_canary_sees_damage_when_busy(target, kind, what):
    one = target("canary", kind, "busy")
    until = time.monotonic() + injection.DEADLINE
    while not one.report.damage:  # a stop between two checks is not seen
        clobber(one.pid, what)
        time.sleep(0.001)
        assert one.child.poll() is None and time.monotonic() < until


@pytest.mark.parametrize("kind, what", [("avx", "vector"), ("x87", "x87"), ("redzone", "redzone"), ("general", "general")])
def test_canary_sees_damage_when_parked(target, kind, what):
    one = target("canary", kind, "parked")
    until = time.monotonic() + injection.DEADLINE
    while not one.report.damage:
        clobber(one.pid, what)
        time.sleep(0.01)
        assert one.child.poll() is None and time.monotonic() < until


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cond_timedwait"])  # which hides it by POSIX
def test_call_sees_eintr(target, kind):
    one = target("calls", kind)
    blocked(one)
    clobber(one.pid, "eintr")
    wait_until(lambda: one.report.damage)
    assert "{} ".format(kind) in one.report.damage


def blocked(one):
    """Until the first thread sleeps in the kernel."""
    wait_until(lambda: one.child.poll() is not None or one.state() == "S")
    assert one.child.poll() is None, "the target died with {}".format(one.child.returncode)


# ---- storms ----


@pytest.mark.parametrize("allocator", ["glibc", "libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_storm(target, allocator):
    one = target("storm", 2, variables=preloaded(allocator))
    all_went_in(inject(one.pid, ROUNDS), ROUNDS, one)
    one.unharmed()


@pytest.mark.parametrize("allocator", ["glibc", "libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_storm_without_a_parked_thread(target, allocator):
    """Every thread is in malloc nearly always: in, or refused in time, never stuck."""
    one = target("storm", 2, "alone", variables=preloaded(allocator))
    account = inject(one.pid, short(0.15), wait=0.3)
    assert account["injected"] + account["refused"] == short(0.15)
    assert not account["refused"] or account["code"] in REFUSED, account
    one.unharmed()


# ---- what the paused thread must not notice ----


@pytest.mark.parametrize("state", ["busy", "parked"])
@pytest.mark.parametrize("kind", CANARIES)
def test_canary(target, kind, state):
    one = target("canary", kind, state)
    account = inject(one.pid, short(0.3), wait=1)
    assert not account["refused"] or account["code"] in REFUSED, account
    one.unharmed()
    one.unharmed()
    if (kind, state) not in {("redzone", "parked"), ("general", "parked")}:  # they wait outside of libc
        assert account["injected"] > 0, account


@pytest.mark.parametrize("kind", KINDS)
def test_call_is_unchanged(target, kind):
    """The only thread blocks in that call: in, or refused, the call does not notice."""
    one = target("calls", kind)
    for _ in range(short(0.05, least=3)):
        blocked(one)
        account = inject(one.pid, wait=0.1)
        assert not account["refused"] or account["code"] in REFUSED, account
    timed = one.report.progress()[KINDS.index(kind)] > 0
    one.unharmed(moving=[KINDS.index(kind)] if timed else [])


@pytest.mark.parametrize("kind", ["sigtimedwait", "epoll_wait"])
def test_call_that_it_just_came_to_is_unchanged(target, kind):
    """The only thread computes and waits by turns, in a call that a stop ends: seen computing, it is stopped in the call."""
    one = target("flicker", kind)
    for _ in range(short(0.5, least=20)):
        account = inject(one.pid, wait=0.05)
        assert not account["refused"] or account["code"] in REFUSED, account
        assert not one.report.damage, one.report.damage
    one.unharmed()


def test_all_calls_are_unchanged(target):
    one = target("calls", "all")
    all_went_in(inject(one.pid, ROUNDS), ROUNDS, one)
    timed = [lane for lane, kind in enumerate(KINDS) if one.report.progress()[lane]]
    one.unharmed(moving=timed)


@pytest.mark.parametrize("hertz", [1000, 4000])
@pytest.mark.parametrize("kind", ["read-pipe", "futex"])
def test_signals_meanwhile(target, kind, hertz):
    """They all arrive, and a call that restarts after them does so."""
    one = target("calls", kind, hertz)
    account = inject(one.pid, short(0.5), wait=5)
    assert account["injected"] > 0, account
    before = one.report.ticks()
    wait_until(lambda: one.report.ticks() > before + hertz // 10)
    one.unharmed(moving=[])


def anonymous(pid):
    """Memory of no file: what the injector mapped is such."""
    with open("/proc/{}/maps".format(pid)) as maps:
        return [line for line in maps if line.split()[4] == "0" and len(line.split()) == 5]


@pytest.mark.parametrize("program, words", [("calls", ["read-pipe"]), ("calls", ["nanosleep"]), ("canary", ["general", "busy"])])
def test_no_memory_is_left(target, program, words):
    """Neither of a thread that waited nor of one that computed.

    The C library keeps the stack and the arena of a thread, two mappings each, and the next thread takes them when that one has ended.
    """
    one = target(program, *words)
    threads = len(injection.thread_names(one.pid))

    def once():
        account = inject(one.pid)
        assert account["injected"] == 1, account
        wait_until(lambda: len(injection.thread_names(one.pid)) == threads)

    once()
    before = anonymous(one.pid)
    for _ in range(12):
        once()
    assert one.report.number(LOADS) == 13
    assert len(anonymous(one.pid)) <= len(before) + 4, (before, anonymous(one.pid))
    assert not any("x" in line.split()[1] for line in anonymous(one.pid))
    one.unharmed(moving=[])


# ---- states of a target ----


def test_stopped_target_stays_stopped(target, tmp_path):
    one = target("storm", 1)
    one.child.send_signal(signal.SIGSTOP)
    wait_until(lambda: one.state() == "T")
    account = inject(one.pid, wait=2, library=shutil.copy(COUNTED, tmp_path))
    assert one.state() == "T"
    assert one.report.number(LOADS) == 0
    assert account["later"] == account["injected"], account
    one.child.send_signal(signal.SIGCONT)
    if account["injected"]:
        wait_until(lambda: one.report.number(LOADS) == 1)
    one.unharmed()


SEIZE = """if True:
    import ctypes, sys
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    print(libc.ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)  # PTRACE_SEIZE: until this process ends
    sys.stdin.read()
"""


def test_traced_target_names_the_tracer(target):
    one = target("storm", 1)
    with subprocess.Popen([sys.executable, "-c", SEIZE, str(one.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout.readline() == b"0\n"
        account = inject(one.pid)
        tracer.stdin.close()
        tracer.wait(injection.DEADLINE)
    assert (account["injected"], account["code"]) == (0, "busy") and str(tracer.pid) in account["text"], account
    one.unharmed()


@pytest.mark.parametrize("how", ["errno", "kill"])
@pytest.mark.parametrize("denied", ["exec", "thread"])
def test_seccomp_filter(target, denied, how):
    """What a filter of the program's own would do to us cannot be known: refused beforehand."""
    one = target("guarded", denied, how)
    account = inject(one.pid, wait=0.3)
    assert account["injected"] == 0 and "seccomp" in account["text"], account
    one.unharmed()


def test_threads_that_come_and_go(target):
    one = target("churn", 500)
    account = inject(one.pid, ROUNDS)
    assert account["injected"] == ROUNDS, account
    one.unharmed()


def test_fork_storm(target):
    one = target("forks", 2)
    account = inject(one.pid, ROUNDS)
    assert account["injected"] == ROUNDS, account
    one.unharmed()


def test_two_injectors_at_once(target):
    one = target("storm", 2)
    count = short(0.3)
    both = [subprocess.Popen(injector(one.pid, count), stdout=subprocess.PIPE, encoding="utf-8") for _ in range(2)]
    accounts = [json.loads(process.communicate(timeout=injection.DEADLINE * 3)[0].splitlines()[-1]) for process in both]
    for account in accounts:
        assert not account["hung"] and (not account["refused"] or account["code"] == "busy"), account
    injected = sum(account["injected"] for account in accounts)
    assert injected >= count
    wait_until(lambda: one.report.number(LOADS) >= injected)
    assert one.report.number(LOADS) == injected
    one.unharmed()


def test_exit_during_injection(target):
    """The program ends by itself at any moment of an injection."""
    for delay in range(short(0.4)):
        one = target("storm", 2)
        process = subprocess.Popen(injector(one.pid), stdout=subprocess.PIPE, encoding="utf-8")
        time.sleep(delay % 24 * 0.0005)
        one.child.stdin.close()
        assert one.child.wait(injection.DEADLINE) == 0, delay
        account = json.loads(process.communicate(timeout=injection.DEADLINE)[0].splitlines()[-1])
        assert not account["hung"] and account["injected"] + account["refused"] == 1, account
        assert account["injected"] or account["code"] in ("gone", "not found"), str(account)
        one.child.stdin = open(os.devnull)


# ---- namespaces, made here ----


@pytest.mark.parametrize("spaces", [["--pid", "--mount", "--fork", "--kill-child", "--mount-proc"], ["--user", "--map-root-user"],
                                    ["--net", "--ipc", "--uts"]], ids=["pid", "user", "net"])
def test_other_namespaces(target, spaces):
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, *spaces, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("namespaces cannot be made here")
    one = target("storm", 2, prefix=[unshare, *spaces])
    if "--fork" in spaces:
        with open("/proc/{0}/task/{0}/children".format(one.child.pid)) as listed:
            one.pid = int(listed.read().split()[0])
    all_went_in(inject(one.pid, 5), 5, one)
    one.unharmed()


def test_library_that_the_target_cannot_see(target, tmp_path):
    """Another mount namespace, in which the library's folder is an empty file system."""
    unshare = shutil.which("unshare")
    if os.geteuid() or not unshare or subprocess.run([unshare, "--mount", "true"]).returncode:
        pytest.skip("namespaces cannot be made here")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    library = str(hidden / "counted.so")
    shutil.copy(COUNTED, library)
    script = 'mount -t tmpfs none "$1" && shift && exec "$@"'
    one = target("storm", 2, prefix=[unshare, "--mount", "sh", "-c", script, "sh", str(hidden)])
    all_went_in(inject(one.pid, 5, library=library), 5, one)
    one.unharmed()


# ---- the injector gets a signal ----


DETACH = 17  # PTRACE_DETACH


class Struck:
    """An injector that gets a signal at its Nth step: `step` tells how that was; where it only stopped, it ends with the block."""

    def __init__(self, pid, step, where, number=signal.SIGKILL):
        self.killer = subprocess.Popen([injection.built("inject/killer"), str(step), where, str(int(number)), *injector(pid, wait=1)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        told = []
        for line in self.killer.stdout:
            told.append(line)
            if '"steps"' in line:
                break
        self.step = json.loads(told[-1])

    def __enter__(self):
        return self.step

    def __exit__(self, *exception):
        self.killer.communicate(timeout=injection.DEADLINE)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a call that the thread makes for us ends in harm there")
@pytest.mark.parametrize("where", ["entry", "exit"])
@pytest.mark.parametrize("kind", ["read-pipe", "cond_timedwait", "poll-timed", "select-timed"])
def test_killed_at_each_step(target, kind, where):
    """By SIGKILL, at each system call while it holds the thread, that for mapping memory by it included."""
    one = target("calls", kind)
    lane, holding = KINDS.index(kind), 0
    for steps in range(1, 400):
        blocked(one)
        with Struck(one.pid, steps, where) as step:
            if "exited" in step:
                break
            holding += step["holds"]
        if step["holds"] or step["request"] == DETACH:
            one.unharmed(moving=[lane] if one.report.progress()[lane] else [])
        blocked(one)
    inject(one.pid)  # and nothing stands in the way of the next
    one.unharmed(moving=[lane] if one.report.progress()[lane] else [])
    assert holding > 10 and steps < 399


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a call that the thread makes for us ends in harm there")
@pytest.mark.parametrize("kind", CANARIES)
def test_killed_while_a_thread_computes(target, kind):
    """Nothing of its registers and its red zone changes, whenever the injector dies."""
    one = target("canary", kind, "busy")
    holding = 0
    for steps in range(1, 400):
        with Struck(one.pid, steps, "exit") as step:
            if "exited" in step and holding > 10:
                break
            holding += step["holds"]
        one.unharmed()
    assert holding > 10 and steps < 399


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
def test_signals_to_the_injector(target, number):
    """What ends or stops it does so when the thread is let go: also a stopped injector holds nobody."""
    one = target("canary", "general", "busy")
    holding = 0
    for steps in range(1, 400):
        with Struck(one.pid, steps, "exit", number) as step:
            if "exited" in step and holding > 10:
                break
            holding += step["register_sets"] > 0
            one.unharmed()
            with open("/proc/{}/status".format(one.pid)) as status:
                assert "TracerPid:\t0\n" in status.read(), step
    assert holding > 10 and steps < 399
