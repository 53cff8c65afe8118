"""Breakpoints in code that no module's namespace and no running frame leads to: bound when they are set, not when it comes by."""

import pytest

from debuggee import marks, resume, set_lines, stopped, top

NAME = "debugged_hidden.py"
PLACES = ("hidden_attribute", "hidden_closure", "hidden_list", "hidden_generator", "hidden_class", "hidden_task")


@pytest.fixture
def hiding(attached, python):
    program, session = attached(python)
    program.run("hide")
    return program, session


def test_searched_once(attached, python):
    """The search is long, so its result is kept: code that comes after it is found all the same."""
    program, session = attached(python)
    behind = {"source": program.source(NAME), "breakpoints": [{"line": 1000}]}
    for _ in range(2):
        point, = session.request("setBreakpoints", behind)["breakpoints"]
        assert not point["verified"], point
    program.run("hide")
    points = set_lines(session, program, *PLACES, name=NAME)
    assert [point["line"] for point in points if point["verified"]] == [program.line(mark, NAME) for mark in PLACES]


def test_bound_and_hit(hiding):
    program, session = hiding
    assert all(mark in marks(NAME) for mark in PLACES)
    points = set_lines(session, program, *PLACES, name=NAME)
    bound = [mark for mark, point in zip(PLACES, points) if point["verified"]]
    assert bound == list(PLACES), points
    assert [point["line"] for point in points] == [program.line(mark, NAME) for mark in PLACES]
    program.say("call_hidden")
    for mark in PLACES:
        thread = stopped(session, "breakpoint")["threadId"]
        assert top(session, thread)["line"] == program.line(mark, NAME)
        resume(session, thread)
    program.until("done call_hidden")
    set_lines(session, program, name=NAME)
    program.run("call_hidden")
    assert len(session.seen("stopped")) == len(PLACES)
