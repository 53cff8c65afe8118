"""The store where something breaks: the disk is full, the collector is killed at any moment."""

import contextlib
import os
import random
import subprocess
import time

import pytest

from support.target import DEADLINE, PROBING, probing, query

COLUMNS = "step:integer\nnoise:text"
ALL = "SELECT step FROM python.events ORDER BY step"


def row(step):
    """What does not pack."""
    return step, os.urandom(300).hex()


@pytest.fixture
def small_disk(store):
    """The store's folder on a file system of 1 MiB."""
    store.folder.mkdir(parents=True, mode=0o700)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(store.folder)], stderr=subprocess.DEVNULL, check=False)
    if made.returncode:
        pytest.skip("no file system can be mounted here: that takes root")
    yield store
    subprocess.run(["umount", "-l", str(store.folder)], check=True)


class Lines:
    """What a collector says on its standard error, as it comes."""

    def __init__(self, collector):
        os.set_blocking(collector.stderr.fileno(), False)
        self.collector = collector
        self.text = ""

    def read(self):
        with contextlib.suppress(BlockingIOError):
            self.text += os.read(self.collector.stderr.fileno(), 1 << 16).decode()
        return self.text.splitlines(keepends=True)

    def wait_for(self, text):
        """The lines until then; the last one may be half of one."""
        until = time.monotonic() + DEADLINE
        while not any(text in line and line.endswith("\n") for line in self.read()):
            assert time.monotonic() < until and self.collector.poll() is None, self.text
            time.sleep(0.05)
        return self.read()


def test_a_full_disk(recorder, small_disk):
    """One message; the job and the collector go on, rows wait in memory, and go to the store when there is room."""
    filler = small_disk.folder / "filler"
    writer = recorder.write("events", map(row, range(50)), columns=COLUMNS)
    assert small_disk.collect_once() == 50
    filler.write_bytes(b"x" * (1 << 20 >> 1))
    collector = small_disk.collect()
    said = Lines(collector)
    for step in range(50, 3000):
        writer.write(*row(step))
    said.wait_for("the disk is full; rows wait in memory")
    held = query(recorder.pid, ALL)
    assert [one["step"] for one in held] == list(range(3000))
    assert recorder.child.poll() is None and collector.poll() is None
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk.folder)], check=True)
    filler.unlink()
    assert said.wait_for("the store is written again")[1:] == ["probing: note: the store is written again\n"], "one message each"
    small_disk.stop(collector)
    log = (small_disk.state / "probing" / "collector.log").read_text()
    assert [log.count(one) for one in ("the disk is full; rows wait", "the store is written again")] == [1, 1], log
    recorder.end()
    (file,) = small_disk.files()
    assert [one["step"] for one in query(file, ALL)] == list(range(3000))
    assert not query(file, "SELECT * FROM probing.gaps WHERE table_name = 'python.events'")


def test_once_on_a_full_disk_says_so(recorder, small_disk):
    (small_disk.folder / "filler").write_bytes(b"x" * ((1 << 20) - (16 << 10)))
    recorder.write("events", map(row, range(500)), columns=COLUMNS)
    refused = probing("collect", "--once", check=False)
    assert refused.returncode != 0 and "disk is full" in refused.stderr and refused.stderr.count("\n") <= 3
    assert len(query(recorder.pid, ALL)) == 500


def having_rows(store):
    """Files in which something of the table was kept."""
    for file in store.files():
        tables = probing("-t", file, "query", "-f", "csv", "SELECT table_name FROM information_schema.tables", check=False)
        if "events" in tables.stdout.split():
            yield file


def test_killed_at_any_moment(recorder, store):
    """kill -9 at a random moment of a collector that moves rows, many times: what was told stays, each row once."""
    turns = int(os.environ.get("PROBING_STORE_KILLS", "25"))
    chance = random.Random(7)
    writer = recorder.write("events", [], columns=COLUMNS)
    written = 0
    moments = []
    kept = []
    for _ in range(turns):
        child = subprocess.Popen([PROBING, "collect", "--once"], stdout=subprocess.DEVNULL)
        end = time.monotonic() + chance.uniform(0, 0.06)
        while time.monotonic() < end:
            writer.write(*row(written))
            written += 1
        child.kill()
        moments.append(child.wait(DEADLINE))
        for file in having_rows(store):
            told = [one["step"] for one in query(file, ALL)]
            assert told[:len(kept)] == kept and len(set(told)) == len(told), "in order, each once"
            kept = told
        whole = [one["step"] for one in query(recorder.pid, ALL)]
        assert whole[:len(kept)] == kept and whole[-1:] == list(range(written))[-1:] and len(set(whole)) == len(whole)
    assert -9 in moments, "none was killed at work"
    store.collect_once()
    recorder.end()
    (file,) = store.files()
    told = [one["step"] for one in query(file, ALL)]
    lost = sum(one["rows_lost"] for one in query(file, "SELECT rows_lost FROM probing.gaps WHERE table_name = 'python.events'"))
    assert told[:len(kept)] == kept and len(told) + lost == written
    assert lost == 0 or turns > 100, "so few rows have room in the ring"
