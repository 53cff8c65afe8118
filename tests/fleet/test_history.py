"""Rows that ranks of two hosts record, published to the bus and taken into one file, each once."""

import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from nats_client import Client
from support import timeline
from support.injection import wait_until
from support.rings import Writer, write
from support.target import PROBING, SRCDIR
from test_agents import PARTIAL, Cluster, pytestmark  # noqa: F401
from test_postgres import CRASH

COLUMNS = "step:integer\nloss:real\nnote:text\n"
PID = 1000  # of the ranks, on each host


def source(*names):
    with open(os.path.join(SRCDIR, *names)) as file:
        return file.read()


class Recorded(Cluster):
    def __init__(self):
        super().__init__()
        self.bus.environment["PROBING_DATA_DIR"] = os.path.join(self.bus.home, "data")
        self.writers, self.pids = {}, {}

    def begin(self, host, rank):
        data = os.path.join(self.bus.home, "data")
        # The next process there: ranks of different hosts have the same number.
        host.run("sh", "-c", "echo {} > /proc/sys/kernel/ns_last_pid".format(PID - 1))
        variables, os.environ["PROBING_DATA_DIR"] = os.environ.get("PROBING_DATA_DIR"), data
        try:
            process = self.start(host, rank)
        finally:
            del os.environ["PROBING_DATA_DIR"]
            if variables is not None:
                os.environ["PROBING_DATA_DIR"] = variables
        with open("/proc/{0}/task/{0}/children".format(process.pid)) as file:
            pid = int(file.read().split()[0])
        with open("/proc/{}/status".format(pid)) as file:
            inner = next(line for line in file if line.startswith("NSpid:")).split()[-1]
        with open("/proc/{}/stat".format(pid)) as file:
            started = file.read().rsplit(")", 1)[1].split()[19]
        self.pids[rank] = pid
        folder = os.path.join(data, "{}-{}".format(inner, started))
        self.writers[rank] = Writer(folder, "losses", COLUMNS)
        self.writers[rank].folder = folder

    def begin_all(self):
        for rank, host in ((0, self.hosts.all[0]), (3, self.hosts.all[1])):
            self.begin(host, rank)

    def record(self, file, *options):
        done = self.at(self.hosts.hub, "cluster", "record", file, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def look(self):
        with self.hosts.hub.network():
            return Client(self.bus.file("look"))

    def rows(self, file):
        done = self.at(self.hosts.hub, "-t", file, "query", "SELECT rank, step, loss, note FROM python.losses ORDER BY 1, 2", "-f", "json")
        assert done.returncode == 0 or "losses" in done.stderr, done.stderr  # there is no such table yet
        return [(row["rank"], row["step"], row["loss"], row["note"]) for row in json.loads(done.stdout or "[]")]


@pytest.fixture(scope="module")
def job():
    one = Recorded()
    try:
        one.begin_all()
        yield one
    finally:
        for writer in one.writers.values():
            writer.kill()
        one.end()


def export_of_hosts(job, folder):
    """One timeline of both hosts, whose ranks have the same process number."""
    begin = time.time() - 60
    for rank in (0, 3):
        write(job.writers[rank].folder, "steps", "time:time\nstep:integer", [(begin + step, 100 * rank + step) for step in range(4)])
        write(job.writers[rank].folder, "comm_collective", "timestamp:time\ngroup:text\nseq:integer\nop:text\nduration_ms:real",
              [(begin + step + 0.1 * (1 + rank), "dp", step, "all_reduce", 20.0) for step in range(3)])
    for suffix in ("pftrace", "json"):
        path = os.path.join(folder, "steps." + suffix)
        done = job.at(job.hosts.hub, "-t", "@job:0,3", "export", "-o", path)
        assert done.returncode == 0 and "6 steps of 2 processes" in done.stderr and "3 arrows" in done.stderr, done.stderr
        found = timeline.read(path)
        assert sorted(found) == ["rank 0 (node1)", "rank 3 (node2)"]
        zero, three = found["rank 0 (node1)"], found["rank 3 (node2)"]
        assert [one.name for one in zero["steps"]] == ["step 0", "step 1", "step 2"]
        assert [one.name for one in three["steps"]] == ["step 300", "step 301", "step 302"]
        assert [one.to for one in zero["collectives"]] == [[one] for one in three["collectives"]]
    part = job.at(job.hosts.hub, "-t", "@job", "export", "-o", path)
    assert part.returncode == PARTIAL and "2 of 4 ranks answered; missing 1-2" in part.stderr and "6 steps" in part.stderr, part.stderr
    os.unlink(path)
    strict = job.at(job.hosts.hub, "-t", "@job", "--strict", "export", "-o", path)
    assert strict.returncode == PARTIAL and not os.path.exists(path), strict.stderr


ROWS = [(1, 0.5, "a"), (2, 0.25, 'say "ä"'), (3, None, None), (1 << 60, 1e-300, "")]


def test_history(job):
    """What was written before the agent came stays on the host; what comes later is in the file, once, with both hosts' ranks."""
    job.writers[0].write(-1, 9.0, "before")
    for host in job.hosts.all:
        job.attach(host, "--history", "losses,others", "--every", "0.1")
    file = os.path.join(job.bus.home, "job.db")
    # Each has looked at all rings once, and knows what was there before it.
    wait_until(lambda: len(glob.glob(os.path.join(job.bus.home, "data", "published-*", "tables"))) == 2)
    for row in ROWS:
        for rank in (0, 3):
            job.writers[rank].write(*row)
    wanted = sorted((rank, *row) for rank in (0, 3) for row in ROWS)
    taken = []

    def all_there():
        taken.append(job.record(file, "--once"))
        return len(job.rows(file)) >= len(wanted)

    wait_until(all_there)
    assert job.rows(file) == wanted
    assert job.record(file, "--once").startswith("0 rows were added")
    whose = job.at(job.hosts.hub, "-t", file, "query", "SELECT DISTINCT rank, host FROM python.losses ORDER BY 1", "-f", "csv")
    assert whose.stdout.split() == ["rank,host", "0,node1", "3,node2"], whose.stderr

    export_of_hosts(job, job.bus.home)

    # Killed and begun again, with the server killed in between: each row once.
    follower = subprocess.Popen([*job.hosts.hub.enter, PROBING, "cluster", "record", file], env=job.bus.environment, stdout=subprocess.PIPE)
    for step in range(100, 150):
        job.writers[0].write(step, 0.0, "more")
    wait_until(lambda: len(job.rows(file)) > len(wanted))
    follower.kill()
    follower.communicate()
    os.kill(job.bus.server, signal.SIGKILL)
    for step in range(150, 200):
        job.writers[0].write(step, 0.0, "more")
    wait_until(lambda: job.at(job.hosts.hub, "cluster", "nodes").returncode == 0)  # a record that begins ends where there is no server
    follower = subprocess.Popen([*job.hosts.hub.enter, PROBING, "cluster", "record", file], env=job.bus.environment, stdout=subprocess.PIPE)
    wait_until(lambda: len(job.rows(file)) >= len(wanted) + 100)
    follower.send_signal(signal.SIGINT)
    assert b"rows were added to" in follower.communicate()[0]
    assert job.rows(file) == sorted(wanted + [(0, step, 0.0, "more") for step in range(100, 200)])


def test_agent_killed(job):
    """An agent that is killed at any moment, and the next one: each row is there once.  What came between them, too; the last rows of a rank that ended."""
    host = job.hosts.all[1]
    job.attach(host, "--history", "losses,others", "--every", "0.1")  # where no test before did
    file = os.path.join(job.bus.home, "again.db")
    wanted = []

    def write(rank, count):
        for _ in range(count):
            job.writers[rank].write(1000 + len(wanted), 0.5, "again")
            wanted.append((rank, 1000 + len(wanted), 0.5, "again"))

    def there():
        return [row for row in job.rows(file) if row[1] in range(1000, 10000)] if job.record(file, "--once") else []

    for turn in range(6):
        write(3, 10 * turn + 1)
        os.kill(job.agent(host), signal.SIGKILL)
        write(3, 5)
        wait_until(lambda: "is on the bus" in job.attach(host, "--history", "losses,others", "--every", "0.01"))
        wait_until(lambda: len(there()) >= len(wanted))
    write(3, 7)
    os.kill(job.pids[3], signal.SIGKILL)

    wait_until(lambda: len(there()) >= len(wanted))
    assert there() == wanted


def test_settings(job):
    """The environment says what the options do not; a value that is none is an error.  Rows say whose they are to those who take no headers."""
    host = job.hosts.all[0]
    job.at(host, "cluster", "detach")
    for name, value in (("AGE", "soon"), ("BYTES", "1X"), ("EVERY", "-1")):
        done = job.at(host, "cluster", "attach", **dict({"PROBING_CLUSTER_HISTORY_TABLES": "losses"}, **{"PROBING_CLUSTER_HISTORY_" + name: value}))
        assert done.returncode == 2 and "PROBING_CLUSTER_HISTORY_{} must be".format(name) in done.stderr
    done = job.at(host, "cluster", "attach", PROBING_CLUSTER_HISTORY_TABLES="losses", PROBING_CLUSTER_HISTORY_EVERY="0.01s")
    assert done.returncode == 0, done.stderr
    file = os.path.join(job.bus.home, "set.db")
    job.writers[0].write(20000, 0.5, "set")
    wait_until(lambda: job.record(file, "--once") and (0, 20000, 0.5, "set") in job.rows(file))
    client = job.look()
    client.subscribe("_INBOX.look.>")
    client.publish("$JS.API.DIRECT.GET.probing_history", {"last_by_subj": "probing.v1.job.history.losses"}, "_INBOX.look.1")
    row = json.loads(client.next().body.decode().splitlines()[-1])
    client.close()
    assert row == {"_job": "job", "_process": row["_process"], "rank": 0, "host": "node1", "step": 20000, "loss": 0.5, "note": "set"}


# Each line of input is a statement; the last one's rows are printed as JSON lines.
CLICKHOUSE = """
import json, sys
from chdb import session
one = session.Session()
for line in sys.stdin:
    told = one.query(json.loads(line))
print(told, end="")
"""


@pytest.mark.skipif("PROBING_CHDB" not in os.environ, reason="a Python with chdb, ClickHouse's parser and engine: PROBING_CHDB")
def test_clickhouse(job):
    """The example's statements are ClickHouse's, and it takes what an agent publishes; only its NATS engine is left out, which chdb has not."""
    host = job.hosts.all[0]
    columns = re.findall(r'"(\w+:\w+)', re.search(r"PRB_TRACE_STEPS_COLUMNS(.*?)\nenum", source("lib", "training", "trace.h"), re.S)[1])
    job.writers["steps"] = Writer(job.writers[0].folder, "torch_step_timing", "\n".join(columns) + "\n")
    job.at(host, "cluster", "detach")
    job.attach(host, "--history", "losses,torch_step_timing", "--every", "0.1")
    now = int(time.time()) + 0.25  # what is 90 days old is not kept
    values = {"end": now, "duration": 250000000, "data": None, "forward": 1}
    client = job.look()
    client.subscribe("_INBOX.look.>")

    def published(table):
        client.publish("$JS.API.DIRECT.GET.probing_history", {"last_by_subj": "probing.v1.job.history." + table}, "_INBOX.look.1")
        return client.next().body.decode()

    def steps_are_there():
        for step in range(3):
            job.writers["steps"].write(*(dict(values, step=step).get(name.split(":")[0], 0) for name in columns))
        return "forward" in published("torch_step_timing")

    wait_until(steps_are_there)
    job.writers[0].write(40000, float("nan"), 'a\\b "c" \u00e4')
    wait_until(lambda: "40000" in published("losses"))
    sql = re.sub(r"ENGINE = NATS.*?;", "ENGINE = Null;", re.sub(r"--.*", "", source("examples", "cluster", "clickhouse.sql")), flags=re.S)
    insert = "INSERT INTO probing.{} SETTINGS input_format_skip_unknown_fields = 1 FORMAT JSONEachRow {}"
    statements = [one.strip() for one in sql.split(";") if one.strip()] + [
        insert.format("steps_queue", published("torch_step_timing")),
        insert.format("crashes_queue", json.dumps(CRASH)), "CREATE TABLE probing.losses(step Int64, loss Float64, note String, rank Int32, host String) ENGINE = Memory", insert.format("losses", published("losses")),
        "SELECT (SELECT (count() > 0, min(toUnixTimestamp64Micro(time)), max(duration), max(forward), countIf(data IS NULL) = count(), min(job), min(host), max(rank)) "
        "FROM probing.steps) AS steps, (SELECT (job, rank, crash_group, toUnixTimestamp64Micro(time)) FROM probing.crashes) AS crash, isNaN(loss) AS nan, note FROM probing.losses WHERE step = 40000 "
        "FORMAT JSONEachRow"]
    client.close()
    done = subprocess.run([os.environ["PROBING_CHDB"], "-c", CLICKHOUSE], input="".join(json.dumps(one) + "\n" for one in statements), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"steps": [1, int(now * 1e6), 0.25, 1e-9, 1, "job", "node1", 0], "crash": ["llama", 3, "f00", int((1.7e9 + 0.5) * 1e6)], "nan": 1, "note": 'a\\b "c" \u00e4'}, done.stdout


def test_left_by_a_namespace(job):
    """What an agent of a namespace that is no more left is kept while its rings are there, and then removed by any that begins."""
    host, data = job.hosts.all[0], os.path.join(job.bus.home, "data")
    left = os.path.join(data, "published-1-1")

    def begin_again():
        assert job.at(host, "cluster", "detach").returncode == 0
        job.attach(host, "--history", "losses", "--every", "0.01")

    def files_of_rank():
        space = os.stat("/proc/{}/ns/pid".format(job.pids[0])).st_ino
        return [os.path.join(data, name, file) for name in os.listdir(data) if name.startswith("published-{}-".format(space))
                for file in os.listdir(os.path.join(data, name)) if file[0].isdigit()]

    begin_again()
    job.writers[0].write(30000, 0.5, "left")
    wait_until(files_of_rank)
    files = files_of_rank()
    os.mkdir(left, 0o700)
    for file in files:
        shutil.copy(file, left)
    begin_again()
    assert sorted(os.listdir(left)) == sorted(map(os.path.basename, files))
    with open("/proc/{}/status".format(job.pids[0])) as file:
        inner = next(line for line in file if line.startswith("NSpid:")).split()[-1]
    rings, = [name for name in os.listdir(data) if name.startswith(inner + "-") and name in open(files[0], "rb").read().decode("latin-1")]
    os.rename(os.path.join(data, rings), os.path.join(job.bus.home, "swept"))
    with open(os.path.join(data, "agent-1.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begin_again()
        assert os.path.isdir(left)  # an agent of its own has it
    begin_again()
    assert not os.path.exists(left)


def test_refused(job):
    """A file that is none, and a bus that has no history."""
    broken = os.path.join(job.bus.home, "broken.db")
    with open(broken, "w") as file:
        file.write("not a store" * 100)
    assert job.at(job.hosts.hub, "cluster", "record", broken, "--once").returncode == 8
    assert job.at(job.hosts.hub, "cluster", "record").returncode == 2
