"""The debug session inside the target, by its own socket: one at a time, the gate, parked threads, and its end in every case."""

import functools
import json
import time

import pytest

from support.control import (
    BUSY,
    DEBUG,
    DEBUG_CALL,
    END,
    GIL_MS,
    ITEM,
    KEY,
    PART,
    THREAD,
    TIME_MS,
    TIMEOUT,
    VALUE,
    Client,
    Probed,
    answer,
    field,
    fields,
)
from support.injection import DEADLINE, wait_until

USAGE = 1
NAMED_BELOW = 15  # lines from that of count() to the one-line loop


class Debugger(Client):
    """A client that owns the debug session."""

    def __init__(self, path):
        Client.__init__(self, path)
        self.events = []
        self.session = self.send(DEBUG, b"")
        self.began = False

    def wait_begun(self):
        self.until(lambda: self.began)
        return self

    def until(self, condition):
        """Take messages until it holds."""
        while not condition():
            kind, number, body = answer(self.socket)
            told = fields(body)
            if number == self.session and kind == PART:
                if told[ITEM]:
                    self.events.append(json.loads(told[ITEM].decode()))
                else:
                    self.began = True
            else:
                self.answers[number].add(kind, told)

    def wait(self, number):
        self.until(lambda: self.answers[number].kind is not None)
        return self.answers.pop(number)

    def begin_call(self, method, thread=0, time_ms=0, **arguments):
        body = field(KEY, method.encode()) + field(VALUE, json.dumps(arguments).encode())
        if thread:
            body += field(THREAD, thread)
        if time_ms:
            body += field(TIME_MS, time_ms)
        return self.send(DEBUG_CALL, body + field(GIL_MS, 1000 * DEADLINE))

    def call(self, method, thread=0, time_ms=0, **arguments):
        told = self.wait(self.begin_call(method, thread, time_ms, **arguments))
        assert told.kind == END, told.told
        return json.loads(told.text)

    def event(self, name):
        """The next event of a name, the others forgotten."""
        self.until(lambda: any(event["event"] == name for event in self.events))
        while True:
            event = self.events.pop(0)
            if event["event"] == name:
                return event["body"]

    def end(self):
        self.cancel(self.session)
        return self.wait(self.session)


def patient(client):
    """Its eval(), beside threads that compute without end: on a busy machine it may be long until one of them gives up the GIL."""
    return functools.partial(client.eval, gil=1000 * DEADLINE)


class Parking(Probed):
    """tests/targets/parking.py with the probe."""

    def __init__(self, start, folders, python, folder, **options):
        _, inner = folders(python)
        Probed.__init__(self, start, folders, python, folder, inner + "/parking.py", *options.pop("program", []), **options)
        self.line = int(self.target.notes[-1].split()[1])
        self.file = inner + "/parking.py"
        self.eval = patient(self.client)
        self.debuggers = []

    def debug(self):
        self.debuggers.append(Debugger(self.path).wait_begun())
        self.debuggers[-1].call("attach")
        return self.debuggers[-1]

    def counts(self):
        return eval(self.eval("dict(counts)").value)

    def runs(self):
        """All its threads count."""
        before = self.counts()
        wait_until(lambda: all(self.counts()[name] > before[name] for name in before))

    def say(self, word):
        self.target.child.stdin.write(word.encode() + b"\n")
        self.target.child.stdin.flush()

    def ends(self):
        self.say("end")
        assert self.target.line() == "over"
        assert self.target.child.wait(DEADLINE) == 0


@pytest.fixture
def parking(start, folders, tmp_path):
    made = []

    def begin(python, **options):
        made.append(Parking(start, folders, python, tmp_path, **options))
        return made[-1]

    yield begin
    for one in made:
        for client in [one.client] + one.debuggers:
            client.close()


def tid_of(debugger, name):
    return next(thread["id"] for thread in debugger.call("threads")["threads"] if thread["name"].startswith(name))


def parked(debugger):
    return {thread["name"].split(" ")[0] for thread in debugger.call("threads")["threads"] if thread["parked"]}


def break_in_count(one, debugger, **more):
    told = debugger.call("set_breakpoints", path=one.file, breakpoints=[dict({"line": one.line}, **more)])
    assert told["breakpoints"][0]["verified"], told


def test_one_session(python, parking):
    one = parking(python)
    first = one.debug()
    second = Debugger(one.path)
    told = second.wait(second.session)
    assert told.failed == BUSY and "being debugged by" in told.text
    stranger = second.wait(second.begin_call("threads"))
    assert stranger.failed == USAGE
    assert first.call("threads")["threads"]
    assert first.end().kind == END
    third = one.debug()
    assert third.call("threads")["threads"]
    second.close()
    one.runs()


def test_everything_stops(python, parking):
    one = parking(python)
    debugger = one.debug()
    one.runs()
    debugger.call("pause", threadId=one.pid)
    assert debugger.event("stopped")["reason"] == "pause"
    wait_until(lambda: parked(debugger) >= {"calls", "loop", "line", "sleeps"})
    before = one.counts()
    one.eval("__import__('time').sleep(0.1)")
    assert one.counts() == before
    debugger.call("continue", threadId=0)
    one.runs()
    one.ends()


def test_calls_run_on_the_parked_thread(python, parking):
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger)
    tid = debugger.event("stopped")["threadId"]
    frame = debugger.call("stack", threadId=tid)["stackFrames"][0]
    ident = next(thread["ident"] for thread in debugger.call("threads")["threads"] if thread["id"] == tid)
    told = debugger.call("evaluate", thread=tid, expression="__import__('threading').get_ident()", frameId=frame["id"])
    assert int(told["result"]) == ident
    assert debugger.call("evaluate", thread=tid, expression="name", frameId=frame["id"])["result"] in ("'calls'", "'sleeps'")
    number = debugger.begin_call("evaluate", thread=tid, time_ms=200, expression="[1 for _ in iter(int, 1)]", frameId=frame["id"])
    assert debugger.wait(number).failed == TIMEOUT
    number = debugger.begin_call("evaluate", thread=tid, expression="[1 for _ in iter(int, 1)]", frameId=frame["id"])
    debugger.cancel(number)
    assert debugger.wait(number).failed in (TIMEOUT, BUSY), "it ran, or waited"
    assert debugger.call("evaluate", thread=tid, expression="1 + 1", frameId=frame["id"])["result"] == "2"


@pytest.mark.parametrize("how", ["gone", "cancelled", "detached"])
def test_the_end_lets_all_go_on(python, parking, how):
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger)
    debugger.event("stopped")
    wait_until(lambda: parked(debugger) >= {"calls", "loop", "line", "sleeps"})
    if how == "gone":
        debugger.close()
    elif how == "cancelled":
        assert debugger.end().kind == END
    else:
        assert one.client.detach().kind == END
    if how != "detached":
        one.runs()
        assert one.eval("[__import__('sys').monitoring.get_tool(i) for i in range(6)] "
                        "if hasattr(__import__('sys'), 'monitoring') else [None]").value.replace("None", "") .strip("[], ") == ""
    one.ends()


def test_again_and_again(python, parking):
    one = parking(python)
    for turn in range(5):
        debugger = one.debug()
        break_in_count(one, debugger)
        debugger.event("stopped")
        if turn % 2:
            debugger.end()
        else:
            debugger.close()
    one.runs()
    one.ends()


def test_a_fork_has_no_session(python, parking):
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger, condition="name == 'nobody'")
    one.say("fork")
    assert one.target.line() == "forked 7"
    assert debugger.call("threads")["threads"]
    debugger.call("pause", threadId=one.pid)
    debugger.event("stopped")
    debugger.call("continue", threadId=0)
    one.ends()


def test_the_interpreter_ends_with_threads_parked(python, parking):
    one = parking(python, program=["daemons"])
    debugger = one.debug()
    debugger.call("pause", threadId=one.pid)
    debugger.event("stopped")
    wait_until(lambda: parked(debugger) >= {"calls", "loop", "line", "sleeps"})
    one.say("leave")
    wait_until(lambda: "MainThread" in parked(debugger))
    debugger.call("continue", threadId=tid_of(debugger, "MainThread"), singleThread=True)
    assert one.target.line() == "left"
    assert one.target.child.wait(DEADLINE) == 0


def test_every_stop_is_told(python, parking):
    """Threads that reach the line while another one stops there, or while all go on, are not lost."""
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger)
    for _ in range(40):
        stopped = debugger.event("stopped")
        assert stopped["reason"] == "breakpoint"
        told = debugger.wait(debugger.begin_call("continue", threadId=0))
        # The stop may be of a halt that another thread's stop was answered for: one that is lost shows as a wait in vain.
        assert told.kind == END or "notStopped" in told.text, told.told
    debugger.call("set_breakpoints", path=one.file, breakpoints=[])
    debugger.call("pause", threadId=one.pid)
    wait_until(lambda: parked(debugger) >= {"calls", "sleeps"})
    debugger.call("continue", threadId=0)
    one.runs()


def test_a_loop_of_one_line(python, parking):
    one = parking(python)
    debugger = one.debug()
    line = one.line + NAMED_BELOW
    assert debugger.call("set_breakpoints", path=one.file, breakpoints=[{"line": line}])["breakpoints"][0]["verified"]
    seen = []
    for _ in range(3):
        tid = debugger.event("stopped")["threadId"]
        frame = debugger.call("stack", threadId=tid)["stackFrames"][0]
        assert (frame["name"], frame["line"]) == ("line", line)
        seen.append(int(debugger.call("evaluate", thread=tid, expression="counts['line']", frameId=frame["id"])["result"]))
        debugger.call("continue", threadId=0)
    assert seen == list(range(seen[0], seen[0] + 3)), "each turn"


def test_one_thread_goes_on(python, parking):
    one = parking(python)
    debugger = one.debug()
    debugger.call("pause", threadId=one.pid)
    debugger.event("stopped")
    wait_until(lambda: parked(debugger) >= {"calls", "loop", "line", "sleeps"})
    before = one.counts()
    debugger.call("continue", threadId=tid_of(debugger, "loop"), singleThread=True)
    wait_until(lambda: one.counts()["loop"] > before["loop"])
    after = one.counts()
    assert all(after[name] == before[name] for name in before if name != "loop")
    debugger.call("continue", threadId=0)
    one.runs()


def test_a_condition_that_does_not_end(python, parking):
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger, condition="[1 for _ in iter(int, 1)]")

    def stuck():
        before = one.counts()["calls"]
        one.eval("__import__('time').sleep(0.1)")
        return one.counts()["calls"] == before

    wait_until(stuck)
    debugger.close()
    one.runs()
    one.ends()


def test_a_call_that_forks(python, parking):
    """The child goes on where its parent was parked, with no session."""
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger, condition="name == 'sleeps'")
    tid = debugger.event("stopped")["threadId"]
    frame = debugger.call("stack", threadId=tid)["stackFrames"][0]["id"]
    code = "__import__('os').fork()"
    child = int(debugger.call("evaluate", thread=tid, expression=code, frameId=frame)["result"])
    assert child > 0
    wait_for = "__import__('os').kill({0}, 9) or __import__('os').waitpid({0}, 0)[1]".format(child)
    assert debugger.call("evaluate", thread=tid, expression=wait_for, frameId=frame)["result"] == "9", "it lived"
    debugger.call("set_breakpoints", path=one.file, breakpoints=[])
    debugger.call("continue", threadId=0)
    one.runs()


def test_a_slow_client(python, parking):
    """Events for a client that reads nothing are left out; the program does not wait for it."""
    one = parking(python)
    debugger = one.debug()
    break_in_count(one, debugger, logMessage="x" * 1000)
    one.runs()
    time.sleep(1)
    one.runs()
    assert debugger.end().kind == END
    one.runs()
