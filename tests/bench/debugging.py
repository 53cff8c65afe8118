"""Figures of the debugger, beside debugpy where it is installed for the same Python (PROBING_DEBUGPY: a Python with it).

Each client is tests/dap/client.py; the peer is attached to by pid, too, as its users do.
"""

import json
import mmap
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from timing import HERE
from torch_python import torch_python

import pythons
import target as live

sys.path.insert(0, os.path.join(HERE, "..", "dap"))

from client import Client, Socket, Stdio  # noqa: E402

PROGRAM = os.path.join(HERE, "calls.py")
LONG = 120


def line_of(mark, path=PROGRAM):
    with open(path) as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(mark))


class Ours:
    name = "probing"

    def __init__(self, pid):
        self.session = Client(Stdio(live.PROBING, "dap"), strict=False)
        self.arguments = {"processId": pid}

    def close(self):
        self.session.disconnect()
        self.session.close()


class Debugpy:
    name = "debugpy --pid"

    def __init__(self, pid):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        subprocess.run([debugpy_python(), "-m", "debugpy", "--listen", "127.0.0.1:{}".format(port), "--pid", str(pid)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONG)
        self.session = Client(Socket(("127.0.0.1", port)), strict=False)
        self.arguments = {"justMyCode": False}

    def close(self):
        self.session.disconnect(terminateDebuggee=False)
        self.session.close()


def debugpy_python():
    """A Python with debugpy, of the version that the jobs have; None: there is none."""
    for path in (os.environ.get("PROBING_DEBUGPY"), torch_python(), sys.executable):
        if path and not subprocess.run([path, "-c", "import debugpy"], stderr=subprocess.DEVNULL).returncode:
            return path
    return None


def sides():
    return [Ours] + ([Debugpy] if debugpy_python() else [])


def begin(side, pid, **points):
    """A client that is attached: (it, seconds)."""
    began = time.perf_counter()
    client = side(pid)
    session = client.session
    session.attach(configure=lambda _: set_lines(session, **points) if points else None, **client.arguments)
    return client, time.perf_counter() - began


def set_lines(session, path=PROGRAM, lines=(), **more):
    session.request("setBreakpoints", {"source": {"path": path}, "breakpoints": [dict({"line": line}, **more) for line in lines]})


def first_frame(session, thread):
    return next(frame for frame in session.request("stackTrace", {"threadId": thread})["stackFrames"] if frame.get("source"))


def told(target):
    target.child.stdin.write(b"\n")
    target.child.stdin.flush()
    return target.line(LONG)


def steps_of(target):
    """{median, worst} of the steps since the last time, milliseconds."""
    period = json.loads(told(target))
    while not period["steps"]:
        time.sleep(0.02)
        period = json.loads(told(target))
    return {what: period[what] * 1e3 for what in ("median", "worst")}


def attaching(figures, options):
    """A training job: the client's first byte to the first stop in its step; and what the steps feel of an attach alone."""
    if not torch_python():
        return
    program = os.path.join(HERE, "train.py")
    line = line_of("optimizer.zero_grad()", program)
    python = pythons.Python([], torch_python(), (3, 0, 0), "bench")
    rounds = 2 if options.quick else 5
    stops, worst, usual = {}, {}, {}
    for side in sides():
        for _ in range(rounds):
            with live.Target(python, "train.py", folder=HERE) as target:
                began = time.perf_counter()
                client, _ = begin(side, target.pid, path=program, lines=[line])
                client.session.event("stopped", seconds=LONG)
                stops.setdefault(side, []).append((time.perf_counter() - began) * 1e3)
            with live.Target(python, "train.py", folder=HERE) as target:
                time.sleep(0.3)
                usual.setdefault(side, []).append(steps_of(target)["worst"])
                client, _ = begin(side, target.pid)
                worst.setdefault(side, []).append(steps_of(target)["worst"])
                client.close()
    middle = {side: statistics.median(kept) for side, kept in stops.items()}
    figures.bound("debugger: attach to first stop, torch, 30 threads", middle[Ours], "ms", 100)
    if Debugpy in middle:
        figures.against("the same", middle[Ours], middle[Debugpy], Debugpy.name, "ms", 1 / 40)
    for side in stops:
        more = statistics.median(worst[side]) - statistics.median(usual[side])
        figures.add("worst training step while {} attaches, over the worst before".format(side.name), more, "ms",
                    "≤ 1 ms" if side is Ours else None, more <= 1 if side is Ours else None)


# What is set: (name, breakpoints, bar)
COSTS = [("no breakpoint", {}, 1.05), ("a breakpoint in cold code", {"lines": [line_of("# at never")]}, None),
         ("a breakpoint that does not hold, in the caller's last line",
          {"lines": [line_of("# at loop")], "condition": "total == -1"}, None),
         ("a condition that does not hold, in every call", {"lines": [line_of("return x + 1")], "condition": "x == -1"}, None)]


def costs(figures, options):
    """Nanoseconds of a call, attached beside before; and after the detach."""
    for python in pythons.found():
        if python.root:
            continue
        rows = {}
        for side in sides() if python.minor == (3, 11) and python.how == "shared" else [Ours]:
            for name, points, bar in COSTS:
                with live.Target(python, "calls.py", folder=HERE) as target:
                    told(target)
                    before = [float(word) for word in told(target).split()]
                    client, _ = begin(side, target.pid, **points)
                    during = [float(word) for word in told(target).split()]
                    client.close()
                    after = [float(word) for word in told(target).split()]
                rows[side, name] = during[0] / before[0]
                rows[side, "after"] = max(rows.get((side, "after"), 0), after[0] / before[0])
                if side is Ours and name == COSTS[1][0]:
                    bar = 1.5 if python.minor == (3, 11) else 1.05
                peer = Debugpy.name if side is Debugpy else None
                label = "calls of CPython {}, {}{}".format(python.id.split("-")[0], name, ", " + peer if peer else "")
                ratio = during[0] / before[0]
                figures.add(label, ratio, "×", "≤ {:g}".format(bar) if bar and not peer else None,
                            ratio <= bar if bar and not peer else None)
            figures.add("calls of CPython {} after the detach{}, the worst".format(
                python.id.split("-")[0], ", " + Debugpy.name if side is Debugpy else ""), rows[side, "after"], "×")


def stop_all(figures, options):
    """From the pause request until the last of the threads stands."""
    python = pythons.Python([], torch_python() or sys.executable, (3, 0, 0), "bench")
    for count in (8, 64):
        for side in sides():
            told_ms, stand_ms = [], []
            with tempfile.NamedTemporaryFile() as file:
                file.truncate(4096)
                page = mmap.mmap(file.fileno(), 4096)
                with live.Target(python, "spinners.py", [count, file.name], folder=HERE) as target:
                    client, _ = begin(side, target.pid)
                    session = client.session
                    thread = session.request("threads")["threads"][0]["id"]
                    for _ in range(5 if options.quick else 15):
                        time.sleep(0.05)
                        began = time.perf_counter()
                        session.request("pause", {"threadId": thread})
                        body = session.event("stopped", seconds=LONG)
                        told_ms.append((time.perf_counter() - began) * 1e3)
                        stand_ms.append(standing(page, count, began))
                        session.request("continue", {"threadId": body["threadId"]})
                    client.close()
            figures.add("pause of {} computing threads, `stopped`, {}".format(count, side.name), statistics.median(told_ms), "ms")
            bar = 25 if side is Ours else None
            worst = statistics.median(stand_ms)
            figures.add("the same, until the last one stands", worst, "ms", "≤ 20 ms + 5 ms" if bar else None,
                        worst <= bar if bar else None)


def standing(page, count, began):
    """Milliseconds from then until the last change of any counter; none for 60 ms."""
    last, changed = None, began
    while time.perf_counter() - changed < 0.06:
        now = struct.unpack_from("{}Q".format(count), page)
        if now != last:
            last, changed = now, time.perf_counter()
    return (changed - began) * 1e3


def round_trips(figures, options):
    python = pythons.Python([], torch_python() or sys.executable, (3, 0, 0), "bench")
    middle = {}
    for side in sides():
        with live.Target(python, "calls.py", folder=HERE) as target:
            client, _ = begin(side, target.pid, lines=[line_of("# at look")])
            session = client.session
            target.child.stdin.write(b"look\n")
            target.child.stdin.flush()
            thread = session.event("stopped", seconds=LONG)["threadId"]
            frame = first_frame(session, thread)
            scope = session.request("scopes", {"frameId": frame["id"]})["scopes"][0]
            items = next(one for one in session.request("variables", {"variablesReference": scope["variablesReference"]})["variables"]
                         if one["name"] == "items")
            asked = {
                "evaluate `x`": ("evaluate", {"expression": "x", "frameId": frame["id"], "context": "watch"}),
                "variables of a frame": ("variables", {"variablesReference": scope["variablesReference"]}),
                "stackTrace": ("stackTrace", {"threadId": thread}),
                "a page of 100 of a list of 1e6": ("variables", {"variablesReference": items["variablesReference"],
                                                                 "filter": "indexed", "start": 500000, "count": 100}),
            }
            for name, (command, arguments) in asked.items():
                times = []
                for _ in range(30 if options.quick else 200 if side is Ours else 30):
                    began = time.perf_counter()
                    session.request(command, arguments)
                    times.append((time.perf_counter() - began) * 1e3)
                middle[side, name] = statistics.median(times)
            client.close()
    for name in asked:
        bar = 1 if name.startswith("evaluate") else None
        figures.add("debugger: " + name, middle[Ours, name], "ms", "≤ 1 ms" if bar else None,
                    middle[Ours, name] <= bar if bar else None, Debugpy.name if (Debugpy, name) in middle else None,
                    middle.get((Debugpy, name)),
                    middle[Ours, name] / middle[Debugpy, name] if (Debugpy, name) in middle else None)


PARTS = [attaching, costs, stop_all, round_trips]
