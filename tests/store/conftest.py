"""A target that records, and a store of the test's own."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from support.injection import wait_until
from support.rings import Writer, folder_of
from support.target import DEADLINE, PROBING, TARGETS, probing

COLUMNS = "step:integer:count\nloss:real\nnote:text\ntimestamp:time"


class Store:
    """The folders of one user: of rings and of the store."""

    def __init__(self, tmp_path, monkeypatch):
        self.data = tmp_path / "data"
        self.data.mkdir(mode=0o700)
        self.state = tmp_path / "state"
        self.folder = self.state / "probing" / "store"
        monkeypatch.setenv("PROBING_DATA_DIR", str(self.data))
        monkeypatch.setenv("XDG_STATE_HOME", str(self.state))
        self.children = []

    def collect_once(self):
        """How many rows it moved."""
        return int(probing("collect", "--once").stdout.split()[0])

    def collect(self, *before):
        """A collector in the foreground of its own."""
        child = subprocess.Popen([*before, PROBING, "collect"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        self.children.append(child)
        return child

    def stop(self, child):
        child.send_signal(signal.SIGTERM)
        out, complaint = child.communicate(timeout=DEADLINE)
        assert child.returncode == 0, complaint
        return out

    def collector_of_its_own(self):
        """The pid of one that a job had started; it has written its name by then."""
        lock = self.data / "collector.lock"
        wait_until(lambda: lock.exists() and lock.read_text().startswith("process "))
        return int(lock.read_text().split()[1].rstrip(","))

    def end(self, pid):
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not os.path.exists("/proc/{}".format(pid)))

    def files(self):
        return sorted(self.folder.glob("*.db"))


@pytest.fixture
def store(tmp_path, monkeypatch):
    made = Store(tmp_path, monkeypatch)
    yield made
    for child in made.children:
        child.kill()
        child.wait(DEADLINE)


def of_one_name(folder):
    """tests/targets/hung.py by a name that no other process has: a name means a live process first, and other tests run that program, too."""
    name = "recorder_{}_{}.py".format(os.getpid(), time.monotonic_ns())
    os.symlink(os.path.abspath(os.path.join(TARGETS, "hung.py")), str(folder / name))
    return name


@pytest.fixture
def recorder(start, any_python, store, tmp_path):
    """A process with a folder of rings, and its writers."""
    where = {} if any_python.root else {"folder": str(tmp_path)}  # it sees files of its own root alone
    name = of_one_name(tmp_path) if where else "hung.py"
    target = start(any_python, name, variables={"PROBING_DATA_DIR": str(store.data)}, **where).settle()
    target.name = name
    target.rings = pathlib.Path(folder_of(store.data, target.pid))
    writers = []

    def write(table, rows, columns=COLUMNS):
        writer = Writer(str(target.rings), table, columns)
        writers.append(writer)
        for one in rows:
            writer.write(*one)
        return writer

    def end():
        for writer in writers:
            writer.kill()
        target.child.kill()
        target.child.wait(DEADLINE)

    target.write = write
    target.end = end
    yield target
    for writer in writers:
        writer.kill()
