"""Figures of communication: what NCCL's plugin adds to a collective, how well ranks' clocks are known, reading the Flight Recorder."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import in_turn

BUILD = os.path.abspath(os.environ.get("BUILDDIR", "."))
SHIFT = 0.123  # s that the clock of rank 1 shows more
READ = os.path.join(BUILD, "tests", "bench", "recorder_read")
HELD_S = 5  # while a rank keeps its GIL
READINGS = 15


@contextlib.contextmanager
def nccl_job():
    """A job with the stand-in for NCCL: ask(expression)."""
    environment = dict(os.environ, RANK="0", NCCL_PROFILER_PLUGIN=os.path.join(BUILD, ".libs", "libprobing-nccl.so"),
                       NCCL_HOST=os.path.join(BUILD, "tests", "comm", ".libs", "nccl_host.so"))
    child = subprocess.Popen([sys.executable, os.path.join(live.TARGETS, "nccl_job.py"), "6"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=environment)

    def ask(expression):
        child.stdin.write(expression.encode() + b"\n")
        child.stdin.flush()
        return eval(child.stdout.readline())

    try:
        assert child.stdout.readline() == b"ready\n"
        ask("n.nccl_comm(0, 0xabcd, 8, 0)")
        live.probing("-t", child.pid, "inject")
        yield child.pid, ask
    finally:
        child.kill()
        child.communicate()


def switch(pid, ask, least, value):
    """Rows of messages of so many bytes and more, or nothing at all."""
    live.probing("-t", pid, "config", "probing.nccl=off")
    live.probing("-t", pid, "config", "probing.nccl.min_msg_bytes={}".format(least))
    live.probing("-t", pid, "config", "probing.nccl=" + value)
    until = time.monotonic() + live.DEADLINE
    while ask("n.nccl_mask()") != (94 if value == "on" else 0):
        assert time.monotonic() < until
        time.sleep(0.02)


def plugin(figures, options):
    """By turns: switched off, events alone, and with the row of each collective."""
    ways = {"off": (0, "off"), "events": (1 << 40, "on"), "rows": (0, "on")}
    told = {way: [] for way in ways}
    with nccl_job() as (pid, ask):
        for _ in range(max(3, options.rounds // 3)):
            for way, (least, value) in ways.items():
                switch(pid, ask, least, value)
                told[way].append(min(ask("n.nccl_speed(0, 20000)") for _ in range(5)))
        off, events, rows = (min(told[way]) for way in ways)
        figures.bound("NCCL plugin switched off, a collective with its kernel", off, "ns", 50)
        figures.bound("the same, recorded: its two events", (events - off) / 1e3, "µs", 0.3)
        figures.bound("its row in `nccl.coll_perf`", (rows - events) / 1e3, "µs", 1)
        runs = in_turn(options.rounds, [live.PROBING, "-t", pid, "query", "SELECT 1"],
                       [live.PROBING, "-t", pid, "query", "SELECT count(*) FROM nccl.inflight_ops"])
        figures.bound("`nccl.inflight_ops` of 16,384 events, beside `SELECT 1`", runs[1]["ms"] - runs[0]["ms"], "ms", 15)


class Ranks(live.Target):
    """Two ranks of gloo."""

    def __init__(self, **variables):
        python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
        super().__init__(python, "collectives.py", (2,), variables=variables)
        self.pids = [int(word) for word in next(note for note in self.notes if note.startswith("pids ")).split()[1:]]
        for pid in self.pids:
            live.probing("-t", pid, "inject")

    def ask(self, line):
        self.child.stdin.write(line + b"\n")
        self.child.stdin.flush()
        return json.loads(self.line())

    def done(self):
        return self.ask(b"0 count")

    @contextlib.contextmanager
    def gil_held(self):
        """Of rank 0, for HELD_S."""
        self.child.stdin.write("0 hold {}\n".format(HELD_S).encode())
        self.child.stdin.flush()
        assert self.line().strip() == "begun"
        began = time.monotonic()
        yield
        if time.monotonic() - began > HELD_S:
            print("  the GIL was free again before the end", file=sys.stderr)

    def wait(self, count):
        until = time.monotonic() + 5 * live.DEADLINE
        while self.done() < count:
            assert time.monotonic() < until
            time.sleep(0.05)


def clocks(figures, options):
    if not torch_python():
        return
    shim = os.path.join(BUILD, "tests", "comm", ".libs", "shifted_clock.so")
    with Ranks(RANK1_LD_PRELOAD=shim, RANK1_SHIFT_MS=str(SHIFT * 1e3), PAUSE_MS="300") as job:  # so few are recorded
        for pid in job.pids:
            live.probing("-t", pid, "config", "probing.torch.profiling=on")
        job.wait(job.done() + 10)
        text = live.probing("-t", job.pids[0], "query", "-f", "json", "SELECT * FROM probing.clock WHERE rank = 1", check=False).stdout
        one = max(json.loads(text), key=lambda row: row["collectives"])
        figures.bound("clocks of two ranks known to, after {} collectives".format(one["collectives"]), one["error_s"] * 1e3, "ms", 1)
        off = abs(one["offset_s"] - SHIFT)
        figures.add("the same, how far it is from the truth", off * 1e3, "ms", "within that", off <= one["error_s"])


def cpu_clock(pid):
    """Of all threads, those that have ended, too: clock_getcpuclockid(3)."""
    return ~pid << 3 | 2


def recorder(figures, options):
    if not torch_python():
        return
    count = 200 if options.quick else 2000
    with Ranks() as job:
        job.wait(count)
        one, all_of_them = in_turn(options.rounds, [live.PROBING, "-t", job.pids[0], "query", "SELECT 1"],
                                   [live.PROBING, "-t", job.pids[0], "query", "SELECT count(*) FROM python.torch_nccl_flight_record"])
        name = "Flight Recorder of {:,} collectives".format(count)
        bare = job.ask("0 dump {}".format(READINGS).encode())
        with job.gil_held():
            spent = time.clock_gettime(cpu_clock(job.pids[0]))
            told = json.loads(subprocess.run([READ, str(job.pids[0]), str(READINGS)], stdout=subprocess.PIPE, check=True).stdout)
            spent = time.clock_gettime(cpu_clock(job.pids[0])) - spent  # it does nothing else meanwhile
        figures.bound("{}, {:.0f} KB, read while a thread keeps the GIL".format(name, told["bytes"] / 1e3), told["ms"], "ms", 20)
        if bare:
            floor, cpu = (statistics.median(one) for one in zip(*bare))
            ours = 1e3 * spent / READINGS
            figures.add("the same", told["ms"], "ms", peer="torch's own function", theirs=floor, ratio=told["ms"] / floor)
            figures.add("the same, CPU time of the rank", ours, "ms", peer="torch's own function", theirs=cpu, ratio=ours / cpu)
        name = "rows of it, beside `SELECT 1`"
        figures.add(name, all_of_them["ms"] - one["ms"], "ms")
        figures.add("the same, CPU of the command", all_of_them["cpu_ms"] - one["cpu_ms"], "ms")


def communication(figures, options):
    plugin(figures, options)
    clocks(figures, options)
    recorder(figures, options)


PARTS = [communication]
