"""A tool that is killed, interrupted or suspended at any moment leaves its target as it was: no thread stopped, none traced, all of
them go on; and no file.  PROBING_SECURITY_ROUNDS: moments of each command and signal (6)."""

import os
import random
import signal
import struct
import subprocess
import time

import pytest

from parties import DEADLINE

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(os.environ.get("PROBING_SECURITY_ROUNDS", "6"))
COMMANDS = {
    "native": ["backtrace", "--native", "--locals"],
    "stop": ["backtrace", "--stop"],
    "profile": ["profile", "--native", "-r", "300", "-d", "0.3", "-o", "{folder}/out.svg"],
    "snapshot": ["snapshot", "--stop", "--native", "{folder}/out.snap"],
    "inject": ["inject"],
    "eval": ["eval", "sum(range(1000))"],
}


class Job:
    def __init__(self, process, counters):
        self.process, self.pid, self.counters = process, process.pid, counters

    def counts(self):
        with open(self.counters, "rb") as file:
            return struct.unpack("<5Q", file.read(40))

    def threads(self):
        """[(state, pid of its tracer)]; a helper of an injection may end meanwhile."""
        told = []
        for tid in os.listdir("/proc/{}/task".format(self.pid)):
            try:
                with open("/proc/{}/task/{}/status".format(self.pid, tid)) as file:
                    lines = dict(line.split(":\t", 1) for line in file if ":\t" in line)
            except (FileNotFoundError, ProcessLookupError):
                continue
            told.append((lines["State"][0], int(lines["TracerPid"])))
        return told

    def is_free(self):
        return all(state not in "tT" and tracer == 0 for state, tracer in self.threads())

    def goes_on(self):
        assert self.process.poll() is None, "it ended: {}".format(self.process.returncode)
        until = time.monotonic() + DEADLINE
        while not self.is_free():
            assert time.monotonic() < until, self.threads()
            time.sleep(0.001)
        before = self.counts()
        while not all(now > then for now, then in zip(self.counts(), before)):
            assert self.process.poll() is None, "it ended: {}".format(self.process.returncode)
            assert time.monotonic() < until, (before, self.counts(), self.threads())
            time.sleep(0.001)


@pytest.fixture
def job(python, spawn, tmp_path):
    counters = tmp_path / "counters"
    counters.write_bytes(bytes(40))
    return Job(spawn([python, os.path.join(HERE, "counting.py"), counters]), counters)


def begin(installed, words):
    return subprocess.Popen([installed.path, *words], env=installed.environment(), cwd="/", stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def is_suspended(tool):
    with open("/proc/{}/stat".format(tool.pid)) as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGTSTP], ids=lambda number: number.name)
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_at_any_moment(installed, job, tmp_path, command, number):
    made = tmp_path / "made"
    made.mkdir()
    words = ["-t", str(job.pid)] + [word.format(folder=made) for word in COMMANDS[command]]
    start = time.monotonic()
    whole = installed.run(*words)
    assert whole.returncode == 0, whole.stderr
    took = time.monotonic() - start
    job.goes_on()
    moments = random.Random("{} {}".format(command, number))
    for _ in range(ROUNDS):
        for left in made.iterdir():
            left.unlink()
        if command == "inject":  # not to find the one of the round before
            begin(installed, ["-t", str(job.pid), "detach"]).wait(timeout=DEADLINE)
        tool = begin(installed, words)
        try:
            time.sleep(moments.uniform(0, took))
            tool.send_signal(number)
            if number == signal.SIGTSTP:
                until = time.monotonic() + DEADLINE
                while tool.poll() is None and not is_suspended(tool):
                    assert time.monotonic() < until
                    time.sleep(0.001)
                job.goes_on()  # while it is suspended
                tool.send_signal(signal.SIGCONT)
            tool.wait(timeout=DEADLINE)
        finally:
            tool.kill()
            tool.wait()
        job.goes_on()
        assert all(left.name in ("out.svg", "out.snap") for left in made.iterdir()), list(made.iterdir())
