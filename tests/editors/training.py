"""An example's program in a folder of its own, as something to attach to, and what a step of it costs."""

import os
import re
import shutil
import subprocess
import threading
import time

SRCDIR = os.environ.get("SRCDIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
DEADLINE = 120
# the step's middle: scores are there, loss is not
LINE_TEXT = "loss = nn.functional.cross_entropy"


def line_of(text, program="train.py"):
    with open(os.path.join(SRCDIR, "examples", program)) as source:
        return next(number for number, line in enumerate(source, start=1) if text in line)


class Training:
    """The small language model, of which it says to be rank 1 of 2."""

    PROGRAM = "train.py"
    OPTIONS = ["--workers", "0", "--threads", "1", "--every", "20", "--pause", "0.005"]

    def __init__(self, python, folder):
        self.path = os.path.join(str(folder), self.PROGRAM)
        shutil.copy(os.path.join(SRCDIR, "examples", self.PROGRAM), self.path)
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", RANK="1", WORLD_SIZE="2")
        environment.pop("LD_LIBRARY_PATH", None)
        self.child = subprocess.Popen(
            [python, self.path] + self.OPTIONS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", env=environment, start_new_session=True)
        self.lines, self.changed = [], threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.wait(lambda: any(line.startswith("ready ") for line in self.lines), "its first step")
        self.pid = self.child.pid

    def _read(self):
        for line in self.child.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()

    def wait(self, when, what):
        with self.changed:
            assert self.changed.wait_for(when, DEADLINE), "waited for {}: {}".format(what, self.lines[-5:])

    def step(self):
        """The last step that it told."""
        steps = [int(found.group(1)) for line in self.lines for found in [re.match(r"step (\d+):", line)] if found]
        return steps[-1] if steps else 0

    def moves(self):
        """Wait until it has told a further step."""
        now = self.step()
        self.wait(lambda: self.step() > now, "step after {}".format(now))

    def cost(self, reports=8):
        """Nanoseconds of its main thread a step: the least between reports.  Other programs hardly change that."""
        seen, found = self.step(), []
        while len(found) < reports:
            before = seen, self.ran()
            self.wait(lambda: self.step() > seen, "step after {}".format(seen))
            seen = self.step()
            found.append((self.ran() - before[1]) / (seen - before[0]))
        return min(found[1:])  # the first began anywhere

    def costs_again(self, before, tries=6):
        """Whether a step has come to cost what it did: other programs weigh on some moments, a hook left behind on all."""
        return any(self.cost() < 1.2 * before for _ in range(tries))

    def ran(self):
        """Nanoseconds that its main thread ran."""
        with open("/proc/{0}/task/{0}/schedstat".format(self.pid)) as told:
            return int(told.read().split()[0])

    def speed(self, reports=5):
        """Steps a second, as it tells: the median of some reports."""
        told = len(self.speeds())
        self.wait(lambda: len(self.speeds()) > told + reports, "reports")
        return sorted(self.speeds()[told + 1:])[reports // 2]  # the first may hold a stop

    def speeds(self):
        return [float(found.group(1)) for line in self.lines for found in [re.search(r"([\d.]+) steps/s", line)] if found]

    def stands_still(self, seconds=1):
        before = self.ran()
        time.sleep(seconds)  # nothing may happen meanwhile
        return self.ran() == before

    def close(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
        self.child.wait()
        self.reader.join(10)
        self.child.stdout.close()


class Plain(Training):
    """The one of the standard library: soon started, a small core."""

    PROGRAM = "train_stdlib.py"
    OPTIONS = ["--workers", "1", "--every", "20"]
