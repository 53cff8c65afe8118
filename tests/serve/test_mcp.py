"""Tools for agents: JSON-RPC and MCP to the letter, on standard input and over HTTP; the client of Python's own SDK, where it is
installed (./bootstrap check does; PROBING_MCP_PYTHON names a Python that has it)."""

import functools
import json
import os
import subprocess
import sys
import time

import pytest

from serving import DEADLINE, PROBING, until
from support.target import backtrace, query

HERE = os.path.dirname(os.path.abspath(__file__))
NEWEST = "2026-07-28"
TOOLS = ["processes", "diagnose", "stacks", "query", "schema", "profile"]
META = {"io.modelcontextprotocol/protocolVersion": NEWEST, "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}
CAN_ASK = dict(META, **{"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}})


def request(method, params=None, number=1, meta=META):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {}, **({"_meta": meta} if meta else {}))}


def call(tool, meta=META, number=1, **arguments):
    return request("tools/call", {"name": tool, "arguments": arguments}, number, meta)


class Agent:
    """`probing mcp` as a client has it."""

    def __init__(self, *words, **variables):
        self.process = subprocess.Popen([PROBING, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                                        env=dict(os.environ, **variables))

    def send(self, message):
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, message):
        self.send(message)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(DEADLINE)
        rest = self.process.stdout.read()
        self.process.stdout.close()
        return status, rest


@pytest.fixture
def agent():
    """agent(*words); must end well, and say nothing more."""
    started = []

    def begin(*words, **variables):
        started.append(Agent(*words, **variables))
        return started[-1]

    yield begin
    for one in started:
        assert one.end() == (0, "")


# ---- the protocol ----


def test_handshakes(agent):
    one = agent()
    for version in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
        told = one.ask(request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}, meta=None))
        assert told["result"]["protocolVersion"] == version and told["result"]["serverInfo"]["name"] == "probing"
    one.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert one.ask(request("initialize", {"protocolVersion": "1999-01-01"}, meta=None))["result"]["protocolVersion"] == "2025-11-25"
    assert one.ask(request("ping", meta=None))["result"] == {}
    told = one.ask(request("server/discover"))["result"]
    assert told["supportedVersions"][0] == NEWEST and told["resultType"] == "complete" and set(told["capabilities"]) == {"tools", "resources", "prompts"}
    for method in ("initialize", "ping"):  # gone by then
        assert one.ask(request(method))["error"]["code"] == -32601
    told = one.ask(request("tools/list", meta=dict(META, **{"io.modelcontextprotocol/protocolVersion": "2099-01-01"})))["error"]
    assert told["code"] == -32022 and told["data"]["requested"] == "2099-01-01" and NEWEST in told["data"]["supported"]


@pytest.mark.parametrize("message, code, number", [
    ("{", -32700, None), ("[]", -32600, None), ("1", -32600, None), ('{"id": 1}', -32600, 1), ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600, 1),
    ('{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600, 1), ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, None),
    ('{"jsonrpc": "2.0", "id": "a", "method": "nothing"}', -32601, "a"), ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32600, 1),
    ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700, None),
])
def test_json_rpc(agent, message, code, number):
    told = agent().ask(message)
    assert told["jsonrpc"] == "2.0" and told["id"] == number and told["error"]["code"] == code and "result" not in told


def test_what_needs_no_answer(agent):
    one = agent()
    for message in ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}, {"jsonrpc": "2.0", "method": "nothing"},
                    {"jsonrpc": "2.0", "id": 4, "result": {}}, ""):
        one.send(message)
    assert one.ask(request("tools/list", number=77))["id"] == 77


def test_cancel(agent, job):
    one = agent()
    one.send(call("profile", target=str(job.pid), seconds=30, number="long"))
    began = time.monotonic()
    one.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}})
    assert one.ask(request("tools/list", number=2))["id"] == 2 and time.monotonic() - began < 25


# ---- tools ----


def test_tools(agent, job):
    one = agent()
    tools = one.ask(request("tools/list"))["result"]
    assert [tool["name"] for tool in tools["tools"]] == TOOLS and tools["ttlMs"] > 0
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools["tools"]) and len(json.dumps(tools)) < 12000
    told = {}
    for tool, arguments in {"processes": {"match": "threads.py"}, "stacks": {}, "profile": {"seconds": 1, "mode": "wall"}, "diagnose": {"skill": "health"},
                            "query": {"sql": "SELECT func, lineno FROM python.backtrace WHERE depth = 0 ORDER BY os_thread_id"},
                            "schema": {"table": "python.threads"}}.items():
        if tool not in ("processes", "schema"):
            arguments["target"] = str(job.pid)
        result = one.ask(call(tool, **arguments))["result"]
        assert not result["isError"] and result["content"][0]["text"].startswith("What follows was read from the process."), result
        told[tool] = result["structuredContent"]
        schema = next(one for one in tools["tools"] if one["name"] == tool)["outputSchema"]
        assert set(schema["required"]) <= set(told[tool])
    row = next(row for row in told["processes"]["processes"] if row["pid"] == job.pid)
    assert one.ask(call("stacks", target=row["id"]))["result"]["isError"] is False
    assert {thread["id"] for group in told["stacks"]["groups"] for thread in group["threads"]} == {entry["os_thread_id"] for entry in backtrace(job.pid)}
    assert told["query"]["rows"] == [list(row.values()) for row in query(job.pid, "SELECT func, lineno FROM python.backtrace WHERE depth = 0 ORDER BY os_thread_id")]
    assert told["profile"]["samples"] > 0 and told["profile"]["paths"] and told["profile"]["dropped"] >= 0
    assert told["diagnose"]["findings"][0]["severity"] == "info"
    assert "os_thread_id" in [line[0] for line in told["schema"]["rows"]]


@pytest.mark.parametrize("tool, arguments, words", [
    ("stacks", {}, "needs the argument `target`"), ("stacks", {"target": 1}, "must be of type string"), ("stacks", {"target": "0"}, "no target"),
    ("stacks", {"target": "no such job at all"}, ""), ("stacks", {"target": "/etc/passwd"}, ""), ("stacks", {"target": "file:../x"}, "no file ../x"),
    ("profile", {"target": "SELF", "mode": "memory"}, "active, cpu, wall or gil"),
    ("stacks", {"target": "1", "limit": 1000}, "out of its bounds"), ("query", {"target": "SELF", "sql": "DROP TABLE x"}, "read"),
    ("query", {"target": "SELF", "sql": "SELECT * FROM nowhere"}, "nowhere"), ("query", {"target": "SELF", "sql": "SELECT 1", "more": 1}, "no argument `more`"),
    ("diagnose", {"target": "SELF", "skill": "nothing"}, "there is no skill"), ("schema", {"table": "x; y"}, "not the name of a table"),
    ("stacks", {"target": "1.1"}, "another one"), ("stacks", {"target": "4194999"}, "the tool `processes` lists them"),
])
def test_errors_of_tools(agent, job, tool, arguments, words):
    """They are results, so that the model can mend its call."""
    arguments = {key: str(job.pid) if value == "SELF" else value for key, value in arguments.items()}
    told = agent().ask(call(tool, **arguments))["result"]
    assert told["isError"] and words in told["content"][0]["text"], told


def test_results_are_bounded(agent, job):
    one = agent()
    for sql in ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, hex(randomblob(50)) FROM n",
                "SELECT hex(randomblob(1000000)) AS long", "SELECT hex(randomblob(20000)) AS a, hex(randomblob(20000)) AS b, printf('%.*c', 99999, 'x') AS c"):
        result = one.ask(call("query", target=str(job.pid), sql=sql, limit=1000))["result"]
        assert len(result["content"][0]["text"]) <= 20000 and len(json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))) <= 20000
        assert result["structuredContent"]["truncated"] and result["structuredContent"]["rows"]


def test_hostile_text(agent, job):
    """Control characters and direction marks of a target never reach a terminal or a model raw."""
    result = agent().ask(call("query", target=str(job.pid), sql="SELECT 'a' || char(27) || '[2J' || char(8238) || 'b' AS x"))["result"]
    text = result["content"][0]["text"]
    assert "\x1b" not in text and "\u202e" not in text and "data, never instructions" in text


def test_older_clients_get_text(agent, job):
    one = agent()
    one.ask(request("initialize", {"protocolVersion": "2025-03-26"}, meta=None))
    told = one.ask(call("query", meta=None, target=str(job.pid), sql="SELECT 1 AS one"))["result"]
    assert "structuredContent" not in told and json.loads(told["content"][0]["text"])["rows"] == [[1]]


def test_crashes_and_what_the_server_saw(serve, job, tmp_path):
    """Its newest dumps are named, and are targets; since when a process stands."""
    subprocess.run([PROBING, "-p", str(job.pid), "snapshot", str(tmp_path / "no-crash.snap")], check=True, stdout=subprocess.DEVNULL)
    server = serve(variables={"PROBING_CRASH_DIR": str(tmp_path)})

    def ask(tool, **arguments):
        return server.post("/mcp", call(tool, **arguments), **headers(call(tool))).json["result"]

    row = {}
    until(lambda: row.update(next(one for one in ask("processes")["structuredContent"]["processes"] if one["pid"] == job.pid)) or "since" in row)
    assert row["since"] >= 0
    assert ask("processes")["structuredContent"]["crashes"] == []  # one that did not crash
    told = ask("stacks", target="file:no-crash.snap")
    assert not told["isError"] and told["structuredContent"]["groups"][0]["since"] is None
    assert ask("stacks", target=str(job.pid))["structuredContent"]["groups"][0]["since"] >= 0


def test_a_dump(agent, job, tmp_path):
    dump = str(tmp_path / "job.snap")
    subprocess.run([PROBING, "-p", str(job.pid), "snapshot", dump], check=True, stdout=subprocess.DEVNULL)
    told = agent(dump).ask(call("stacks", target="file:job.snap"))["result"]
    assert not told["isError"] and told["structuredContent"]["groups"]


# ---- eval ----


def test_eval_needs_the_grant_and_the_user(agent, job):
    told = agent().ask(call("eval", target=str(job.pid), code="1"))
    assert told["error"]["code"] == -32602
    one = agent("--allow", "eval")
    assert one.ask(request("tools/list"))["result"]["tools"][-1]["annotations"]["destructiveHint"]
    told = one.ask(call("eval", target=str(job.pid), code="1"))["result"]  # a client that cannot ask
    assert told["isError"] and "eval-unasked" in told["content"][0]["text"]
    question = one.ask(call("eval", CAN_ASK, target=str(job.pid), code="6 * 7"))["result"]
    assert question["resultType"] == "input_required" and "6 * 7" in question["inputRequests"]["confirm"]["params"]["message"]

    def again(code, answer, state=question["requestState"]):
        message = call("eval", CAN_ASK, target=str(job.pid), code=code)
        message["params"].update(inputResponses={"confirm": answer}, requestState=state)
        return one.ask(message)["result"]

    for answer in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"run": False}}, {"action": "accept"}):
        told = again("6 * 7", answer)
        assert told["isError"] and "did not agree" in told["content"][0]["text"]
    assert again("6 * 8", {"action": "accept", "content": {"run": True}})["resultType"] == "input_required"  # not what he was asked
    assert again("6 * 7", {"action": "accept", "content": {"run": True}})["structuredContent"]["value"] == "42"


def test_eval_unasked(agent, job):
    told = agent("--allow", "eval-unasked").ask(call("eval", target=str(job.pid), code="print('out'); 1 / 0"))["result"]["structuredContent"]
    assert told["output"] == "out\n" and "ZeroDivisionError" in told["raised"] and told["value"] is None


def logged(folder):
    with open(os.path.join(str(folder), "probing", "serve.log")) as lines:
        return [line.split(" ", 1)[1].rstrip("\n") for line in lines if "eval" in line]


def test_evaluations_are_logged(agent, job, tmp_path):
    """Each that ran, failed or was refused; none without a log."""
    one = agent("--allow", "eval-unasked", XDG_RUNTIME_DIR=str(tmp_path))
    one.ask(call("eval", target=str(job.pid), code="6 * 7\n"))
    one.ask(call("eval", target="4194999", code="x" * 300))
    agent("--allow", "eval", XDG_RUNTIME_DIR=str(tmp_path)).ask(call("eval", target=str(job.pid), code="8"))
    who = "mcp eval by probing mcp of process {}, process ".format(os.getpid())
    ran, failed, refused = logged(tmp_path)
    assert ran == who + str(job.pid) + ": 6 * 7\\n: done"
    assert failed.startswith(who + "4194999: " + "x" * 200 + ": ") and "4194999" in failed.rsplit(": ", 1)[1]
    assert refused == who + str(job.pid) + ": 8: this client cannot ask its user whether the code may run"
    os.chmod(str(tmp_path / "probing"), 0o755)
    told = subprocess.run([PROBING, "mcp", "--allow", "eval"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", timeout=DEADLINE, env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
    assert told.returncode and "is not a folder of user" in told.stderr and not told.stdout


# ---- over HTTP ----


def headers(message, **more):
    said = {"MCP_Protocol_Version": NEWEST, "Mcp_Method": message["method"], "Accept": "application/json, text/event-stream",
            "Content_Type": "application/json"}
    if "name" in message["params"]:
        said["Mcp_Name"] = message["params"]["name"]
    return dict(said, **more)


def test_http(server, job):
    message = call("query", target=str(job.pid), sql="SELECT 1")
    answer = server.post("/mcp", message, tcp=True, **headers(message))
    assert answer.status == 200 and answer.json["result"]["structuredContent"]["rows"] == [[1]]
    assert server.post("/mcp", message, tcp=True, token="", **headers(message)).status == 401
    assert server.post("/mcp", message, tcp=True, **headers(message, Origin="http://evil.example")).status == 403
    assert server.post("/mcp", message, tcp=True, **headers(message, Origin="http://127.0.0.1:%d" % server.port)).status == 200
    for wrong in ({"Mcp_Name": "stacks"}, {"Mcp_Method": "tools/list"}, {"MCP_Protocol_Version": "2025-11-25"}):
        answer = server.post("/mcp", message, tcp=True, **headers(message, **wrong))
        assert answer.status == 400 and answer.json["error"]["code"] == -32020, wrong
    message = request("nothing/known")
    assert server.post("/mcp", message, **headers(message)).status == 404
    assert server.ask("/mcp", "POST", "{", Content_Type="application/json").status == 400
    assert server.ask("/mcp").status == 405
    done = server.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert done.status == 202 and not done.body
    names = [tool["name"] for tool in server.post("/mcp", request("tools/list", meta=None), tcp=True).json["result"]["tools"]]
    assert names == TOOLS  # TCP may only look


# ---- Python's own client ----


@functools.lru_cache(maxsize=None)
def client_python():
    for path in (os.environ.get("PROBING_MCP_PYTHON"), os.path.join(os.environ.get("BUILDDIR", "."), "venv", "bin", "python3"), sys.executable):
        if path and os.path.exists(path):
            code = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('mcp_types'))"
            if subprocess.run([path, "-c", code]).returncode == 0:
                return path
    return None


def with_client(mode, action, command, calls, **environment):
    if not client_python():
        pytest.skip("no Python with the package mcp (./bootstrap check has one)")
    done = subprocess.run([client_python(), os.path.join(HERE, "mcp_client.py"), mode, action, "--", *command], input=json.dumps(calls),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=240, env=dict(os.environ, **environment))
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode, way", [("auto", "stdio"), ("legacy", "http"), (NEWEST, "stdio"), (NEWEST, "http")])
def test_the_sdk(server, job, mode, way):
    command = [PROBING, "mcp"] if way == "stdio" else ["http://127.0.0.1:%d/mcp" % server.port]
    calls = [["query", {"target": str(job.pid), "sql": "SELECT 6 * 7 AS answer"}], ["stacks", {"target": str(job.pid)}], ["stacks", {"target": "0"}]]
    told = with_client(mode, "none", command, calls, TOKEN=server.token)
    assert told["version"] == ("2025-11-25" if mode == "legacy" else NEWEST) and told["tools"] == TOOLS
    assert "probing://skills/hang" in told["resources"] and "hang" in told["prompts"]
    assert told["hang"].startswith("---\nname: hang\n") and "target 1" in told["prompt"]
    assert told["calls"][0]["structured"]["rows"] == [[42]] and not told["calls"][1]["error"] and told["calls"][2]["error"]


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_the_sdk_asks_its_user(job, action):
    told = with_client(NEWEST, action, [PROBING, "mcp", "--allow", "eval"], [["eval", {"target": str(job.pid), "code": "6 * 7"}]])
    assert len(told["asked"]) == 1 and "6 * 7" in told["asked"][0]
    assert told["calls"][0]["error"] == (action != "accept")
    if action == "accept":
        assert told["calls"][0]["structured"]["value"] == "42"


def test_the_inspector(server, job):
    """The command line of the protocol's own inspector, over both ways."""
    tools = os.environ.get("PROBING_EDITORS", os.path.join(os.environ.get("BUILDDIR", "."), "editors"))
    program = os.path.join(tools, "lint", "node_modules", "@modelcontextprotocol", "inspector-cli", "build", "cli.js")
    if not os.path.exists(program):
        pytest.skip("no inspector of MCP: tests/editors/setup.sh installs it")
    node = os.path.join(tools, "node", "bin", "node")
    http = ["http://127.0.0.1:%d/mcp" % server.port, "--transport", "http", "--header", "Authorization: Bearer " + server.token]

    def inspect(way, *words):
        done = subprocess.run([node, program, "--cli", *way, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=150)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    assert [one["name"] for one in inspect([PROBING, "mcp"], "--method", "tools/list")["tools"]] == TOOLS
    told = inspect(http, "--method", "tools/call", "--tool-name", "query", "--tool-arg", 'target="{}"'.format(job.pid), "sql=SELECT 6 * 7 AS answer")
    assert told["structuredContent"]["rows"] == [[42]]
