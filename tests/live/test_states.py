"""States of processes and threads: who holds the GIL, collections, ends, other tracers, vanished files."""

import os
import select
import shutil
import signal
import subprocess
import time

import pytest

from support.compare import entry_of, inner_tids, python_frames, same
from support.target import DEADLINE, Target, backtrace, probing

ENDED = {3, 7}  # probing's status: no such process, gone


def by_name(entries, name):
    found = [entry for entry in entries if entry["thread_name"] == name]
    assert len(found) == 1, [entry["thread_name"] for entry in entries]
    return found[0]


def test_hung(start, python):
    """A native call that keeps the GIL: who holds it, who waits, who does neither."""
    target = start(python, "hung.py").settle()
    waiting, until = set(), time.monotonic() + DEADLINE
    while waiting != {0, 1}:  # who waits looks up every 5 ms, and is no waiter then, nor when it waits for a CPU
        assert time.monotonic() < until, "seen waiting: {}".format(waiting)
        entries = backtrace(target.pid)
        same(target, entries)
        assert by_name(entries, "asleep")["gil_state"] == "none"
        for number in range(2):
            entry = by_name(entries, "computing {}".format(number))
            assert entry["gil_state"] in ("waiting", "none") and not entry["owns_gil"]
            assert python_frames(entry)[0]["name"] == "computing"
            if entry["gil_state"] == "waiting":
                waiting.add(number)
        assert sum(entry["owns_gil"] for entry in entries) == 1
        assert by_name(entries, "MainThread")["active"]


def test_busy(start, python):
    """A running thread: only stacks that can exist, and seen active."""
    target = start(python, "busy.py").settle(only=True)
    chains = (["outer"], ["middle", "outer"], ["leaf", "middle", "outer"])
    active = idle = 0
    for _ in range(10):
        entries = backtrace(target.pid)
        entry = by_name(entries, "busy")
        names = [frame["name"] for frame in python_frames(entry)]
        if not entry["unstable"]:
            assert any(names[:len(chain)] == chain for chain in chains), names
            assert names[-1] == "_bootstrap"
        active += entry["active"]
        idle += not by_name(entries, "MainThread")["active"]
        for frame in python_frames(entry)[:1]:
            assert frame["line"] in range(9, 24)
    assert active >= 8 and idle >= 8


def test_hot(start, python):
    """Within compiled code, where the version has a compiler."""
    target = start(python, "hot.py").settle()
    same(target, backtrace(target.pid))


READ = ("0", "63")  # the number of read(2) on x86-64 and AArch64


def all_stand(target, tids):
    """Until these threads are in read(2), and the one that computes, if there is one, has the GIL."""
    until = time.monotonic() + DEADLINE
    while True:
        calls = []
        for tid in tids:
            with open("/proc/{}/task/{}/syscall".format(target.pid, tid)) as file:
                calls.append(file.read().split()[0])
        if all(call in READ for call in calls):
            entries = backtrace(target.pid)
            if all(entry["gil_state"] == "holding" for entry in entries if entry["thread_name"] == "busy"):
                return entries
        assert time.monotonic() < until, calls
        time.sleep(0.002)  # the kernel has no event for this


@pytest.mark.parametrize("words", [(), ("busy",), ("weak",), ("weak", "busy")], ids="-".join)
def test_collecting_without_the_gil(start, python, words):
    """`gc` is of the thread that collects, also while what it runs for that has let the GIL go."""
    target = start(python, "finalizing.py", *words)
    tids = [inner_tids(target.pid)[truth["os_thread_id"]] for truth in target.truth]
    entries = all_stand(target, tids)
    for truth, tid in zip(target.truth, tids):
        entry = entry_of(entries, tid)
        if python.minor >= (3, 7):  # 3.6 keeps that where no name leads to
            assert entry["gc"] == truth["gc"]
        assert entry["gil_state"] == truth.get("gil_state", "none")
    if "busy" in words:
        assert not by_name(entries, "busy")["gc"]


@pytest.mark.parametrize("kind", ["core", "snapshot"])
def test_collecting_without_the_gil_in_a_file(start, any_python, tmp_path, kind):
    target = start(any_python, "finalizing.py", "busy")
    all_stand(target, set(inner_tids(target.pid).values()) - {by_name(backtrace(target.pid), "busy")["os_thread_id"]})
    path = str(tmp_path / "file")
    if kind == "snapshot":
        probing("-t", target.pid, "snapshot", path)
    elif not shutil.which("gcore"):
        pytest.skip("no gcore here (package gdb)")
    else:
        subprocess.run(["gcore", "-o", path, str(target.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                       timeout=DEADLINE)
        path += ".{}".format(target.pid)
    entries = backtrace(path)
    assert {entry["thread_name"]: entry["gc"] for entry in entries} == {"MainThread": True, "busy": False, "other": False}


def test_churn(start, python):
    """Threads are born and end while read: every answer is whole."""
    target = start(python, "churn.py")
    for _ in range(15):
        entries = backtrace(target.pid)
        main = python_frames(by_name(entries, "MainThread"))
        assert [frame["name"] for frame in main][-2:] == ["main", "<module>"] or not main
        for entry in entries:
            assert not any(frame["kind"] == "broken" for frame in entry["frames"]) or entry["unstable"]


def test_shutdown(start, python):
    """Finalization, when no frame is left: no error, no invention."""
    target = start(python, "shutdown.py").settle()
    entries = backtrace(target.pid)
    assert all(not python_frames(entry) for entry in entries)


@pytest.mark.parametrize("how", ["exit", "exec"])
def test_ends(start, python, how):
    """The target ends, or becomes another program, at any moment: an answer, or one sentence and a status."""
    for steps in (1000, 100000, 300000, 600000):
        target = start(python, "ending.py", how, steps)
        os.write(target.child.stdin.fileno(), b"\n")
        for _ in range(40):
            done = probing("-t", target.pid, "backtrace", "--json", check=False)
            assert done.returncode >= 0, "ended by signal {}".format(-done.returncode)
            if done.returncode:
                assert done.returncode in ENDED | {4}, done.stderr
                assert not done.stdout and 0 < len(done.stderr.splitlines()) <= 4
                break
        target.end()


def test_stopped(start, python):
    """A process that is stopped is read all the same, and stays stopped."""
    target = start(python, "recursion.py").settle()
    os.kill(target.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, target.child.pid, os.WSTOPPED | os.WNOWAIT) if not python.container else None
    same(target, backtrace(target.pid))
    with open("/proc/{}/stat".format(target.pid)) as stat:
        assert stat.read().rsplit(")", 1)[1].split()[0] in "T" or python.container


def test_stop_option(start, python):
    """--stop: the same stacks, and the target goes on afterwards."""
    target = start(python, "threads.py").settle()
    same(target, backtrace(target.pid, "--stop"))
    target.settle()
    same(target, backtrace(target.pid))


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_traced(start, python):
    """Another tracer is attached: reading needs no tracing."""
    target = start(python, "recursion.py").settle()
    tracer = subprocess.Popen(["strace", "-qq", "-f", "-p", str(target.pid)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + DEADLINE
        while True:
            with open("/proc/{}/status".format(target.pid)) as status:
                if "TracerPid:\t{}\n".format(tracer.pid) in status.read():
                    break
            assert tracer.poll() is None and time.monotonic() < until
            select.select([], [], [], 0.002)
        same(target, backtrace(target.pid))
    finally:
        tracer.terminate()
        tracer.wait(DEADLINE)


def test_one_thread(start, python):
    """Only the thread asked for, by its kernel id."""
    target = start(python, "threads.py").settle()
    here = inner_tids(target.pid)
    truth = next(told for told in target.truth if told["thread_name"] == "first worker")
    tid = here[truth["os_thread_id"]]
    entries = backtrace(target.pid, "--thread", tid)
    assert [entry["os_thread_id"] for entry in entries] == [tid]
    assert entry_of(entries, tid)["thread_name"] == "first worker"


def test_deleted_executable(python, tmp_path):
    """The executable's file is gone: it is read through the process."""
    if python.root or "static" not in python.how:
        pytest.skip("needs an executable that holds its interpreter")
    copy = tmp_path / "python-copy"
    shutil.copy(os.path.realpath(python.executable), copy)
    python = type(python)([], str(copy), python.version, "deleted")
    with Target(python, "recursion.py", variables={"PYTHONHOME": "/usr"}) as target:
        copy.unlink()
        target.settle()
        same(target, backtrace(target.pid))
        native = backtrace(target.pid, "--native")
        assert [f["name"] for f in python_frames(native[0])] == [f["name"] for f in target.truth[0]["frames"]]


def test_fleeting(start, python):
    """Code that is freed while it is read: no invented names, and the frames below stay."""
    target = start(python, "fleeting.py")
    cut = 0
    for _ in range(20):
        [entry] = backtrace(target.pid)
        frames = entry["frames"]
        assert [frame["name"] for frame in python_frames(entry)][-2:] == ["main", "<module>"] or entry["unstable"]
        for frame in python_frames(entry)[:-2]:
            made = frame["filename"].startswith("<made ")
            assert made == (frame["name"] in ("made", "<module>", "<listcomp>")) or frame["name"] == "run"
        cut += any(frame["kind"] == "broken" for frame in frames)
    assert cut <= 4
