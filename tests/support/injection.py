"""C targets that report through a page of shared memory, and `many`, the program that injects into them."""

import ctypes
import json
import mmap
import os
import signal
import struct
import subprocess
import time

BUILD = os.path.join(os.environ.get("BUILDDIR", "."), "tests")
ROUNDS = int(os.environ.get("PROBING_INJECT_ROUNDS", "60"))
DEADLINE = 120
HEAD, LANES_MAX = 512, 512
READY, LANES, DAMAGE, LOADS = range(4)  # targets/report.h


def built(name):
    """A program that the build made below tests/."""
    path = os.path.join(BUILD, name)
    real = os.path.join(os.path.dirname(path), ".libs", os.path.basename(path))
    return real if os.path.exists(real) else path


COUNTED = built("targets/counted.so")


def short(share, least=5):
    """A part of the rounds, for what runs in many variants."""
    return max(least, int(ROUNDS * share))


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def thread_names(pid):
    """The kernel's names of a process' threads; one that ends meanwhile is left out."""
    names, folder = [], "/proc/{}/task/".format(pid)
    for tid in os.listdir(folder):
        try:
            with open(folder + tid + "/comm") as comm:
                names.append(comm.read().rstrip("\n"))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return names


def wait_until(what, seconds=DEADLINE):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "waited {} s in vain".format(seconds)
        time.sleep(0.005)


class Report:
    """The page of targets/report.h."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "report-{}".format(time.monotonic_ns()))
        with open(self.path, "wb") as file:
            file.truncate(HEAD + 8 * LANES_MAX)
            os.chmod(self.path, 0o666)
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 0)

    def number(self, field):
        return struct.unpack_from("Q", self.page, 8 * field)[0]

    @property
    def damage(self):
        count = self.number(DAMAGE)
        return "{} times, first: {}".format(count, self.page[32:HEAD].split(b"\0")[0].decode(errors="replace")) if count else ""

    def progress(self):
        return list(struct.unpack_from("{}Q".format(self.number(LANES)), self.page, HEAD))

    def ticks(self):
        return struct.unpack_from("Q", self.page, HEAD + 8 * (LANES_MAX - 1))[0]


class CTarget:
    """A program of targets/, ready; ended with the with statement."""

    def __init__(self, folder, program, *args, prefix=(), variables=None, path=None):
        self.report = Report(str(folder))
        environment = dict(os.environ, PRB_TEST_REPORT=self.report.path, LD_BIND_NOW="1", **(variables or {}))
        environment.pop("LD_LIBRARY_PATH", None)
        self.child = subprocess.Popen([*prefix, path or built("targets/" + program), *map(str, args)], env=environment,
                                      stdin=subprocess.PIPE, preexec_fn=die_with_parent)
        self.pid = self.child.pid
        wait_until(lambda: self.report.number(READY) or self.child.poll() is not None)
        if self.child.poll() == 77:
            import pytest

            pytest.skip("this machine has no such thing")
        assert self.child.poll() is None, "the target ended with {}".format(self.child.returncode)

    def state(self):
        with open("/proc/{}/stat".format(self.pid)) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    def unharmed(self, moving=None, seconds=DEADLINE):
        """Alive, nothing damaged, and every lane (moving: those) goes on."""
        before = self.report.progress()
        lanes = range(len(before)) if moving is None else moving
        until = time.monotonic() + seconds
        while True:
            assert self.child.poll() is None, "the target died with {}".format(self.child.returncode)
            assert not self.report.damage, self.report.damage
            now = self.report.progress()
            still = [lane for lane in lanes if now[lane] == before[lane]]
            if not still:
                return self
            assert time.monotonic() < until, "stands still: {}".format(still)
            time.sleep(0.005)

    def __enter__(self):
        return self

    def end(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()  # not kill: calls.c removes what outlives a process
            if self.pid != self.child.pid:  # the first process of a namespace takes no other signal
                os.kill(self.pid, signal.SIGKILL)
            try:
                self.child.wait(30)
            except subprocess.TimeoutExpired:
                self.child.kill()
        self.child.wait(DEADLINE)
        self.child.stdin.close()

    def __exit__(self, *exception):
        self.end()
        return False


def injector(pid, count=1, library=COUNTED, wait=0, settings=None):
    return [built("inject/many"), *map(str, (pid, count, library, wait))] + ([settings] if settings else [])


def told(done):
    assert done.stdout, "the injector ended with {}: {}".format(done.returncode, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def inject(pid, count=1, wait=20, **more):
    """The driver's account; no injection may hang.  wait: seconds for a safe thread, many where a busy machine gives it no CPU."""
    done = subprocess.run(injector(pid, count, wait=wait, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=DEADLINE + 65 * count, encoding="utf-8")
    account = told(done)
    assert done.returncode == 0 and not account["hung"], account
    return account


def clobber(tid, what):
    subprocess.run([built("targets/clobber"), str(tid), what], check=True, timeout=DEADLINE)
