"""`probing profile` run by a test, and its collapsed stacks read."""

import json
import os
import re
import time

from support.target import probing

COUNTS = re.compile(r"(\d+) samples in ([\d.]+) s .*, (\d+) of threads; (\d+) dropped, (\d+) readings rejected, "
                    r"(\d+) skipped, (\d+) failed")


class Told:
    """What the command said of its sampling."""

    def __init__(self, text):
        found = COUNTS.search(text)
        assert found, text
        self.text = text
        self.samples, self.threads, self.dropped = int(found[1]), int(found[3]), int(found[4])
        self.rejected, self.skipped, self.failed = int(found[5]), int(found[6]), int(found[7])


LONGEST = 60  # seconds that a profile is taken for


def profile(pid, path, *options, seconds=1, least=1):
    """Sample a process into path; what was told.  A busy machine lets few samples be taken: again and longer, until there are least."""
    while True:
        done = probing("-v", "-t", pid, "profile", "-d", seconds, "-o", path, *options, check=False, timeout=seconds + 120)
        assert done.returncode == 0, done.stderr
        told = Told(done.stderr)
        if told.samples >= least or seconds >= LONGEST:
            return told
        seconds = min(LONGEST, 2 * seconds)


def begun(command):
    """Whether the command has opened the files of the target's threads: it samples then."""
    for name in os.listdir("/proc/{}/fd".format(command.pid)):
        try:
            if os.readlink("/proc/{}/fd/{}".format(command.pid, name)).endswith("schedstat"):
                return True
        except OSError:
            continue
    return False


def turns(command):
    """How often its threads have got a processor: once a sample, at least."""
    told = 0
    for tid in os.listdir("/proc/{}/task".format(command.pid)):
        try:
            with open("/proc/{}/task/{}/schedstat".format(command.pid, tid)) as file:
                told += int(file.read().split()[2])
        except OSError:  # it has just ended
            continue
    return told


def sampling(pid, command, samples=20):
    """Until the command has taken some samples; or none more, as it was told to take few."""
    deadline, first = time.monotonic() + 60, None
    while time.monotonic() < deadline and command.poll() is None:
        if first is not None and turns(command) >= first + samples:
            return
        if first is None and begun(command):
            first = turns(command)
        time.sleep(0.01)


def spent(target):
    """Of shares.py: the seconds that it says its functions took until now, all calls and the mean of one."""
    target.child.stdin.write(b"\n")
    target.child.stdin.flush()
    told = json.loads(target.line())
    cycles = told.pop("cycles")
    return told, {name: seconds / max(1, cycles) for name, seconds in told.items()}


def truth(target, before=None):
    """The same as shares; since it told before, where that is given."""
    told, _ = spent(target)
    told = {name: seconds - (before or {}).get(name, 0) for name, seconds in told.items()}
    return {name: seconds / sum(told.values()) for name, seconds in told.items()}


def stacks(path):
    """[(frames from the outermost, count)] of a collapsed file."""
    rows = []
    with open(str(path), encoding="utf-8") as file:
        for line in file:
            text, count = line.rstrip("\n").rsplit(" ", 1)
            rows.append((text.split(";"), int(count)))
    return rows


def function(label):
    return label.split(" (")[0]


def shares(path, names):
    """Share of each of the functions among the stacks that have one of them."""
    found = dict.fromkeys(names, 0)
    for frames, count in stacks(path):
        for name in names:
            found[name] += count * any(function(frame) == name for frame in frames)
    whole = sum(found.values())
    return {name: found[name] / whole for name in names}
