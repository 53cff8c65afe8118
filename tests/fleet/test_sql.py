"""SQL on `-t @JOB`: as on the rows of each rank, united in one database."""

import json
import os
import sqlite3

import pytest

# Statements over the tables of TABLES, whose rows do not change while the ranks wait.  What SQLite leaves open is not asked.
STATEMENTS = [
    "SELECT func, lineno, rank FROM python.backtrace",
    "SELECT func, count(*) FROM python.backtrace WHERE depth = 0 GROUP BY func",
    "SELECT rank, count(DISTINCT func), max(depth) FROM python.backtrace GROUP BY rank",
    "SELECT b.func, p.pid FROM python.backtrace b JOIN system.process p ON b.rank = p.rank WHERE b.depth = 0",
    "SELECT a.rank AS x, b.rank AS y FROM python.backtrace a JOIN python.backtrace b ON a.func = b.func AND a.rank < b.rank AND a.depth = b.depth",
    "SELECT p.rank, b.func FROM system.process p LEFT JOIN python.backtrace b ON b.rank = p.rank AND b.func = 'odd'",
    "SELECT p.rank, b.func FROM python.backtrace b RIGHT JOIN system.process p ON b.rank = p.rank AND b.func = 'odd'",
    "SELECT rank, depth, count(*) OVER (PARTITION BY func) FROM python.backtrace",
    "SELECT DISTINCT func, dense_rank() OVER (ORDER BY func) FROM python.backtrace",
    "SELECT rank FROM system.process WHERE NOT EXISTS (SELECT 1 FROM python.backtrace b WHERE b.rank = process.rank AND b.func = 'odd')",
    "WITH c AS (SELECT rank, max(depth) AS deep FROM python.backtrace GROUP BY rank) SELECT deep, count(*) FROM c GROUP BY deep",
    "SELECT func FROM python.backtrace WHERE rank = 2 EXCEPT SELECT func FROM python.backtrace WHERE rank = 1",
    "SELECT rank, pid FROM system.process ORDER BY pid DESC, rank LIMIT 2",
    "SELECT func, lineno FROM python.backtrace WHERE (depth, rank) = (1, 2) OR func LIKE 'us%'",
    "SELECT count(*), count(lineno), min(func), sum(depth) FROM python.backtrace WHERE lineno > 3 AND thread_name = 'MainThread'",
    "SELECT (SELECT count(*) FROM system.environment WHERE name = 'RANK'), (SELECT group_concat(DISTINCT host) FROM system.process)",
    "SELECT value, host FROM system.environment WHERE name = 'RANK' AND value IS NOT NULL",
    "SELECT e.value, t.thread_name FROM system.environment e, python.backtrace t WHERE e.name = 'RANK' AND t.depth = 0 AND e.rank = t.rank",
]
TABLES = {"python.backtrace": "func, lineno, depth, thread_name", "system.process": "pid", "system.environment": "name, value"}


def rows_of(text):
    return [tuple(json.loads(line).values()) for line in text.splitlines()]


def in_one_database(job, ask, host):
    """Each rank's rows, asked for one by one."""
    one = sqlite3.connect(":memory:")
    one.execute("ATTACH ':memory:' AS python")
    one.execute("ATTACH ':memory:' AS system")
    types = {"lineno": "INTEGER", "depth": "INTEGER", "pid": "INTEGER"}
    for table, columns in TABLES.items():
        names = columns.split(", ")
        one.execute("CREATE TABLE {} ({}, rank INTEGER, host TEXT)".format(
            table, ", ".join(name + " " + types.get(name, "TEXT") for name in names)))
        for rank, process in job.processes.items():
            got = ask(process.pid, "query", "-f", "jsonl", "SELECT {} FROM {}".format(columns, table))
            assert got.status == 0, got.err
            one.executemany("INSERT INTO {} VALUES ({})".format(table, ", ".join("?" * (len(names) + 2))),
                            [row + (rank, host) for row in rows_of(got.out)])
    return one


def plain(rows):
    return sorted([tuple(row) for row in rows], key=repr)


def test_as_in_one_database(start_ranks, ask):
    job = start_ranks(4)
    address = "@" + job.name
    host = ask("-t", address, "query", "-f", "json", "SELECT DISTINCT host FROM system.process").json["rows"][0]["host"]
    one = in_one_database(job, ask, host)
    got = ask("-t", address, "query", "-f", "jsonl", "; SELECT '--' AS mark; ".join(STATEMENTS))
    assert got.status == 0, got.err
    answers = got.out.split('{"mark": "--"}\n')
    assert len(answers) == len(STATEMENTS)
    for sql, text in zip(STATEMENTS, answers):
        if "RIGHT JOIN" in sql and sqlite3.sqlite_version_info < (3, 39):
            continue
        assert plain(rows_of(text)) == plain(one.execute(sql)), sql


def test_json_and_coverage(start_ranks, ask):
    job = start_ranks(3)
    answer = ask("-t", "@" + job.name, "query", "-f", "json", "SELECT rank, pid FROM system.process ORDER BY rank")
    assert answer.status == 0 and answer.json["coverage"]["answered"] == "0-2"
    assert answer.json["rows"] == [{"rank": rank, "pid": job.processes[rank].pid} for rank in range(3)]
    empty = ask("-t", "@" + job.name, "query", "-f", "json", "SELECT pid FROM system.process WHERE rank = 7")
    assert empty.status == 0 and empty.json["rows"] == []
    chosen = ask("-t", "@{}:1-2".format(job.name), "query", "-f", "csv", "SELECT rank FROM system.process")
    assert chosen.status == 0 and chosen.out.split() == ["rank", "1", "2"]
    two = ask("-t", "@" + job.name, "query", "-f", "json", "SELECT 1; SELECT 2")
    assert two.status == 2 and "one statement" in two.err


def test_a_missing_rank_is_said(start_ranks, ask):
    job = start_ranks(4, ranks=[0, 1, 3])
    text = ask("-t", "@" + job.name, "query", "-f", "csv", "SELECT count(*) AS n FROM system.process")
    assert text.status == 15 and text.out.split() == ["n", "3"] and "3 of 4 ranks answered; missing 2" in text.err
    strict = ask("-t", "@" + job.name, "--strict", "query", "SELECT count(*) FROM system.process")
    assert strict.status == 15 and not strict.out and "missing 2" in strict.err


def test_rank_terms_choose_who_is_asked(start_ranks, ask):
    """A rank that a statement cannot mean is not asked, and not missed."""
    job = start_ranks(4, ranks=[0, 1, 3], LOCAL_RANK="5")

    def query(sql):
        done = ask("-t", "@" + job.name, "query", "-f", "json", sql)
        return done.status, [row["rank"] for row in done.json["rows"]], done.json["coverage"]["expected"]

    assert query("SELECT DISTINCT rank FROM python.backtrace WHERE rank = 3") == (0, [3], 1)
    assert query("SELECT _rank AS rank FROM system.process WHERE _rank BETWEEN 0 AND 1 ORDER BY 1") == (0, [0, 1], 2)
    assert query("SELECT DISTINCT rank FROM python.backtrace WHERE rank > 1") == (15, [3], 2)
    assert query("SELECT DISTINCT rank FROM python.backtrace WHERE rank IN (0, 3) ORDER BY 1") == (0, [0, 3], 2)
    assert query("SELECT DISTINCT rank FROM python.backtrace WHERE rank IN (0, 3) OR rank = 1 ORDER BY 1")[:2] == (15, [0, 1, 3])
    assert query("SELECT rank FROM system.process WHERE rank = 3") == (0, [3], 1), "a column of its own that is the rank"
    assert query("SELECT pid AS rank FROM system.process WHERE rank IS NULL")[2] == 4
    joined = "SELECT DISTINCT a.rank FROM python.backtrace a JOIN system.process b ON a.host = b.host WHERE a.rank = 1"
    assert query(joined)[:2] == (15, [1])
    places = ask("-t", "@" + job.name, "query", "-f", "csv", "SELECT DISTINCT _local_rank, _node_rank FROM system.process WHERE _rank < 2")
    assert places.status == 0 and places.out.split() == ["_local_rank,_node_rank", "5,0"]


def test_plan_and_limits(start_ranks, ask, monkeypatch):
    job = start_ranks(2)
    sql = "SELECT func FROM python.backtrace WHERE depth = 0 AND lineno > now() - 5"
    plan = ask("-t", "@" + job.name, "query", "--plan", "-f", "jsonl", sql)
    row, = [json.loads(line) for line in plan.out.splitlines()]
    assert plan.status == 0 and row["table"] == "python.backtrace" and row["columns"] == "func, lineno, depth", row
    assert row["filter"].startswith("depth = 0 AND lineno > 1") and row["ranks"] == 2 and row["rows"] == 0
    assert ask("query", "--plan", "SELECT 1").status == 2
    raised = ask("-t", "@" + job.name, "query", "SET probing.cluster.max_rows = 3; SELECT name, rank FROM system.environment")
    assert raised.status == 13 and not raised.out and "probing.cluster.max_rows" in raised.err
    monkeypatch.setenv("PROBING_CLUSTER_MAX_ROWS", "3")
    shown = ask("-t", "@" + job.name, "query", "-f", "jsonl", "SHOW probing.cluster.max_rows")
    assert '"3"' in shown.out, shown.out + shown.err
    refused = ask("-t", "@" + job.name, "query", "SET probing.cluster.query_budget = 0; SELECT 1")
    assert refused.status == 9 and "0.01 to 3600" in refused.err, refused.err
    over = ask("-t", "@" + job.name, "query", "SELECT name, rank FROM system.environment")
    assert over.status == 13 and not over.out and "system.environment of 2 ranks" in over.err and "@JOB:RANKS" in over.err


@pytest.mark.parametrize("sql", [
    "SELECT func, file, lineno FROM python.backtrace LIMIT 5",
    "SELECT * FROM python.backtrace ORDER BY depth LIMIT 10",
    "SELECT * FROM python.torch_trace",
    "SELECT operation_name, AVG(duration_ms) AS avg_duration, COUNT(*) AS call_count FROM python.torch_trace "
    "WHERE timestamp > now() - interval '5 minutes' GROUP BY operation_name ORDER BY avg_duration DESC LIMIT 10",
    "SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min'",
    "SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)",
    "SELECT epoch, avg(loss), min(loss), count(*) AS steps FROM training_logs GROUP BY epoch ORDER BY epoch",
    "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics GROUP BY src_rank, dst_rank",
    "SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp > now() - 60",
    "SELECT _rank, _host, func FROM global.python.backtrace WHERE depth = 0",
    "SELECT _rank, count(*), avg(depth) FROM global.python.backtrace GROUP BY _rank",
    "SHOW TABLES", "DESCRIBE python.backtrace",
])
def test_promised_and_upstream(start_ranks, ask, sql):
    job = start_ranks(2)
    done = ask("-t", "@" + job.name, "query", "-f", "json", sql)
    assert done.status == 0, done.err
    assert done.json["coverage"]["answered"] == "0-1"
    off = "`probing -t @{} config probing.torch.profiling=on` turns it on".format(job.name)
    assert done.err.count("recording of PyTorch is off") == done.err.count(off) == ("torch_trace" in sql), done.err
    assert done.err.count(" (and 1 other rank)") == done.err.count("note: rank 0: "), done.err
    if "global" in sql:
        assert {row["_rank"] for row in done.json["rows"]} == {0, 1}


def test_crashes_are_the_users(start_ranks, ask):
    """The table has a folder, not the job's dumps, and says where these are."""
    job = start_ranks(2)
    done = ask("-t", "@" + job.name, "query", "-f", "json", "SELECT count(*) FROM system.crashes")
    where = "system.crashes is the folder of user {} on each host, once for each rank; `probing -t @{} crash list` has the job's dumps".format(os.geteuid(), job.name)
    assert done.status == 0 and where in done.err, done.err
    assert "the job's dumps" not in ask("query", "SELECT count(*) FROM system.crashes").err


def test_tables(start_ranks, ask):
    job = start_ranks(2)
    done = ask("-t", "@" + job.name, "tables", "-f", "json", "python.backtrace")
    names = [row["column_name"] for row in done.json["rows"]]
    assert done.status == 0 and {"func", "rank", "host"} <= set(names)
