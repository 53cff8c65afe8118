"""examples/cluster: what Prometheus, Grafana and ClickHouse are given is what there is; a real Prometheus asks a job of two gloo ranks."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from bus import Bus, missing
from support.injection import wait_until
from support.rings import Writer, folder_of
from support.target import PROBING, SRCDIR, free_port
from support.torch_python import torch_python

FOLDER = os.path.join(SRCDIR, "examples", "cluster")
NAMES = {"probing_process_rss_bytes", "probing_process_cpu_seconds_total", "probing_process_threads", "probing_process_step",
         "probing_process_unchanged_seconds"}
OWN = {"_job", "_process", "rank", "host"}
DEADLINE = 60
JOB = """
import os, sys, time, torch
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    torch.distributed.all_reduce(model.weight.grad)
    optimizer.step()
    time.sleep(0.02)
"""


def text(*names):
    with open(os.path.join(SRCDIR, *names)) as file:
        return file.read()


def dashboards():
    """{name: [expression]}"""
    return {name: [target["expr"] for panel in json.loads(text("examples", "cluster", name))["panels"] for target in panel["targets"]]
            for name in ("ranks.json", "hosts.json")}


def test_files(tmp_path):
    """The dashboards and alerts ask for metrics that there are; promtool takes the files; ClickHouse's columns are those of the rows."""
    asked = " ".join(sum(dashboards().values(), [])) + text("examples", "cluster", "rules.yml")
    assert set(re.findall(r"probing_process_\w+", asked)) == NAMES
    queue = re.search(r"steps_queue\n\((.*?)\n\)", text("examples", "cluster", "clickhouse.sql"), re.S)[1]
    columns = dict(re.findall(r"`(\w+)` +(\S+?),?$", queue, re.M))
    ring = dict(re.findall(r'"(\w+):(\w+)[:\\]', re.search(r"PRB_TRACE_STEPS_COLUMNS(.*?)\nenum", text("lib", "training", "trace.h"), re.S)[1]))
    types = {"integer": "Int64", "time": "Float64", "real": "Float64"}
    for name in set(columns) - OWN:
        assert types[ring[name]] in columns[name], name
    assert "probing.v1.*.history." in text("fleet", "history", "history.h") and '"probing_history"' in text("fleet", "history", "history.h")
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool (Debian: prometheus) is not installed")
    for name in ("prometheus.yml", "rules.yml"):
        shutil.copy(os.path.join(FOLDER, name), str(tmp_path))
    (tmp_path / "token").write_text("x")
    for words in (("config", "prometheus.yml"), ("rules", "rules.yml")):
        done = subprocess.run([promtool, "check", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=str(tmp_path), timeout=DEADLINE)
        assert done.returncode == 0, done.stdout.decode()


class Told:
    """A Prometheus with the example's configuration, of one server, each second."""

    def __init__(self, folder, target, token):
        self.port = free_port()
        for name in ("prometheus.yml", "rules.yml"):
            told = text("examples", "cluster", name).replace("'node1:9921', 'node2:9921'", repr(target)).replace("scrape_interval: 10s", "scrape_interval: 1s")
            (folder / name).write_text(told)
        (folder / "token").write_text(token)
        self.child = subprocess.Popen([shutil.which("prometheus"), "--config.file={}/prometheus.yml".format(folder),
                                       "--storage.tsdb.path={}/data".format(folder), "--web.listen-address=127.0.0.1:{}".format(self.port)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def ask(self, expression):
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen("http://127.0.0.1:{}/api/v1/query?{}".format(self.port, query), timeout=DEADLINE) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as wrong:
            assert wrong.code == 503, "{}: {}".format(expression, wrong.read().decode())  # it starts
            return []
        except OSError:
            return []

    def end(self):
        self.child.kill()
        self.child.wait()


class Collected:
    """An agent of this host that keeps a file for node_exporter."""

    def __init__(self, folder):
        self.file = folder / "collector" / "ranks.prom"
        self.file.parent.mkdir()
        self.bus = Bus()
        self.bus.environment.update(PROBING_DATA_DIR=str(folder / "data"), PROBING_STORE="off", PROBING_CLUSTER_METRICS_EVERY="1s",
                                    PROBING_CLUSTER_SCAN="0.5s")
        self.bus.up()

    def attach(self, file):
        return self.bus.run("cluster", "attach", "--metrics", str(file), umask=0o077)

    def values(self, pid):
        """{name: (rank, value)} of a rank.  Whenever it is read, the file is whole."""
        told = self.file.read_text()
        assert told.endswith("\n") and re.findall(r"^# TYPE (\w+) \w+$", told, re.M) == sorted(NAMES, key=told.index) and len(NAMES) == told.count("# TYPE")
        found = re.findall(r'^(\w+)\{pid="%d",rank="(\d*)",command="(?:[^"\\]|\\.)*"\} (\S+)$' % pid, told, re.M)
        return {name: (rank, float(value)) for name, rank, value in found}

    def end(self):
        self.bus.run("cluster", "detach")
        self.bus.remove()


@pytest.fixture
def collected(tmp_path):
    one = Collected(tmp_path)
    try:
        yield one
    finally:
        one.end()


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_file_for_node_exporter(collected, start_ranks, tmp_path):
    """What `/metrics` has, of this host's ranks: each file a whole one that anybody may read; gone with the agent."""
    job = start_ranks(2, PROBING_DATA_DIR=str(tmp_path / "data"))
    pids = {rank: process.pid for rank, process in job.processes.items()}
    told = collected.attach(collected.file)
    assert told.returncode == 0, told.stderr
    assert stat.S_IMODE(collected.file.stat().st_mode) == 0o644
    for rank, pid in pids.items():
        wait_until(lambda: collected.values(pid).get("probing_process_unchanged_seconds", ("", 0))[1] > 1)
        found = collected.values(pid)
        assert {rank for rank, _ in found.values()} == {str(rank)} and set(found) == NAMES - {"probing_process_step"}
        assert found["probing_process_rss_bytes"][1] > 1 << 20 and found["probing_process_threads"][1] >= 1
    writer = Writer(folder_of(tmp_path / "data", pids[0]), "torch_step_timing", "step:integer\n")
    try:
        writer.write(41)
        wait_until(lambda: collected.values(pids[0]).get("probing_process_step") == ("0", 41))
    finally:
        writer.kill()
    os.kill(pids[1], signal.SIGKILL)
    job.processes[1].wait()
    wait_until(lambda: not collected.values(pids[1]))
    assert collected.values(pids[0]) and stat.S_IMODE(collected.file.stat().st_mode) == 0o644
    assert collected.bus.run("cluster", "detach").returncode == 0
    assert not list(collected.file.parent.iterdir())


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_no_file_for_node_exporter(collected):
    """A file that cannot be is said at once."""
    told = collected.attach(collected.file.parent / "none" / "ranks.prom")
    assert told.returncode != 0 and "none/ranks.prom: No such file or directory" in told.stderr
    told = collected.attach(collected.file.parent / "ranks.txt")
    assert told.returncode == 2 and "ends in .prom" in told.stderr
    assert not list(collected.file.parent.iterdir())


@pytest.mark.skipif("PROBING_FLEET_LONG" not in os.environ, reason="45 s: PROBING_FLEET_LONG=1")
@pytest.mark.skipif(not shutil.which("prometheus"), reason="no prometheus")
@pytest.mark.skipif(not torch_python(), reason="needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
def test_prometheus(tmp_path):
    """Each panel of both dashboards has an answer, of both ranks where it draws ranks."""
    port, ranks = str(free_port()), []
    environment = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, PROBING_STORE="off", XDG_RUNTIME_DIR=str(tmp_path))
    program = tmp_path / "train_two.py"
    program.write_text(JOB)
    token = tmp_path / "of-the-server"
    token.write_text("a" * 40)
    token.chmod(0o600)
    server = prometheus = None
    try:
        for rank in range(2):
            ranks.append(subprocess.Popen([torch_python(), str(program)], stdout=subprocess.PIPE, env=dict(environment, RANK=str(rank))))
        server = subprocess.Popen([PROBING, "serve", "--address", "127.0.0.1:0", "--token-file", str(token)], stdout=subprocess.PIPE, encoding="utf-8",
                                  env=environment, stdin=subprocess.DEVNULL)
        address = re.search(r"//(127\.0\.0\.1:\d+)/", server.stdout.readline())[1]
        for rank in ranks:
            assert rank.stdout.readline() == b"ready\n"
            done = subprocess.run([PROBING, "-t", str(rank.pid), "config", "probing.torch.profiling=rate=1"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=environment, timeout=DEADLINE)
            assert done.returncode == 0, done.stdout
        prometheus = Told(tmp_path, address, "a" * 40)
        for name, expressions in dashboards().items():
            for expression in expressions:
                expression = expression.replace("$command", ".*{}".format(program)).replace("$instance", ".*")
                alone = name == "hosts.json" or expression.startswith(("count(", "max("))
                wait_until(lambda: {one["metric"].get("rank") for one in prometheus.ask(expression)} >= ({None} if alone else {"0", "1"}))
        assert prometheus.ask('count(probing_process_rss_bytes{{rank!="",command=~".*{}"}})'.format(program))[0]["value"][1] == "2"
    finally:
        if prometheus:
            prometheus.end()
        for one in (*ranks, *([server] if server else [])):
            one.kill()
            one.communicate()
