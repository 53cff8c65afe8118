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

# A container's interpreter is its root's: attaching differs, what the debugger does in it does not.
OF_ROOTS_TOO = {"test_session", "test_running", "test_transports"}


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        found = [python for python in _live.pythons.found()
                 if not python.container or metafunc.module.__name__ in OF_ROOTS_TOO]
        metafunc.parametrize("python", found, ids=[python.id for python in found], scope="session")


pytest_report_header = _live.pytest_report_header
any_python, folders, start = _live.any_python, _live.folders, _live.start

from client import Client  # noqa: E402
from debuggee import Debuggee  # noqa: E402
from server import Server  # noqa: E402


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
