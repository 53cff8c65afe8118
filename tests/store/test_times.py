"""A WHERE on a time reads the chunks that it needs: all others are damaged here, and nobody notices."""

import sqlite3

import pytest

from support.target import probing

BEGIN = 1_700_000_000
CHUNKS, ROWS = 6, 40
TRACE = "begin:time\nduration:integer\nobject:integer\nlabel:integer\nplace:integer\nstep:integer\norder:integer\nthread:integer"
TABLES = {
    "own": ("events", "n:integer\ntimestamp:time", lambda at, n: (n, at), "python.events", "timestamp"),
    "time": ("events", "time:time\nn:integer", lambda at, n: (at, n), "python.events", "time"),
    "repeated": ("events", "time:time\nn:integer", lambda at, n: (at, n), "python.events", "timestamp"),
    "calls": ("torch_trace", TRACE, lambda at, n: (at, n, 1, 1, 1 << 24, n, 0, 1 << 32), "python.torch_trace", "timestamp"),
    "samples": ("probing_host_memory", "timestamp:time\nmemory_mb:real", lambda at, n: (at, float(n)), "memory_usage", "timestamp"),
    "renamed": ("probing_host_gpus", "timestamp:time\ngpu_id:integer", lambda at, n: (at, n), "gpu.utilization", "ts"),
}


@pytest.mark.parametrize("which", TABLES)
def test_a_range_reads_what_it_needs(recorder, store, monkeypatch, which):
    name, columns, row, table, time = TABLES[which]
    monkeypatch.setenv("PROBING_RETENTION_DAYS", "100000")
    monkeypatch.setenv("PROBING_STORE_RAW", "0")
    writer = recorder.write(name, [], columns=columns)
    for chunk in range(CHUNKS):
        for n in range(ROWS * chunk, ROWS * chunk + ROWS):
            writer.write(*row(BEGIN + n, n))
        store.collect_once()
    recorder.end()
    (file,) = store.files()
    connection = sqlite3.connect(str(file))
    # As they were written then; the fourth is whole.
    connection.execute("UPDATE chunk SET first = ?1 + ?2 * (id - 1), last = ?1 + ?2 * id - 1", (BEGIN, ROWS))
    connection.execute("UPDATE chunk SET data = x'00' || substr(data, 2) WHERE id <> 4")
    connection.commit()
    connection.close()

    def ask(where):
        done = probing("-t", file, "query", "-f", "csv", "SELECT {0} FROM {1} WHERE {2} ORDER BY {0}".format(time, table, where), check=False)
        assert done.returncode == 0, done.stderr
        return [float(line) - BEGIN for line in done.stdout.split()[1:]], done.stderr

    first, last = 3 * ROWS, 4 * ROWS - 1
    inside = [float(n) for n in range(first, last + 1)]
    for where, rows in (
            ("{0} >= {1} AND {0} <= {2}".format(time, BEGIN + first, BEGIN + last), inside),
            ("{0} BETWEEN {1} AND {2}".format(time, BEGIN + first + 5, BEGIN + first + 6), inside[5:7]),
            ("{0} BETWEEN {1} AND {2}".format(time, BEGIN + first + 4.5, BEGIN + first + 6.0), inside[5:7]),
            ("{0} > {1} AND {0} < {2}".format(time, BEGIN + first + 9.5, BEGIN + first + 11), inside[10:11]),
            ("{0} > now() - (now() - {1}) AND {0} <= {2}".format(time, BEGIN + first + 0.5, BEGIN + last), inside[1:])):
        assert ask(where) == (rows, ""), where
    for where in ("{} <= {}".format(time, BEGIN + last), "{} >= {}".format(time, BEGIN + first), "1"):
        rows, note = ask(where)
        assert rows == inside and ("chunks are damaged" in note or "are broken" in note), where


def test_a_join_asks_for_all_once_it_asks_too_often(recorder, store):
    recorder.write("events", [(n, BEGIN + n) for n in range(100)], columns="n:integer\ntimestamp:time")
    store.collect_once()
    recorder.end()
    (file,) = store.files()
    done = probing("-t", file, "query", "-f", "csv",
                   "SELECT count(*) FROM python.events a JOIN python.events b ON b.timestamp > a.timestamp AND b.timestamp < a.timestamp + 3")
    assert done.stdout.split() == ["count(*)", str(98 * 2 + 1)]
