"""Tables that a program writes: rows put into rings as its probe would, by tests/live/ring_write."""

import os
import subprocess
import time

from .target import DEADLINE


class Writer:
    """A program that writes a table's ring into a folder.  columns: lines "name:type[:unit[:doc]]"."""

    def __init__(self, folder, table, columns):
        os.makedirs(str(folder), mode=0o700, exist_ok=True)
        self.child = subprocess.Popen([os.path.join(os.environ["BUILDDIR"], "tests", "live", "ring_write"), str(folder), table,
                                       columns], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        until = time.monotonic() + DEADLINE
        while not os.path.exists(os.path.join(str(folder), table + ".ring")):
            assert time.monotonic() < until and self.child.poll() is None
            time.sleep(0.005)

    def write(self, *row):
        self.child.stdin.write("\t".join("NULL" if value is None else str(value) for value in row) + "\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "1\n"

    def kill(self):
        self.child.kill()
        self.child.communicate(timeout=DEADLINE)


def start_time(pid):
    with open("/proc/{}/stat".format(pid)) as stat:
        return stat.read().rsplit(")", 1)[1].split()[19]


def folder_of(data, pid):
    """Where the rings of a live process are, below a data folder."""
    return os.path.join(str(data), "{}-{}".format(pid, start_time(pid)))


def write(folder, table, columns, rows):
    """All of a table at once."""
    writer = Writer(folder, table, columns)
    for row in rows:
        writer.write(*row)
    writer.kill()
