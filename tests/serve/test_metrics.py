"""What Prometheus gets: the names and labels, promtool's opinion, a real Prometheus, the dashboard in examples/."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from serving import DEADLINE, until
from support.target import SRCDIR, free_port

NAMES = {"probing_process_rss_bytes", "probing_process_cpu_seconds_total", "probing_process_threads", "probing_process_step",
         "probing_process_unchanged_seconds"}


def values(server, job):
    """{name: value} of a process."""
    answer = server.ask("/metrics")
    assert answer.status == 200 and answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = re.findall(r'^(\w+)\{pid="%d",rank="(\d*)",command="((?:[^"\\]|\\.)*)"\} (\S+)$' % job.pid, answer.text, re.M)
    return {name: (rank, command, float(value)) for name, rank, command, value in found}


def scraped(server, job):
    until(lambda: "probing_process_unchanged_seconds" in values(server, job))
    return values(server, job)


def test_metrics(server, moved):
    scraped(server, moved)
    until(lambda: values(server, moved)["probing_process_threads"][2] >= 2)  # it may have been seen when it began
    told = values(server, moved)
    assert set(told) == NAMES - {"probing_process_step"}  # it records no steps
    assert all(rank == "" and "moved.py" in command for rank, command, value in told.values())
    assert told["probing_process_rss_bytes"][2] > 1 << 20
    assert told["probing_process_cpu_seconds_total"][2] >= 0
    until(lambda: values(server, moved)["probing_process_unchanged_seconds"][2] > 2)
    assert server.ask("/metrics", tcp=True, token="").status == 401


def test_labels(server, start, any_python):
    """What stands on a command line breaks no line of the text."""
    job = start(any_python, "moved.py", 'a"b\\c', "d\ne", "f\udcff", variables={"RANK": "3"})
    told = scraped(server, job)["probing_process_rss_bytes"]
    assert told[0] == "3" and 'a\\"b\\\\c' in told[1] and "f\ufffd" in told[1]


def test_promtool(server, moved):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool (Debian: prometheus) is not installed")
    scraped(server, moved)
    done = subprocess.run([promtool, "check", "metrics"], input=server.ask("/metrics").body, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=DEADLINE)
    assert done.returncode == 0, done.stdout.decode()


def test_dashboard(server, moved):
    """Its panels ask for what there is."""
    with open(os.path.join(SRCDIR, "examples", "grafana.json")) as file:
        told = json.load(file)
    asked = [target["expr"] for panel in told["panels"] for target in panel["targets"]]
    assert set(re.findall(r"probing_\w+", " ".join(asked))) == NAMES
    answer = server.ask("/metrics").text
    assert all("# TYPE {} ".format(name) in answer for name in NAMES)


def test_prometheus(server, moved, tmp_path):
    """A real one scrapes the server by the token, and answers with the process."""
    prometheus = shutil.which("prometheus")
    if not prometheus:
        pytest.skip("prometheus is not installed")
    scraped(server, moved)
    (tmp_path / "token").write_text(server.token)
    (tmp_path / "prometheus.yml").write_text(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: probing\n  authorization: {{credentials_file: {}/token}}\n"
        "  static_configs: [{{targets: ['{}:{}']}}]\n".format(tmp_path, server.host, server.port))
    port = free_port()
    child = subprocess.Popen([prometheus, "--config.file={}/prometheus.yml".format(tmp_path), "--storage.tsdb.path={}/data".format(tmp_path),
                              "--web.listen-address=127.0.0.1:{}".format(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
    try:
        asked = urllib.parse.urlencode({"query": 'probing_process_rss_bytes{{pid="{}"}}'.format(moved.pid)})
        limit = time.monotonic() + 2 * DEADLINE
        found = []
        while not found:
            assert child.poll() is None and time.monotonic() < limit
            time.sleep(0.2)
            try:
                with urllib.request.urlopen("http://127.0.0.1:{}/api/v1/query?{}".format(port, asked), timeout=DEADLINE) as answer:
                    found = json.load(answer)["data"]["result"]
            except OSError:
                continue  # it starts
        assert "moved.py" in found[0]["metric"]["command"] and float(found[0]["value"][1]) > 1 << 20
    finally:
        child.kill()
        child.wait()


# ---- the collector ----


def test_the_server_is_the_collector(serve, tmp_path):
    """One at a time: a second one says which it is, and the store's place is free when the server has ended."""
    variables = {"PROBING_STORE": "on", "PROBING_DATA_DIR": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state")}
    one = serve(variables=variables)
    environment = dict(os.environ, **variables)

    def collect():
        done = subprocess.run([os.environ["PROBING"], "collect", "--once"], stdout=subprocess.PIPE, encoding="utf-8",
                              timeout=DEADLINE, env=environment, stdin=subprocess.DEVNULL)
        assert done.returncode == 0
        return done.stdout

    until(lambda: "a collector runs already: process {}".format(one.pid) in collect())
    assert one.end() == 0
    assert "rows moved" in collect()
