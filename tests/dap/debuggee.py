"""debugged.py as a test sees it: its marked lines, its answers and its counters; and what clients do again and again."""

import functools
import mmap
import os
import struct
import tempfile
import time

from support.target import DEADLINE, TARGETS, task_states

PROGRAM = "debugged.py"
LANES = {"hot": 0, "one_line": 1, "sleeper": 2, "calls": 3, "suspended": 8, "native": 9, "repr": 10}


@functools.lru_cache(maxsize=None)
def marks(name=PROGRAM):
    """{name of a mark: its line}."""
    told = {}
    with open(os.path.join(TARGETS, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if "# at " in line:
                told[line.split("# at ", 1)[1].split()[0]] = number
    return told


class Debuggee:
    def __init__(self, start, folders, python, *threads, **options):
        outside, inner = folders(python)
        self.python = python
        # As CPython names its files; another root's folder is no business of ours.
        self.folder = options.pop("folder", None) or (inner if python.root else os.path.realpath(inner))
        self.path = os.path.join(self.folder, PROGRAM)
        name = "page-{}-{}".format(os.getpid(), time.monotonic_ns())
        self.page_path = os.path.join(outside if python.root else tempfile.gettempdir(), name)
        with open(self.page_path, "wb") as file:
            file.truncate(4096)
            os.chmod(self.page_path, 0o666)
        with open(self.page_path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)
        variables = dict(options.pop("variables", {}))
        variables["PRB_TEST_PAGE"] = os.path.join(inner if python.root else tempfile.gettempdir(), name)
        self.target = start(python, PROGRAM, *threads, variables=variables, folder=self.folder, **options)
        self.pid = self.target.pid

    def say(self, command):
        self.target.child.stdin.write(command.encode() + b"\n")
        self.target.child.stdin.flush()

    def until(self, wanted, seconds=DEADLINE):
        """Lines of its output up to the one that is wanted, which must come."""
        lines = []
        until = time.monotonic() + seconds
        while True:
            line = self.target.line(max(0.1, until - time.monotonic()))
            assert line is not None, "the program ended: {}".format(lines)
            lines.append(line)
            if line == wanted:
                return lines

    def run(self, command, seconds=DEADLINE):
        self.say(command)
        return self.until("done " + command, seconds)

    def count(self, lane):
        return struct.unpack_from("Q", self.page, 8 * LANES[lane])[0]

    def moves(self, lane, seconds=DEADLINE):
        """It goes on: its counter changes."""
        before, until = self.count(lane), time.monotonic() + seconds
        while self.count(lane) == before:
            assert time.monotonic() < until, "{} stands still".format(lane)
            time.sleep(0.001)

    def sleeps(self):
        """Whether each of its threads waits: one that waits for a CPU has not reached the gate, however long its counter stands."""
        return all(state == "S" for state, *_ in task_states(self.pid).values())

    def stands(self, *lanes, seconds=DEADLINE):
        """The counters, once none of them changes for 50 ms in which all threads are seen to wait: the last ones take a
        moment to reach the gate."""
        until = time.monotonic() + seconds
        while True:
            before, waits = [self.count(lane) for lane in lanes], self.sleeps()
            for _ in range(5 if waits else 1):
                time.sleep(0.01)
                waits = waits and self.sleeps()
            if waits and [self.count(lane) for lane in lanes] == before:
                return before
            assert time.monotonic() < until, "still runs: {}".format(lanes)

    def pace(self):
        return int(self.run("pace")[0].split()[1])

    def line(self, mark, name=PROGRAM):
        return marks(name)[mark]

    def source(self, name=PROGRAM):
        return {"path": os.path.join(self.folder, name), "name": name}

    def close(self):
        self.page.close()
        if os.path.exists(self.page_path):
            os.unlink(self.page_path)


# ---- steps that many tests take ----

def set_lines(session, program, *wanted, name=PROGRAM):
    """setBreakpoints by marks, or by (mark, {condition...}); the breakpoints of the answer."""
    points = []
    for one in wanted:
        mark, more = one if isinstance(one, tuple) else (one, {})
        points.append(dict({"line": program.line(mark, name)}, **more))
    return session.request("setBreakpoints", {"source": program.source(name), "breakpoints": points})["breakpoints"]


def stopped(session, reason=None, seconds=DEADLINE):
    body = session.event("stopped", seconds=seconds)
    assert reason is None or body["reason"] == reason, body
    return body


def stack(session, thread, **more):
    return session.request("stackTrace", dict({"threadId": thread}, **more))["stackFrames"]


def python_frames(frames):
    """Those that are Python's, by their source: a file of Python, or code without a file."""
    sources = [(frame, frame.get("source") or {}) for frame in frames if frame.get("presentationHint") != "label"]
    return [frame for frame, source in sources if source.get("path", "").endswith(".py") or source.get("sourceReference")]


def top(session, thread):
    return python_frames(stack(session, thread))[0]


def stop_at(session, program, mark, command, **more):
    """A breakpoint at a mark, and the command that comes by; (the event, the innermost Python frame)."""
    set_lines(session, program, (mark, more))
    program.say(command)
    body = stopped(session, "breakpoint")
    frame = top(session, body["threadId"])
    assert frame["line"] == program.line(mark), frame
    return body, frame


def scope(session, frame, name="Locals"):
    scopes = session.request("scopes", {"frameId": frame["id"]})["scopes"]
    return next(one for one in scopes if one["name"] == name)


def variables(session, reference, **more):
    return session.request("variables", dict({"variablesReference": reference}, **more))["variables"]


def local_variables(session, frame):
    """{name: variable} of a frame's locals."""
    return {one["name"]: one for one in variables(session, scope(session, frame)["variablesReference"])}


def evaluate(session, expression, frame=None, context="watch", **more):
    arguments = dict({"expression": expression, "context": context}, **more)
    if frame:
        arguments["frameId"] = frame["id"]
    return session.request("evaluate", arguments)


def resume(session, thread):
    return session.request("continue", {"threadId": thread})


def go_on(session, program, thread, command):
    """No breakpoints any more, continue, and the command ends."""
    set_lines(session, program)
    resume(session, thread)
    program.until("done " + command)
