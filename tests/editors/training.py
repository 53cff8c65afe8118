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


def copied(program, folder):
    """The path of an example's program in a folder."""
    return shutil.copy(os.path.join(SRCDIR, "examples", program), os.path.join(str(folder), program))


class Training:
    """The small language model, of which it says to be rank 1 of 2."""

    PROGRAM = "train.py"
    OPTIONS = ["--workers", "0", "--threads", "1", "--every", "10", "--pause", "0.01"]

    def __init__(self, python, folder):
        self.python, self.folder = python, str(folder)
        self.path = copied(self.PROGRAM, folder)
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

    def measure(self, reports=8):
        """Between reports: the nanoseconds that its main thread ran a step, the least, which other programs hardly change; and
        the steps a second that it tells, the median."""
        seen, costs, told = self.step(), [], len(self.speeds())
        while len(costs) < reports:
            before = seen, self.ran()
            self.wait(lambda: self.step() > seen, "step after {}".format(seen))
            seen = self.step()
            costs.append((self.ran() - before[1]) / (seen - before[0]))
        return min(costs[1:]), sorted(self.speeds()[told + 1:])[(reports - 1) // 2]  # the first began anywhere

    def regains(self, before, tries=6):
        """The measure of when a step has come to cost what it did: other programs weigh on some moments, a hook left behind on all.
        When they weigh on all, too: what it costs in a program that nobody ever attached to, by turns."""
        for _ in range(tries):
            now = self.measure()
            if now[0] < 1.3 * before[0]:
                return now
        apart = os.path.join(self.folder, "untouched")
        os.makedirs(apart, exist_ok=True)
        twin = type(self)(self.python, apart)
        try:
            for _ in range(tries):
                usual, now = twin.measure(), self.measure()
                if now[0] < 1.3 * usual[0]:
                    return now
        finally:
            twin.close()
        raise AssertionError("a step cost {:.3f} ms, and costs {:.3f} ms; one of another program {:.3f} ms".format(
            before[0] / 1e6, now[0] / 1e6, usual[0] / 1e6))

    def ran(self):
        """Nanoseconds that its main thread ran."""
        with open("/proc/{0}/task/{0}/schedstat".format(self.pid)) as told:
            return int(told.read().split()[0])

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
