"""Other people's tools: slowhttptest, wrk, schemathesis.  What is not installed is left out."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading

import pytest

SECONDS = 5
LONG = os.environ.get("PROBING_SERVE_SCHEMA")


def tool(name):
    """Its path, beside this Python or on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    found = beside if os.access(beside, os.X_OK) else shutil.which(name)
    if not found:
        pytest.skip("{} is not installed".format(name))
    return found


def memory(pid):
    return int(next(line for line in open("/proc/{}/status".format(pid)) if line.startswith("VmRSS")).split()[1])


@pytest.mark.parametrize("attack", [["-H", "-i", "1"], ["-B", "-i", "1", "-s", "8192", "-x", "10"], ["-X", "-w", "10", "-y", "20", "-n", "1", "-z", "16"]],
                         ids=["headers", "body", "read"])
def test_slow_clients(tmp_path, serve, job, attack):
    """
    300 of them: the tool's own probe finds the server available to the end, and who has the token is answered meanwhile.

    64 strangers have a place, so that on a busy machine the tool's probe has a second to be answered before 64 more have come.
    """
    program, server = tool("slowhttptest"), serve(of=job.pid)  # what else runs here costs it no memory
    server.ask("/api/v1/p/{}/stacks".format(job.pid), tcp=True)
    before, statuses, stop = memory(server.pid), [], threading.Event()

    def asks():
        while not stop.is_set():
            statuses.append(server.ask("/api/v1", tcp=True).status)
            stop.wait(0.05)

    asking = threading.Thread(target=asks)
    asking.start()
    try:
        told = subprocess.run([program, "-c", "300", "-r", "60", "-l", str(SECONDS), "-p", str(SECONDS - 1), "-u", "http://{}:{}/".format(server.host, server.port), *attack],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=150, cwd=str(tmp_path)).stdout
        answered = len(statuses)
    finally:
        stop.set()
        asking.join()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert "service available:   NO" not in plain and "Exit status" in plain, plain[-2000:]
    assert answered >= 3 and set(statuses) == {200}, statuses
    assert memory(server.pid) < before + 8192
    assert server.end() == 0


def test_wrk(server, job):
    """Many at once for three seconds: each is answered, by HTTP to the letter of another reader of it."""
    told = subprocess.run([tool("wrk"), "-t2", "-c32", "-d3s", "--timeout", "60s", "-H", "Authorization: Bearer " + server.token,
                           "http://{}:{}/api/v1/p/{}/stacks".format(server.host, server.port, job.pid)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=150).stdout
    assert int(re.search(r"(\d+) requests in", told)[1]) >= 32, told
    assert "Non-2xx" not in told and "Socket errors" not in told, told


def test_schemathesis(server, job, tmp_path):
    """Requests made of our own OpenAPI document, right and wrong ones: no answer of 500, none that the document does not have.

    PROBING_SERVE_SCHEMA: how many of each kind for each route, and then each boundary of each parameter, too.
    """
    program = tool("schemathesis")
    document = server.ask("/api/v1/openapi.json").json
    for path in document["paths"].values():
        for one in path.values():
            for parameter in one["parameters"]:
                if parameter["in"] == "path" and parameter["name"] == "t":
                    parameter["schema"] = {"enum": [str(job.pid), "1.1", "file:none", "x"]}  # not whatever else runs here
    schema = tmp_path / "openapi.json"
    schema.write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text('[generation]\nallow-x00 = false\n[phases.coverage]\nunexpected-methods = ["PATCH"]\n')  # NUL and TRACE are closed
    told = subprocess.run([program, "run", str(schema), "--url", "http://{}:{}".format(server.host, server.port), "-H", "Authorization: Bearer " + server.token,
                           "--max-examples", LONG or "3", "--seed", "7", "--request-timeout", "60", "--no-color", "--phases", "coverage,fuzzing" if LONG else "fuzzing",
                           "--exclude-checks", "positive_data_acceptance,ignored_auth", "--exclude-path-regex", "profile|skills/|mcp"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=3000 if LONG else 300, cwd=str(tmp_path), stdin=subprocess.DEVNULL)
    assert told.returncode == 0, told.stdout[-6000:]
    assert server.alive()
