"""Figures of injection, evaluation and the idle probe, beside the peers that are installed."""

import glob
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from support import injection, pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE, TRUE, TRUE_MS, Hung, in_turn, measure, peer, pieces

PROBING = live.PROBING
HELLO, STATUS, EVAL, DETACH, PART, END = 1, 2, 3, 9, 64, 65
VERSION, SOURCE = 1, 9
STOPS = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "stops")
PROBE = os.path.join(os.environ.get("BUILDDIR", "."), ".libs", "libprobe.so")


def interpreter():
    """The one that has torch, else any of this machine."""
    path = torch_python()
    return pythons.Python([], path, (3, 0, 0), "bench") if path else next(
        python for python in pythons.found() if python.root is None)


def waiting():
    """A process of 30 threads that wait; it has torch where there is torch."""
    return live.Target(interpreter(), "parked.py", [30] + ["torch"] * bool(torch_python()), folder=HERE)


def job():
    """Training on two CPUs, 30 threads, when there is torch, else a small process."""
    return live.Target(interpreter(), "train.py", folder=HERE) if torch_python() else waiting()


KINDS = [("a waiting process", waiting)] + [("a training process", job)] * bool(torch_python())


def pauses(figures, options):
    """Many injections into one process, of a library that does nothing, beside bare stops."""
    count = 60 if options.quick else 300
    bare = json.loads(subprocess.run([STOPS, str(count)], stdout=subprocess.PIPE, check=True).stdout)
    folder = tempfile.mkdtemp()
    library = shutil.copy(injection.COUNTED, folder)
    for name, begin in KINDS:
        with begin() as target:
            account = injection.inject(target.pid, count, library=library)
            assert account["injected"] == count, account
            paused = account["paused_us"]
            figures.add("inject into {}: the paused thread, median of {} (p90 {:.2g}, worst {:.2g})".format(
                name, count, paused["p90"] / 1e3, paused["max"] / 1e3), paused["median"] / 1e3, "ms")
            figures.bound("the same, p99", paused["p99"] / 1e3, "ms", 0.2)
            figures.account("the pause, median", "ms", paused["median"] / 1e3,
                            {"five stops": bare["median"] / 1e3, "what is read, decided and written": (paused["median"] - bare["median"]) / 1e3},
                            {"five bare stops": bare["median"] / 1e3, "their p99": bare["p99"] / 1e3})
            figures.add("the same, all but the start of the command, median", account["total_ms"]["median"], "ms")
    shutil.rmtree(folder)


def debugger_commands(pid, python):
    """What the peers need to get in: {name: command}."""
    commands = {}
    if peer("gdb"):
        commands["gdb call dlopen"] = [peer("gdb"), "-nx", "-batch", "-p", pid, "-ex", "call (void*)dlopen(\"libutil.so.1\", 2)"]
    if subprocess.run([python, "-c", "import debugpy"], stderr=subprocess.DEVNULL).returncode == 0:
        commands["debugpy --pid"] = [python, "-m", "debugpy", "--listen", "127.0.0.1:0", "--pid", pid]
    if peer("py-spy"):
        commands["py-spy dump"] = [peer("py-spy"), "dump", "--pid", pid]
    return commands


def first_run(begin, command_of, take):
    """take(command) against a fresh process; None: it did not end, as gdb's call of a function at times."""
    with begin() as target:
        time.sleep(0.3)
        try:
            return take(command_of(target.pid))
        except Hung:
            return None


def first_time(begin, command_of):
    run = first_run(begin, command_of, lambda command: measure(1, *command, seconds=30)[0])
    return run and run["ms"]


def inject_account(figures, kind, begin, rounds):
    """CPU time of the command; what the target spends is not in it."""
    def command_of(pid):
        return [PROBING, "-t", pid, "inject"]

    whole = statistics.median(first_run(begin, command_of, lambda command: measure(1, *command, seconds=30)[0])["cpu_ms"] for _ in range(rounds))
    runs = [first_run(begin, command_of, lambda command: pieces(1, command)) for _ in range(rounds)]
    true, start = in_turn(rounds, TRUE, [PROBING, "--version"])
    figures.account("`inject`, {}".format(kind), "ms of CPU", whole, {name: statistics.median(run.get(name, 0) for run in runs) for name in runs[0]},
                    {"`/bin/true`": true["cpu_ms"], "`probing --version`": start["cpu_ms"]})


def whole_commands(figures, options):
    rounds = 3 if options.quick else 8
    for kind, begin in KINDS:
        ours = statistics.median(first_time(begin, lambda pid: [PROBING, "-t", pid, "inject"]) for _ in range(rounds))
        figures.bound("`inject`, whole command, {}".format(kind), ours, "ms", 10 if begin is waiting else 20)
        inject_account(figures, kind, begin, rounds)
        for name in debugger_commands(0, sys.executable):
            theirs = [first_time(begin, lambda pid: debugger_commands(pid, sys.executable)[name]) for _ in range(3)]
            ended = [ms for ms in theirs if ms is not None]
            label = name + " (hung in {} of {})".format(len(theirs) - len(ended), len(theirs)) * (len(ended) < len(theirs))
            if ended:
                figures.against("the same", ours, statistics.median(ended), label, "ms", 1)
            else:
                figures.add("the same", ours, "ms", peer=label)


def longest_break(figures, options):
    """What a thread that is not chosen feels; the machine's own breaks are the first row."""
    python = pythons.Python([], sys.executable, (3, 0, 0), "bench")

    def ask(target):
        target.child.stdin.write(b"\n")
        target.child.stdin.flush()
        return float(target.line())

    def one(command_of):
        with live.Target(python, "gaps.py", folder=HERE) as target:
            time.sleep(0.1)
            ask(target)
            if command_of:
                try:
                    measure(1, *command_of(target.pid), seconds=30)
                except Hung:
                    return 30000.0
            else:
                time.sleep(0.02)
            return ask(target)

    rounds = 5 if options.quick else 15
    rows = [("nothing", None), ("`inject`", lambda pid: [PROBING, "-t", pid, "inject"])]
    rows += [(name, lambda pid, name=name: debugger_commands(pid, sys.executable)[name])
             for name in debugger_commands(0, sys.executable)]
    for number, (name, command_of) in enumerate(rows):
        figures.add("longest break of a computing thread beside " + name,
                    statistics.median(one(command_of) for _ in range(rounds if number < 2 else 3)), "ms")


class Session:
    """An open connection to a probe, no library of ours between."""

    def __init__(self, pid):
        with open("/proc/{}/environ".format(pid), "rb") as environ:
            variables = dict(item.split(b"=", 1) for item in environ.read().split(b"\0") if b"=" in item)
        uid = os.stat("/proc/{}".format(pid)).st_uid
        folder = variables.get(b"XDG_RUNTIME_DIR", b"").decode()
        folder = os.path.join(folder, "probing") if folder else "/tmp/probing-{}".format(uid)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(glob.glob("{}/{}-*.sock".format(folder, pid))[0])
        self.number = 0
        self.ask(HELLO, VERSION, struct.pack("<Q", 1))

    def ask(self, kind, key, value):
        self.number += 1
        body = struct.pack("<HHI", key, 0, len(value)) + value
        self.socket.sendall(struct.pack("<IIHH", len(body), self.number, kind, 0) + body)
        while True:
            length, _, kind, _ = struct.unpack("<IIHH", self.socket.recv(12, socket.MSG_WAITALL))
            if length:
                self.socket.recv(length, socket.MSG_WAITALL)
            if kind != PART:
                assert kind == END, kind
                return

    def round_trip_ms(self, source, count, kind=EVAL):
        times = []
        for _ in range(count):
            before = time.perf_counter()
            self.ask(kind, SOURCE, source)
            times.append((time.perf_counter() - before) * 1e3)
        return times


def socket_round_trip_ms(count):
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        while theirs.send(theirs.recv(1) or os._exit(0)):
            pass
    theirs.close()
    times = []
    for _ in range(count):
        before = time.perf_counter()
        ours.send(b"x")
        ours.recv(1)
        times.append((time.perf_counter() - before) * 1e3)
    ours.close()
    os.waitpid(pid, 0)
    return statistics.median(times)


def evaluation(figures, options):
    with live.Target(interpreter(), "parked.py", [4], folder=HERE) as target:
        live.probing("-t", target.pid, "inject", check=False)
        times = Session(target.pid).round_trip_ms(b"1", 100 if options.quick else 500)
        figures.bound("evaluation of `1` in an open session, GIL free", statistics.median(times), "ms", 0.3)
        figures.add("the same, p99", sorted(times)[int(len(times) * 0.99)], "ms")
        status = statistics.median(Session(target.pid).round_trip_ms(b"", len(times), STATUS))
        figures.account("evaluation of `1`", "ms", statistics.median(times),
                        {"a question that needs no Python": status, "a thread that takes the GIL, and the evaluation": statistics.median(times) - status},
                        {"a byte there and back between two processes": socket_round_trip_ms(len(times))})
        command = [PROBING, "-t", target.pid, "eval", "1"]
        true, start, run = in_turn(options.rounds, TRUE, [PROBING, "--version"], command)
        figures.bound("`eval 1`, whole command, probe there", run["ms"], "ms", 10)
        figures.bound("the same, CPU time", run["cpu_ms"], "ms", 3 * true["cpu_ms"] / TRUE_MS)
        figures.account("`eval 1`, probe there", "ms of CPU", run["cpu_ms"], pieces(options.rounds, command),
                        {"`/bin/true`": true["cpu_ms"], "`probing --version`": start["cpu_ms"]})


def memory_kb(pid):
    with open("/proc/{}/smaps_rollup".format(pid)) as rollup:
        return {line.split(":")[0]: int(line.split()[1]) for line in rollup if line.endswith("kB\n")}


def memory_by_owner(pid):
    """Resident megabytes of: the probe's file, other files, memory without a file."""
    found = dict.fromkeys(("libprobe.so", "other files", "its memory and its thread's stack"), 0.0)
    with open("/proc/{}/smaps".format(pid)) as maps:
        for line in maps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                path = words[5] if len(words) > 5 else ""
                owner = "libprobe.so" if "libprobe" in path else "other files" if path[:1] == "/" else "its memory and its thread's stack"
            elif words[0] == "Rss:":
                found[owner] += int(words[1]) / 1024
    return found


def probe_nanoseconds(pid):
    """Processor time of the probe's own threads."""
    used, count = 0, 0
    for tid in os.listdir("/proc/{}/task".format(pid)):
        with open("/proc/{}/task/{}/comm".format(pid, tid)) as comm:
            if comm.read().startswith("probing"):
                with open("/proc/{}/task/{}/schedstat".format(pid, tid)) as stat:
                    used, count = used + int(stat.read().split()[0]), count + 1
    return used, count


def idle(figures, options):
    with live.Target(interpreter(), "parked.py", [4], folder=HERE) as target:
        target.settle()
        before, owned = memory_kb(target.pid), memory_by_owner(target.pid)
        live.probing("-t", target.pid, "inject", check=False)
        alone = memory_kb(target.pid)
        adds = {owner: now - owned[owner] for owner, now in memory_by_owner(target.pid).items()}
        live.probing("-t", target.pid, "eval", "1", check=False)
        time.sleep(0.5)
        after, began = memory_kb(target.pid), probe_nanoseconds(target.pid)
        seconds = 2 if options.quick else 10
        time.sleep(seconds)
        ended = probe_nanoseconds(target.pid)
        assert ended[1] >= 1, "the target has no probe"
        figures.bound("idle probe: resident memory that it adds", (alone["Rss"] - before["Rss"]) / 1024, "MB", 1)
        figures.account("idle probe", "MB resident", sum(adds.values()), adds, {"libprobe.so, stripped": stripped_kb() / 1024})
        figures.add("the same, its own (dirty) part", (alone["Private_Dirty"] - before["Private_Dirty"]) / 1024, "MB")
        figures.add("the same, after an evaluation, which Python compiles", (after["Rss"] - before["Rss"]) / 1024, "MB")
        figures.bound("idle probe: CPU time", (ended[0] - began[0]) / 1e3 / seconds, "µs a second", 1)
    figures.bound("size of libprobe.so, stripped", stripped_kb() / 1024, "MB", 1.5)


def steps(figures, options):
    """Training steps with an idle probe and without, by turns in one process."""
    if not torch_python():
        return
    with job() as target:

        def median_ms():
            for count in (1, 2):  # the first ends the period of the command
                target.child.stdin.write(b"\n")
                target.child.stdin.flush()
                told = json.loads(target.line())
                if count == 1:
                    time.sleep(0.3 if options.quick else 1)
            return told["median"] * 1e3

        without, loaded = [], []
        for _ in range(options.rounds):
            without.append(median_ms())
            live.probing("-t", target.pid, "inject")
            live.probing("-t", target.pid, "eval", "1")
            loaded.append(median_ms())
            live.probing("-t", target.pid, "detach")
        figures.against("training step, idle probe", statistics.median(loaded), statistics.median(without),
                        "no probe, detached each time", "ms", 1.02)


def stripped_kb():
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(PROBE, folder)
        subprocess.run(["strip", copy], check=False)
        return os.path.getsize(copy) / 1024


def start_up(figures, options):
    """What pip puts into site-packages, when no variable asks for the probe, and when one asks for it in other programs."""
    code = ("import site, sys, time; folder = sys.argv[1]; before = set(sys.modules); began = time.perf_counter();"
            "site.addsitedir(folder); print((time.perf_counter() - began) * 1e3, *set(sys.modules) - before)")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PROBE"))}
    source = os.path.join(HERE, "..", "..", "python")
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as hooked:
        with open(os.path.join(empty, "nothing.pth"), "w") as file:
            file.write("import os\n")
        for path in glob.glob(os.path.join(source, "_probing_*.py")) + [os.path.join(source, "probing_c.pth")]:
            shutil.copy(path, hooked)
        shutil.copytree(os.path.join(source, "probing_c"), os.path.join(hooked, "probing_c"))
        subprocess.run([sys.executable, "-m", "compileall", "-q", hooked], check=True)  # as pip does
        cases = [(empty, None), (hooked, None)] + [(hooked, value) for value in ("0", "other.py", "regex:other[.]py$|^none", "regex:(other|none)")]
        times = {case: [] for case in cases}
        for _ in range(options.rounds * 2):
            for (folder, value), kept in times.items():
                told = subprocess.run([sys.executable, "-c", code, folder], stdout=subprocess.PIPE, check=True,
                                      env=dict(variables, **({"PROBING": value} if value is not None else {})))
                milliseconds, *modules = told.stdout.split()
                assert value is not None or not modules, "the hook imports modules"
                kept.append(float(milliseconds))
        nothing = statistics.median(times[empty, None])
        for (_, value), kept in list(times.items())[1:]:
            name = "start-up hook, " + ("no variable set" if value is None else "PROBING={} in another program".format(value))
            milliseconds = statistics.median(kept) - nothing
            if value and "(" in value:  # what it takes to import re
                figures.add(name, milliseconds, "ms")
            else:
                figures.bound(name, milliseconds, "ms", 1)


def ring_rows(figures, options):
    """A row of five columns: CPU time; what else one could write it to."""
    told = json.loads(subprocess.run([os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "ring_rows")],
                                     stdout=subprocess.PIPE, check=True).stdout)
    figures.bound("a row of five columns into a ring", told["ring_ns"], "ns", 100)
    for peer_name, key in (("SQLite in memory", "sqlite_ns"), ("a line of JSON", "json_ns")):
        figures.against("the same", told["ring_ns"], told[key], peer_name, "ns", 1 / 4)
    figures.add("rows of one thread", told["rows_per_s"] / 1e6, "million/s")
    figures.add("rows of four threads ({} CPUs)".format(os.cpu_count()), told["four_threads_rows_per_s"] / 1e6, "million/s")
    figures.add("a row out of a ring", told["read_ns"], "ns")


PARTS = [ring_rows, start_up, pauses, whole_commands, longest_break, evaluation, idle, steps]
