"""evaluate in its contexts, on the right thread, with a deadline, cancelled, and shown as progress; completions."""

import re

import pytest

from debuggee import evaluate, go_on, local_variables, resume, set_lines, stack, stop_at
from support.injection import wait_until

FOREVER = "[0 for _ in iter(int, 1)]"


@pytest.mark.parametrize("context", ["watch", "hover", "repl", "clipboard", "variables"])
def test_evaluate(at_values, python, context):
    program, session, frame, thread = at_values(python)
    assert evaluate(session, "integer + 1", frame, context)["result"] == "43"
    answer = evaluate(session, "point", frame, context)
    assert answer["variablesReference"] and answer["type"] == "Point"
    session.refused("evaluate", {"expression": "no_such_name", "frameId": frame["id"], "context": context})
    session.refused("evaluate", {"expression": "1 +", "frameId": frame["id"], "context": context})
    go_on(session, program, thread, "values")


def test_clipboard_gets_all_of_it(at_values, python):
    program, session, frame, thread = at_values(python)
    answer = evaluate(session, "long_text", frame, "clipboard")
    assert answer["result"].count("x") == 100000
    go_on(session, program, thread, "values")


def test_statements_in_the_console(at_values, python):
    program, session, frame, thread = at_values(python)
    evaluate(session, "made = integer + 8", frame, "repl")
    assert evaluate(session, "made", frame, "repl")["result"] == "50"
    evaluate(session, "print('said', made)", frame, "repl")
    session.said("said 50\n")
    go_on(session, program, thread, "values")


def test_comprehensions_see_locals(at_values, python):
    program, session, frame, thread = at_values(python)
    assert evaluate(session, "[integer + k for k in range(3)]", frame)["result"] == "[42, 43, 44]"
    assert evaluate(session, "(lambda: integer)()", frame)["result"] == "42"
    go_on(session, program, thread, "values")


def test_sys_without_a_frame(launch, any_python, tmp_path):
    """A console of a running job has sys, imported there or not; the program does not get it."""
    path = tmp_path / "sleeps.py"
    path.write_text("import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.01)\n")
    session, _ = launch(any_python, program=str(path))
    session.said("ready")
    console = {"context": "repl"}
    assert session.request("evaluate", dict(console, expression="sys.version_info[0]"))["result"] == "3"
    assert session.request("evaluate", dict(console, expression="'sys' in vars(sys.modules['__main__'])"))["result"] == "False"
    session.request("evaluate", dict(console, expression="sys = 5"))
    assert session.request("evaluate", dict(console, expression="sys"))["result"] == "5"
    session.disconnect(terminateDebuggee=True)


def test_await(at_values, python):
    program, session, frame, thread = at_values(python)
    evaluate(session, "async def answer(): return 6 * 7\n", frame, "repl")
    assert evaluate(session, "await answer()", frame, "repl")["result"] == "42"
    go_on(session, program, thread, "values")


def test_await_in_statements(at_values, python):
    if python.version < (3, 8):
        pytest.skip("CPython compiles no await outside of functions before 3.8")
    program, session, frame, thread = at_values(python)
    evaluate(session, "async def answer(): return 6 * 7\n", frame, "repl")
    evaluate(session, "awaited = await answer()", frame, "repl")
    assert evaluate(session, "awaited", frame, "repl")["result"] == "42"
    assert evaluate(session, "other = 1; await answer()", frame, "repl")["result"] == "42"
    assert evaluate(session, "import asyncio\nfor k in range(2):\n    await asyncio.sleep(0)\nk", frame, "repl")["result"] == "1"
    session.refused("evaluate", {"expression": "no = await answer()", "frameId": frame["id"], "context": "watch"})
    go_on(session, program, thread, "values")


def test_evaluate_runs_on_the_thread_itself(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "cold", "new_thread")
    name = evaluate(session, "__import__('threading').current_thread().name", frame)["result"]
    assert name == "'late thread'"
    set_lines(session, program)
    resume(session, body["threadId"])
    program.until("done new_thread")


def test_evaluate_without_a_frame(attached, python):
    program, session = attached(python, "hot")
    assert evaluate(session, "1 + 1", context="repl")["result"] == "2"
    program.moves("hot")


def test_completions(at_values, python):
    program, session, frame, thread = at_values(python)

    def complete(text):
        answer = session.request("completions", {"text": text, "column": len(text) + 1, "frameId": frame["id"]})
        return {one["label"] for one in answer["targets"]} | {one.get("text") for one in answer["targets"]}

    assert "long_list" in complete("long_l")
    assert {"moved", "total"} <= {name.rstrip("(") for name in complete("point.") if name}
    assert complete("no_such_thing.") <= {None}
    go_on(session, program, thread, "values")


def test_completions_in_any_case_and_with_kinds(at_values, python):
    program, session, frame, thread = at_values(python)

    def complete(text):
        answer = session.request("completions", {"text": text, "column": len(text) + 1, "frameId": frame["id"]})
        return [(one["label"], one["type"]) for one in answer["targets"]]

    assert ("long_list", "variable") in complete("LONG_L")
    assert complete("point")[0] == ("point", "variable") and ("Point", "class") in complete("point")
    assert complete("Point")[0] == ("Point", "class") and ("point", "variable") in complete("Point")
    assert {("moved", "method"), ("x", "field"), ("total", "property")} <= set(complete("point."))
    kinds = dict(complete(""))
    assert (kinds["threading"], kinds["cold"], kinds["while"], kinds["len"]) == ("module", "function", "keyword", "function")
    go_on(session, program, thread, "values")


# ---- what takes long ----

def repl(session, expression, frame):
    return session.send("evaluate", {"expression": expression, "frameId": frame["id"], "context": "repl"})


def test_cancel(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "cold", "cold")
    seq = repl(session, FOREVER, frame)
    session.request("cancel", {"requestId": seq})
    answer = session.answer(seq)
    assert answer["success"] is False and answer["message"] == "cancelled", answer
    assert stack(session, body["threadId"])
    go_on(session, program, body["threadId"], "cold")


def test_the_program_runs_and_stops_after_a_cancel(attached, python):
    """CPython looks for a withdrawn exception for ever: in 3.11 a traced function got no further than its first instruction."""
    program, session = attached(python)
    body, frame = stop_at(session, program, "cold", "cold")
    seq = repl(session, FOREVER, frame)
    session.event("progressStart", lambda event: event.get("requestId") == seq)
    session.request("cancel", {"requestId": seq})
    assert session.answer(seq)["message"] == "cancelled"
    go_on(session, program, body["threadId"], "cold")
    for command in ("cold", "new_thread"):
        body, _ = stop_at(session, program, "cold", command)
        go_on(session, program, body["threadId"], command)


def test_deadline_and_progress(attached, python):
    """evaluateTimeout ends it; from a second on it is progress, until its answer."""
    program, session = attached(python, evaluateTimeout=2)
    body, frame = stop_at(session, program, "cold", "cold")
    seq = repl(session, FOREVER, frame)
    begun = session.event("progressStart", lambda event: event.get("requestId") == seq)
    assert begun["cancellable"] and begun["title"]
    answer = session.answer(seq)
    assert answer["success"] is False and answer["message"], answer
    session.event("progressEnd", lambda event: event["progressId"] == begun["progressId"])
    assert evaluate(session, "i", frame)["result"] == "0"
    go_on(session, program, body["threadId"], "cold")


def test_looking_does_not_wait_for_an_evaluation(attached, python):
    """threads, stackTrace, scopes and modules are answered while code of the target runs; what changes something waits."""
    program, session = attached(python, evaluateTimeout=60)
    body, frame = stop_at(session, program, "cold", "cold")
    slow = repl(session, FOREVER, frame)
    waits = session.send("evaluate", {"expression": "1 + 1", "frameId": frame["id"]})
    assert session.request("threads")["threads"]
    assert stack(session, body["threadId"])[0]["id"] == frame["id"]
    assert session.request("scopes", {"frameId": frame["id"]})["scopes"]
    assert session.request("modules", {})["modules"]
    assert slow not in session.answers and waits not in session.answers
    session.request("cancel", {"requestId": slow})
    assert session.answer(slow, 20)["message"] == "cancelled"
    assert session.wait(waits)["result"] == "2"
    go_on(session, program, body["threadId"], "cold")


def test_progress_is_cancelled(attached, any_python):
    """As the button of VS Code's notification does."""
    program, session = attached(any_python)
    body, frame = stop_at(session, program, "cold", "cold")
    seq = repl(session, FOREVER, frame)
    begun = session.event("progressStart", lambda event: event.get("requestId") == seq)
    session.request("cancel", {"progressId": begun["progressId"]})
    assert session.answer(seq)["message"] == "cancelled"
    go_on(session, program, body["threadId"], "cold")


def test_a_deadline_for_what_cannot_be_interrupted(attached, python):
    """A call of the kernel goes on to its end; its answer does not wait for that, and the session is of use meanwhile."""
    program, session = attached(python, evaluateTimeout=1)
    body, frame = stop_at(session, program, "cold", "cold")
    # A read of the program's own input, which ends when the test writes to it.
    code = "page.lanes.__setitem__(9, 1) or __import__('os').read(0, 100) and page.lanes.__setitem__(10, 1)"
    seq = repl(session, code, frame)
    assert session.answer(seq)["success"] is False
    assert program.count("native") == 1, "it did not come to its call"
    assert program.count("repr") == 0, "it waited"
    assert session.request("threads")["threads"]
    program.say("a line")
    go_on(session, program, body["threadId"], "cold")


def test_cancel_of_what_waits(attached, any_python):
    program, session = attached(any_python, evaluateTimeout=120)
    _, frame = stop_at(session, program, "cold", "cold")
    slow = session.send("evaluate", {"expression": FOREVER, "frameId": frame["id"]})
    waiting = session.send("evaluate", {"expression": "1", "frameId": frame["id"]})
    session.request("cancel", {"requestId": waiting})
    assert slow not in session.answers and waiting not in session.answers
    session.request("cancel", {"requestId": slow})
    for seq in (slow, waiting):
        answer = session.answer(seq)
        assert answer["success"] is False and answer["message"] == "cancelled"


def test_cancel_of_nothing(client):
    session = client()
    session.initialize()
    session.request("cancel", {"requestId": 4711})
    session.request("cancel", {"progressId": "no-such"})
    session.request("cancel", {})


def test_a_stuck_repr_does_not_hang_the_session(attached, any_python):
    program, session = attached(any_python)
    body, frame = stop_at(session, program, "slow", "slow_value")
    seq = session.send("evaluate", {"expression": "repr(slow_one)", "frameId": frame["id"], "context": "watch"})
    program.moves("repr")
    session.request("cancel", {"requestId": seq})
    assert session.answer(seq)["message"] == "cancelled"
    assert session.request("threads")["threads"]
    assert session.request("evaluate", {"expression": "1 + 1", "frameId": frame["id"]})["result"] == "2"
    go_on(session, program, body["threadId"], "slow_value")


def test_a_stuck_repr_among_the_variables(attached, any_python):
    """The other rows are there, and in time."""
    program, session = attached(any_python, evaluateTimeout=2)
    body, frame = stop_at(session, program, "slow", "slow_value")
    reference = session.request("scopes", {"frameId": frame["id"]})["scopes"][0]["variablesReference"]
    seq = session.send("variables", {"variablesReference": reference})
    session.answer(seq)
    assert evaluate(session, "1 + 1", frame)["result"] == "2"
    go_on(session, program, body["threadId"], "slow_value")


def rows_of(session, frame):
    """{name: value} of the frame's variables."""
    return {name: row["value"] for name, row in local_variables(session, frame).items()}


def test_a_slow_repr_costs_its_own_row(attached, any_python):
    """It is interrupted after reprTimeout."""
    program, session = attached(any_python, reprTimeout=0.3)
    body, frame = stop_at(session, program, "slow", "slow_value")
    rows = rows_of(session, frame)
    assert re.match(r"<Slow object at 0x[0-9a-f]+; its repr takes longer than 0.3 s>$", rows["slow_one"]), rows
    assert "longer than 0.3 s" in evaluate(session, "slow_one", frame)["result"]
    assert "longer than 0.3 s" in evaluate(session, "[slow_one, 5]", frame)["result"]
    assert evaluate(session, "1 + 1", frame)["result"] == "2"
    go_on(session, program, body["threadId"], "slow_value")


def test_a_repr_that_catches_its_interruptions(attached, any_python):
    """It gets them again, until it ends; its text comes too late."""
    program, session = attached(any_python, reprTimeout=0.2)
    body, frame = stop_at(session, program, "stuck", "stuck_value")
    assert evaluate(session, "stubborn", frame)["result"] == "in vain"
    assert evaluate(session, "1 + 1", frame)["result"] == "2"
    session.disconnect()


def test_a_stuck_repr_costs_its_own_row(attached, any_python):
    """No exception ends it: its thread is left to it, and the other rows come without code of the program from then on."""
    program, session = attached(any_python, reprTimeout=1)
    body, frame = stop_at(session, program, "stuck", "stuck_value")
    rows = rows_of(session, frame)
    assert rows["a_first"] == "own" and "longer than 1 s" in rows["b_stuck"] and rows["d_number"] == "7"
    assert "its thread is busy" in rows["c_last"] and "its thread is busy" in rows["e_list"] and rows["e_list"].endswith(", 8]")
    assert stack(session, body["threadId"])[0]["id"] == frame["id"]
    assert session.request("threads")["threads"]
    assert "does not end" in session.refused("evaluate", {"expression": "1", "frameId": frame["id"]})
    again = rows_of(session, frame)
    assert again["d_number"] == "7" and "its thread is busy" in again["b_stuck"]
    program.say("go on")

    def is_free():
        told = rows_of(session, frame)
        return told["c_last"] == "own" and told["e_list"] == "[own, 8]"

    wait_until(is_free)
    session.disconnect()
