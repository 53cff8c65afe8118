"""Fixtures of the command line's tests: the command, and small Python programs to point it at."""

import os
import subprocess
import sys

import pytest

from support.waits import until

PROBING = os.environ["PROBING"]
READ = ("0", "63")  # the number of read(2) on x86-64 and AArch64


class Done:
    """What one run of the command said."""

    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def fails(self, status, *words):
        """Failed as promised: this status, nothing printed, a short message that has the words."""
        assert (self.status, self.out) == (status, ""), self.err
        assert self.err.startswith("probing: ") and self.err.count("\n") <= 6
        for word in words:
            assert word in self.err
        return self.err

    def works(self):
        assert self.status == 0, self.err
        return self.out


@pytest.fixture(scope="session")
def probing():
    """probing(*args, **options of subprocess.run): one run, at most 120 s."""

    def run(*args, **options):
        options.setdefault("stdin", subprocess.DEVNULL) if "input" not in options else None
        return Done(subprocess.run([PROBING, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   encoding="utf-8", errors="surrogateescape", timeout=120, **options))

    return run


def tasks(pid):
    """[(state and context switches)] of its threads."""
    told = []
    for tid in sorted(os.listdir("/proc/{}/task".format(pid))):
        with open("/proc/{}/task/{}/status".format(pid, tid), errors="replace") as file:
            told.append([line.split(":")[1].split()[0] for line in file if line.startswith("State") or "ctxt_switches" in line])
    return told


def wait_for_reading(process):
    """Until it blocks in reading its standard input and its other threads rest, or ended."""
    last = None

    def reads():
        nonlocal last
        before, last = last, None
        if process.poll() is not None:
            return True
        try:
            with open("/proc/{}/syscall".format(process.pid)) as file:
                words = file.read().split()
            last = tasks(process.pid)
        except OSError:  # it ends
            return False
        return words[1:2] == ["0x0"] and words[0] in READ and last == before and all(task[0] == "S" for task in last)

    until(reads)


@pytest.fixture(scope="module")
def start():
    """start(program, *args): a Python that runs the text: prints a line when it is ready, then reads its input."""
    started = []

    def begin(program, *args, **options):
        process = subprocess.Popen([sys.executable, "-c", program, *args], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, encoding="utf-8", **options)
        started.append(process)
        process.ready = process.stdout.readline().strip()
        assert process.ready
        wait_for_reading(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


JOB = """
import sys, threading
def innermost(value, evil="\\x1b]0;title\\x07", name="\\u540d\\u524d"):
    box = [1, "two"]
    sys.stdin.read()
def outer(): innermost(7)
def wait(gate): gate.wait()
gate = threading.Event()
for i in range(5):
    threading.Thread(target=wait, args=(gate,), name="waiter-%d" % i, daemon=True).start()
while threading.active_count() < 6: pass
print("ready", flush=True)
outer()
"""


# By which it is found: no other one's of a test that runs at the same time.
JOB_NAME = "cli-test-job-{}".format(os.getpid())


@pytest.fixture
def job_program():
    return JOB


@pytest.fixture(scope="module")
def job(start):
    """A program of six threads, five of which wait at the same place."""
    job = start(JOB, JOB_NAME)
    job.name = JOB_NAME
    return job
