"""Figures of the debugger, beside debugpy where it is installed for the Python of the jobs (PROBING_DEBUGPY names one).

Both are driven by tests/dap/client.py; debugpy is attached to a process id, too, as its users do.  Runs of the two are
taken in turn, each pair in fresh processes; what hangs or fails is a note of its row, never the end of the bench.
"""

import contextlib
import json
import math
import mmap
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import types

from getting_in import KINDS, first_time, socket_round_trip_ms, waiting
from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import HERE, TRUE, Hung, of_root

sys.path.insert(0, os.path.join(HERE, "..", "dap"))

from client import Client, Socket, Stdio  # noqa: E402
from server import Server  # noqa: E402

PROGRAM = os.path.join(HERE, "calls.py")
LONG = 40  # seconds that anything of a peer may take


def lines_of(mark, path=PROGRAM):
    with open(path) as file:
        return [number for number, line in enumerate(file, 1) if line.rstrip().endswith(mark)]


# ---- the two ----

class Ours:
    name = "probing"

    def __init__(self, pid):
        self.session = Client(Stdio(live.PROBING, "dap"), strict=False)
        self.arguments = {"processId": pid}

    def leave(self):
        self.session.disconnect()
        self.session.close()

    def kill(self):
        self.session.kill()


class Debugpy:
    name = "debugpy --pid"

    def __init__(self, pid):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.session = None
        child = subprocess.Popen([debugpy_python(), "-m", "debugpy", "--listen", "127.0.0.1:{}".format(self.port), "--pid", str(pid)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            status = child.wait(LONG)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # gdb, too
            child.wait()
            self.kill()
            raise Hung("did not end within {} s".format(LONG))
        if status:
            raise Hung("ended with status {}".format(status))
        self.session = Client(Socket(("127.0.0.1", self.port)), strict=False)
        self.arguments = {"justMyCode": False}

    def leave(self):
        self.session.disconnect(terminateDebuggee=False)
        with contextlib.suppress(AssertionError):  # its messages are not judged here
            self.session.close()

    def kill(self):
        """Its adapter outlives both of us when the target dies at the wrong moment."""
        if self.session:
            self.session.kill()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/{}/cmdline".format(pid), "rb") as words:
                    words = words.read().split(b"\0")
                if any(b"debugpy" in word for word in words) and str(self.port).encode() in words:
                    os.kill(int(pid), signal.SIGKILL)


def debugpy_python():
    """A Python with debugpy, of the version that the jobs have; None: there is none."""
    for path in (os.environ.get("PROBING_DEBUGPY"), torch_python(), sys.executable):
        if path and os.access(path, os.X_OK) and not subprocess.run(
                [path, "-c", "import debugpy"], stderr=subprocess.DEVNULL).returncode:
            return path
    return None


def sides():
    return [Ours] + ([Debugpy] if debugpy_python() else [])


@contextlib.contextmanager
def attached(side, pid, path=None, lines=()):
    """A client that is attached, and detached in the end; killed when something failed."""
    client = side(pid)
    try:
        client.session.attach(configure=lambda session: set_lines(session, path, lines) if lines else None, **client.arguments)
        yield client
    except BaseException:
        with contextlib.suppress(OSError, AssertionError):
            client.kill()
        raise


def set_lines(session, path, lines, **more):
    session.request("setBreakpoints", {"source": {"path": path}, "breakpoints": [dict({"line": line}, **more) for line in lines]},
                    seconds=LONG)


def stop_of(session):
    return session.event("stopped", seconds=LONG)


class Runs:
    """What was measured, by side and name; how many runs of a side failed, and of how many."""

    def __init__(self):
        self.kept, self.tried, self.failed = {}, {}, {}

    def run(self, side, function, *arguments):
        """Keep {name: value} of a run, or count that it failed."""
        self.tried[side] = self.tried.get(side, 0) + 1
        try:
            for name, value in function(side, *arguments).items():
                self.kept.setdefault((side, name), []).append(value)
        except (Hung, AssertionError, OSError) as error:
            self.failed[side] = self.failed.get(side, 0) + 1
            print("  {}: {}".format(side.name, str(error)[:200]), file=sys.stderr, flush=True)

    def median(self, side, name):
        """None: no run of it came so far."""
        kept = self.kept.get((side, name))
        return statistics.median(kept) if kept else None

    def note(self, side):
        failed = self.failed.get(side, 0)
        return " (failed in {} of {})".format(failed, self.tried[side]) if failed else ""

    def row(self, figures, text, name, unit, bar=None, at_most=None, side=Ours):
        """One of ours, with debugpy's beside it.  bar: of the value; at_most: of the ratio to debugpy."""
        ours, theirs = self.median(side, name), self.median(Debugpy, name)
        bars, met = [], []
        if bar is not None:
            bars.append("≤ {:g} {}".format(bar, unit))
            met.append(ours is not None and ours <= bar)
        if at_most is not None and theirs is not None:
            bars.append("≤ {:.2g} × {}".format(at_most, Debugpy.name))
            met.append(ours is not None and ours <= at_most * theirs)
        peer = Debugpy.name + self.note(Debugpy) if Debugpy in self.tried else None
        figures.add(text + self.note(side), math.nan if ours is None else ours, unit, ", ".join(bars) or None,
                    all(met) if met else None, peer, theirs, ours / theirs if ours and theirs else None)


def in_turn(rounds, function, *arguments, peers=3):
    """Runs of both by turns; debugpy's, which are slow, at most so many."""
    runs = Runs()
    for number in range(rounds):
        for side in sides():
            if side is Ours or number < peers:
                runs.run(side, function, *arguments)
    return runs


# ---- attaching to a training job ----

JOB = os.path.join(HERE, "train.py")
PARKED = os.path.join(HERE, "parked.py")


def job_python():
    return pythons.Python([], torch_python() or sys.executable, (3, 0, 0), "bench")


def told(target, word="\n"):
    target.child.stdin.write(word.encode())
    target.child.stdin.flush()
    line = target.line(2 * LONG)
    assert line is not None, "the target ended"
    return line


def steps_of(target):
    """{median, worst} of the steps since the last time, milliseconds."""
    period = json.loads(told(target))
    while not period["steps"]:
        time.sleep(0.02)
        period = json.loads(told(target))
    return {what: period[what] * 1e3 for what in ("median", "worst")}


def usual_steps(target, seconds):
    """Median and usual worst of some periods of that length: what an attach of that length is compared with."""
    steps_of(target)
    periods = []
    for _ in range(5):
        time.sleep(seconds)
        periods.append(steps_of(target))
    return {what: statistics.median(period[what] for period in periods) for what in ("median", "worst")}


def first_stop(side):
    """From the client's first byte to the first stop in a step, and the pieces of that."""
    with live.Target(job_python(), "train.py", folder=HERE) as target:
        steps_of(target)
        moments = [time.perf_counter()]

        def configure(session):
            moments.append(time.perf_counter())
            set_lines(session, JOB, lines_of("optimizer.zero_grad()", JOB))
            moments.append(time.perf_counter())

        client = side(target.pid)
        try:
            client.session.initialize()
            moments.append(time.perf_counter())
            client.session.attach(configure=configure, **client.arguments)
            stop_of(client.session)
            moments.append(time.perf_counter())
            client.leave()
        except BaseException:
            with contextlib.suppress(OSError, AssertionError):
                client.kill()
            raise
    took = [(later - former) * 1e3 for former, later in zip(moments, moments[1:])]
    return dict(zip(("start of the adapter", "attach", "set a breakpoint", "to the stop"), took), **{"first stop": sum(took)})


def start_of_true():
    """Milliseconds of a program that does nothing, started as the adapter is, beside the job: both CPUs are busy."""
    with live.Target(job_python(), "train.py", folder=HERE) as target:
        steps_of(target)
        began = time.perf_counter()
        Stdio(*TRUE).child.wait()
        return (time.perf_counter() - began) * 1e3


def without_waits():
    """Milliseconds until the breakpoint is set in a job that waits: nobody else wants a CPU, and its GIL is free."""
    with waiting() as target:
        began = time.perf_counter()
        client = Ours(target.pid)
        try:
            client.session.initialize()
            client.session.attach(configure=lambda session: set_lines(session, PARKED, lines_of("parked.release()", PARKED)), **client.arguments)
            took = (time.perf_counter() - began) * 1e3
            client.leave()
        except BaseException:
            with contextlib.suppress(OSError, AssertionError):
                client.kill()
            raise
        return took


def attach_alone(side, lasts):
    """What the steps feel of an attach, of the debugger that then sits there, and of its end."""
    with live.Target(job_python(), "train.py", folder=HERE) as target:
        before = usual_steps(target, lasts.get(side, 0.1))
        steps_of(target)
        began = time.perf_counter()
        with attached(side, target.pid) as client:
            lasts[side] = min(time.perf_counter() - began, 0.5)
            time.sleep(before["median"] * 2e-3)  # the step that felt it is over
            during = steps_of(target)
            time.sleep(0.3)
            sitting = steps_of(target)
            client.leave()
        steps_of(target)
        time.sleep(0.3)
        after = steps_of(target)
    return {"longer": during["worst"] - before["worst"], "sitting": sitting["median"] / before["median"],
            "after": after["median"] / before["median"]}


def debugger_attaching(figures, options):
    if not torch_python():
        print("  no Python with torch: left out", file=sys.stderr)
        return
    rounds, peers = (2, 1) if options.quick else (7, 3)
    runs = in_turn(rounds, first_stop, peers=peers)
    runs.row(figures, "debugger: attach to first stop, torch, 30 threads", "first stop", "ms", bar=60, at_most=1 / 40)
    pieces = {name: runs.median(Ours, name) for name in ("start of the adapter", "attach", "set a breakpoint", "to the stop")}
    starting = statistics.median(start_of_true() for _ in range(rounds))
    entering = first_time(KINDS[-1][1], lambda pid: [live.PROBING, "-t", pid, "inject"])
    figures.account("attach to first stop", "ms", runs.median(Ours, "first stop"), pieces,
                    {"start of `/bin/true` beside it": starting, "`inject`, the same job": entering, "the same up to the breakpoint, a job that waits":
                     statistics.median(without_waits() for _ in range(rounds))})
    runs = in_turn(rounds, attach_alone, {}, peers=peers)
    runs.row(figures, "worst training step while it attaches, over the usual worst", "longer", "ms")
    runs.row(figures, "training step, attached, no breakpoint", "sitting", "×")
    runs.row(figures, "training step after the detach", "after", "×")


# ---- what it costs ----

# (what is set, the mark of the line, condition)
COSTS = [("no breakpoint", None, None), ("a breakpoint in cold code", "# at never", None),
         ("a breakpoint in the hot functions, on lines not run", "# at rare", None),
         ("a condition that does not hold, in every call", "# at call", "x == -1")]
PAIRED = (COSTS[0][0], COSTS[1][0], "after")  # what is near 1


def nanoseconds(target):
    """(of a call, of a round of a loop)."""
    call, turn = told(target).split()
    return float(call), float(turn)


def beside(target, control, pairs=5):
    """[(a call, a round)] of the target over those of a process that nobody debugs, by turns: the machine's own speed, which
    changes from second to second, drops out."""
    ratios = []
    for _ in range(pairs):
        theirs, ours = nanoseconds(control), nanoseconds(target)
        ratios.append([now / then for now, then in zip(ours, theirs)])
    return ratios


def medians(ratios):
    return [statistics.median(one) for one in zip(*ratios)]


def over(ratios, *before):
    """(of calls, of rounds), over the mean of what was measured before and after it."""
    means = [statistics.mean(one) for one in zip(*(medians(those) for those in before))]
    return [now / then for now, then in zip(medians(ratios), means)]


def microseconds(target, control, before):
    """What each call takes more than before."""
    return (medians(beside(target, control, 3))[0] / medians(before)[0] - 1) * nanoseconds(control)[0] / 1e3


TURNS = 5  # of attached and detached, in one process


def cost_of(side, python, turns):
    """{what is set: [(of calls, of rounds)]} in one process: attached beside the detached turns before and after it; the
    detached ones beside the time before the first attach."""
    measured = {}
    with of_root(python, "calls.py") as target, of_root(python, "calls.py") as control:
        path = target.folder + "/calls.py"
        for one in (target, control):
            told(one)
        first = detached = beside(target, control, 9)
        every = []
        for turn in range(turns):
            last = detached
            with attached(side, target.pid) as client:
                during = {}
                for name, mark, condition in COSTS:
                    if turn and name not in PAIRED:
                        continue  # they are nowhere near their bar
                    if mark:
                        set_lines(client.session, path, lines_of(mark), **({"condition": condition} if condition else {}))
                        told(target)  # what the interpreter specializes anew is specialized
                    if condition:
                        measured[name] = [[microseconds(target, control, last)] * 2]
                    else:
                        during[name] = beside(target, control)
                client.leave()
            told(target)
            detached = beside(target, control)
            every += detached
            for name, ratios in during.items():
                measured.setdefault(name, []).append(over(ratios, last, detached))
        measured["after"] = [over([one], first) for one in every]
        measured["before"] = [over([one], first) for one in first]
    return measured


EVALUATOR = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", ".libs", "evaluator.so")


def evaluator_cost(python):
    """The same ratio for a frame evaluator that only calls CPython's own: no debugger that sees calls so pays less."""
    with of_root(python, "calls.py") as target, of_root(python, "calls.py") as control:
        for one in (target, control):
            told(one)
        before = beside(target, control, 9)
        if told(target, "evaluator {}\n".format(EVALUATOR)).strip() != "0":
            raise Hung("this CPython takes no frame evaluator")
        told(target)
        return max(over(beside(target, control, 9), before))


def account_of_evaluator(figures, python, text, whole, rounds):
    """What of a breakpoint in cold code is the frame evaluator itself; monitoring needs none, 3.8 has no function to set it."""
    if whole is None or not (3, 9) <= python.minor <= (3, 11):
        return
    floor = statistics.median(evaluator_cost(python) for _ in range(rounds))
    figures.account(text, "×", whole, {"a call": 1.0, "a frame evaluator": floor - 1, "what ours does in it": whole - floor},
                    {"a frame evaluator that does nothing": floor})


def bar_of(python, name):
    if name in (COSTS[0][0], "after"):
        return 1.03
    if name == COSTS[3][0]:
        return 1
    return None if name != COSTS[1][0] else 1.2 if python.minor == (3, 11) else 1.05


def error_of(values):
    """Of their median."""
    return 1.25 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def debugger_costs(figures, options):
    """Calls and loops while attached, beside before, by version; debugpy where the version is its own."""
    theirs = debugpy_version()
    for python in pythons.found():
        if python.container or "jit" in python.how:
            continue
        runs = Runs()
        for number in range(1 if options.quick else 3):
            runs.run(Ours, flat, python, TURNS)
            if theirs == python.version and not python.root and python.how == "shared" and number < 2:
                runs.run(Debugpy, flat, python, 1)
        for name in [name for name, _, _ in COSTS] + ["after"]:
            text = "CPython {}, {}".format(python.id.split("-")[0], name if name != "after" else "after the detach")
            if name in PAIRED:
                paired_row(figures, runs, text, name, bar_of(python, name))
            else:
                runs.row(figures, text, name, "µs" if name == COSTS[3][0] else "×", bar=bar_of(python, name))
            if name == COSTS[1][0]:
                account_of_evaluator(figures, python, text, runs.median(Ours, name), 1 if options.quick else 3)


def flat(side, python, turns):
    """Medians of the worse of calls and rounds, and their errors: that of the time before is in the one after."""
    told = cost_of(side, python, turns)
    found = {}
    for name, ratios in told.items():
        kinds = list(zip(*ratios))
        kind = max(kinds, key=statistics.median)
        found[name] = statistics.median(kind)
        of_before = error_of(list(zip(*told["before"]))[kinds.index(kind)]) if name == "after" else 0
        found[name + ", error"] = math.hypot(error_of(kind), of_before)
    return found


def paired_row(figures, runs, text, name, bar):
    """What exceeds 1 by less than twice its error is not resolved, and counts as met."""
    ours, theirs = runs.median(Ours, name), runs.median(Debugpy, name)
    if ours is None:
        runs.row(figures, text, name, "×", bar=bar)
        return
    error = runs.median(Ours, name + ", error") / math.sqrt(len(runs.kept[Ours, name]))
    figures.add(text + runs.note(Ours), ours, "× (± {:.3f})".format(error), "≤ {:g} ×".format(bar), ours <= bar or ours - 1 <= 2 * error,
                Debugpy.name + runs.note(Debugpy) if Debugpy in runs.tried else None, theirs, ours / theirs if theirs else None)


def debugpy_version():
    if not debugpy_python():
        return None
    return tuple(pythons.ask([debugpy_python()])[0])


# ---- stop-all ----

def pauses(side, count, rounds):
    """From the request to `stopped`, and until the last thread stands: medians of some pauses in one process."""
    told_ms, stand_ms = [], []
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(4096)
        page = mmap.mmap(file.fileno(), 4096)
        with live.Target(job_python(), "spinners.py", [count, file.name], folder=HERE) as target:
            with attached(side, target.pid) as client:
                session = client.session
                thread = session.request("threads", seconds=LONG)["threads"][0]["id"]
                for _ in range(rounds):
                    time.sleep(0.05)
                    began = time.perf_counter()
                    session.request("pause", {"threadId": thread}, seconds=LONG)
                    body = stop_of(session)
                    told_ms.append((time.perf_counter() - began) * 1e3)
                    stand_ms.append(standing(page, count, began))
                    session.request("continue", {"threadId": body["threadId"]}, seconds=LONG)
                client.leave()
        page.close()
    return {"told": statistics.median(told_ms), "stand": statistics.median(stand_ms)}


def standing(page, count, began):
    """Milliseconds from then until the last change of any counter; none for 60 ms."""
    last, changed = None, began
    while time.perf_counter() - changed < 0.06:
        now = struct.unpack_from("{}Q".format(count), page)
        if now != last:
            last, changed = now, time.perf_counter()
        if changed - began > LONG:
            raise Hung("threads that do not stand")
    return (changed - began) * 1e3


def debugger_stop_all(figures, options):
    for count in (8, 64):
        runs = in_turn(1 if options.quick else 3, pauses, count, 5, peers=1 if options.quick else 2)
        runs.row(figures, "pause of {} computing threads, `stopped`".format(count), "told", "ms")
        runs.row(figures, "the same, until the last one stands", "stand", "ms", bar=25)


# ---- looking ----

class Listening(Ours):
    """The same by TCP, as stock VS Code has it."""

    name = "probing, TCP"

    def __init__(self, pid):
        self.server = Server(types.SimpleNamespace(pid=pid), "--listen")
        self.session = Client(Socket(self.server.address), strict=False)
        self.arguments = {}

    def leave(self):
        Ours.leave(self)
        self.server.end()

    def kill(self):
        Ours.kill(self)
        self.server.end()


def questions(session):
    """Stop in look(): {name: (command, arguments)}."""
    thread = stop_of(session)["threadId"]
    frame = next(one for one in session.request("stackTrace", {"threadId": thread})["stackFrames"] if one.get("source"))
    scope = session.request("scopes", {"frameId": frame["id"]})["scopes"][0]["variablesReference"]
    items = next(one for one in session.request("variables", {"variablesReference": scope})["variables"] if one["name"] == "items")
    return {
        "evaluate `x`": ("evaluate", {"expression": "x", "frameId": frame["id"], "context": "watch"}),
        "variables of a frame": ("variables", {"variablesReference": scope}),
        "threads": ("threads", None),
        "stackTrace": ("stackTrace", {"threadId": thread}),
        "100 rows in the middle of a list of 1e6": ("variables", {"variablesReference": items["variablesReference"],
                                                                  "filter": "indexed", "start": 500000, "count": 100}),
    }


ITSELF = "what the adapter answers itself"  # a request to cancel nothing


def trips(side, count):
    times = {}
    with live.Target(job_python(), "calls.py", folder=HERE) as target:
        with attached(side, target.pid, PROGRAM, lines_of("# at look")) as client:
            target.child.stdin.write(b"look\n")
            target.child.stdin.flush()
            asked = questions(client.session)
            if side is Ours:
                asked[ITSELF] = ("cancel", {"requestId": 0})
            for name, (command, arguments) in asked.items():
                for _ in range(count):
                    began = time.perf_counter()
                    client.session.request(command, arguments, seconds=LONG)
                    times.setdefault(name, []).append((time.perf_counter() - began) * 1e3)
            client.leave()
    return {name: statistics.median(kept) for name, kept in times.items()}


STEP, ANSWER = "a step (next), until it stands", "until next is answered"


def stepping(side, count):
    """From the request to `stopped`, and to its response, line by line in a loop."""
    times = {STEP: [], ANSWER: []}
    with live.Target(job_python(), "calls.py", folder=HERE) as target:
        with attached(side, target.pid, PROGRAM, lines_of("# at steps")) as client:
            target.child.stdin.write(b"steps\n")
            target.child.stdin.flush()
            thread = stop_of(client.session)["threadId"]
            for _ in range(count):
                began = time.perf_counter()
                client.session.request("next", {"threadId": thread}, seconds=LONG)
                times[ANSWER].append((time.perf_counter() - began) * 1e3)
                stop_of(client.session)
                times[STEP].append((time.perf_counter() - began) * 1e3)
            client.leave()
    return {name: statistics.median(kept) for name, kept in times.items()}


def debugger_round_trips(figures, options):
    count = 20 if options.quick else 60
    runs = Runs()
    for _ in range(1 if options.quick else 3):
        for side in sides() + [Listening]:
            runs.run(side, trips, count if side is not Debugpy else 20)
    for name in ("evaluate `x`", "variables of a frame", "threads", "stackTrace", "100 rows in the middle of a list of 1e6"):
        runs.row(figures, "debugger: " + name, name, "ms", bar=0.3 if name.startswith("evaluate") else None)
    runs.row(figures, "debugger: evaluate `x`, by TCP", "evaluate `x`", "ms", bar=0.3, side=Listening)
    account_of_trips(figures, runs, count)
    steps = Runs()
    for _ in range(1 if options.quick else 3):
        for side in sides():
            steps.run(side, stepping, count if side is not Debugpy else 20)
    steps.row(figures, "debugger: " + STEP, STEP, "ms", bar=2)
    step, answered = (steps.median(Ours, name) for name in (STEP, ANSWER))
    if step is not None:
        figures.account("debugger: " + STEP, "ms", step, {"the request, answered": answered, "the line, and its event": step - answered},
                        {ITSELF: runs.median(Ours, ITSELF) or math.nan})


def account_of_trips(figures, runs, count):
    """The client, which is Python, and the adapter's reader; the worker of the adapter, which has a stack of this stop; the rest is the
    probe's."""
    itself, worker = runs.median(Ours, ITSELF), runs.median(Ours, "stackTrace")
    if itself is None or worker is None:
        return
    floor = {"a byte there and back between two processes": socket_round_trip_ms(count)}
    own = {"the client, and the adapter's reader": itself, "the adapter's worker": worker - itself}
    figures.account("debugger: stackTrace", "ms", worker, own, floor)
    for name in ("evaluate `x`", "variables of a frame", "threads"):
        whole = runs.median(Ours, name)
        figures.account("debugger: " + name, "ms", whole, dict(own, **{"the probe, there and back, and its answer": whole - worker}), floor)


PARTS = [debugger_attaching, debugger_costs, debugger_stop_all, debugger_round_trips]
