"""Every place where code can be when a breakpoint is set in it, with each thing that may become of the breakpoint.

The places: code that has not run yet, a frame that runs, a frame suspended in a call, a generator and a coroutine that
are under way, a thread that Python did not make, a module that is imported later.
"""

import pytest

from debuggee import evaluate, resume, set_lines, stopped, top

# place: (threads to start, file, mark, command that comes by or None, the variable that counts, times it comes by)
PLACES = {
    "cold": ((), "debugged.py", "cold", "cold", "i", 3),
    "hot": (("hot",), "debugged.py", "hot", None, "i", None),
    "one_line": (("one_line",), "debugged.py", "one_line", None, "lanes[1]", None),
    "asleep": (("sleeper",), "debugged.py", "sleeper", None, "page.lanes[2]", None),
    "suspended": (("suspended",), "debugged.py", "suspended", "release", "i", 1),
    "native": ((), "debugged.py", "native", "native", "i", 3),
    "generator": ((), "debugged.py", "generator", "generate", "i", 3),
    "coroutine": ((), "debugged.py", "coroutine", "coroutines", "i", 3),
    "late": ((), "debugged_late.py", "late", "late", "i", 3),
}


@pytest.fixture(params=sorted(PLACES))
def place(request):
    return PLACES[request.param]


def lane_of(threads):
    return threads[0] if threads and threads[0] != "suspended" else "calls"


@pytest.fixture
def prepared(attached, place, python):
    """The program with the place in it beside a thread that only computes, and a session."""
    threads = place[0] if place[0] and place[0] != ("suspended",) else place[0] + ("calls",)
    return attached(python, *threads)


def arm(session, program, place, **more):
    _, name, mark, command, _, _ = place
    set_lines(session, program, (mark, more), name=name)
    if command:
        program.say(command)


def finish(session, program, place, thread):
    set_lines(session, program, name=place[1])
    resume(session, thread)
    if place[3]:
        program.until("done " + place[3])
    program.moves(lane_of(place[0]))


def test_hit(prepared, place):
    program, session = prepared
    arm(session, program, place)
    body = stopped(session, "breakpoint")
    for _ in range((place[5] or 3) - 1):
        frame = top(session, body["threadId"])
        assert frame["line"] == program.line(place[2], place[1]), frame
        resume(session, body["threadId"])
        body = stopped(session, "breakpoint")
    program.stands(lane_of(place[0]))
    finish(session, program, place, body["threadId"])


def test_condition(prepared, place):
    program, session = prepared
    odd = "({}) % 2 == 1".format(place[4]) if place[5] != 1 else "({}) == 0".format(place[4])
    arm(session, program, place, condition=odd)
    body = stopped(session, "breakpoint")
    got = int(evaluate(session, place[4], top(session, body["threadId"]))["result"])
    assert got % 2 == 1 or place[5] == 1
    finish(session, program, place, body["threadId"])


def test_log(prepared, place):
    program, session = prepared
    arm(session, program, place, logMessage="seen {%s}" % place[4])
    seen = []
    for _ in range(place[5] or 3):
        seen.append(int(session.event("output", lambda output: output["output"].startswith("seen "))["output"].split()[1]))
    assert len(set(seen)) == len(seen) and seen == sorted(seen)
    if place[3]:
        program.until("done " + place[3])
    set_lines(session, program, name=place[1])
    program.moves(lane_of(place[0]))
    assert not session.seen("stopped")


@pytest.mark.parametrize("way", ["disconnect", "kill"])
def test_leave(prepared, place, way):
    """Stopped there, the client leaves or dies: the program goes on, at once and every time it comes by again."""
    program, session = prepared
    arm(session, program, place)
    stopped(session, "breakpoint")
    if way == "disconnect":
        session.disconnect()
    else:
        session.kill()
    if place[3]:
        program.until("done " + place[3])
        program.run(place[3])
    lane = lane_of(place[0])
    program.moves(lane)
    program.moves(lane)
