"""What the store does to old rows: small chunks joined, samples made one a minute and one an hour, names kept as long as rows."""

import os
import sqlite3

import pytest

from support.target import probing, query

DAY = 86400.0
USAGE = "timestamp:time\nscope:text\nos_thread_id:integer\ncomm:text\ncpu_user_pct:real\nfaults:integer\nuser_ns:integer\nrss_kb:integer"
TRACE = "begin:time\nduration:integer\nobject:integer\nlabel:integer\nplace:integer\nstep:integer\norder:integer\nthread:integer"
NOW = 1_700_000_000 // 3600 * 3600
FORWARD, COLLECTIVE, WEIGHT, ARMING = 0, 5, 1 << 24, 1 << 32


def edit(file, statement, *values):
    connection = sqlite3.connect(str(file))
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def chunks(file, name):
    connection = sqlite3.connect(str(file))
    found = connection.execute("SELECT resolution, rows FROM chunk WHERE shape IN (SELECT id FROM shape WHERE name = ?) ORDER BY last", (name,)).fetchall()
    connection.close()
    return found


def age(file, name, seconds):
    """As if its rows had been written so long ago; what they say themselves is as old as the test made it."""
    edit(file, "UPDATE chunk SET first = first - ?1, last = last - ?1 WHERE shape IN (SELECT id FROM shape WHERE name = ?2)", seconds, name)


@pytest.fixture
def forever(monkeypatch):
    monkeypatch.setenv("PROBING_RETENTION_DAYS", "100000")


def test_samples_become_one_a_minute_and_one_an_hour(recorder, store, monkeypatch, forever):
    monkeypatch.setenv("PROBING_STORE_RAW", "0")
    rows = []
    for second in range(7200):
        for thread in (11, 12):
            rows.append((NOW + second, "thread", thread, "python", float(second % 60 + thread), 2, second * 1000 + thread, None if second % 2 else 100))
    writer = recorder.write("probing_host_usage", rows[:4000], columns=USAGE)
    store.collect_once()
    for first in range(4000, len(rows), 4000):
        for one in rows[first:first + 4000]:
            writer.write(*one)
        store.collect_once()
    (file,) = store.files()
    mean = query(file, "SELECT avg(cpu_user_pct) AS mean, sum(faults) AS faults FROM system.usage")
    assert query(file, "SELECT count(*) AS n FROM system.usage WHERE resolution = 'raw'") == [{"n": len(rows)}]
    age(file, "probing_host_usage", 2 * DAY)
    monkeypatch.setenv("PROBING_STORE_RAW", "24h")
    store.collect_once()
    kept = query(file, "SELECT timestamp, os_thread_id, comm, scope, cpu_user_pct, faults, resolution FROM system.usage ORDER BY timestamp, os_thread_id")
    assert len(kept) <= 2 * 120 + 2 * len(rows) // 4000 + 2 and {row["resolution"] for row in kept} == {"minute"}
    assert {row["timestamp"] for row in kept} == {NOW + 60 * minute for minute in range(120)}
    assert sum(row["faults"] for row in kept) == mean[0]["faults"] == 2 * len(rows)
    whole = [row for row in kept if row["os_thread_id"] == 12 and row["faults"] == 120]
    assert len(whole) > 100 and all(row["cpu_user_pct"] == 29.5 + 12 and row["comm"] == "python" for row in whole)
    lasts = query(file, "SELECT max(cum_user_ns) AS last, avg(rss_kb) AS mean FROM cpu.utilization WHERE tid = 11")
    assert lasts == [{"last": 7199 * 1000 + 11, "mean": 100}]
    age(file, "probing_host_usage", 8 * DAY)
    store.collect_once()
    hours = query(file, "SELECT timestamp, os_thread_id, cpu_user_pct, faults, resolution FROM system.usage ORDER BY timestamp")
    assert {row["resolution"] for row in hours} == {"hour"} and {row["timestamp"] for row in hours} == {NOW, NOW + 3600}
    assert sum(row["faults"] for row in hours) == 2 * len(rows) and len(hours) <= 8
    assert all(abs(row["cpu_user_pct"] - 29.5 - row["os_thread_id"]) < 1.5 for row in hours)


def test_files_of_an_older_schema(recorder, store, forever):
    """What a later release samples, too, is NULL in the rows of before, and one table with those of after."""
    for columns, more in ((USAGE, ()), (USAGE + "\ngil_pct:real", (62.5,))):
        writer = recorder.write("probing_host_usage", [(NOW + len(more), "thread", 11, "python", 1.0, 2, 3, None) + more], columns=columns)
        store.collect_once()
        writer.kill()
    (file,) = store.files()
    kept = query(file, "SELECT cpu_user_pct, gil_pct FROM system.usage ORDER BY timestamp")
    assert kept == [{"cpu_user_pct": 1.0, "gil_pct": None}, {"cpu_user_pct": 1.0, "gil_pct": 62.5}]


def test_module_calls_become_one_a_minute_and_the_rest_stays(recorder, store, forever):
    rows = []
    for step in range(600):
        for place in range(5):
            rows.append((NOW + step / 10 + place / 100, 1000 * (place + 1), 4096 * place, place, FORWARD + 8 * WEIGHT, step, place, ARMING + 7))
        rows.append((NOW + step / 10 + 0.09, 77, 0, 9, COLLECTIVE + 8 * WEIGHT, step, 9, ARMING + 7))
    recorder.write("torch_trace", rows, columns=TRACE)
    store.collect_once()
    recorder.write("torch_trace2", [(NOW, 1)], columns="begin:time\nn:integer")
    store.collect_once()
    (file,) = store.files()
    before = query(file, "SELECT sum(weight) AS n, count(*) AS rows FROM python.torch_trace")
    age(file, "torch_trace", 2 * DAY)
    store.collect_once()
    assert {row[0] for row in chunks(file, "torch_trace")} == {0, 1}
    after = query(file, "SELECT resolution, sum(weight) AS n, count(*) AS rows, min(duration_ms) AS least, max(duration_ms) AS most, "
                        "max(time_offset) AS offset FROM python.torch_trace GROUP BY 1")
    assert after == [{"resolution": "minute", "n": before[0]["n"], "rows": 5, "least": pytest.approx(0.001), "most": pytest.approx(0.005), "offset": None}]
    assert before == [{"n": 8 * 5 * 600, "rows": 5 * 600}]
    assert sum(rows for kind, rows in chunks(file, "torch_trace") if kind == 0) == 600, "collectives stay"
    store.collect_once()
    assert query(file, "SELECT count(*) AS n, max(resolution) AS r FROM python.torch_trace") == [{"n": 5, "r": "minute"}], "and once is enough"


def test_a_count_over_mixed_ones_has_a_note(recorder, store, forever):
    writer = recorder.write("probing_host_usage", [(NOW + second, "process", None, "python", 1.0, 1, 1, 1) for second in range(120)], columns=USAGE)
    store.collect_once()
    (file,) = store.files()
    age(file, "probing_host_usage", 2 * DAY)
    for second in range(120, 180):
        writer.write(NOW + second, "process", None, "python", 1.0, 1, 1, 1)
    store.collect_once()
    told = probing("-t", file, "query", "-f", "csv", "SELECT count(*) FROM system.usage", check=False)
    assert told.stdout.split() == ["count(*)", "62"] and "system.usage: 2 rows stand for a minute" in told.stderr
    assert {row["resolution"] for row in query(file, "SELECT resolution FROM system.usage")} == {"raw", "minute"}


def test_small_chunks_are_joined(recorder, store):
    writer = recorder.write("events", [])
    total = 0
    for turn in range(12):
        for step in range(50):
            writer.write(total + step, 0.5, "note", NOW + total + step)
        total += 50
        store.collect_once()
    (file,) = store.files()
    assert len(chunks(file, "events")) == 12
    edit(file, "UPDATE chunk SET data = x'00' || substr(data, 2) WHERE id = (SELECT id FROM chunk ORDER BY last LIMIT 1 OFFSET 3)")
    edit(file, "UPDATE chunk SET first = first - 7200, last = strftime('%s', 'now') - 7200 + id")
    told = probing("-t", file, "query", "-f", "csv", "SELECT step FROM events ORDER BY step", check=False).stdout
    store.collect_once()
    assert sorted(chunks(file, "events")) == [(0, 50), (0, 550)], "what is damaged stays where it is"
    assert probing("-t", file, "query", "-f", "csv", "SELECT step FROM events ORDER BY step", check=False).stdout == told
    assert len(told.split()) == 1 + 550


def test_names_stay_as_long_as_rows_that_need_them(recorder, store, monkeypatch):
    recorder.write("torch_names", [(0, 1, 2, "layer", "Linear", 3)], columns="kind:integer\narming:integer\nkey:integer\nname:text\nclass:text\nnumber:integer")
    store.collect_once()
    recorder.write("events", [(1, 0.5, "", None)])
    store.collect_once()
    (file,) = store.files()
    age(file, "torch_names", 30 * DAY)
    store.collect_once()
    assert len(chunks(file, "torch_names")) == 1
    age(file, "events", 30 * DAY)
    store.collect_once()
    store.collect_once()
    assert not chunks(file, "events") and not chunks(file, "torch_names")
    assert os.path.exists(str(file))
