"""Figures of jobs: 8 ranks of one host, 10,000 on hosts that are not there, SQL over their rows, an agent at rest."""

import contextlib
import glob
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from keeping import cpu_ns
from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE, in_turn, measure, peer
from tracing import needs_torch

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "fleet"))
import postgres  # noqa: E402
from bus import Bus  # noqa: E402
from fakes import Fakes  # noqa: E402
from nats_client import Client  # noqa: E402

ROWS = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "fleet_rows")


def across_sql(figures, options):
    for line in subprocess.run([ROWS, *(["2010000"] if options.quick else [])], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.splitlines():
        told = json.loads(line)
        bar = 1 if told["rows"] <= 300000 else 4 if told["rows"] < 10000000 else 10
        figures.add("SQL over 10,000 ranks, {:,} rows: {}".format(told["rows"], told["name"]), told["seconds"],
                    "s (CPU {:.2f} s, {:.1f} MB, {} MiB at most)".format(told["cpu"], told["bytes"] / 1e6, told["peak_mib"]),
                    "≤ {} s".format(bar), told["seconds"] <= bar)


RANKS = 8


@contextlib.contextmanager
def eight_ranks(name, **variables):
    """pids of a job of gloo whose rank 5 hangs in its reader."""
    program = subprocess.Popen([torch_python(), os.path.join(live.TARGETS, "hang_jobs.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                               stderr=subprocess.DEVNULL, env=dict(os.environ, HANG_RANKS=str(RANKS), **variables))
    pids, others = [], []
    try:
        assert program.stdout.readline() == "ready\n"
        print("reader", 5, name, file=program.stdin, flush=True)
        pids = [int(word) for word in program.stdout.readline().split()[1:]]
        time.sleep(2)
        others = [one for pid in pids for one in family(pid)[1:]]  # torch.distributed.debug's, which outlives its rank
        yield pids
    finally:
        program.stdin.close()
        program.wait(60)
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def no_bus():
    """Whoever runs this may have one, and would ask by it."""
    before = {name: os.environ.pop(name, None) for name in ("PROBING_BUS", "XDG_CONFIG_HOME")}
    with tempfile.TemporaryDirectory() as os.environ["XDG_CONFIG_HOME"]:
        try:
            yield
        finally:
            os.environ.pop("XDG_CONFIG_HOME")
            os.environ.update({name: value for name, value in before.items() if value is not None})


@needs_torch
def fleet_host(figures, options):
    """Merged stacks of 8 ranks of this host, beside what there is."""
    port, name = live.free_port(), "bench-{}".format(os.getpid())
    told = subprocess.run([torch_python(), "-c", "import torch.distributed.debug._debug_handlers"], stderr=subprocess.PIPE, encoding="utf-8")
    theirs = told.returncode == 0
    if not theirs:
        print("  torch.distributed.debug is left out: {}".format((told.stderr.splitlines() or ["?"])[-1]), file=sys.stderr)
    with no_bus(), eight_ranks(name, **({"HANG_DEBUG_PORT": str(port)} if theirs else {})) as pids:
        plain, native = ([live.PROBING, "-t", "@" + name, "backtrace"] + more for more in ([], ["--native"]))
        runs = in_turn(options.rounds, plain, native)
        for told, what, bar in ((runs[0], "Python", 20), (runs[1], "and native", 100)):
            figures.bound("merged stacks of 8 ranks, {}, whole command, CPU {:.1f} ms".format(what, told["cpu_ms"]), told["ms"], "ms", bar)
        if peer("py-spy"):
            theirs = [statistics.median(run) for run in zip(*(
                [sum(one[key] for pid in pids for one in measure(1, peer("py-spy"), "dump", "--pid", pid)) for key in ("ms", "cpu_ms")]
                for _ in range(options.rounds)))]
            figures.add("the same, Python", runs[0]["ms"], "ms", peer="py-spy dump of each", theirs=theirs[0], ratio=runs[0]["ms"] / theirs[0])
            figures.add("the same, CPU time", runs[0]["cpu_ms"], "ms", peer="py-spy dump of each", theirs=theirs[1], ratio=runs[0]["cpu_ms"] / theirs[1])
        fetched = []
        with contextlib.suppress(OSError):
            for _ in range(options.rounds):
                began = time.perf_counter()
                with urllib.request.urlopen("http://localhost:{}/stacks".format(port), timeout=30) as page:
                    assert page.read().count(b"read_shard"), "the stack of the rank that hangs"
                fetched.append(1e3 * (time.perf_counter() - began))
        if fetched:
            theirs = statistics.median(fetched)
            figures.add("the same, Python", runs[0]["ms"], "ms", peer="torch.distributed.debug", theirs=theirs, ratio=runs[0]["ms"] / theirs)


def fleet_merged(figures, options):
    """10,000 ranks on 1,250 hosts that are not there, by a bus of this machine."""
    bus = Bus()
    bus.up()
    many = Fakes(os.path.join(bus.folder, "agent"), ("llama",), 0, 1250, 8, connections=4)
    runs = []
    try:
        for _ in range(options.rounds):
            with contextlib.suppress(AssertionError):  # on a busy machine some hosts are too late, which is told below
                runs += measure(1, live.PROBING, "-t", "@llama", "backtrace", environment=bus.environment)
    finally:
        many.end()
        bus.remove()
    seconds, cpu = (statistics.median(run[key] for run in runs) / 1e3 for key in ("ms", "cpu_ms"))
    figures.bound("merged stacks of 10,000 ranks on 1,250 hosts, whole command (least {:.2f} s; {} of {} looks had all)".format(
        min(run["ms"] for run in runs) / 1e3, len(runs), options.rounds), seconds, "s", 1)
    figures.add("the same, CPU time, {:.0f} MB at most".format(max(run["kb"] for run in runs) / 1024), cpu, "s")


def fleet_hang(figures, options):
    """The verdict on 10,000 ranks, of which one is elsewhere: what it takes beside the interval."""
    bus, every, words = Bus(), 1.0, ["-t", "@llama", "hang", "--every", "1"]
    bus.up()
    many = Fakes(os.path.join(bus.folder, "agent"), ("llama",), 0, 1250, 8, connections=4)
    try:
        many.order("odd", 4711)
        told = bus.run(*words, "-f", "json")
        assert [part["ranks"] for part in json.loads(told.stdout)["cause"]] == ["4711"], told.stdout[:2000]
        runs = measure(3 if options.quick else options.rounds, live.PROBING, *words, environment=bus.environment)
    finally:
        many.end()
        bus.remove()
    seconds = [run["ms"] / 1e3 - every for run in runs]
    figures.bound("`hang` of 10,000 ranks on 1,250 hosts, whole command less the interval (least {:.2f} s, CPU {:.2f} s)".format(
        min(seconds), statistics.median(run["cpu_ms"] for run in runs) / 1e3), statistics.median(seconds), "s", 2)


def fleet_restart(figures, options):
    """Agents with a connection of TLS each, until all are back after the bus was killed."""
    bus, hosts = Bus(), 125 if options.quick else 1250
    bus.up()
    many = Fakes(os.path.join(bus.folder, "agent"), ("llama",), 0, hosts, 1, connections=hosts)

    def answering():
        return sum(one["state"] == "answers" for one in json.loads(bus.run("cluster", "nodes", "-f", "json").stdout or "[]"))

    try:
        assert answering() == hosts
        os.kill(bus.server, signal.SIGKILL)
        began = time.monotonic()
        while answering() < hosts:
            assert time.monotonic() < began + 120, answering()
        seconds = time.monotonic() - began
    finally:
        many.end()
        bus.remove()
    figures.bound("{:,} agents back after the bus was killed, TLS, all on this machine".format(hosts), seconds, "s", 5)


def own_memory(pid):
    """MB that are its own, or its share of what it shares."""
    with open("/proc/{}/smaps_rollup".format(pid)) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def family(pid):
    found = [pid]
    for path in glob.glob("/proc/{}/task/*/children".format(pid)):
        with open(path) as told:
            for word in told.read().split():
                found += family(int(word))
    return found


@needs_torch
def fleet_agent(figures, options):
    """An agent of 8 ranks: what it takes after looks, and at rest."""
    bus, name = Bus(), "bench-{}".format(os.getpid())
    bus.up()
    variables = dict(bus.environment, PROBING_STORE="off")
    with eight_ranks(name):
        try:
            told = bus.run("cluster", "attach", environment={"PROBING_STORE": "off"})
            assert told.returncode == 0, told.stderr
            agent = int(told.stdout.splitlines()[0].split()[-1])
            ask = [live.PROBING, "-t", "@" + name, "backtrace"]
            measure(1, *ask, environment=variables)
            pids = family(agent)
            assert len(pids) == RANKS + 2  # and the process that starts the others
            spent = sum(cpu_ns(pid) for pid in pids)
            runs = [measure(1, *ask, environment=variables)[0]["ms"] for _ in range(options.rounds)]
            spent = (sum(cpu_ns(pid) for pid in pids) - spent) / 1e6 / options.rounds
            figures.bound("merged stacks of 8 ranks by the bus, whole command", statistics.median(runs), "ms", 100)
            figures.bound("the same, CPU time of the agent, whose children keep their ranks open", spent, "ms", 20)
            one = [live.PROBING, "-t", "@{}:0".format(name), "query", "SELECT count(*) FROM python.threads"]
            measure(1, *one, environment=variables)
            spent = sum(cpu_ns(pid) for pid in pids)
            runs = [measure(1, *one, environment=variables)[0]["ms"] for _ in range(options.rounds)]
            spent = (sum(cpu_ns(pid) for pid in pids) - spent) / 1e6 / options.rounds
            figures.bound("SQL on one rank by the bus, CPU time of its agent (whole command {:.0f} ms)".format(statistics.median(runs)), spent, "ms", 5)
            sizes = [own_memory(pid) for pid in pids]
            figures.bound("an agent", sizes[0], "MB", 8)
            figures.bound("the same, for each rank", sum(sizes[1:]) / RANKS, "MB", 5)
            seconds, before = (10 if options.quick else 30), sum(cpu_ns(pid) for pid in pids)
            time.sleep(seconds)
            figures.bound("the same at rest, {:.0f} s, for each rank".format(seconds), (sum(cpu_ns(pid) for pid in pids) - before) / seconds / 1e7 / RANKS, "% of a core",
                          0.1)
        finally:
            bus.run("cluster", "detach")
            bus.remove()


@needs_torch
def fleet_beside(figures, options):
    """A training step while this host has an agent that nobody asks, by turns."""
    bus, turns = Bus(), 3 if options.quick else 9
    job = live.Target(pythons.Python([], torch_python(), (3, 0, 0), "torch"), "train.py", [4], folder=HERE,
                      variables={"RANK": "0", "WORLD_SIZE": "1", "PROBING_JOB": "bench-{}".format(os.getpid()),
                                 "OMP_WAIT_POLICY": "passive"})

    def period():
        job.child.stdin.write(b"\n")
        job.child.stdin.flush()
        return json.loads(job.line())

    def step(seconds=0.5):
        """ms, the median of a few at least."""
        period()
        time.sleep(seconds)
        told = period()
        return 1e3 * told["median"] if told["steps"] >= 5 else step(2 * seconds)

    ratios = []
    try:
        bus.up()
        for _ in range(turns):
            alone = step()
            told = bus.run("cluster", "attach", environment={"PROBING_STORE": "off"})
            assert told.returncode == 0 and "rank 0 of" in told.stdout, told.stdout + told.stderr
            beside = step()
            bus.run("cluster", "detach")
            ratios.append(beside / alone)
    finally:
        job.end()
        bus.remove()
    ratio, error = statistics.median(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
    figures.add("a training step beside an agent at rest, by turns", ratio, "× of one without it (± {:.3f})".format(error), "≤ 1.01, or not resolved",
                ratio <= 1.01 or ratio - 2 * error <= 1)


class Listening:
    """A debug server, and a client of it that asks for what there is not, so that little but the way is measured."""

    def __init__(self, *words, environment):
        self.child = subprocess.Popen([live.PROBING, *map(str, words), "debug", "--address", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", env=environment)
        host, _, port = self.child.stdout.readline().split()[-1].rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def round_trip(self):
        """ms"""
        text = b'{"seq":1,"type":"request","command":"nothing"}'
        began = time.perf_counter()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        while b'"success":false' not in self.socket.recv(1 << 16):
            pass
        return 1e3 * (time.perf_counter() - began)

    def end(self):
        self.socket.close()
        self.child.terminate()
        self.child.communicate(timeout=60)


def fleet_debug(figures, options):
    """What the bus adds to a debugger's request, quiet and beside programs that keep all CPUs busy."""
    bus, name, ranks, ways = Bus(), "bench-{}".format(os.getpid()), [], []
    bus.up()
    variables = dict(bus.environment, PROBING_STORE="off")
    try:
        for rank in range(2):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", PROBING_JOB=name)
            ranks.append(subprocess.Popen([sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, env=environment))
            assert ranks[-1].stdout.readline() == b"ready\n"
        told = bus.run("cluster", "attach", "--allow", "eval", environment={"PROBING_STORE": "off"})
        assert told.returncode == 0, told.stderr
        ways = [Listening("-t", "@{}:0".format(name), environment=variables), Listening("-p", ranks[1].pid, environment=variables)]
        for busy in (0, os.cpu_count()):
            others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
            try:
                times = list(zip(*([way.round_trip() for way in ways] for _ in range(200 if options.quick else 1000))))
            finally:
                for one in others:
                    one.kill()
                    one.wait()
            ours, direct = map(statistics.median, times)
            figures.bound("a debugger's request over the bus{} (p90 {:.2f} ms; without it {:.2f} ms)".format(
                ", beside busy CPUs" if busy else "", statistics.quantiles(times[0], n=10)[8], direct), ours, "ms", 1)
    finally:
        for one in ways:
            one.end()
        for one in ranks:
            one.kill()
            one.communicate()
        bus.run("cluster", "detach")
        bus.remove()


COLUMNS = {"step": "integer", "begin": "time", "end": "time", "duration": "integer", "tokens": "integer", "note": "text"}
AT_ONCE = 1000  # rows of a message, as an agent makes them


def published(bus, ranks, rows):
    """The stream has so many rows, as agents publish them; (step, …) of one rank."""
    agent = Client(bus.file("agent"))
    agent.subscribe("_INBOX.agent.me")
    limits = {"retention": "limits", "max_bytes": -1, "max_age": 0, "storage": "file", "discard": "old", "num_replicas": 1, "allow_direct": True}
    agent.publish("$JS.API.STREAM.CREATE.probing_history", dict(limits, name="probing_history", subjects=["probing.v1.*.history.*"]), "_INBOX.agent.me")
    assert b"error" not in agent.next().body
    values = [(step, 1.79e9 + step, 1.79e9 + step + 0.25, 250000000 + step % 1000, 4096, "" if step % 10 else "checkpoint") for step in range(rows // ranks)]
    for first in range(0, len(values), AT_ONCE):
        for rank in range(ranks):
            own = {"_job": "llama", "_process": "{}-1".format(rank + 100), "rank": rank, "host": "node0"}
            text = "".join(json.dumps(dict(own, **dict(zip(COLUMNS, row))), separators=(",", ":")) + "\n" for row in values[first:first + AT_ONCE])
            about = {"host": "node0", "key": "node0-0", "job": "llama", "rank": rank, "world_size": ranks, "pid": rank + 100, "started": 1}
            agent.publish("probing.v1.llama.history.torch_step_timing", text.encode(), "_INBOX.agent.me",
                          {"Probing-Columns": ",".join(map(":".join, COLUMNS.items())), "Probing-Process": json.dumps(about)})
            assert b"error" not in agent.next().body
    agent.close()
    return values


def seconds_of(*words, **more):
    began = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=600, **more)
    return time.monotonic() - began


def fleet_record(figures, options):
    """History taken into a file and a database, beside their own programs that are given the same rows as text."""
    ranks, bus, server = 8, Bus(), None if postgres.missing() else postgres.Server()
    names = [*COLUMNS, "rank", "host", "job", "pid", "_process"]
    try:
        bus.up()
        values = published(bus, ranks, (200 if options.quick else 1000) * 1000)
        rows, plain, empty = ranks * len(values), os.path.join(bus.home, "rows.tsv"), os.path.join(bus.home, "empty.db")
        with open(plain, "w") as file:
            for rank in range(ranks):
                file.writelines("\t".join(map(str, (*row, rank, "node0", "llama", rank + 100, rank))) + "\n" for row in values)
        record = [live.PROBING, "cluster", "record", "--once"]
        ours, theirs = [], []
        for turn in range(3):
            target = os.path.join(bus.home, "{}.db".format(turn))
            ours.append(seconds_of(*record, target, env=bus.environment))
            theirs.append(seconds_of("sqlite3", empty, "DROP TABLE IF EXISTS rows", "CREATE TABLE rows({})".format(", ".join(map('"{}"'.format, names))), ".mode tabs",
                                     ".import {} rows".format(plain)))
        figures.against("history into a file ({:.1f} B a row)".format(os.stat(target).st_size / rows), 1e6 * statistics.median(ours) / rows,
                        1e6 * statistics.median(theirs) / rows, "sqlite3 .import", "µs a row", 1)
        if not server:
            return
        ours, theirs = [], []
        for _ in range(3):
            server.ask("DROP SCHEMA IF EXISTS python, probing CASCADE; DROP TABLE IF EXISTS rows")
            ours.append(seconds_of(*record, server.url, env=bus.environment))
            server.ask("CREATE TABLE rows AS SELECT * FROM python.torch_step_timing LIMIT 0")
            theirs.append(seconds_of(os.path.join(postgres.programs(), "psql"), "-Xq", "-c", "\\copy rows from '{}'".format(plain), server.url))
        figures.against("history into PostgreSQL", 1e6 * statistics.median(ours) / rows, 1e6 * statistics.median(theirs) / rows, "psql \\copy", "µs a row", 3)
    finally:
        bus.remove()
        if server:
            server.end()


PARTS = [fleet_host, fleet_merged, fleet_hang, fleet_restart, fleet_agent, fleet_beside, fleet_debug, fleet_record, across_sql]
