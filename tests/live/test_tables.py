"""The SQL tables: against `backtrace --json`, against /proc, and the statements that were promised."""

import json
import os
import pwd
import re
import shutil
import subprocess

import pytest

from support import gpus
from support.compare import kernel_name, python_frames
from support.promised import PROMISED, table_of
from support.target import backtrace, few_dropped, probing, query

SECRETS = {
    "MY_SECRET": "k3pt-b4ck", "GITHUB_TOKEN": "k3pt-b4ck", "AWS_SECRET_ACCESS_KEY": "k3pt-b4ck", "dbPassword": "k3pt-b4ck",
    "SESSION_COOKIE": "k3pt-b4ck", "SENTRY_DSN": "k3pt-b4ck",
}
OPEN = {"MONKEY": "banana", "KEYBOARD": "us", "AUTHOR": "me", "TOKENIZERS_PARALLELISM": "false", "EMPTY_TOKEN": "",
        "PLAIN": "a=b"}
URL = {"DATABASE_URL": ("postgres://me:k3pt-b4ck@host/db", "postgres://me:***@host/db"),
       "PROXY": ("http://host:80/?a=b:c@d", "http://host:80/?a=b:c@d")}


@pytest.fixture(scope="module")
def tables():
    return {(row["table_schema"], row["table_name"]): row for row in query_alone("SHOW TABLES")}


def query_alone(sql):
    return json.loads(probing("query", "-f", "json", sql).stdout)


def refusal(target, sql, status=9):
    done = probing("-t", target, "query", sql, check=False)
    assert done.returncode == status and not done.stdout, done
    return done.stderr


def has_control_groups():
    """A bare root folder has none mounted."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return " - cgroup" in mounts.read()


def test_a_column_of_another_table(start, python):
    """system.threads has a column "name": it does not answer for python.threads."""
    target = start(python, "threads.py").settle()
    for sql in ("SELECT name FROM python.threads", "SELECT b.name FROM python.backtrace b"):
        assert refusal(target.pid, sql).rstrip().endswith("did you mean thread_name?")
    assert "columns of python.threads" in refusal(target.pid, "SELECT nothing_alike FROM python.threads")


# ---- stacks ----

def test_backtrace(start, python):
    """The same frames as backtrace --json, thread by thread, innermost first."""
    target = start(python, "threads.py").settle()
    entries = backtrace(target.pid, "--locals", "--all-interpreters")
    rows = query(target.pid, "SELECT * FROM python.backtrace")
    for entry in entries:
        own = [row for row in rows if row["os_thread_id"] == entry["os_thread_id"]]
        assert [row["depth"] for row in own] == list(range(len(own)))
        for row, frame in zip(own, entry["frames"]):
            assert (row["func"], row["file"], row["lineno"]) == (frame["name"], frame["filename"], frame["line"])
            assert row["line"] == row["lineno"] and row["frame_type"] == "Python" and row["pid"] == target.pid
            for key in ("qualname", "column", "end_column", "is_entry"):
                assert row[key] == frame[key], key
            assert row["thread_name"] == entry["thread_name"] and row["gil_state"] == entry["gil_state"]
            assert json.loads(row["locals"]) == {local["name"]: local["repr"] for local in frame["locals"]}
            assert row["error"] is None and row["unstable"] == 0
        assert len(own) == len(entry["frames"])
    assert len(rows) == sum(len(entry["frames"]) for entry in entries)


def test_native(start, python):
    """Native frames come when they are asked for, and then in the whole statement."""
    target = start(python, "threads.py").settle()
    count = "SELECT frame_type, count(*) AS n FROM python.backtrace{} GROUP BY 1 ORDER BY 1"
    plain = query(target.pid, count.format(""))
    assert [row["frame_type"] for row in plain] == ["Python"]
    for asked in ("(1)", " WHERE with_native = 1", " WHERE frame_type IN ('Native', 'Python')"):
        rows = query(target.pid, count.format(asked))
        assert [row["frame_type"] for row in rows] == ["Native", "Python"], asked
        assert rows[1]["n"] == plain[0]["n"]
    assert query(target.pid, "SELECT count(*) AS n FROM python.backtrace WHERE frame_type = 'Native'")[0]["n"] > 0
    assert query(target.pid, "SELECT count(*) AS n FROM python.backtrace WHERE frame_type = 'Python'")[0]["n"] == \
        plain[0]["n"]
    native = query(target.pid, "SELECT func, file, module, ip, qualname, line FROM python.backtrace(1) "
                               "WHERE frame_type = 'Native'")
    for row in native:
        assert row["func"] and row["ip"] and (row["file"] or row["module"] is None)
    both = query(target.pid, "SELECT (SELECT count(*) FROM python.backtrace(0)) AS without, "
                             "(SELECT count(*) FROM python.backtrace(1)) AS with_them")[0]
    assert both["without"] == plain[0]["n"] < both["with_them"]


def test_threads(start, python):
    target = start(python, "threads.py").settle()
    entries = {entry["os_thread_id"]: entry for entry in backtrace(target.pid)}
    rows = {row["os_thread_id"]: row for row in query(target.pid, "SELECT * FROM python.threads")}
    assert rows.keys() == entries.keys()
    for tid, row in rows.items():
        top = python_frames(entries[tid])[0]
        assert (row["func"], row["file"], row["lineno"]) == (top["name"], top["filename"], top["line"])
        assert row["thread_name"] == entries[tid]["thread_name"]
        assert row["thread_id"] == entries[tid]["thread_id"]
        assert row["frames"] == len(entries[tid]["frames"])
    kernel = {row["os_thread_id"]: row for row in query(target.pid, "SELECT * FROM system.threads")}
    assert sorted(kernel) == sorted(int(tid) for tid in os.listdir("/proc/{}/task".format(target.pid)))
    for tid, row in kernel.items():
        with open("/proc/{}/task/{}/comm".format(target.pid, tid)) as comm:
            assert row["name"] == comm.read().rstrip("\n")
        assert row["state"] == "S" and row["system_call"] is not None and row["voluntary_switches"] >= 0
        assert row["cpu_user"] >= 0 and abs(row["nice"]) <= 20


def test_locals(start, python):
    """python.locals, python.backtrace.locals and one join of the two within a statement."""
    target = start(python, "recursion.py").settle()
    rows = query(target.pid, "SELECT b.func, b.locals, l.name, l.value, l.type FROM python.backtrace b "
                             "JOIN python.locals l ON l.thread_id = b.thread_id AND l.depth = b.depth")
    assert rows
    for row in rows:
        assert json.loads(row["locals"])[row["name"]] == row["value"]
    cut = query(target.pid, "SET probing.repr_limit = 16; SELECT max(length(value)) AS most FROM python.locals")
    assert cut[0]["most"] <= 16


def test_an_exception_says_what_str_does(start, python):
    """A file that is not there by its name, a key as its repr(): the chain of those being handled, innermost first."""
    if python.minor < (3, 7):
        pytest.skip("handlers inside each other have no stack there")
    target = start(python, "raised.py").settle()
    rows = query(target.pid, "SELECT type, message FROM python.exception ORDER BY depth")
    assert [dict(row, type=row["type"].rpartition(".")[2]) for row in rows] == target.truth[0]["told"]


def test_interpreters(start, python):
    target = start(python, "subinterpreters.py")
    rows = query(target.pid, "SELECT * FROM python.interpreters ORDER BY interpreter")
    told = {truth["interpreter"] for truth in target.truth}
    assert rows[0]["interpreter"] == 0 and told <= {row["interpreter"] for row in rows}
    assert all(row["threads"] >= 1 and row["finalizing"] == 0 and row["address"] for row in rows)
    seen = query(target.pid, "SELECT DISTINCT interpreter FROM python.backtrace")
    assert told <= {row["interpreter"] for row in seen}


def test_one_reading(start, any_python):
    """Tables of a moving target agree within a statement."""
    target = start(any_python, "churn.py")
    for _ in range(20):
        row, = query(target.pid, """
            SELECT (SELECT count(*) FROM python.threads) AS threads,
                   (SELECT sum(threads) FROM python.interpreters) AS of_interpreters,
                   (SELECT count(DISTINCT thread_id) FROM python.backtrace) AS with_frames,
                   (SELECT group_concat(thread_id) FROM python.threads WHERE gil_state = 'holding') AS holds,
                   (SELECT group_concat(gil_thread_id) FROM python.interpreters) AS held,
                   (SELECT count(*) FROM python.locals l LEFT JOIN python.backtrace b
                    ON b.thread_id = l.thread_id AND b.depth = l.depth AND b.func = l.func
                    WHERE b.func IS NULL) AS stray""")
        assert row["threads"] == row["of_interpreters"] >= row["with_frames"]
        assert row["holds"] == row["held"] and row["stray"] == 0


def test_gil(start, python):
    target = start(python, "hung.py").settle()
    holder = query(target.pid, "SELECT os_thread_id, thread_name FROM python.threads WHERE gil_state = 'holding'")
    rows = query(target.pid, "SELECT * FROM python.interpreters WHERE gil_thread_id IS NOT NULL")
    assert [(row["gil_os_thread_id"], row["gil_thread_name"]) for row in rows] == \
        [(row["os_thread_id"], row["thread_name"]) for row in holder]


def test_modules(start, python):
    target = start(python, "threads.py").settle()
    rows = {row["name"]: row for row in query(target.pid, "SELECT * FROM python.modules WHERE interpreter = 0")}
    assert rows["sys"]["file"] is None and rows["sys"]["type"] == "module"
    assert rows["threading"]["file"].endswith("threading.py") and rows["threading"]["package"] == ""
    assert rows["__main__"]["file"].endswith("threads.py")
    assert rows["oracle"]["file"].endswith("oracle.py")
    assert len(rows) > 20


# ---- the process ----

def test_process(start, python):
    target = start(python, "threads.py", variables={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}).settle()
    row, = query(target.pid, "SELECT *, now() AS now FROM system.process")
    status = open("/proc/{}/status".format(target.pid)).read()
    assert row["pid"] == target.pid
    assert row["ppid"] == int(re.search(r"PPid:\s+(\d+)", status).group(1))
    assert row["threads"] == int(re.search(r"Threads:\s+(\d+)", status).group(1))
    assert row["uid"] == os.getuid() and row["user"] == pwd.getpwuid(os.getuid()).pw_name
    with open("/proc/{}/cmdline".format(target.pid)) as command:
        assert row["command"] == " ".join(command.read().rstrip("\0").split("\0"))
    assert row["python"].startswith("{}.{}".format(*python.minor)) and row["layout"]
    assert row["source"] == "process" and row["taken"] is None and row["state"] == "S"
    assert 0 < row["now"] - row["started"] < 600
    assert 1 << 20 < row["rss"] < row["vms"]
    if not python.container:
        assert (row["rank"], row["local_rank"], row["world_size"]) == (3, 1, 8)


def test_maps_and_libraries(start, python):
    target = start(python, "threads.py").settle()
    with open("/proc/{}/maps".format(target.pid)) as maps:
        lines = [line.rstrip("\n").split(None, 5) for line in maps]
    rows = query(target.pid, "SELECT * FROM system.maps")
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines):
        assert [row["start"] % 2**64, row["end"] % 2**64] == [int(part, 16) for part in line[0].split("-")]
        assert row["permissions"] == line[1] and row["offset"] == int(line[2], 16) and row["device"] == line[3]
        assert (row["inode"] or 0) == int(line[4]) and row["size"] == row["end"] - row["start"]
        assert (row["path"] or "") == (line[5] if len(line) > 5 else "")
    executable = {line[5] for line in lines if len(line) > 5 and line[1][2] == "x" and line[5][0] == "/"}
    libraries = query(target.pid, "SELECT * FROM system.libraries")
    assert {row["path"] for row in libraries} == executable
    for row in libraries:
        assert row["name"] == os.path.basename(row["path"])
        assert row["build_id"] is None or re.fullmatch("[0-9a-f]{16,128}", row["build_id"])
    libc, = [row for row in libraries if row["name"].startswith("libc.so") or row["name"].startswith("libc-2")]
    assert libc["build_id"]


def test_environment(start, python):
    if python.container:
        pytest.skip("a container starts with an environment of its own")
    values = dict(SECRETS, **OPEN)
    values.update((name, whole) for name, (whole, _) in URL.items())
    target = start(python, "threads.py", variables=values)
    rows = {row["name"]: row for row in query(target.pid, "SELECT * FROM system.environment")}
    for name in SECRETS:
        assert (rows[name]["value"], rows[name]["masked"]) == ("***", 1), name
    for name, value in OPEN.items():
        assert (rows[name]["value"], rows[name]["masked"]) == (value, 0), name
    for name, (whole, shown) in URL.items():
        assert (rows[name]["value"], rows[name]["masked"]) == (shown, int(whole != shown)), name
    text = probing("-t", target.pid, "query", "SELECT * FROM system.environment").stdout
    assert "k3pt-b4ck" not in text
    for sql, options in (("SET probing.reveal_secrets = on; SELECT * FROM system.environment", []),
                         ("SELECT * FROM system.environment", ["--reveal-secrets"])):
        told = {row["name"]: row["value"] for row in query(target.pid, sql, *options)}
        assert all(told[name] == value for name, value in values.items())


# ---- other sources ----

SAME = [
    "SELECT func, file, lineno, depth, frame_type, os_thread_id, thread_name, locals, qualname, column, end_column, "
    "ip, is_entry, gil_state FROM python.backtrace",
    "SELECT * FROM python.locals",
    "SELECT interpreter, address, threads, gil_thread_id FROM python.interpreters",
]


@pytest.mark.parametrize("source", ["snapshot", "core"])
def test_sources(start, python, tmp_path, source):
    """The same statements of one resting target, of its snapshot and of its core: equal rows."""
    target = start(python, "threads.py").settle()
    path = str(tmp_path / "taken")
    if source == "snapshot":
        probing("-t", target.pid, "snapshot", "--locals", path)
    else:
        if python.root:
            pytest.skip("Debian's gcore writes zeros for parts of these stacks: gdb shows them so too")
        if not shutil.which("gcore"):
            pytest.skip("no gcore here (package gdb)")
        subprocess.run(["gcore", "-o", path, str(target.pid)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        path += ".{}".format(target.pid)

    def told(of, sql):
        """Rows in an order of their own.  A core keeps none of the kernel's names of threads: they are left out."""
        rows = query(of, sql)
        for row in rows if source == "core" else []:
            if row.get("thread_name") and row["thread_name"] == kernel_name(target.pid, row["os_thread_id"]):
                row["thread_name"] = None
        return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))

    for sql in SAME:
        assert told(path, sql) == told(target.pid, sql)
    environment = "SELECT * FROM system.environment"
    if source == "snapshot":
        assert "secrets" in refusal(path, environment, status=6)
    else:
        assert query(path, environment) == query(target.pid, environment)
    row, = query(path, "SELECT pid, source, taken, now() AS now FROM system.process")
    assert row["pid"] == target.pid and row["source"] == source and 0 <= row["now"] - row["taken"] < 600


def test_memory_counts_the_collectors_objects(start, python):
    """python.memory beside memory_usage and python.objects, of a process at rest."""
    target = start(python, "threads.py").settle()
    row, = query(target.pid, "SELECT * FROM python.memory")
    usage, = query(target.pid, "SELECT * FROM memory_usage")
    counted, = query(target.pid, "SELECT sum(count) AS count, sum(young) AS young FROM python.objects")
    assert row["gc_objects"] == counted["count"] and row["gc_young"] == counted["young"]
    assert row["gc_objects"] == row["gc_young"] + row["gc_middle"] + row["gc_old"] > 1000
    assert abs(row["memory_mb"] - usage["memory_mb"]) < 1 and set(usage) - {"resolution"} <= set(row)
    assert row["torch_cpu"] == 0 and row["torch_allocated"] is None


# ---- the language ----

@pytest.mark.parametrize("sql", PROMISED)
def test_promised(start, any_python, tables, sql, tmp_path, monkeypatch):
    """Each runs; where its table is not there yet, that is what is said, with the tables there are."""
    gpus.pretend(monkeypatch, tmp_path)
    target = start(any_python, "threads.py").settle()
    name = table_of(sql)
    empty = {"python.variables": "nothing is recorded", "comm_metrics": "is not a rank of a job", "memory_allocations": "probing.memory.profile", "training_logs": "",
             "python.torch_trace": "recording of PyTorch is off"}
    if name in empty:  # nothing is recorded yet, and a note says how it would be
        done = probing("-t", target.pid, "query", "-f", "json", sql, check=False)
        assert done.returncode == 0 and json.loads(done.stdout) == [] and empty[name] in done.stderr, done
        return
    if tuple(name.split(".")) in tables or ("main", name) in tables:
        assert query(target.pid, sql)
        return
    text = refusal(target.pid, sql)
    assert "no such table: " + name in text and "python.backtrace" in text


def test_show_and_describe(tables):
    """The documentation is printed from the descriptors: nothing without its sentence."""
    assert {"backtrace", "interpreters", "locals", "modules", "threads"} <= {n for s, n in tables if s == "python"}
    assert {"environment", "libraries", "maps", "process", "threads"} <= {n for s, n in tables if s == "system"}
    units = {"bytes", "s", "count", "addr", "id", "ratio", "characters", "ms", "ns", "MB", "KiB", "%", "1/s", ""}
    for schema, name in tables:
        assert tables[schema, name]["doc"]
        rows = query_alone("DESCRIBE {}.{}".format(schema, name))
        assert rows and all(row["doc"] and row["unit"] in units for row in rows)
        assert len({row["column_name"] for row in rows}) == len(rows)
        definition = query_alone("SHOW CREATE TABLE {}.{}".format(schema, name))[0]["definition"]
        assert all(row["column_name"] in definition and row["doc"] in definition for row in rows)


def off(target):
    """What is said of a table that PyTorch's recording fills, where that is off, and torch is not imported."""
    return ("probing: note: recording of PyTorch is off: `probing {} config probing.torch.profiling=on` turns it on; "
            "PyTorch is not imported yet: recording begins when it is\n").format(target)


def answers(target, statements, note=""):
    """The rows of each, all asked of one command, which says the note and nothing else."""
    done = probing("-t", target, "query", "-f", "json", ";".join(statements), check=False)
    assert done.returncode == 0 and few_dropped(done.stderr) == note, done.stderr
    text, told = done.stdout.strip(), []
    while text:
        rows, end = json.JSONDecoder().raw_decode(text)
        told.append(rows)
        text = text[end:].lstrip()
    assert len(told) == len(statements)
    return told


# What only torch.distributed and NCCL can answer (tests/comm).
ASKED_OF_TORCH = {"comm_metrics", "clock", "torch_nccl_flight_record", "torch_nccl_pg_status", "ras", "ras_ranks", "inflight_ops"}
# Empty where nothing is recorded (tests/training, tests/comm, tests/store); the others need no exception, no crash (now, or kept in a folder), no task.
OF_TORCH = {"torch_trace", "torch_trace_events", "torch_step_timing", "comm_collective"}
EMPTY = OF_TORCH | {"spans", "coll_perf", "proxy_ops", "net_qp", "profiler_counters", "events", "steps", "training_logs", "exception", "crash", "crashes", "tasks"}


def test_every_column_of_every_table(start, python, tables, tmp_path, monkeypatch):
    """A statement may use any column alone; what a table gives has the type it says."""
    if python.container or "jit" in python.how:
        pytest.skip("the same interpreter as in its root")
    gpus.pretend(monkeypatch, tmp_path, "1")
    target = start(python, "threads.py").settle()
    types = {"INTEGER": int, "REAL": (int, float), "TEXT": str}
    for schema, name in tables:
        if name in ASKED_OF_TORCH or name in ("memory_allocations", "stack_samples", "gaps"):  # not recorded here, and a note says so
            continue
        if name == "cgroup" and not has_control_groups():
            assert "/sys/fs/cgroup" in refusal(target.pid, "SELECT * FROM system.cgroup", status=6)
            continue
        columns = query_alone("DESCRIBE {}.{}".format(schema, name))
        names = {column["column_name"] for column in columns}
        arguments = "('value@plain', {})" if name == "variables" else "({}, 1000)" if {"seconds", "rate"} <= names else "({})" if "seconds" in names else ""

        def statement(column, seconds):
            return 'SELECT "{}" AS x FROM {}.{}{}'.format(column["column_name"], schema, name, arguments.format(seconds))

        for column, rows in zip(columns, answers(target.pid, [statement(column, 0.1) for column in columns],
                                              off(target.pid) if name in OF_TORCH else "")):
            if not rows and arguments:  # a busy machine may give no CPU for so long
                rows, = answers(target.pid, [statement(column, 10)])
            assert rows or schema == "torch" or name in EMPTY, (schema, name)
            for row in rows:
                assert row["x"] is None or isinstance(row["x"], types[column["data_type"]]), (name, column)


def test_wrong_sql(start, any_python):
    target = start(any_python, "threads.py").settle()
    for sql, said in [
        ("SELECT * FROM python.backtrac", "did you mean python.backtrace?"),
        ("SELECT fnuc FROM python.backtrace", "did you mean func?"),
        ("SELECT func FROM python.backtrace WHERE file = \"x.py\"", "single quotes"),
        ("SELECT func FORM python.backtrace", "syntax error"),
        ("DROP TABLE python.backtrace", "queries only read"),
        ("SELECT 'open", "not closed"),
        ("SET probing.nothing = 1", "SHOW ALL"),
        ("", "empty"),
    ]:
        assert said in refusal(target.pid, sql), sql
    for table in ["python.backtrace", "python.torch_trace", "python.variables('loss@train')", "training_logs"]:
        done = probing("query", "SELECT * FROM " + table, check=False)
        assert done.returncode == 2 and not done.stdout and "is a table of a process" in done.stderr, table


def test_nothing_is_recorded(start, any_python):
    """An empty table of what PyTorch records says once how that begins, beside what is printed."""
    target = start(any_python, "threads.py").settle()
    for table in OF_TORCH:
        assert answers(target.pid, ["SELECT count(*) AS n FROM python." + table], off(target.pid)) == [[{"n": 0}]]
    assert answers(target.pid, ["SELECT * FROM python.torch_trace JOIN python.comm_collective"], off(target.pid)) == [[]]


def test_target_that_ends(start, any_python):
    """A query of a process that is gone says so, and prints nothing."""
    target = start(any_python, "threads.py")
    target.end()
    done = probing("-t", target.pid, "query", "SELECT * FROM python.backtrace", check=False)
    assert done.returncode in (3, 7) and not done.stdout and done.stderr
