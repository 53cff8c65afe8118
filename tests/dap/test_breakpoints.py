"""Breakpoints: of lines, functions, exceptions and data; conditions, counts, log messages; verified sooner or later."""

import pytest

from client import Failed
from debuggee import evaluate, go_on, local_variables, marks, python_frames, resume, set_lines, stack, stop_at, stopped, top


def values_of_i(session, program, command, count):
    """Run a command that stops so often; i at each stop, and the command then ends."""
    program.say(command)
    seen = []
    for _ in range(count):
        body = stopped(session)
        seen.append(int(evaluate(session, "i", top(session, body["threadId"]))["result"]))
        resume(session, body["threadId"])
    program.until("done " + command)
    assert len(session.seen("stopped")) == count
    return seen


def outputs(session):
    return [output["output"] for output in session.seen("output")]


# ---- lines ----

def test_set_and_hit(attached, python):
    program, session = attached(python)
    points = set_lines(session, program, "cold", "cold_return")
    assert [point["line"] for point in points] == [program.line("cold"), program.line("cold_return")]
    assert all(point["verified"] for point in points), points
    assert len({point["id"] for point in points}) == 2
    program.say("cold")
    body = stopped(session, "breakpoint")
    assert body["hitBreakpointIds"] == [points[0]["id"]]
    # What waits in our own code is nobody's business: the line is the innermost frame.
    assert stack(session, body["threadId"])[0]["line"] == program.line("cold")
    resume(session, body["threadId"])
    assert stopped(session, "breakpoint")["hitBreakpointIds"] == [points[1]["id"]]
    go_on(session, program, body["threadId"], "cold")


def test_set_again_replaces(attached, python):
    program, session = attached(python)
    set_lines(session, program, "cold", "cold_next")
    set_lines(session, program, "cold_return")
    program.say("cold")
    body = stopped(session)
    assert top(session, body["threadId"])["line"] == program.line("cold_return")
    set_lines(session, program)
    resume(session, body["threadId"])
    program.until("done cold")
    program.run("cold")


def test_set_while_it_stands_in_the_same_function(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "cold", "cold")
    set_lines(session, program, "cold_return")
    resume(session, body["threadId"])
    stopped(session)
    assert top(session, body["threadId"])["line"] == program.line("cold_return")
    go_on(session, program, body["threadId"], "cold")


def test_a_line_without_code(attached, python):
    """It moves to the next line that has some, or is told as not verified."""
    program, session = attached(python)
    empty = program.line("cold") - 2  # between two functions
    answer = session.request("setBreakpoints", {"source": program.source(), "breakpoints": [{"line": empty}, {"line": 100000}]})
    first, last = answer["breakpoints"]
    assert not first["verified"] or first["line"] > empty
    assert not last["verified"] and last.get("message")


def test_breakpoint_locations(attached, python):
    program, session = attached(python)
    first, last = program.line("cold") - 3, program.line("cold_return")
    found = session.request("breakpointLocations", {"source": program.source(), "line": first, "endLine": last})
    lines = {one["line"] for one in found["breakpoints"]}
    assert {program.line(mark) for mark in ("cold", "cold_next", "cold_return")} <= lines
    assert all(first <= line <= last for line in lines)


def test_a_file_that_has_not_run(attached, any_python, tmp_path):
    """It is verified with the line where it will bind; not where the text does not parse, or has no such line."""
    _, session = attached(any_python)
    path = tmp_path / "later.py"

    def breaks(text, *lines):
        path.write_text(text)
        answer = session.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": [{"line": line} for line in lines]})
        return [(one["verified"], one["line"]) for one in answer["breakpoints"]]

    text = "def f(x):\n    # a comment\n    return dict(\n        x=x\n    )\n"
    assert breaks(text, 2, 3, 5, 9) == [(True, 3), (True, 3), (True, 3), (False, 9)]
    assert breaks("def f(:\n    pass\n", 2) == [(False, 2)]
    path.unlink()
    answer = session.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": [{"line": 1}]})
    assert "binds when" in answer["breakpoints"][0]["message"]


def test_a_module_that_is_imported_later(attached, python):
    program, session = attached(python)
    point, = set_lines(session, program, "late", name="debugged_late.py")
    assert point["verified"] and point["line"] == marks("debugged_late.py")["late"]
    program.say("late")
    body = session.event("breakpoint", lambda event: event["breakpoint"]["verified"])
    assert body["reason"] == "changed" and body["breakpoint"]["id"] == point["id"]
    body = stopped(session, "breakpoint")
    assert top(session, body["threadId"])["line"] == marks("debugged_late.py")["late"]
    set_lines(session, program, name="debugged_late.py")
    resume(session, body["threadId"])
    program.until("done late")


def test_condition(attached, python):
    program, session = attached(python)
    set_lines(session, program, ("cold", {"condition": "i == 1"}))
    assert values_of_i(session, program, "cold", 1) == [1]


@pytest.mark.parametrize("condition, hits", [
    ("i == 1 and own is None", [1]), ("i == box.x > 1", [2]), ("double(i) == 4 or not len(sys.argv)", [2]), ("cell == 10", [1]),
    ("inner() == 20", [2]), ("any(k == i for k in (0, 2))", [0, 2]), ("'cell' in locals() and i == 2", [2]),
    ("i == 1 and later", [1]), ("store.update(n=store.get('n', 0) + 1) or store['n'] == 2 or i == 2 and store['n'] != 3", [1]), ("seen", [0, 1, 2])])
def test_names_of_a_condition(attached, any_python, condition, hits):
    """Arguments, variables of closures, names of the module and without a value yet, calls; evaluated once each time."""
    judges(attached, any_python, condition, hits)


def test_names_of_a_condition_on_every_python(attached, python):
    judges(attached, python, "own is None and i == box.x and (i == 1 or i > 1 and later)", [1, 2])


def judges(attached, python, condition, hits):
    program, session = attached(python)
    set_lines(session, program, ("judged", {"condition": condition}))
    assert values_of_i(session, program, "judged", len(hits)) == hits


def test_a_condition_in_a_module(attached, any_python):
    program, session = attached(any_python)
    set_lines(session, program, ("late_module", {"condition": "__name__ == 'debugged_late' and 'base' not in globals()"}), name="debugged_late.py")
    program.say("late")
    resume(session, stopped(session)["threadId"])
    program.until("done late")


def test_a_step_ends_at_a_line_whose_condition_is_false(attached, any_python):
    program, session = attached(any_python)
    body, _ = stop_at(session, program, "cold", "cold")
    set_lines(session, program, ("cold_next", {"condition": "i == 7"}))
    session.request("next", {"threadId": body["threadId"]})
    assert top(session, stopped(session, "step")["threadId"])["line"] == program.line("cold_next")
    go_on(session, program, body["threadId"], "cold")


def test_a_condition_that_does_not_end(attached, any_python):
    """The client leaves meanwhile: the program goes on."""
    program, session = attached(any_python)
    set_lines(session, program, ("cold", {"condition": "forever()"}))
    program.say("cold")
    program.until("forever")
    session.disconnect()
    program.until("done cold")


def test_a_condition_that_fails_says_so(attached, python):
    program, session = attached(python)
    set_lines(session, program, ("cold", {"condition": "no_such_name > 1"}))
    program.say("cold")
    session.event("output", lambda output: "no_such_name" in output["output"])


def test_a_condition_that_is_no_python(attached, any_python):
    program, session = attached(any_python)
    point, = set_lines(session, program, ("cold", {"condition": "i =="}))
    assert not point["verified"] and point["message"]
    program.run("cold")


@pytest.mark.parametrize("form, wanted", [("2", [1]), ("== 2", [1]), (">= 2", [1, 2]), ("> 1", [1, 2]), ("% 2", [1]),
                                          ("<= 2", [0, 1]), ("< 2", [0])])
def test_hit_condition(attached, any_python, form, wanted):
    program, session = attached(any_python)
    set_lines(session, program, ("cold", {"hitCondition": form}))
    assert values_of_i(session, program, "cold", len(wanted)) == wanted


def test_hit_condition_on_every_python(attached, python):
    program, session = attached(python)
    set_lines(session, program, ("cold", {"hitCondition": ">=2", "condition": "i != 1"}))
    assert values_of_i(session, program, "cold", 1) == [2]


def test_a_hit_condition_of_no_form(attached, any_python):
    program, session = attached(any_python)
    point, = set_lines(session, program, ("cold", {"hitCondition": "often"}))
    assert not point["verified"] and point["message"]


def test_log_message(attached, python):
    program, session = attached(python)
    set_lines(session, program, ("cold", {"logMessage": "i={i} doubled {i * 2}, {{braces}}"}))
    program.run("cold")
    for i in range(3):
        body = session.event("output", lambda output: "i={}".format(i) in output["output"])
        assert "i={} doubled {}, {{braces}}".format(i, 2 * i) in body["output"]
    assert not session.seen("stopped")


def test_log_message_with_conversions(attached, any_python):
    """As in an f-string; a colon of the expression's own stays one."""
    program, session = attached(any_python)
    wanted = "{str(i)!r}|{i:>4}|{i!r:>3}|{'a:b'[1:2]}|{ {i: 'x!r'}[i] }|{'ab'[0:1]:*^5}|{1!=2}|{i:04d}"
    point, = set_lines(session, program, ("cold", {"logMessage": wanted}))
    assert point["verified"], point
    program.run("cold")
    for i in range(3):
        text = "{!r}|{:>4}|{:>3}|:|x!r|**a**|True|{:04d}".format(str(i), i, i, i)
        session.event("output", lambda output: text in output["output"])
    for wrong in ("{i!x}", "{i!}", "{!r}", "{:4}", "{i i:4}"):
        point, = set_lines(session, program, ("cold", {"logMessage": wrong}))
        assert not point["verified"] and "SyntaxError" in point["message"], (wrong, point)


def test_log_message_with_a_condition(attached, any_python):
    program, session = attached(any_python)
    set_lines(session, program, ("cold", {"logMessage": "i={i}", "condition": "i == 2"}))
    program.run("cold")
    session.event("output", lambda output: "i=2" in output["output"])
    assert not any("i=1" in text for text in outputs(session))


def test_a_log_message_that_fails_lets_it_run(attached, any_python):
    program, session = attached(any_python)
    set_lines(session, program, ("cold", {"logMessage": "{no_such_name}"}))
    program.run("cold")
    session.event("output", lambda output: "no_such_name" in output["output"])
    assert not session.seen("stopped")


def test_ten_thousand_breakpoints(attached, python):
    program, session = attached(python)
    points = [{"line": 1 + i % 400} for i in range(10000)]
    answer = session.request("setBreakpoints", {"source": program.source(), "breakpoints": points})
    assert len(answer["breakpoints"]) == 10000
    answer = session.request("setBreakpoints", {"source": program.source(), "breakpoints": []})
    assert answer["breakpoints"] == []
    program.run("cold")


# ---- functions ----

@pytest.mark.parametrize("name, command", [("cold_body", "cold"), ("Point.moved", "methods"), ("debugged_late.function", "late"),
                                           ("__main__.cold_body", "cold")])
def test_function_breakpoint(attached, python, name, command):
    program, session = attached(python)
    answer = session.request("setFunctionBreakpoints", {"breakpoints": [{"name": name}]})
    assert len(answer["breakpoints"]) == 1
    program.say(command)
    body = stopped(session, "function breakpoint")
    assert top(session, body["threadId"])["name"].split(".")[-1] == name.split(".")[-1]
    session.request("setFunctionBreakpoints", {"breakpoints": []})
    resume(session, body["threadId"])
    program.until("done " + command)


def test_function_breakpoint_with_conditions(attached, any_python):
    program, session = attached(any_python)
    session.request("setFunctionBreakpoints", {"breakpoints": [{"name": "cold_body", "condition": "i == 2"}]})
    assert values_of_i(session, program, "cold", 1) == [2]
    session.request("setFunctionBreakpoints", {"breakpoints": [{"name": "cold_body", "hitCondition": "2"}]})
    program.say("cold")
    body = stopped(session)
    assert evaluate(session, "i", top(session, body["threadId"]))["result"] == "1"
    resume(session, body["threadId"])
    program.until("done cold")


def test_a_bare_name_is_not_a_part_of_a_qualified_one(attached, any_python):
    program, session = attached(any_python)
    session.request("setFunctionBreakpoints", {"breakpoints": [{"name": "body"}]})
    program.run("cold")


# ---- exceptions ----

def test_raised(attached, python):
    program, session = attached(python)
    session.request("setExceptionBreakpoints", {"filters": ["raised"]})
    program.say("caught")
    body = stopped(session, "exception")
    frame = top(session, body["threadId"])
    assert frame["line"] == program.line("raise") and local_variables(session, frame)["text"]["value"] == "'caught one'"
    info = session.request("exceptionInfo", {"threadId": body["threadId"]})
    assert info["exceptionId"].endswith("ValueError") and info["breakMode"] == "always"
    assert info["details"]["typeName"] == "ValueError" and info["details"]["message"] == info["description"] == "caught one"
    assert "fails" in info["details"]["stackTrace"]
    session.request("setExceptionBreakpoints", {"filters": []})
    resume(session, body["threadId"])
    program.until("done caught")


@pytest.mark.parametrize("name", ["uncaught", "userUnhandled"])
def test_not_caught(attached, python, name):
    program, session = attached(python)
    session.request("setExceptionBreakpoints", {"filters": [name]})
    program.run("caught")
    assert not session.seen("stopped")
    program.say("uncaught")
    body = stopped(session, "exception")
    info = session.request("exceptionInfo", {"threadId": body["threadId"]})
    assert "not caught" in info["details"]["message"]
    assert info["breakMode"] == {"uncaught": "unhandled", "userUnhandled": "userUnhandled"}[name]
    names = [frame["name"] for frame in python_frames(stack(session, body["threadId"]))]
    assert any(one.endswith("failing_thread") for one in names), names
    session.request("setExceptionBreakpoints", {"filters": []})
    resume(session, body["threadId"])
    program.until("done uncaught")


@pytest.mark.parametrize("mode, command", [("always", "caught"), ("unhandled", "uncaught"), ("userUnhandled", "uncaught")])
def test_exception_options(attached, python, mode, command):
    """The protocol's own form: a category, types by name (their subclasses, too), and when to stop."""
    program, session = attached(python)

    def wanted(*types, mode=mode):
        path = [{"names": ["Python Exceptions"]}] + ([{"names": list(types)}] if types else [])
        session.request("setExceptionBreakpoints", {"filters": [], "exceptionOptions": [{"path": path, "breakMode": mode}]})

    wanted("KeyError", "LookupError")
    program.run(command)
    wanted(mode="never")
    program.run(command)
    assert not session.seen("stopped")
    for types in (["OSError", "ValueError"], ["Exception"], []):
        wanted(*types)
        program.say(command)
        body = stopped(session, "exception")
        wanted(mode="never")
        resume(session, body["threadId"])
        program.until("done " + command)
    assert "must be an array" in session.refused("setExceptionBreakpoints", {"filters": [], "exceptionOptions": 5}, check=False)


@pytest.mark.parametrize("name, command", [("raised", "caught"), ("uncaught", "uncaught"), ("userUnhandled", "uncaught")])
def test_exception_filter_with_a_condition(attached, python, name, command):
    program, session = attached(python)

    def wanted(condition):
        answer = session.request("setExceptionBreakpoints", {"filters": [], "filterOptions": [
            {"filterId": name, "condition": condition}]})
        assert all(point["verified"] for point in answer.get("breakpoints", []))

    wanted("text == 'another' or isinstance(exception, KeyError)")
    program.run(command)
    assert not session.seen("stopped")
    wanted("text in ('caught one', 'not caught') and isinstance(exception, ValueError)")
    program.say(command)
    body = stopped(session, "exception")
    session.request("setExceptionBreakpoints", {"filters": []})
    resume(session, body["threadId"])
    program.until("done " + command)


SPREAD = """def shown(*given):
    return given
def run(i):
    shown(
        i,
        [
        ],
    )
    if (i
        and
        i > 1
    ):
        '''not
        code'''
        shown(i)
    else:
        # a comment
        shown(
        )
    return i
run(2)
"""


@pytest.mark.parametrize("wanted, bound", [(8, 4), (7, 4), (12, 9), (14, 15), (17, 18), (19, 18)])
def test_a_line_inside_a_statement(launch, python, tmp_path, wanted, bound):
    """Its own code, or the first line of the statement."""
    if python.minor < (3, 8):
        pytest.skip("the end of a statement is not known there")
    path = tmp_path / "spread.py"
    path.write_text(SPREAD if bound < 16 else SPREAD.replace("run(2)", "run(0)"))
    lines = [{"line": wanted}]
    session, _ = launch(python, lambda one: one.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": lines}),
                        program=str(path))
    body = stopped(session, "breakpoint")
    found = top(session, body["threadId"])["line"]
    assert found == bound
    session.disconnect(terminateDebuggee=True)


COPIES = """def run(i):
    return i
def wait():
    return 0
def main():
    space = {"__name__": "copy"}
    exec(compile(open(__file__).read(), __file__, "exec"), space)
    space["run"](1)
    wait()
    space["run"](2)
if __name__ == "__main__":
    main()
"""


def test_other_code_of_the_same_lines(launch, python, tmp_path):
    """A file that ran twice: the frames lead to one code object of a line, which is enough to verify it, and the other one, which was
    called before, stops all the same."""
    path = tmp_path / "copies.py"
    path.write_text(COPIES)

    def set_line(session, line):
        point, = session.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": [{"line": line}]})["breakpoints"]
        assert point["line"] == line
        return point["verified"]

    session, _ = launch(python, lambda one: set_line(one, 4), program=str(path))
    body = stopped(session, "breakpoint")
    assert set_line(session, 2)
    resume(session, body["threadId"])
    body = stopped(session, "breakpoint")
    frame = top(session, body["threadId"])
    assert frame["line"] == 2
    assert evaluate(session, "i", frame)["result"] == "2"
    session.disconnect(terminateDebuggee=True)


EXITS = """import sys
def main(status):
    sys.exit(status)
main({})
"""


@pytest.mark.parametrize("status, stops, settings", [
    ("1", True, {}), ("'a text'", True, {}), ("0", False, {}), ("None", False, {}), ("0", True, {"breakOnSystemExitZero": True}),
    ("3", True, {"breakOnSystemExitZero": True, "django": True}),
    ("3", False, {"django": True}), ("3", True, {"breakOnSystemExit": [1, {"from": 2, "to": 4}]}),
    ("5", False, {"breakOnSystemExit": [1, {"from": 2, "to": 4}]}), ("1", False, {"breakOnSystemExit": []})])
def test_system_exit(launch, python, tmp_path, status, stops, settings):
    """Both filters: at the raise, and at the end of the stack."""
    if not (stops or python.minor in ((3, 8), (3, 13))):
        pytest.skip("the decision is the same")
    path = tmp_path / "exits.py"
    path.write_text(EXITS.format(status))
    session, _ = launch(python, lambda one: one.request("setExceptionBreakpoints", {"filters": ["raised", "uncaught"]}),
                        program=str(path), **settings)
    for mode in ("always", "unhandled") if stops else ():
        body = stopped(session, "exception")
        info = session.request("exceptionInfo", {"threadId": body["threadId"]})
        assert (info["exceptionId"], info["breakMode"]) == ("SystemExit", mode), info
        assert top(session, body["threadId"])["line"] == 3
        resume(session, body["threadId"])
    session.event("terminated")
    assert len(session.seen("stopped")) == 2 * stops


def test_system_exit_is_refused_when_it_cannot_be_read(client, debuggee, any_python):
    program, session = debuggee(any_python), client()
    with pytest.raises(Failed, match="breakOnSystemExit must be"):
        session.attach(program.pid, breakOnSystemExit=["one"])


# ---- data ----

@pytest.mark.parametrize("owner, name, expression", [("box", "x", "box.x"), ("store", "'k'", "store['k']")],
                         ids=["attribute", "key"])
def test_data_breakpoint(attached, python, owner, name, expression):
    program, session = attached(python)
    body, frame = stop_at(session, program, "watched", "watched")
    reference = evaluate(session, owner, frame)["variablesReference"]
    shown = [one["name"] for one in session.request("variables", {"variablesReference": reference})["variables"]]
    info = session.request("dataBreakpointInfo", {"variablesReference": reference, "name": name if name in shown else shown[0]})
    assert info["dataId"] and info["description"]
    answer = session.request("setDataBreakpoints", {"breakpoints": [{"dataId": info["dataId"], "accessType": "write"}]})
    assert answer["breakpoints"][0]["verified"], answer
    set_lines(session, program)
    seen, before = [], evaluate(session, expression, frame)["result"]
    for _ in range(2 if owner == "box" else 1):  # x: 1 -> 0 -> 1; k: 0 -> 0 -> 1
        resume(session, body["threadId"])
        body = stopped(session, "data breakpoint")
        seen.append(evaluate(session, expression, top(session, body["threadId"]))["result"])
    assert (before, seen) == (("1", ["0", "1"]) if owner == "box" else ("0", ["1"]))
    session.request("setDataBreakpoints", {"breakpoints": []})
    go_on(session, program, body["threadId"], "watched")


def test_no_data_breakpoint_on_what_cannot_change(attached, any_python):
    program, session = attached(any_python)
    body, frame = stop_at(session, program, "values", "values")
    value = evaluate(session, "some_tuple", frame)
    info = session.request("dataBreakpointInfo", {"variablesReference": value["variablesReference"], "name": "0"})
    assert info["dataId"] is None and info["description"]
    go_on(session, program, body["threadId"], "values")
