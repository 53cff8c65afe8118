"""`probing profile` run by a test, and its collapsed stacks read."""

import os
import re
import time

from target import probing

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


def profile(pid, path, *options, seconds=1, check=True):
    """Sample a process into path; what was told."""
    done = probing("-t", pid, "profile", "-d", seconds, "-o", path, *options, check=False, timeout=seconds + 60)
    assert not check or done.returncode == 0, done.stderr
    return Told(done.stderr) if check else done


def sampling(pid, command):
    """Until the command has opened the files of the target's threads: it samples then."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and command.poll() is None:
        for name in os.listdir("/proc/{}/fd".format(command.pid)):
            try:
                if os.readlink("/proc/{}/fd/{}".format(command.pid, name)).endswith("schedstat"):
                    return
            except OSError:
                continue
        time.sleep(0.01)


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
