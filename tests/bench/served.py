"""Figures of `probing serve`: requests, what it takes at rest, who leaves, a thousand WebSockets, plain text."""

import contextlib
import glob
import http.client
import json
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from keeping import cpu_ns
from profiling import error_of, mean_step
from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE, peer
from tracing import needs_torch

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "serve"))
from serving import Server  # noqa: E402
from websocket import Closed, WebSocket  # noqa: E402


@contextlib.contextmanager
def serving(job=True):
    """A server, and a job of 30 threads that trains (None without)."""
    one = Server()
    target = None
    try:
        target = job and live.Target(pythons.Python([], torch_python(), (3, 0, 0), "torch"), "train.py", [30], folder=HERE)
        while job and one.ask("/api/v1/p/{}/history".format(target.pid)).status != 200:
            time.sleep(0.1)
        yield one, target
    finally:
        one.end()
        one.remove()
        if target:
            target.end()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def times(count, what):
    """ms of each."""
    told = []
    for _ in range(count):
        began = time.perf_counter()
        what()
        told.append(1e3 * (time.perf_counter() - began))
    return told


@needs_torch
def server_requests(figures, options):
    seconds = 2 if options.quick else 10
    with serving() as (one, job):
        path = "/api/v1/p/{}".format(job.pid)
        wrk = shutil.which("wrk")
        if wrk:
            for name, form, connections, bar in (("lean stacks, 8 connections", "json", 8, 3000), ("full stacks, one connection", "pyspy", 1, 240)):
                text = subprocess.run([wrk, "-t2" if connections > 1 else "-t1", "-c{}".format(connections), "-d{}s".format(seconds), "--latency",
                                       "-H", "Authorization: Bearer " + one.token,
                                       "http://{}:{}{}/stacks?format={}".format(one.host, one.port, path, form)],
                                      stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
                rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
                slow, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
                figures.add(name, rate, "requests/s", "≥ {}".format(bar), rate >= bar)
                figures.bound("the same, p99", float(slow) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit], "ms", 10)
        told = times(options.rounds * 20, lambda: one.post(path + "/query", {"sql": "SELECT 1"}, tcp=True))
        figures.bound("`POST query`, one row, whole request, p50", statistics.median(told), "ms", 2)
        def text():
            with one.connected() as bare:
                bare.sendall(b"pid %d\nbt\n" % job.pid)
                bare.shutdown(socket.SHUT_WR)
                while bare.recv(65536):
                    pass
        figures.bound("plain text: `bt`, whole", statistics.median(times(options.rounds * 3, text)), "ms", 15)
        figures.bound("a client leaves, until its work has ended, worst of {}".format(options.rounds), max(leaving(one, path) for _ in range(options.rounds)),
                      "ms", 200)


RESULT_MAX = 20000  # characters


@needs_torch
def server_agents(figures, options):
    """A call of each tool that only looks at once, over HTTP and on standard input."""
    with serving() as (one, job), Agent(one) as agent:
        calls = {"stacks": {"target": str(job.pid)}, "processes": {}, "query": {"target": str(job.pid), "sql": "SELECT * FROM python.backtrace"}}
        for tool, arguments in calls.items():
            message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
            for way, ask in (("HTTP", lambda text: one.ask("/mcp", "POST", text, tcp=True, Content_Type="application/json").text), ("standard input", agent)):
                result = json.loads(ask(message))["result"]
                sizes = [len(result["content"][0]["text"]), len(json.dumps(result.get("structuredContent", "")))]
                assert not result.get("isError") and max(sizes) <= RESULT_MAX, (tool, sizes)
                name = "MCP `{}`, whole call, {}".format(tool, way)
                took = statistics.median(times(options.rounds * 10, lambda: ask(message)))
                if tool == "stacks":
                    figures.bound(name, took, "ms", 10)
                else:
                    figures.add(name, took, "ms")


class Agent:
    """`probing mcp`: a message, its answer."""

    def __init__(self, server):
        self.process = subprocess.Popen([os.environ["PROBING"], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=server.environment)

    def __call__(self, message):
        self.process.stdin.write(message + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def descendants(pid):
    found = set()
    for path in glob.glob("/proc/{}/task/*/children".format(pid)):
        with contextlib.suppress(OSError), open(path) as told:
            found |= set(told.read().split())
    return found


def leaving(one, path):
    before = descendants(one.pid)
    client = one.connected()
    client.sendall("GET {}/profile?seconds=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n".format(path, one.token).encode())
    while not descendants(one.pid) - before:
        time.sleep(0.001)
    client.close()
    began = time.perf_counter()
    while descendants(one.pid) - before:
        time.sleep(0.001)
    return 1e3 * (time.perf_counter() - began)


def memory_mb(pid):
    with open("/proc/{}/status".format(pid)) as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


@needs_torch
def server_at_rest(figures, options):
    """It looks at every Python process of the user once a second, so this program is one of them."""
    seconds = 5 if options.quick else 60
    with serving() as (one, job):
        time.sleep(5)  # it has begun to look at all of them
        watched = sum("unchanged_seconds{" in line for line in one.ask("/metrics").text.splitlines())
        began, spent = time.monotonic(), cpu_ns(one.pid)
        time.sleep(seconds)
        share = 100 * (cpu_ns(one.pid) - spent) * 1e-9 / (time.monotonic() - began)
        figures.bound("at rest, CPU for each of {} processes".format(watched), share / max(1, watched), "% of a core", 0.1)
        figures.add("the same, memory for each process", memory_mb(one.pid) / max(1, watched), "MB")


@needs_torch
def server_watched(figures, options):
    """One who watches: stacks once a second, and a flame graph of 100 samples a second, more than at rest."""
    seconds = 5 if options.quick else 30
    with serving() as (one, job):
        time.sleep(5)  # it has begun to look at the processes of this machine

        def share():
            began, spent = time.monotonic(), cpu_ns(one.pid)
            time.sleep(seconds)
            return 100 * (cpu_ns(one.pid) - spent) * 1e-9 / (time.monotonic() - began)

        rest = share()
        with WebSocket(one, tcp=False) as watcher:
            watcher.subscribe("stacks", target=str(job.pid), every=1)
            watcher.subscribe("flame", target=str(job.pid), rate=100, mode="wall")
            reader = threading.Thread(target=drain, args=(watcher,), daemon=True)
            reader.start()
            figures.add("one who watches: stacks at 1 Hz and a flame graph at 100 Hz, more CPU of the server", share() - rest, "% of a core")


class Steps:
    """The training job's own times."""

    def __init__(self, target):
        self.target = target

    def period(self):
        self.target.child.stdin.write(b"\n")
        self.target.child.stdin.flush()
        return json.loads(self.target.line())


@needs_torch
def server_slow_down(figures, options):
    """A training step while somebody watches (stacks at 1 Hz, a flame graph at 100 Hz), by turns with nobody; and twice nobody, for the noise."""
    count = 4 if options.quick else 40
    with serving() as (one, job):
        steps = Steps(job)

        def mean(watched):
            if not watched:
                return period()
            with WebSocket(one, tcp=False) as watcher:
                watcher.subscribe("stacks", target=str(job.pid), every=1)
                watcher.subscribe("flame", target=str(job.pid), rate=100, mode="wall")
                threading.Thread(target=drain, args=(watcher,), daemon=True).start()
                time.sleep(0.3)  # it has begun to sample
                return period()

        def period():
            steps.period()
            time.sleep(1)
            return mean_step(steps)

        for name, ways, bar in (("nobody", (False, False), None), ("one who watches", (True, False), 1)):
            found = []
            for number in range(count):
                means = [mean(way) for way in (ways if number % 2 else ways[::-1])]
                there, plain = means if number % 2 else means[::-1]
                found.append(100 * (there / plain - 1))
            slower, error = statistics.median(found), error_of(found)
            resolved = abs(slower) > 2 * error
            figures.add("training step beside " + name, slower, "% longer (± {:.1f}{})".format(error, "" if resolved else ", not resolved"),
                        bar and "≤ {} %".format(bar), bar and (slower <= bar or not resolved))


SQL = "SELECT func, lineno, depth FROM python.backtrace"


def asked(host, port, path, body, headers, rounds):
    """Whole requests of one client after another, median ms."""
    def ask():
        connection = http.client.HTTPConnection(host, port, timeout=20)
        connection.request("POST", path, json.dumps(body), dict(headers, **{"Content-Type": "application/json"}))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200 and b"down" in text, text[:300]
    ask()
    return statistics.median(times(rounds, ask))


def server_beside_upstream(figures, options):
    """The same statement by the same route: ours reads from outside, the other project's server is in the process."""
    command, rounds = peer("upstream"), options.rounds * 10
    body = {"version": {"major": 0, "minor": 1, "patch": 0}, "message_id": "m", "timestamp": 1, "payload": {"expr": SQL, "opts": None}}
    one, told = Server(), []
    pythons_of = [(sys.executable, {}, True)]
    if command:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        pythons_of.append((os.path.join(os.path.dirname(command), "python"), {"PROBING": "1", "PROBING_PORT": str(port)}, False))
    try:
        for python, variables, ours in pythons_of:
            job = subprocess.Popen([python, os.path.join(HERE, "parked.py"), "30"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, **variables),
                                   preexec_fn=live.die_with_parent)
            try:
                while job.stdout.readline() != b"ready\n":
                    pass
                before = cpu_ns(job.pid)
                if ours:
                    took = asked(one.host, one.port, "/query?pid={}".format(job.pid), body, {"Authorization": "Bearer " + one.token}, rounds)
                else:
                    took = asked("127.0.0.1", port, "/query", body, {}, rounds)
                told.append((took, (cpu_ns(job.pid) - before) * 1e-6 / (rounds + 1)))
            finally:
                job.kill()
                job.communicate()
    finally:
        one.end()
        one.remove()
    for name, number, unit in (("`POST /query`, stacks of 30 threads, whole request", 0, "ms"), ("the same, CPU of the process that is asked about", 1, "ms")):
        theirs = told[1][number] if command else None
        figures.add(name, told[0][number], unit, peer="its server in the process" if command else None, theirs=theirs,
                    ratio=told[0][number] / theirs if theirs and told[0][number] else None)


def server_start(figures, options):
    """A process starts a server beside itself (probing.listen): what that takes of it."""
    runtime = tempfile.mkdtemp(prefix="own-")
    environment = dict(os.environ, XDG_RUNTIME_DIR=runtime, PROBING_STORE="off", PROBING_SERVE_LINGER="0")
    breaks, spent = [], []
    try:
        for _ in range(options.rounds):
            with live.Target(pythons.Python([], sys.executable, (3, 0, 0), "gaps"), "gaps.py", folder=HERE, variables=environment) as job:
                subprocess.run([os.environ["PROBING"], "-p", str(job.pid), "inject"], check=True, stdout=subprocess.DEVNULL, env=environment)
                steps = Steps(job)
                steps.period()
                before = others_ns(job.pid)
                subprocess.run([os.environ["PROBING"], "-p", str(job.pid), "config", "probing.listen=127.0.0.1:0"], check=True, stdout=subprocess.DEVNULL,
                               env=environment)
                while not glob.glob(os.path.join(runtime, "probing", "serve-*.json")):
                    time.sleep(0.002)
                spent.append((others_ns(job.pid) - before) * 1e-6)
                breaks.append(steps.period())
            while glob.glob(os.path.join(runtime, "probing", "serve-*.json")):
                time.sleep(0.01)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)
    figures.bound("a process starts a server beside itself, its CPU", statistics.median(spent), "ms", 5)
    figures.add("the same, longest break of its main thread", statistics.median(breaks), "ms")


def others_ns(pid):
    """CPU of all threads but the main one: of the probe's."""
    return cpu_ns(pid) - int(open("/proc/{0}/task/{0}/schedstat".format(pid)).read().split()[0])


def drain(watcher):
    with contextlib.suppress(Closed, OSError, ValueError):
        while True:
            watcher.frame()


def server_websockets(figures, options):
    del options
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3000), hard))
    opened = []
    try:
        with serving(False) as (one, _):
            figures.bound("just started, memory", memory_mb(one.pid), "MB", 8)
            opened = [WebSocket(one) for _ in range(10)]
            time.sleep(5)  # it has begun to look at the processes of this machine
            before = memory_mb(one.pid)
            opened += [WebSocket(one) for _ in range(1000)]
            figures.bound("1,000 idle WebSockets, more memory", memory_mb(one.pid) - before, "MB", 20)
    finally:
        for client in opened:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PARTS = [server_requests, server_agents, server_at_rest, server_watched, server_slow_down, server_beside_upstream, server_start, server_websockets]
