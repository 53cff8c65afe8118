"""probing collect: rows go from rings to the store, each once, and are there when the job has ended."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from support.injection import wait_until
from support.rings import Writer
from support.target import DEADLINE, PROBING, probing, query


def row(step):
    return step, step / 8, "note {}".format(step % 5), 1.7e9 + step / 4


ALL = "SELECT step, loss, note, timestamp FROM python.events ORDER BY step"


def expected(count):
    return [dict(zip(("step", "loss", "note", "timestamp"), row(step))) for step in range(count)]


def test_every_row_once(recorder, store):
    """Hot and cold are one table."""
    writer = recorder.write("events", map(row, range(100)))
    assert store.collect_once() == 100
    assert query(recorder.pid, ALL) == expected(100)
    for step in range(100, 150):
        writer.write(*row(step))
    assert query(recorder.pid, ALL) == expected(150)
    assert store.collect_once() == 50
    assert store.collect_once() == 0
    assert query(recorder.pid, ALL) == expected(150)
    assert query(recorder.pid, "SELECT DISTINCT resolution FROM python.events") == [{"resolution": "raw"}]


@pytest.mark.parametrize("by", ["pid", "command", "job", "script", "file"])
def test_the_job_is_gone(recorder, store, by, tmp_path, monkeypatch):
    """script: the job's name, where its script lies in the current folder."""
    recorder.write("events", map(row, range(30)))
    recorder.write("other", [(7,)], columns="n:integer")
    store.collect_once()
    recorder.end()
    (file,) = store.files()
    shutil.rmtree(str(recorder.rings))
    names = {"pid": recorder.pid, "command": "/" + recorder.name, "job": file.name.split("-")[0], "script": recorder.name, "file": file}
    assert names["job"] == recorder.name
    if by == "script":
        monkeypatch.chdir(tmp_path)
        if not os.path.exists(recorder.name):
            (tmp_path / recorder.name).write_text("# a program")
    assert query(names[by], ALL) == expected(30)
    assert query(names[by], "SELECT n, pid, rank FROM other") == [{"n": 7, "pid": recorder.pid, "rank": None}]
    tables = [one["table_name"] for one in query(names[by], "SHOW TABLES")]
    assert tables[-3:] == ["events", "other", "training_logs"] and {"usage", "memory_usage"} <= set(tables) and "threads" not in tables
    done = probing("-t", names[by], "query", "SELECT * FROM memory_allocations", check=False)
    assert done.returncode != 0 and "of a process that runs, and this one has ended" in done.stderr
    assert list(query(names[by], "SELECT * FROM events LIMIT 1")[0]) == ["step", "loss", "note", "timestamp", "pid", "rank", "resolution"]


def test_the_job_is_gone_and_its_parent_has_not_waited_for_it(recorder, store):
    """As in a container whose first process waits for nobody."""
    recorder.write("events", map(row, range(30)))
    store.collect_once()
    recorder.child.kill()
    wait_until(lambda: "Z" in open("/proc/{}/stat".format(recorder.pid)).read().rsplit(")", 1)[1])
    assert query(recorder.pid, ALL) == expected(30)
    done = probing("-t", recorder.pid, "backtrace", check=False)
    assert done.returncode != 0 and "its parent has not collected it yet" in done.stderr


def test_rows_of_an_ended_process_that_nobody_collected(recorder, store):
    recorder.write("events", map(row, range(10)))
    recorder.end()
    assert store.collect_once() == 10
    assert query(recorder.pid, ALL) == expected(10)
    (file,) = store.files()
    assert query(file, ALL) == expected(10)


def test_a_second_one_says_where_the_first_is(recorder, store):
    first = store.collect()
    lock = store.data / "collector.lock"
    until = time.monotonic() + DEADLINE
    while not lock.exists() or not lock.read_text():
        assert time.monotonic() < until and first.poll() is None
        time.sleep(0.01)
    second = probing("collect")
    assert str(first.pid) in second.stdout and str(store.folder) in second.stdout
    recorder.write("events", map(row, range(5)))
    assert store.stop(first) == "5 rows moved to the store\n"
    (file,) = store.files()
    assert query(file, ALL) == expected(5)


def test_what_a_ring_lost_is_a_gap(recorder, store):
    """More rows than the ring holds, between two turns of the collector."""
    writer = recorder.write("events", map(row, range(10)))
    assert store.collect_once() == 10
    written = 1000
    for step in range(10, written):
        writer.write(step, None, "x" * 60000, None)
    kept = query(recorder.pid, "SELECT count(*) AS n FROM python.events")[0]["n"]
    assert 10 < kept < written
    store.collect_once()
    (file,) = store.files()
    rows = query(file, "SELECT count(*) AS n, count(DISTINCT step) AS d FROM python.events")[0]
    assert rows["n"] == rows["d"]
    gaps = query(file, "SELECT * FROM probing.gaps")
    assert sum(gap["rows_lost"] for gap in gaps) == written - rows["n"]
    assert {(gap["table_name"], gap["pid"]) for gap in gaps} == {("python.events", recorder.pid)}
    assert all(time.time() - DEADLINE < gap["from_time"] < gap["to_time"] <= time.time() for gap in gaps)


def test_a_killed_collector_keeps_what_it_told(recorder, store):
    """Whatever the file answers before kill -9 is there after it, and nothing comes twice."""
    writer = recorder.write("events", map(row, range(10)))
    assert store.collect_once() == 10
    for turn in range(10):
        child = subprocess.Popen([PROBING, "collect", "--once"], stdout=subprocess.DEVNULL)
        for step in range(10 + 20 * turn, 30 + 20 * turn):
            writer.write(*row(step))
        child.kill()
        child.wait(DEADLINE)
        assert query(recorder.pid, ALL) == expected(30 + 20 * turn)
    store.collect_once()
    (file,) = store.files()
    assert query(file, ALL) == expected(210)


def test_a_damaged_chunk_loses_its_rows_only(recorder, store):
    writer = recorder.write("events", map(row, range(10)))
    store.collect_once()
    for step in range(10, 15):
        writer.write(*row(step))
    store.collect_once()
    recorder.end()
    (file,) = store.files()
    connection = sqlite3.connect(str(file))
    connection.execute("UPDATE chunk SET data = x'00' || substr(data, 2) WHERE id = 1")
    connection.commit()
    connection.close()
    done = probing("-t", file, "query", "-f", "csv", "SELECT step FROM events ORDER BY step", check=False)
    assert done.stdout.split() == ["step"] + [str(step) for step in range(10, 15)]
    assert "1 of 2 chunks are damaged" in done.stderr


def test_other_files_are_refused(store, tmp_path):
    other = tmp_path / "other.db"
    connection = sqlite3.connect(str(other))
    connection.execute("CREATE TABLE chunk(a)")
    connection.commit()
    connection.close()
    assert probing("-t", other, "query", "SELECT 1", check=False).returncode != 0
    hostile = tmp_path / "hostile.db"
    connection = sqlite3.connect(str(hostile))
    connection.executescript(
        "PRAGMA application_id = 1347568211; CREATE VIEW process AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS id, i AS pid, i AS started, 0 AS ended, 0 AS rank, 0 AS world_size, '' AS command FROM n; "
        "CREATE TABLE shape(id, schema, name, columns); CREATE TABLE about(key, value);")
    connection.commit()
    connection.close()
    refused = probing("-t", hostile, "query", "SELECT 1", check=False)
    assert refused.returncode != 0 and "does not come to an end" in refused.stderr


def test_a_folder_that_others_can_write_to_is_refused(store):
    store.folder.mkdir(parents=True)
    store.folder.chmod(0o777)
    refused = probing("collect", "--once", check=False)
    assert refused.returncode != 0 and "only this user" in refused.stderr


def test_the_hook_starts_it(store, tmp_path):
    """PROBING_STORE=on: detached, by the start-up hook, with what would start a probe taken out of its environment."""
    told = tmp_path / "told"
    native = tmp_path / "native"
    native.mkdir()
    tool = native / "probing"
    tool.write_text('#!/bin/sh\necho "$* ${{PROBING-none}}" >{0}.new && mv {0}.new {0}\n'.format(told))
    tool.chmod(0o755)
    hook = ("import sys, os; sys.path.insert(0, {!r}); import _probing_hook; from probing_c import _native; _native.FOLDER = {!r}; "
            "_probing_hook._collect()".format(os.path.join(os.environ["SRCDIR"], "python"), str(native)))
    for value, runs in (("off", False), ("on", True)):
        subprocess.run([sys.executable, "-c", hook], check=True, timeout=DEADLINE, env=dict(os.environ, PROBING_STORE=value, PROBING="1"))
        until = time.monotonic() + (DEADLINE if runs else 0)
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert told.exists() == runs
    assert told.read_text() == "collect --while-used none\n"


def test_launch_starts_it(store):
    """PROBING_STORE=on, or the setting: as the start-up hook, which the program may not have."""
    log = store.state / "probing" / "collector.log"
    for more, variables in (((), {}), ((), {"PROBING_STORE": "On"}), (("-D", "probing.store=on"), {})):
        probing("launch", *more, sys.executable, "-c", "", env=dict(os.environ, **variables))
        if not (more or variables):
            assert not log.exists()
            continue
        wait_until(log.exists)
        wait_until(lambda: " started" in log.read_text())
        pid = int(re.search(r"process (\d+): started", log.read_text())[1])
        with open("/proc/{}/maps".format(pid)) as maps:
            assert "libprobe.so" not in maps.read()
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: " rows moved" in log.read_text())
        log.unlink()


def test_old_rows_go(recorder, store, monkeypatch):
    """retention_days by the time of the rows; gaps and chunks of now stay."""
    recorder.write("events", map(row, range(20)))
    writer = recorder.write("recent", [(1, 0.0, "", time.time())])
    store.collect_once()
    monkeypatch.setenv("PROBING_RETENTION_DAYS", "0.0001")
    (file,) = store.files()
    connection = sqlite3.connect(str(file))
    connection.execute("UPDATE chunk SET first = first - 1e6, last = last - 1e6 WHERE shape = (SELECT id FROM shape WHERE name = 'events')")
    connection.commit()
    connection.close()
    store.collect_once()
    assert query(file, "SELECT count(*) AS n FROM events") == [{"n": 0}]
    assert query(file, "SELECT count(*) AS n FROM recent") == [{"n": 1}]
    writer.kill()


def test_the_file_of_a_collector_that_runs(recorder, store):
    """It is known for what it is from the beginning, also when the collector ends without a word."""
    recorder.write("events", [(1, 0.5, "", time.time())])
    collector = store.collect()
    wait_until(lambda: store.files() and probing("-t", store.files()[0], "query", "SELECT 1", check=False).returncode == 0)
    collector.kill()
    collector.wait(DEADLINE)
    assert query(store.files()[0], "SELECT count(*) AS n FROM probing.gaps") == [{"n": 0}]


def test_the_store_has_a_bound(recorder, store, monkeypatch):
    """The oldest chunks go first, and the file gives their room back."""
    writer = recorder.write("events", [])
    for turn in range(6):
        for step in range(40 * turn, 40 * turn + 40):
            writer.write(step, 0.5, os.urandom(4000).hex(), time.time())
        store.collect_once()
    (file,) = store.files()
    before = file.stat().st_size
    monkeypatch.setenv("PROBING_STORE_MEMORY", "500K")
    store.collect_once()
    assert file.stat().st_size <= 500 * 1024 < before
    kept = [one["step"] for one in query(file, "SELECT step FROM events ORDER BY step")]
    assert kept == list(range(240))[-len(kept):] or not kept


def test_processes_of_one_job_have_names_of_their_own(recorder, store):
    """Two ranks in one file: numbers of labels are each one's own, and so are pid and rank in the rows."""
    names = "kind:integer\narming:integer\nkey:integer\nname:text\nclass:text\nnumber:integer"
    calls = "begin:time\nduration:integer\nobject:integer\nlabel:integer\nplace:integer\nstep:integer\norder:integer\nthread:integer"
    recorder.write("torch_names", [(0, 0, 5, "Linear", None, None)], columns=names)
    recorder.write("torch_trace", [(1.7e9 + step, 1000, 0, 5, 1 << 24, step, 0, 1 << 32) for step in range(3)], columns=calls)
    store.collect_once()
    (file,) = store.files()
    connection = sqlite3.connect(str(file))
    connection.execute("INSERT INTO process(id, pid, started, ended, rank, world_size, command) SELECT 2, pid + 1, started + 1, 0, 1, 2, command FROM process")
    connection.commit()
    other = Writer(str(recorder.rings), "torch_names", names)
    other.write(0, 0, 5, "Conv2d", None, None)
    store.collect_once()
    other.kill()
    # The second chunk of names, and a copy of the calls, become the other rank's.
    newest = "(SELECT max(id) FROM chunk WHERE shape = (SELECT id FROM shape WHERE name = 'torch_names'))"
    connection.execute("UPDATE chunk SET process = 2 WHERE id = {}".format(newest))
    connection.execute("INSERT INTO chunk(shape, process, first, last, rows, resolution, data) SELECT shape, 2, first, last, rows, resolution, data "
                       "FROM chunk WHERE shape = (SELECT id FROM shape WHERE name = 'torch_trace')")
    connection.commit()
    connection.close()
    recorder.end()
    told = query(file, "SELECT rank, operation_name, count(*) AS n FROM python.torch_trace GROUP BY 1, 2 ORDER BY 1")
    assert told == [{"rank": None, "operation_name": "Linear.forward", "n": 3}, {"rank": 1, "operation_name": "Conv2d.forward", "n": 3}]
