"""What each route answers, in each format, is what the command line and the library say."""

import csv
import gzip
import io
import json
import os
import signal

import pytest

from serving import PROBING, until
from support.target import backtrace, probing, query

ROUTES = ["/stacks", "/query?sql=SELECT+1", "/tables", "/tasks", "/profile?seconds=1", ""]


def base(job):
    return "/api/v1/p/{}".format(job.pid)


def test_server(server):
    told = server.ask("/api/v1").json
    assert told["pid"] == server.pid and told["grants"] == ["look", "control", "eval"]
    assert told["limits"]["body_bytes"] == 1 << 20
    assert server.ask("/api/v1", tcp=True).json["grants"] == ["look"]
    assert server.ask("/health").json == {"status": "ok"}


def test_processes(server, job):
    rows = {row["pid"]: row for row in server.ask("/api/v1/processes").json["processes"]}
    row = rows[job.pid]
    assert row["rank"] is None and row["rss"] > 1 << 20 and row["threads"] >= 1 and "threads.py" in row["command"]
    assert row["id"] == "{}.{}".format(job.pid, open("/proc/{}/stat".format(job.pid)).read().rsplit(")", 1)[1].split()[19])
    assert str(job.pid) in server.ask("/api/v1/processes?format=text").text
    assert server.ask("/api/v1/p/" + row["id"]).json["id"] == row["id"]


def test_target(server, job):
    told = server.ask(base(job)).json
    assert told["pid"] == job.pid and told["kind"] == "process" and told["python"].startswith("3.")


def test_stacks(server, job):
    """The lean form has the same frames as `backtrace --json`."""
    lean = server.ask(base(job) + "/stacks").json
    full = backtrace(job.pid)
    theirs = {thread["os_thread_id"]: [(frame["name"], frame["line"]) for frame in thread["frames"]] for thread in full}
    ours = {}
    for thread in lean["threads"]:
        frames = [lean["frames"][at] for at in lean["stacks"][thread["stack"]]]
        ours[thread["id"]] = [(frame["name"].rsplit(".", 1)[-1], frame["line"]) for frame in frames]
        assert thread["since"] is None or thread["since"] >= 0
    assert ours == theirs
    assert len(lean["frames"]) == len({json.dumps(frame) for frame in lean["frames"]})  # each once
    exact = server.ask(base(job) + "/stacks?format=pyspy").json
    assert [thread["os_thread_id"] for thread in exact] == [thread["os_thread_id"] for thread in full]
    assert server.ask(base(job) + "/stacks?format=text").text == probing("-t", job.pid, "backtrace").stdout
    assert server.ask(base(job) + "/stacks", Accept="text/plain").text == probing("-t", job.pid, "backtrace").stdout
    assert any(frame["kind"] == "native" for frame in server.ask(base(job) + "/stacks?native=1").json["frames"])


def test_query(server, job):
    sql = "SELECT func, line, NULL AS missing, 1.5 AS half, x'00ff' AS bytes FROM python.backtrace ORDER BY os_thread_id, depth LIMIT 3"
    expected = query(job.pid, sql)
    path = base(job) + "/query"
    for answer in (server.post(path, {"sql": sql}), server.ask(path, "POST", sql, Content_Type="text/plain"),
                   server.ask(path + "?sql=" + sql.replace(" ", "+").replace("'", "%27"))):
        told = answer.json
        assert told["columns"] == ["func", "line", "missing", "half", "bytes"] and not told["truncated"] and told["warning"] is None
        assert [row[:4] for row in told["rows"]] == [[row[name] for name in told["columns"][:4]] for row in expected]
        assert [row[4] for row in told["rows"]] == ["00ff"] * 3
    for form, kind in (("csv", "text/csv"), ("jsonl", "application/jsonl"), ("text", "text/plain")):
        answer = server.post(path + "?format=" + form, {"sql": sql})
        assert answer.headers["content-type"].startswith(kind)
        assert answer.text == probing("-t", job.pid, "query", "-f", "table" if form == "text" else form, sql).stdout
    rows = list(csv.reader(io.StringIO(server.post(path + "?format=csv", {"sql": "SELECT '=1+1' AS a"}).text)))
    assert rows == [["a"], ["=1+1"]]  # byte for byte


def test_query_is_bounded(server, job):
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    told = server.post(base(job) + "/query", {"sql": numbers}).json
    assert told["truncated"] and len(told["rows"]) == 10000
    assert server.post(base(job) + "/query?format=text", {"sql": numbers}).headers["probing-truncated"] == "1"
    slow = server.post(base(job) + "/query?timeout=0.3", {"sql": numbers.replace("SELECT i FROM n", "SELECT max(i) FROM n")})
    assert slow.status == 504 and slow.error["code"] == "timeout" and slow.error["retryable"]


@pytest.mark.parametrize("sql, status", [("", 400), ("SELEC 1", 400), ("SELECT * FROM nowhere", 400), ("DROP TABLE x", 400),
                                         ("ATTACH 'x' AS y", 400), ("SELECT load_extension('x')", 400)])
def test_wrong_sql(server, job, sql, status):
    answer = server.post(base(job) + "/query", {"sql": sql})
    assert answer.status == status and answer.error["message"]


def test_tables_and_tasks(server, job):
    assert {"python.backtrace"} <= {row["table_schema"] + "." + row["table_name"] for row in server.ask(base(job) + "/tables").json}
    assert server.ask(base(job) + "/tables?format=text").text == probing("-t", job.pid, "tables").stdout
    assert server.ask(base(job) + "/tasks").json == json.loads(probing("-t", job.pid, "tasks", "--json").stdout)


@pytest.mark.parametrize("form, begins", [("collapsed", b""), ("speedscope", b"{"), ("flamegraph", b"<?xml"), ("pprof", b"\n"),
                                          ("chrome", b""), ("firefox", b""), ("heatmap", b"<!"), ("perfetto", b"")])
def test_profile(server, job, form, begins):
    answer = server.ask(base(job) + "/profile?seconds=1&idle=1&format=" + form)
    assert answer.status == 200 and answer.body.startswith(begins) and len(answer.body) > 20, answer.body[:200]


def test_a_dump_is_a_target(serve, start, any_python, tmp_path):
    job = start(any_python, "threads.py").settle()
    dump = str(tmp_path / "job.snapshot")
    probing("-t", job.pid, "snapshot", dump)
    server = serve(files=[dump])
    told = server.ask("/api/v1/p/file:job.snapshot").json
    assert told["kind"] == "snapshot" and told["pid"] == job.pid
    lean = server.ask("/api/v1/p/file:job.snapshot/stacks").json
    assert lean["threads"] and lean["frames"]
    assert server.ask("/api/v1/p/file:job.snapshot/stacks?format=text").text == probing("-t", dump, "backtrace").stdout
    for name in ("file:..%2fjob.snapshot", "file:/etc/passwd", "file:%2fetc%2fpasswd", "file:", "file:other"):
        assert server.ask("/api/v1/p/{}/stacks".format(name)).status == 404, name


# ---- errors ----


@pytest.mark.parametrize("path, status", [
    ("/nowhere", 404), ("/api/v1/p", 404), ("/api/v1/p//stacks", 404), ("/api/v1/p/abc/stacks", 404), ("/api/v1/p/0/stacks", 404),
    ("/api/v1/p/-1/stacks", 404), ("/api/v1/p/99999999999999999999/stacks", 404), ("/api/v1/p/4194304/stacks", 404),
    ("/api/v1?format=csv", 406), ("/api/v1?format=", 406), ("/api/v1?other=1", 400), ("/api/v1?timeout=never", 400),
    ("/api/v1?timeout=1e9", 400), ("/api/v1?" + "&".join("a%d=1" % i for i in range(40)), 400),
])
def test_errors(server, path, status):
    answer = server.ask(path)
    assert answer.status == status, answer.body
    assert set(answer.error) == {"code", "message", "remedy", "retryable"} and answer.error["message"]


def test_status_in_a_header(server):
    """For a browser's page, which shows errors itself; who is not let in is told as ever."""
    path = "/api/v1/p/999999999"
    plain, told = server.ask(path), server.ask(path, Probing_Errors="200")
    assert (plain.status, told.status, told.headers["probing-status"]) == (404, 200, "404")
    assert told.json == plain.json and "probing-status" not in plain.headers
    assert server.ask(path, Probing_Errors="404").status == 404
    assert "probing-status" not in server.ask("/api/v1", Probing_Errors="200").headers
    assert server.ask(path, tcp=True, token="wrong" * 8, Probing_Errors="200").status == 401


def test_methods(server):
    assert server.ask("/api/v1", "POST", "{}").status == 405
    assert server.ask("/api/v1", "DELETE").status == 405
    assert server.ask("/api/v1", "PATCH", "{}").status == 405 and server.ask("/nowhere", "PATCH", "{}").status == 404
    assert server.ask("/api/v1", "POST", "{}").headers["allow"] == "GET, HEAD"
    assert server.ask("/api/v1/tokens", "PATCH", "{}").headers["allow"] == "POST, DELETE"
    head = server.ask("/api/v1", "HEAD")
    assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) > 50


def test_parameters(server, job):
    for more in ("native=2", "native=yes", "locals=x"):
        assert server.ask(base(job) + "/stacks?" + more).status == 400
    for more in ("seconds=0", "seconds=nan", "seconds=1d", "seconds=1e5", "rate=0", "rate=1e6", "seconds="):
        assert server.ask(base(job) + "/profile?" + more).status == 400, more


def test_not_python(server, serve):
    assert server.ask("/api/v1/p/1/stacks").status in (403, 422)


def test_ended(server, start, any_python):
    """A pid alone: 404; with its start time: 410, also when another process has the pid."""
    job = start(any_python, "threads.py").settle()
    row = {row["pid"]: row for row in server.ask("/api/v1/processes").json["processes"]}[job.pid]
    assert server.ask(base(job) + "/stacks").status == 200
    os.kill(job.pid, signal.SIGKILL)
    job.child.wait()
    until(lambda: not os.path.exists("/proc/{}".format(job.pid)))
    assert server.ask(base(job) + "/stacks").status == 404
    assert server.ask("/api/v1/p/{}/stacks".format(row["id"])).status == 410
    assert server.ask("/api/v1/p/{}.1/stacks".format(os.getpid())).status == 410


def test_large_answers_are_packed(server, job):
    """Of who takes it so; the same text."""
    path = base(job) + "/query?sql=SELECT+*+FROM+information_schema.columns"
    plain, packed = server.ask(path), server.ask(path, Accept_Encoding="br, gzip")
    assert "content-encoding" not in plain.headers and len(plain.body) > 4096
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < len(plain.body) / 3
    assert gzip.decompress(packed.body) == plain.body
    for where, encoding in ((path, "identity"), (path, "gzip;q=0"), ("/api/v1", "gzip"), (base(job) + "/snapshot", "gzip")):
        assert "content-encoding" not in server.ask(where, Accept_Encoding=encoding).headers, (where, encoding)


def test_unchanged_stacks(server, job):
    """Who has them already gets 304, whoever asked before; when they move, the new ones."""
    path = base(job) + "/stacks"
    first = server.ask(path)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"
    for _ in range(3):
        known = server.ask(path, If_None_Match=tag)
        assert known.status == 304 and known.body == b"" and known.headers["etag"] == tag
        assert server.ask(path).json["threads"]
    assert server.ask(path, If_None_Match='"other"').status == 200
    assert server.ask(path + "?native=1").headers["etag"] != tag


def test_each_route_says_how_it_is_asked(server, job):
    for route in ROUTES:
        answer = server.ask(base(job) + route)
        assert answer.status == 200 and answer.headers["connection"] == "close"
        assert answer.headers["cache-control"] == ("no-cache" if "etag" in answer.headers else "no-store")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert len(answer.body) == int(answer.headers["content-length"])


def test_the_program_is_that_beside_it(server):
    assert os.path.samefile(os.readlink("/proc/{}/exe".format(server.pid)), os.path.join(os.path.dirname(PROBING), "../probing-serve"))
