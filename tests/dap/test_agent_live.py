"""The debugger's in-target Python with the probe's own engine, by the control socket: what each mechanism must make of it."""

import pytest

from debuggee import marks
from support.control import END, Probed
from support.injection import wait_until
from support.target import DEADLINE
from test_core import Debugger, patient


class Debugged(Probed):
    """tests/targets/debugged.py with the probe, and a debugger that owns it."""

    def __init__(self, start, folders, python, folder, *threads):
        _, inner = folders(python)
        self.file = inner + "/debugged.py"
        Probed.__init__(self, start, folders, python, folder, self.file, *threads)
        self.eval = patient(self.client)
        self.debugger = Debugger(self.path).wait_begun()
        self.told = self.debugger.call("attach", justMyCode=True)
        self.call = self.debugger.call
        self.thread = 0

    def say(self, command):
        self.target.child.stdin.write(command.encode() + b"\n")
        self.target.child.stdin.flush()

    def until(self, wanted):
        while True:
            line = self.target.line()
            assert line is not None, "it ended"
            if line == wanted:
                return

    def breaks(self, *names, **more):
        lines = marks()
        given = [dict(more, line=lines[name]) for name in names]
        return self.call("set_breakpoints", path=self.file, breakpoints=given)["breakpoints"]

    def stopped(self, reason=None):
        body = self.debugger.event("stopped")
        assert reason is None or body["reason"] == reason, body
        self.thread = body["threadId"]
        return body

    def at(self, name, reason=None):
        body = self.stopped(reason)
        top = self.top()
        assert top["line"] == marks()[name], (name, top, body)
        return body

    def frames(self):
        return self.call("stack", threadId=self.thread)["stackFrames"]

    def top(self):
        return self.frames()[0]

    def evaluate(self, text, context="watch"):
        return self.call("evaluate", thread=self.thread, expression=text, frameId=self.top()["id"], context=context)["result"]

    def step(self, method, **more):
        self.call(method, threadId=self.thread, **more)
        self.stopped("step")
        return self.top()

    def go(self, command):
        self.breaks()
        self.call("continue", threadId=self.thread)
        self.until("done " + command)


@pytest.fixture
def debugged(start, folders, tmp_path):
    made = []

    def begin(python, *threads):
        made.append(Debugged(start, folders, python, tmp_path, *threads))
        if not made[-1].told["mechanism"]:
            pytest.skip("no mechanism for this CPython")
        return made[-1]

    yield begin
    for one in made:
        one.debugger.close()
        one.client.close()


def test_breakpoints_and_steps(python, debugged):
    one = debugged(python)
    assert one.breaks("step_a")[0]["verified"]
    one.say("steps")
    one.at("step_a", "breakpoint")
    one.breaks()
    lines = marks()
    assert one.step("next")["line"] == lines["step_b"]
    assert one.step("step_in")["line"] == lines["double"]
    assert one.step("next")["line"] == lines["double_return"]
    frame = one.step("step_out")
    assert (frame["name"].split(".")[-1], frame["line"]) == ("steps", lines["step_b"])
    assert one.step("next")["line"] == lines["step_c"]
    targets = one.call("step_in_targets", frameId=one.top()["id"])["targets"]
    assert [target["label"] for target in targets] == ["double(...)", "double(...)", "add(...)"]
    assert one.step("step_in", targetId=targets[2]["id"])["line"] == lines["add"]
    one.go("steps")


def results(one):
    scopes = {found["name"]: found for found in one.call("scopes", frameId=one.top()["id"])["scopes"]}
    if "Result" not in scopes:
        return {}
    rows = one.call("variables", variablesReference=scopes["Result"]["variablesReference"])["variables"]
    return {row["name"]: row["value"] for row in rows}


def test_results_of_what_a_step_ran_over(python, debugged):
    one = debugged(python)
    lines = marks()
    one.breaks("step_a")
    one.say("steps")
    one.at("step_a", "breakpoint")
    one.breaks("step_c")
    assert one.step("next")["line"] == lines["step_b"]
    assert results(one) == {}
    one.call("next", threadId=one.thread)
    one.stopped()  # at a breakpoint, too
    assert results(one) == {"(return) double": "2"}
    assert one.step("next")["line"] == lines["step_for"]
    assert results(one) == {"(return) double": "4", "(return) add": "6"}
    assert one.step("next")["line"] == lines["step_body"]
    assert results(one) == {}
    one.go("steps")


def stopped_at(debugged, python, mark, command):
    """A debugger whose target stands at the mark; the breakpoint is gone."""
    one = debugged(python)
    one.breaks(mark)
    one.say(command)
    one.at(mark, "breakpoint")
    one.breaks()
    return one


def test_results_of_recursion_and_of_many_calls(python, debugged):
    one, lines = stopped_at(debugged, python, "result_a", "results"), marks()
    assert one.step("next")["line"] == lines["result_b"]
    assert results(one) == {"(return) factorial": "6"}  # of the call in this frame, not of those within
    assert one.step("next")["line"] == lines["result_c"]
    names = {name.split(".")[-1].replace("(return) ", ""): value for name, value in results(one).items()}
    assert names == {"__call__": "7", "cached": "8"}, names
    assert one.step("next")["line"] == lines["result_d"]
    assert results(one) == {"(return) fibonacci": "987"}  # of 3000 calls
    one.go("results")


def test_results_of_what_a_step_awaits(python, debugged):
    one, lines = stopped_at(debugged, python, "await_a", "awaits"), marks()
    assert one.step("next")["line"] == lines["await_b"]  # the coroutine rested meanwhile
    assert results(one) == {"(return) tripled": "6"}
    assert one.step("next")["line"] == lines["await_c"]
    assert results(one) == {"(return) tripled": "18", "(return) double": "12"}
    one.go("awaits")


def test_conditions(python, debugged):
    one = debugged(python)
    one.breaks("cold", condition="i == 1 and any(i > k for k in [0])")
    one.say("cold")
    one.at("cold", "breakpoint")
    assert one.evaluate("i") == "1"
    one.breaks("cold", hitCondition="2")
    one.call("continue", threadId=one.thread)
    one.until("done cold")


@pytest.mark.parametrize("name", ["hot", "one_line"])
def test_a_loop_that_runs_already(python, debugged, name):
    one = debugged(python, name)
    assert one.breaks(name)[0]["verified"]
    one.at(name, "breakpoint")
    one.breaks()
    one.call("continue", threadId=one.thread)
    one.say("cold")
    one.until("done cold")


def test_suspended_frames(python, debugged):
    one = debugged(python)
    for name, command in (("generator", "generate"), ("coroutine", "coroutines"), ("native", "native")):
        assert one.breaks(name)[0]["verified"]
        one.say(command)
        one.at(name, "breakpoint")
        one.go(command)


def test_exceptions(python, debugged):
    one = debugged(python)
    one.call("set_exception_breakpoints", filters=["raised"])
    one.say("caught")
    body = one.at("raise", "exception")
    assert "ValueError" in body["text"] and "caught one" in body["text"]
    info = one.call("exception_info", threadId=one.thread)
    assert info["breakMode"] == "always" and "fails" in info["details"]["stackTrace"]
    one.call("continue", threadId=one.thread)
    one.until("done caught")
    for name, mode in (("uncaught", "unhandled"), ("userUnhandled", "userUnhandled")):
        one.call("set_exception_breakpoints", filters=[name])
        one.say("caught")
        one.until("done caught")
        one.say("uncaught")
        one.stopped("exception")
        assert [frame["name"] for frame in one.frames()[:2]] == ["fails", "failing_thread"]
        assert one.evaluate("text") == "'not caught'"
        assert one.call("exception_info", threadId=one.thread)["breakMode"] == mode
        one.call("continue", threadId=one.thread)
        one.until("done uncaught")


def test_uncaught_in_other_threads(python, debugged):
    """One that threading does not know, and the main one, which ends by it."""
    one = debugged(python)
    one.call("set_exception_breakpoints", filters=["uncaught"])
    for command, first, last in (("raw_uncaught", "fails", "fails"), ("fatal", "fails", "<module>")):
        one.say(command)
        one.stopped("exception")
        names = [frame["name"] for frame in one.frames()]
        assert (names[0], names[-1]) == (first, last), names
        assert one.thread in [thread["id"] for thread in one.call("threads")["threads"]]
        assert one.evaluate("text") == repr(command.split("_")[0])
        assert one.call("exception_info", threadId=one.thread)["breakMode"] == "unhandled"
        one.call("continue", threadId=one.thread)
        if command == "raw_uncaught":
            one.until("done " + command)
    assert one.target.child.wait(DEADLINE) == 1


def test_uncaught_leaves_nothing(python, debugged):
    hooks = ("[__import__('sys').excepthook, getattr(__import__('sys'), 'unraisablehook', 0), "
             "'_invoke_excepthook' in vars(__import__('threading').Thread)]")
    one = debugged(python)
    before = one.eval(hooks).value
    for _ in range(2):
        one.call("set_exception_breakpoints", filters=["uncaught"])
    one.call("set_exception_breakpoints", filters=[])
    assert one.eval(hooks).value == before
    one.call("set_exception_breakpoints", filters=["uncaught"])
    assert one.debugger.end().kind == END
    wait_until(lambda: one.eval(hooks).value == before)


def test_goto(python, debugged):
    one = debugged(python)
    one.breaks("jump_third")
    one.say("jumps")
    one.at("jump_third")
    target = one.call("goto_targets", path=one.file, line=marks()["jump_second"])["targets"][0]
    one.breaks("jump_return")
    one.call("goto", thread=one.thread, threadId=one.thread, targetId=target["id"])
    one.at("jump_second", "goto")
    one.call("continue", threadId=one.thread)
    one.at("jump_return", "breakpoint")
    assert one.evaluate("a") == "4"
    one.go("jumps")


def test_set_variables(python, debugged):
    one = debugged(python)
    one.breaks("jump_third")
    one.say("jumps")
    one.at("jump_third")
    scope = one.call("scopes", frameId=one.top()["id"])["scopes"][0]["variablesReference"]
    one.call("set_variable", thread=one.thread, variablesReference=scope, name="a", value="40")
    one.breaks("jump_return")
    one.call("continue", threadId=one.thread)
    one.at("jump_return")
    assert one.evaluate("a") == "41"
    one.go("jumps")


def test_data_breakpoints(python, debugged):
    one = debugged(python)
    one.breaks("watched")
    one.say("watched")
    one.at("watched")
    found = one.call("data_breakpoint_info", frameId=one.top()["id"], name="box.x")
    answer = one.call("set_data_breakpoints", breakpoints=[{"dataId": found["dataId"]}])["breakpoints"]
    assert answer[0]["verified"]
    one.breaks()
    for change in ("1 -> 0", "0 -> 1"):
        one.call("continue", threadId=one.thread)
        assert change in one.stopped("data breakpoint")["text"]
    one.call("set_data_breakpoints", breakpoints=[])
    one.go("watched")


def test_function_breakpoints_and_later_code(python, debugged):
    one = debugged(python)
    one.call("set_function_breakpoints", breakpoints=[{"name": "Point.moved"}, {"name": "debugged_late.function"}])
    one.say("methods")
    one.at("method", "function breakpoint")
    one.call("continue", threadId=one.thread)
    one.until("done methods")
    one.say("late")
    one.stopped("function breakpoint")
    one.call("set_function_breakpoints", breakpoints=[])
    one.go("late")


KEEPS = """
import weakref
class Kept(object):
    pass
def keeps():
    found = []
    for i in range(3):
        one = Kept()
        found.append(weakref.ref(one))
    del one
    return found
"""


def test_nothing_is_kept_alive(python, debugged):
    """CPython up to 3.12 keeps the dict of a frame's locals once somebody has asked for it."""
    one = debugged(python)
    assert one.eval("exec(compile({!r}, '/kept.py', 'exec'), globals())".format(KEEPS), "__main__").none
    one.call("set_breakpoints", path="/kept.py", breakpoints=[{"line": 9, "condition": "i < 2 and one is not None"}])
    one.say("keeps")
    for i in range(2):
        one.stopped("breakpoint")
        assert one.evaluate("(i, type(one).__name__)") == "({}, 'Kept')".format(i)
        scope = one.call("scopes", frameId=one.top()["id"])["scopes"][0]["variablesReference"]
        assert one.call("variables", thread=one.thread, variablesReference=scope)["variables"]
        if i == 1:
            one.call("set_breakpoints", path="/kept.py", breakpoints=[{"line": 11}])
        one.call("continue", threadId=one.thread)
    one.stopped("breakpoint")
    assert one.evaluate("[ref() for ref in found]") == "[None, None, None]"
    one.call("set_breakpoints", path="/kept.py", breakpoints=[])
    one.go("keeps")


def test_output(python, debugged):
    one = debugged(python, "hot")
    one.call("output", on=True)
    one.say("prints")
    one.debugger.until(lambda: any("to standard output \u20ac" in str(event) for event in one.debugger.events))
    assert one.debugger.end().kind == END
    # An evaluation has streams of its own, in front of the program's.
    kind = "type(object.__getattribute__(__import__('sys').stdout, '_prb_original')).__name__"
    wait_until(lambda: one.eval(kind).value == "'TextIOWrapper'")
