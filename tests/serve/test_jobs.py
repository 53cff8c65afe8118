"""Jobs of several ranks: who they are, their stacks merged, whether they hang, SQL over all of them; always with the coverage."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import pytest

from serving import DEADLINE, PROBING, until

PROGRAM = """
import os, sys
def innermost():
    print("ready", flush=True)
    sys.stdin.read()
def odd(): innermost()
def usual(): innermost()
(odd if os.environ["RANK"] == "2" else usual)()
"""


class Job:
    def __init__(self, name, world):
        self.name = name
        self.path = "/api/v1/jobs/" + urllib.parse.quote(name, safe="")
        self.ranks = [subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), PROBING_JOB=name)) for rank in range(world)]
        for one in self.ranks:
            assert one.stdout.readline() == b"ready\n"

    def kill(self, rank):
        self.ranks[rank].kill()
        self.ranks[rank].communicate()

    def end(self):
        for rank in range(len(self.ranks)):
            self.kill(rank)


@pytest.fixture(scope="module")
def job():
    one = Job("job {}/a:x".format(os.getpid()), 4)
    yield one
    one.end()


def said(job, *words):
    return subprocess.run([PROBING, "-t", "@" + job.name, *words], stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE).stdout


def test_who_they_are(server, job):
    one = next(one for one in server.ask("/api/v1/jobs").json["jobs"] if one["id"] == job.name)
    assert server.ask(job.path).json == one
    assert one["world_size"] == 4 and one["hosts"] == 1
    assert [(row["rank"], row["local_rank"], row["pid"], row["silent"], row["refused"]) for row in one["ranks"]] == [
        (rank, rank, process.pid, False, None) for rank, process in enumerate(job.ranks)]
    for row in one["ranks"]:  # a rank of this host is a target
        assert server.ask("/api/v1/p/{}/stacks".format(row["target"])).status == 200
    missing = server.ask("/api/v1/jobs/nosuch")
    assert missing.status == 404 and missing.error["remedy"]


def test_stacks(server, job):
    told = server.ask(job.path + "/stacks").json
    (odd,) = [row for row in told["rows"] if row["frames"] and any(frame["name"] == "odd" for frame in row["frames"])]
    assert odd["ranks"] == "2" and told["rows"][0] == odd and told["coverage"]["answered"] == "0-3"
    assert told == json.loads(said(job, "backtrace", "--json"))
    assert server.ask(job.path + "/stacks?format=text").text == said(job, "backtrace")
    assert server.ask(job.path + ":0-1/stacks").json["coverage"]["expected"] == 2
    by_function = server.ask(job.path + "/stacks?by=function").json["rows"]
    assert all(frame["line"] in (0, None) for row in by_function for frame in row["frames"] if frame["kind"] == "python")
    for wrong, status in ((":0,9/stacks", 400), ("/stacks?by=x", 400), ("/stacks?native=x", 400), ("/hang?between=0", 400), ("/query?sql=", 400)):
        assert server.ask(job.path + wrong).status == status, wrong


def test_hang(server, job):
    told = server.ask(job.path + "/hang?between=0.2").json
    assert isinstance(told["hung"], bool) and told["coverage"]["answered"] == "0-3" and told["span"] >= 0.2
    text = server.ask(job.path + "/hang?between=0.2&format=text").text
    assert text.startswith(job.name + ": 4 ranks on 1 host") and "next     probing -t @{}:".format(job.name) in text, text


def test_skills(server, job):
    """What a skill finds in each rank, as the command says it: alike ones once, with their ranks."""
    told = server.post(job.path + "/skills/health", {}).json
    assert "findings" in told, told
    (finding,) = told["findings"]
    assert finding["ranks"] == "0-3" and finding["skill"] == "health" and told["coverage"]["answered"] == "0-3", told
    assert server.post(job.path + "/skills/health?format=text", {}).text.startswith("info   ranks 0-3 (4 of 4): it runs")
    assert server.post(job.path + ":1-2/skills/health", {}).json["coverage"]["expected"] == 2
    for name, body, status in (("nothing", {}, 404), ("crash", {}, 400), ("--help", {}, 404), ("health", {"seconds": 0}, 400), ("health", {"name": "x"}, 400)):
        assert server.post(job.path + "/skills/" + name, body).status == status, (name, body)


def test_skills_that_find(server):
    """A finding of severity high is an answer, of a job and of a process, by each route; the stopped rank comes first."""
    job = Job("found {}".format(os.getpid()), 2)
    pid = job.ranks[1].pid
    try:
        os.kill(pid, signal.SIGSTOP)
        for name in ("health", "hang", "diagnose"):
            told = server.post(job.path + "/skills/" + name, {"seconds": 0.5})
            assert told.status == 200, told.text
            first = told.json["findings"][0]
            assert (first["severity"], first["ranks"]) == ("high", "1") and "stopped" in first["finding"], told.text
        told = tool(server, "diagnose", target="@" + job.name, seconds=0.5)
        assert (told["findings"][0]["skill"], told["findings"][0]["ranks"], told["findings"][0]["next"]) == ("hang", "1", "kill -CONT {}".format(pid))
        said = server.post("/api/v1/command", {"words": ["skill", "run", "health"], "pid": pid})
        assert said.status == 200 and said.text.startswith("high   the process is stopped"), said.text
    finally:
        os.kill(pid, signal.SIGCONT)
        job.end()


def test_query(server, job):
    for ask in (lambda sql: server.post(job.path + "/query", {"sql": sql}), lambda sql: server.ask(job.path + "/query?sql=" + urllib.parse.quote(sql))):
        told = ask("SELECT rank, pid FROM system.process ORDER BY rank").json
        assert told["columns"] == ["rank", "pid"] and told["rows"] == [[rank, process.pid] for rank, process in enumerate(job.ranks)]
        assert told["coverage"]["answered"] == "0-3" and told["truncated"] is False
    assert server.post(job.path + "/query", {"sql": "DROP TABLE x"}).status == 400
    assert server.ask(job.path + "/query?format=csv&sql=SELECT+count(*)+AS+n+FROM+system.process").text.splitlines() == ["n", "4"]
    assert server.post(job.path + "/query", {"sql": "SELECT '" + "x" * (200 << 10) + "'"}).status == 400


def test_profile(server, job):
    """All ranks in one tree, with the rank of each thread and the coverage; or as a file."""
    told = server.ask(job.path + "/profile?seconds=2&mode=wall").json
    assert told["coverage"]["answered"] == "0-3" and {one["rank"] for one in told["threads"]} == {0, 1, 2, 3}
    names = [told["frames"][frame]["name"] if frame >= 0 else None for _, frame in told["nodes"]]
    odd = {told["threads"][thread]["rank"] for thread, node, _ in told["weights"] if "odd" in (names[node], names[told["nodes"][node][0]])}
    assert odd == {2}, told
    collapsed = server.ask(job.path + "/profile?seconds=1&idle=1&format=collapsed").text
    assert "odd" in collapsed and "usual" in collapsed
    assert server.ask(job.path + ":0-1/profile?seconds=0.3&idle=1&format=flamegraph").headers["content-type"] == "image/svg+xml"
    for wrong in ("seconds=0", "mode=x", "seconds=61", "format=speedscope"):
        assert server.ask(job.path + "/profile?" + wrong).status in (400, 406), wrong


def test_equal_questions(server, job):
    """Those of a second are answered by one look at the ranks; later ones by another."""
    def ask(answers):
        answers.append(server.post(job.path + "/query", {"sql": "SELECT random() AS n"}).json["rows"])

    def ask_together():
        answers = []
        threads = [threading.Thread(target=ask, args=(answers,)) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return answers

    until(lambda: len({str(one) for one in ask_together()}) == 1)  # a machine that is busy may let them come apart
    later = []
    until(lambda: ask(later) or later[0] != later[-1])


def test_not_all_answer(server):
    """What is there is answered, and who is not is said; 200."""
    job = Job("lost {}".format(os.getpid()), 3)
    try:
        job.kill(1)
        for path in ("/stacks", "/hang?between=0.1", "/query?sql=SELECT+rank+FROM+system.process"):
            answer = server.ask(job.path + path)
            assert answer.status == 200 and answer.json["coverage"]["answered"] == "0,2" and answer.json["coverage"]["missing"] == "1", answer.text
    finally:
        job.end()


def tool(server, name, **arguments):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = server.post("/mcp", message).json["result"]
    return answer["structuredContent"] if not answer["isError"] else answer["content"][0]["text"]


def test_agents(server, job):
    """Their tools take a job as target."""
    target = "@" + job.name
    assert {"id": target, "world_size": 4, "hosts": 1, "ranks": 4} in tool(server, "processes")["jobs"]
    told = tool(server, "stacks", target=target)
    assert told["groups"][0]["ranks"] == "2" and told["groups"][0]["frames"][0].startswith("innermost (") and told["coverage"]["answered"] == "0-3"
    told = tool(server, "query", target=target, sql="SELECT rank, pid FROM system.process ORDER BY 1", limit=3)
    assert told["columns"] == ["rank", "pid"] and told["rows"] == [[rank, job.ranks[rank].pid] for rank in range(3)] and told["truncated"]
    assert told["warning"] is None
    assert "crash list` has the job's dumps" in tool(server, "query", target=target, sql="SELECT count(*) FROM system.crashes")["warning"]
    told = tool(server, "diagnose", target=target, seconds=0.5)
    assert told["coverage"]["answered"] == "0-3" and all("probing -t " + target in one["next"] for one in told["findings"] if one["next"]), told
    assert {"health", "hang", "nan", "comm"} <= {one.get("skill") for one in told["findings"]} and {one.get("ranks") for one in told["findings"] if one.get("skill") == "health"} == {"0-3"}
    told = tool(server, "profile", target=target, seconds=2, mode="wall")
    assert told["coverage"]["answered"] == "0-3" and sorted(one["rank"] for one in told["ranks"]) == [0, 1, 2, 3]
    assert told["samples"] > 0 and any("odd (" in one["path"] for one in told["paths"]), told
    assert told["link"] == "http://{}:{}/#/p/{}/profile".format(server.host, server.port, urllib.parse.quote(target, safe=""))
    told = tool(server, "diagnose", target=target, skill="slow")
    assert [one["title"] for one in told["tables"]] == ["Steps of the last minute", "Ranks that came last"] and told["findings"][0]["severity"] == "info"
    for arguments, words in (({"skill": "crash"}, "not for all ranks"), ({"target": "@nosuch"}, "there is no job"), ({"target": target + ":9"}, "ranks 0 to 3")):
        assert words in tool(server, "diagnose", **dict({"target": target}, **arguments))
    assert "nowhere" in tool(server, "query", target=target, sql="SELECT * FROM nowhere")


def test_crashes(server, job):
    """Of the job's ranks alone; who did not answer is said."""
    told = server.ask(job.path + "/crashes").json
    assert told["rows"] == [] and told["coverage"]["answered"] == "0-3", told


def test_a_server_of_one_rank(job):
    """It has that rank of the job alone."""
    environment = dict(os.environ, XDG_RUNTIME_DIR=tempfile.mkdtemp(prefix="own-"), PROBING_STORE="off")
    pid = str(job.ranks[1].pid)
    url = subprocess.run([PROBING, "-p", pid, "inject", "-b"], check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, env=environment).stdout.splitlines()[1]
    where, token = re.match(r"http://([^/]+)/#token=(\S+)$", url).groups()
    folder = os.path.join(environment["XDG_RUNTIME_DIR"], "probing")
    (server,) = [int(re.match(r"serve-(\d+)\.json", name)[1]) for name in os.listdir(folder) if name.endswith(".json")]

    def ask(path):
        done = subprocess.run(["curl", "-s", "-g", "-H", "Authorization: Bearer " + token, "http://{}{}".format(where, path)], stdout=subprocess.PIPE, timeout=DEADLINE)
        return json.loads(done.stdout.decode())

    try:
        assert [[row["rank"] for row in one["ranks"]] for one in ask("/api/v1/jobs")["jobs"]] == [[1]]
        assert ask(job.path + "/stacks")["coverage"]["expected"] == 1
        assert ask(job.path + ":2/stacks")["error"]["code"] == "permission"
    finally:
        os.kill(server, signal.SIGTERM)
        until(lambda: not os.path.exists("/proc/{}".format(server)))
        shutil.rmtree(environment["XDG_RUNTIME_DIR"])
