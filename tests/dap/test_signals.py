"""The program's own signal handlers raise on the main thread, also while code of the debugger runs there: it gets all of it."""

import os
import select
import signal
import time

import pytest

from client import Failed
from debuggee import evaluate, local_variables, resume, set_lines, stopped, top
from support.target import DEADLINE

ROUNDS = 200
SOME = 20


class Signalled:
    """signalled.py, and a client that is attached to it."""

    def __init__(self, start, folders, python, client, *arguments):
        self.folder = folders(python)[1]
        self.target = start(python, "signalled.py", *arguments)
        self.marked = int(self.target.notes[-1].split()[1])
        assert self.target.line() == "on"
        self.session = client()
        self.session.attach(self.target.pid)

    def line(self, mark, name):
        return self.marked

    def source(self, name):
        return {"path": os.path.join(self.folder, "signalled.py"), "name": "signalled.py"}

    def send(self, number):
        os.kill(self.target.pid, number)

    def told(self, *lines):
        for line in lines:
            assert self.target.line() == line

    def stop(self, **more):
        set_lines(self.session, self, ("line", more))
        return stopped(self.session, "breakpoint")["threadId"]

    def go(self, thread):
        set_lines(self.session, self)
        resume(self.session, thread)

    def leaves(self):
        """SIGTERM ends it as it ends without a debugger."""
        self.send(signal.SIGTERM)
        assert self.target.line().startswith("left")
        assert self.target.child.wait(60) == 0


@pytest.fixture
def signalled(start, folders, client):
    def begin(python, *arguments):
        return Signalled(start, folders, python, client, *arguments)

    return begin


def test_terminated_at_a_stop(python, signalled):
    one = signalled(python)
    thread = one.stop()
    frame = top(one.session, thread)
    one.send(signal.SIGTERM)
    # Whatever code of ours runs on the thread meanwhile, the program gets it when it goes on, and not before.
    for _ in range(3):
        assert evaluate(one.session, "i + 1", frame)["result"].isdigit()
        assert "i" in local_variables(one.session, frame)
    one.session.send("continue", {"threadId": thread})
    one.told("left 0")
    assert one.target.child.wait(60) == 0


def test_interrupted_in_a_condition(python, signalled):
    """Nearly all of the time passes in code of ours."""
    one = signalled(python)
    assert set_lines(one.session, one, ("line", {"condition": "all(i < 0 for _ in range(3))"}))[0]["verified"]
    for _ in range(ROUNDS):
        one.send(signal.SIGINT)
        one.told("interrupted 0", "on")
    assert not [body for body in one.session.seen("output") if "failed" in body["output"]]
    one.leaves()


def test_alarms_in_a_condition(python, signalled):
    one = signalled(python)
    set_lines(one.session, one, ("line", {"condition": "all(i < 0 for _ in range(3))"}))
    for _ in range(SOME):
        one.send(signal.SIGUSR1)
        one.send(signal.SIGALRM)
        one.told("timed out 0", "on")
    assert not one.session.seen("stopped"), "a condition that raised"
    one.leaves()


def test_interrupted_where_exceptions_are_watched(python, signalled):
    one = signalled(python, "throw")
    one.session.request("setExceptionBreakpoints", {"filters": [], "filterOptions": [
        {"filterId": "raised", "condition": "isinstance(exception, ValueError) and exception.args == (-1,)"},
        {"filterId": "uncaught", "condition": "exception is None"}]})
    for number, name in [(signal.SIGINT, "interrupted 0"), (signal.SIGALRM, "timed out 0")] * SOME:
        one.send(number)
        one.told(name, "on")
    one.session.request("setExceptionBreakpoints", {"filters": []})
    one.leaves()


def test_an_alarm_in_a_step(python, signalled):
    """Each alarm reaches the program, and with sys.monitoring each step ends."""
    one = signalled(python)
    # Frames that begin with the debugger there, and it stays: a breakpoint that never stops.
    never = {"line": one.marked + 6, "condition": "False"}
    points = [[dict({"line": one.marked}), never], [never]]

    def set_points(which):
        one.session.request("setBreakpoints", {"source": one.source(""), "breakpoints": points[which]})

    set_points(1)
    one.send(signal.SIGALRM)
    one.told("timed out 0", "on")
    for _ in range(SOME):
        set_points(0)
        thread = stopped(one.session, "breakpoint")["threadId"]
        set_points(1)
        one.session.send("next", {"threadId": thread})
        one.send(signal.SIGALRM)
        if python.minor >= (3, 12):
            stopped(one.session, "step")
            resume(one.session, thread)
        else:  # the step may end with the frame that it was in
            end_step(one, thread)
        one.told("timed out 0", "on")
    one.leaves()


def end_step(one, thread):
    """Let it go on where the step ends, until the program tells of the alarm."""
    until = time.monotonic() + DEADLINE
    while not select.select([one.target.child.stdout], [], [], 0)[0]:
        assert time.monotonic() < until, "neither an alarm nor the step's end"
        try:
            stopped(one.session, seconds=0.05)
        except AssertionError:
            continue
        resume(one.session, thread)
        return


def test_an_alarm_in_an_evaluation(python, signalled):
    one = signalled(python)
    thread = one.stop()
    frame = top(one.session, thread)
    for number in (signal.SIGALRM, signal.SIGINT):
        code = "__import__('os').kill({}, {}) or __import__('time').sleep(60)".format("__import__('os').getpid()", int(number))
        with pytest.raises(Failed) as failure:
            evaluate(one.session, code, frame, context="repl")
        assert "signal handler" in str(failure.value), failure.value
        assert evaluate(one.session, "i * 0", frame)["result"] == "0"
    one.go(thread)
    one.told("interrupted 0", "on")  # it came second, but is no Exception
    one.leaves()


def test_what_is_typed_is_not_the_programs(python, signalled):
    one = signalled(python)
    thread = one.stop()
    frame = top(one.session, thread)
    for code in ("__import__('sys').exit(3)", "raise KeyboardInterrupt", "raise GeneratorExit", "raise TimeoutError"):
        with pytest.raises(Failed) as failure:
            evaluate(one.session, code, frame, context="repl")
        assert "signal handler" not in str(failure.value), failure.value
    one.session.request("setBreakpoints", {"source": one.source(""), "breakpoints": [
        {"line": one.marked, "condition": "__import__('sys').exit(3)"}]})
    resume(one.session, thread)
    body = stopped(one.session, "breakpoint")
    assert "SystemExit" in body["text"]
    one.go(thread)
    one.send(signal.SIGINT)
    line = ""
    while line != "interrupted 0":
        line = one.target.line()
        assert line is not None, "it ended"
    one.told("on")
    one.leaves()


def test_handlers_that_do_not_raise(python, signalled):
    one = signalled(python)
    set_lines(one.session, one, ("line", {"condition": "i < 0"}))
    for _ in range(SOME):
        one.send(signal.SIGUSR1)
        one.send(signal.SIGINT)
        one.told("interrupted 0", "on")
    one.send(signal.SIGTERM)
    line = one.target.line()
    assert line.startswith("left") and int(line.split()[1]) >= 1
    assert one.target.child.wait(60) == 0
