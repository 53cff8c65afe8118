"""The routes of another project of this name: its paths and shapes, with what our own routes say of the same job."""

import json
import os
import time

import pytest

from serving import Server
from support.target import backtrace, query

THERE = "/apis/pythonext/callstack"


@pytest.fixture(scope="module")
def granted():
    one = Server("--allow", "eval", variables={"UPSTREAM_TOKEN": "not yours"})
    yield one
    assert one.end() == 0
    one.remove()


def envelope(sql, **opts):
    return {"version": {"major": 0, "minor": 1, "patch": 0}, "message_id": "m1", "timestamp": 1, "payload": {"expr": sql, "opts": opts or None}}


def test_ready(server):
    assert server.ask("/ready", tcp=True).json == {"status": "ready"}
    assert server.ask("/ready", tcp=True, token="").status == 401


def test_query(server, job):
    sql = "SELECT func, lineno, depth * 0.5 AS half, NULL AS missing, CASE depth WHEN 0 THEN 1 END AS some FROM python.backtrace ORDER BY os_thread_id, depth"
    told = server.post("/query?pid={}".format(job.pid), envelope(sql), tcp=True).json
    assert set(told) == {"version", "message_id", "timestamp", "payload", "meta"} and told["message_id"] == "m1"
    assert set(told["version"]) == {"major", "minor", "patch"} and abs(told["timestamp"] / 1e6 - time.time()) < 60
    frame = told["payload"]["DataFrame"]
    rows = query(job.pid, sql)
    assert frame["names"] == ["func", "lineno", "half", "missing", "some"] and frame["size"] == len(rows)
    func, lineno, half, missing, some = frame["cols"]
    assert func == {"SeqText": [row["func"] for row in rows]} and lineno == {"SeqI64": [row["lineno"] for row in rows]}
    assert half == {"SeqF64": [row["half"] for row in rows]} and missing == {"SeqText": [""] * len(rows)}
    assert some == {"SeqI64": [row["some"] or 0 for row in rows]}
    assert told["meta"]["nulls"]["some"] == [at for at, row in enumerate(rows) if row["some"] is None]


def test_query_limits_and_errors(server, job):
    path = "/query?pid={}".format(job.pid)
    assert server.post(path, envelope("SELECT * FROM python.backtrace", limit=2)).json["payload"]["DataFrame"]["size"] == 2
    wrong = server.post(path, envelope("SELEC 1"))
    assert wrong.status == 400 and wrong.json["payload"]["Error"]["code"] == "ParseError" and wrong.json["payload"]["Error"]["message"]
    for body in ("", "[]", "{", '{"payload": 1}', '{"payload": {"expr": 1}}', '{"payload": {"expr": ""}}'):
        assert server.ask(path, "POST", body).status == 400, body
    assert server.post("/query?pid=1x", envelope("SELECT 1")).status == 404


def test_query_dto(server, job):
    path = "/query/dto?pid={}".format(job.pid)
    told = server.post(path, {"expr": "SELECT 1 AS one, 'a' AS letter", "opts": {"limit": 5}}).json
    assert told["success"] and told["message"] is None and told["payload"]["type"] == "DataFrame"
    assert told["payload"]["value"] == {"names": ["one", "letter"], "cols": [{"SeqI64": [1]}, {"SeqText": ["a"]}], "size": 1}
    assert server.post(path, envelope("SELECT 1 AS one")).json["payload"]["value"]["cols"] == [{"SeqI64": [1]}]
    wrong = server.post(path, {"expr": "SELECT * FROM nowhere"})
    assert wrong.status == 400 and not wrong.json["success"] and wrong.json["payload"]["type"] == "Error"


def test_which_process(serve, start, any_python):
    """Without ?pid= it is the only one; of several none is guessed."""
    second = [start(any_python, "threads.py").settle() for _ in range(2)][1]
    whole = serve()
    refused = whole.post("/query", envelope("SELECT 1"))
    assert refused.status == 400 and "?pid=" in refused.json["payload"]["Error"]["message"]
    assert whole.ask("/apis/overview?pid={}".format(second.pid)).json["pid"] == second.pid
    assert whole.ask("/apis/overview?pid=999999999").status == 404


def test_overview(start, any_python, server):
    job = start(any_python, "threads.py", variables={"HF_TOKEN": "hf_abcdefghijklmnop", "PLAIN": "seen"}).settle()
    told = server.ask("/apis/overview?pid={}".format(job.pid)).json
    assert set(told) == {"pid", "exe", "env", "cmd", "cwd", "main_thread", "threads"}
    assert told["pid"] == told["main_thread"] == job.pid and "threads.py" in told["cmd"] and told["cwd"] == os.getcwd()
    assert sorted(told["threads"]) == sorted(int(tid) for tid in os.listdir("/proc/{}/task".format(job.pid)))
    assert told["env"]["PLAIN"] == "seen" and told["env"]["HF_TOKEN"] == "***"


def test_processes_and_nodes(start, any_python, server):
    job = start(any_python, "threads.py", variables={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}).settle()
    rows = {row["pid"]: row for row in server.ask("/apis/processes/local").json}
    assert rows[job.pid]["env"] == {} and job.pid in rows[job.pid]["threads"]
    told = server.ask("/apis/nodes").json
    (node,) = [node for node in told["nodes"] if node["pid"] == job.pid]
    assert (node["rank"], node["local_rank"], node["world_size"]) == (3, 1, 8) and node["addr"] == "{}:{}".format(server.host, server.port)
    assert told["total"] >= 1 and told["offset"] == 0
    assert server.ask("/apis/nodes?offset={}".format(told["total"] + 5000)).json["nodes"] == []  # more may have come
    assert server.ask("/apis/nodes", "PUT", "{}").status == 405


def test_callstack(server, job):
    theirs = {thread["os_thread_id"]: thread for thread in backtrace(job.pid)}
    for tid, thread in theirs.items():
        frames = server.ask("{}?pid={}&tid={}&mode=py".format(THERE, job.pid, tid)).json
        assert [(one["PyFrame"]["file"], one["PyFrame"]["lineno"]) for one in frames] == [(one["filename"], one["line"]) for one in thread["frames"]]
        assert all(set(one["PyFrame"]) == {"file", "func", "lineno", "locals"} for one in frames)
    assert server.ask("{}?pid={}&mode=py".format(THERE, job.pid)).json == server.ask("{}?pid={}&tid={}&mode=py".format(THERE, job.pid, job.pid)).json
    mixed = server.ask("{}?pid={}".format(THERE, job.pid)).json
    assert {name for one in mixed for name in one} == {"PyFrame", "CFrame"}
    assert all(set(one["CFrame"]) == {"ip", "file", "func", "lineno"} and int(one["CFrame"]["ip"], 16) for one in mixed if "CFrame" in one)
    inner = next(thread["os_thread_id"] for thread in theirs.values() if any(frame["name"] == "plain" for frame in thread["frames"]))
    values = [one["PyFrame"]["locals"] for one in server.ask("{}?pid={}&tid={}".format(THERE, job.pid, inner)).json if "PyFrame" in one]
    assert any(value.get("value", {}).get("class") == "int" for value in values), values
    for more, status in (("&tid=1", 404), ("&tid=x", 400), ("&mode=all", 400)):
        assert server.ask("{}?pid={}{}".format(THERE, job.pid, more)).status == status, more


def test_eval(granted, job):
    path = "/apis/pythonext/eval?pid={}".format(job.pid)
    assert granted.ask(path, "POST", "print('a')\n6 * 7", tcp=True).json == {"status": "ok", "output": "a\n42\n", "traceback": []}
    raised = granted.ask(path, "POST", "1 / 0", tcp=True).json
    assert raised["status"] == "error" and "ZeroDivisionError" in raised["traceback"][-1]
    assert granted.ask(path, "POST", "", tcp=True).status == 400
    assert "process {}: 1 / 0: done".format(job.pid) in granted.log


def test_eval_needs_the_grant(server, job):
    refused = server.ask("/apis/pythonext/eval?pid={}".format(job.pid), "POST", "1", tcp=True)
    assert refused.status == 403 and "--allow eval" in refused.error["remedy"]


def test_config(server, job):
    told = server.ask("/config/probing.max_memory?pid={}".format(job.pid))
    assert told.text == "256MiB" and told.headers["content-type"].startswith("text/plain")
    assert server.ask("/config/probing.nothing?pid={}".format(job.pid)).status == 404
    assert server.ask("/config/probing.max_memory=1?pid={}".format(job.pid)).status == 404


def test_flame_graphs(start, any_python, server):
    job = start(any_python, "busy.py")
    there = "/apis/pprofextension/flamegraph"
    words = "?seconds=1&pid={}".format(job.pid)
    told = server.ask(there + "/json" + words).json
    assert told["total"] > 0 and {"profile", "title", "subtitle", "countName", "total", "width", "frameHeight", "frames"} <= set(told)
    for frame in told["frames"]:
        assert set(frame) == {"id", "parent", "name", "value", "x", "y", "w", "d"}
        if frame["parent"] is not None:
            parent = told["frames"][frame["parent"]]
            assert parent["d"] == frame["d"] - 1 and frame["x"] >= parent["x"] - 1e-6 and frame["x"] + frame["w"] <= parent["x"] + parent["w"] + 1e-6
    lines = server.ask(there + "/folded/json" + words).json["lines"]
    assert all(line.rsplit(" ", 1)[1].isdigit() for line in lines)
    assert b"<svg" in server.ask(there + words).body
    assert server.ask(there + "?seconds=61&pid={}".format(job.pid)).status == 400


@pytest.mark.parametrize("path, word", [("/apis/files?path=/etc/passwd", "source"), ("/apis/pythonext/engines/list", "metrics"),
                                        ("/apis/pythonext/trace/start?function=f", "query"), ("/apis/torchextension/flamegraph", "torch_trace"), ("/ws", "live")])
def test_what_is_not_there_names_ours(server, path, word):
    answer = server.ask(path)
    assert answer.status == 404 and word in answer.error["remedy"], answer.body


def test_they_are_not_in_our_document(server):
    assert "/apis/" not in json.dumps(server.ask("/api/v1/openapi.json").json)
