"""Fixtures of the debugger's tests: the interpreters and targets of the live tests, and sessions with them."""

import importlib.util
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
LIVE = os.path.join(HERE, "..", "live")
sys.path[:0] = [HERE, LIVE, os.path.join(HERE, "..", "inject")]

_spec = importlib.util.spec_from_file_location("live_conftest", os.path.join(LIVE, "conftest.py"))
_live = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_live)

# PROBING_DAP_LONG=1: all on every interpreter.  Without it these, which are long, run on few of them, and what is of a
# container or has its JIT switched on runs where that may make a difference.
LONG = bool(os.environ.get("PROBING_DAP_LONG"))
FEW = {"test_matrix", "test_leaving", "test_core", "test_look", "test_fuzz", "test_agent_live", "test_testsupport"}
OF_CONTAINERS_TOO = {"test_transports"}
JITTED = {"test_running", "test_breakpoints"} | FEW


def chosen(module):
    """The interpreters of a file's tests."""
    found = [python for python in _live.pythons.found()
             if LONG or (not python.container or module in OF_CONTAINERS_TOO) and ("jit" not in python.how or module in JITTED)]
    if LONG or module not in FEW:
        return found
    old = [python for python in found if python.minor < (3, 12)]  # frame evaluation; newer ones have sys.monitoring
    new = [python for python in found if python.minor >= (3, 12)]
    return sorted({one for kind in (old, new) for one in kind[:1] + kind[-1:]}, key=found.index)


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        found = chosen(metafunc.module.__name__)
        metafunc.parametrize("python", found, ids=[python.id for python in found], scope="session")


pytest_report_header = _live.pytest_report_header
any_python, folders, start = _live.any_python, _live.folders, _live.start

from client import Client  # noqa: E402
from debuggee import Debuggee, stop_at  # noqa: E402
from server import Server  # noqa: E402
from training import Job  # noqa: E402


@pytest.fixture
def debuggee(start, folders):
    """debuggee(python, *threads): debugged.py, ready, with those of its threads running."""
    made = []

    def begin(python, *threads, **options):
        made.append(Debuggee(start, folders, python, *threads, **options))
        return made[-1]

    yield begin
    for one in made:
        one.close()


@pytest.fixture
def client():
    """client(transport): closed with the test, which fails when a message was wrong."""
    made = []

    def begin(transport=None, **options):
        made.append(Client(transport, **options))
        return made[-1]

    yield begin
    faults = []
    for one in made:
        try:
            one.close()
        except AssertionError as error:
            faults.append(error)
    assert not faults, faults


@pytest.fixture
def attached(debuggee, client):
    """attached(python, *threads, configure=None, **arguments): (the program, a client that is attached to it)."""

    def begin(python, *threads, **arguments):
        program = debuggee(python, *threads)
        session = client()
        session.attach(program.pid, **arguments)
        return program, session

    return begin


@pytest.fixture
def serve():
    """serve(program, *options, address=...): ended with the test."""
    made = []

    def begin(*words, **more):
        made.append(Server(*words, **more))
        return made[-1]

    yield begin
    for one in made:
        if one.child.poll() is None or not one.child.stdout.closed:
            one.end()


@pytest.fixture
def at_values(attached):
    """at_values(python): stopped at the end of values(); (program, session, frame, thread)."""

    def begin(python, **arguments):
        program, session = attached(python, **arguments)
        body, frame = stop_at(session, program, "values", "values")
        return program, session, frame, body["threadId"]

    return begin


@pytest.fixture
def job(start, folders, client):
    """job(*arguments, **of attach): (debugged_torch.py, a client attached to it)."""

    def begin(*arguments, **more):
        program, session = Job(start, folders, *arguments), client()
        session.attach(program.pid, **more)
        return program, session

    return begin
