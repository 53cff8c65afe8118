"""breakpoint() in the program: a stop while a session is there, the program's own hook before and after (PEP 553)."""

import pytest

from client import Failed
from debuggee import evaluate, go_on, local_variables, resume, stopped, top
from support.target import probing


@pytest.fixture(autouse=True)
def has_hooks(python):
    if python.minor < (3, 7):
        pytest.skip("CPython 3.6 has no breakpoint()")


def test_stops_at_the_next_line(attached, python):
    program, session = attached(python, "hot")
    program.say("asks")
    body = stopped(session, "breakpoint")
    frame = top(session, body["threadId"])
    assert frame["line"] == program.line("after_breakpoint") and local_variables(session, frame)["before"]["value"] == "1"
    go_on(session, program, body["threadId"], "asks")
    program.say("asks_last")
    body = stopped(session, "breakpoint")
    assert top(session, body["threadId"])["line"] == program.line("last_breakpoint")
    resume(session, body["threadId"])
    program.until("done asks_last")


def test_the_program_has_its_own_again(debuggee, client, python):
    program = debuggee(python, variables={"PYTHONBREAKPOINT": "math.ceil"})  # which raises TypeError without an argument
    for settings in ({}, {"breakpointHook": False}):
        session = client()
        session.attach(program.pid, **settings)
        if not settings:
            program.say("asks")
            resume(session, stopped(session, "breakpoint")["threadId"])
            program.until("done asks")
            assert "asked" in program.run("asks_saved")  # one that it sets meanwhile
            program.run("asks_in_child")
        else:
            assert "math.ceil" in program.run("refused")
        session.disconnect()
        session.close()
        assert "math.ceil" in program.run("refused")


def test_launched(launch, python, tmp_path):
    path = tmp_path / "asks.py"
    path.write_text("x = 1\nbreakpoint()\nprint('after', x)\nbreakpoint()\n")
    session, _ = launch(python, program=str(path))
    for line in (3, 4):
        body = stopped(session, "breakpoint")
        assert top(session, body["threadId"])["line"] == line
        resume(session, body["threadId"])
    assert session.event("exited")["exitCode"] == 0


def test_switched_off_by_the_environment(launch, python, tmp_path):
    path = tmp_path / "asks.py"
    path.write_text("breakpoint()\nprint('after')\n")
    session, _ = launch(python, program=str(path), env={"PYTHONBREAKPOINT": "0"})
    assert session.event("exited")["exitCode"] == 0 and not session.seen("stopped")


def test_beside_an_evaluation(debuggee, client, any_python):
    """A thread stops while another evaluates, which has its own hook in sys; and the program's is there when all have left."""
    program = debuggee(any_python)
    session = client()
    session.attach(program.pid)
    with pytest.raises(Failed, match="cannot ask for commands in an evaluation"):
        evaluate(session, "breakpoint()", context="repl")
    evaluate(session, "__import__('threading').Thread(target=lambda: breakpoint()).start()", context="repl")
    body = stopped(session, "breakpoint")
    resume(session, body["threadId"])
    session.disconnect()
    session.close()
    told = probing("-t", program.pid, "eval", "import sys; sys.breakpointhook").stdout
    session = client()
    session.attach(program.pid)
    session.disconnect()
    session.close()
    assert probing("-t", program.pid, "eval", "import sys; sys.breakpointhook").stdout == told and "built-in" in told
