"""Fixtures of the debugger's tests: the interpreters that they run on, and sessions with targets."""

import contextlib
import os

import pytest

from client import Client
from debuggee import Debuggee, stop_at
from server import Server
from support import pythons
from support.target import Target
from training import Job

# PROBING_DAP_LONG=1: all on every interpreter.  Without it every request and event runs on every CPython (test_every.py,
# test_session.py, test_launching.py and what is not named here).  These run on as many of each mechanism's interpreters as
# stands here, the oldest and the newest among them, since what they go into depends on the mechanism (the hook of frame
# evaluation, or sys.monitoring) more than on the version: 2 where they are long, 3 where details of byte code come in, too.
LONG = bool(os.environ.get("PROBING_DAP_LONG"))
if not LONG:  # there CPython's own 5 ms stay
    os.environ.setdefault("PRB_TEST_SWITCH", "0.001")
SHORT = {"test_matrix": 2, "test_leaving": 2, "test_core": 2, "test_readonly": 2, "test_fuzz": 2, "test_agent_live": 2,
         "test_testsupport": 2, "test_signals": 2, "test_births": 2,
         "test_evaluating": 3, "test_running": 3, "test_breakpoints": 3, "test_variables": 3}
# What is of a container, or has its JIT switched on, runs where that may make a difference.
OF_CONTAINERS_TOO = {"test_transports"}


def spread(found, count):
    """So many of them, the first and the last among them."""
    count = min(count, len(found))
    return [found[one * (len(found) - 1) // max(1, count - 1)] for one in range(count)]


def chosen(module):
    """The interpreters of a file's tests."""
    found = [python for python in pythons.found()
             if LONG or (not python.container or module in OF_CONTAINERS_TOO) and ("jit" not in python.how or module in SHORT)]
    if LONG or module not in SHORT:
        return found
    old = [python for python in found if python.minor < (3, 12)]  # frame evaluation; newer ones have sys.monitoring
    new = [python for python in found if python.minor >= (3, 12)]
    return spread(old, SHORT[module]) + spread(new, SHORT[module])


def pytest_generate_tests(metafunc):
    pythons.parametrize(metafunc, lambda: chosen(metafunc.module.__name__))


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
def launch(client):
    """launch(python, configure=None, **arguments): (session, pid), configured."""

    def begin(python, configure=None, **arguments):
        if python.root:
            pytest.skip("launches programs of this machine only")
        session = client()
        session.initialize()
        seq = session.send("launch", dict({"python": python.executable}, **arguments))
        session.ready(seq)
        if configure:
            configure(session)
        session.request("configurationDone")
        session.wait(seq)
        return session, session.event("process")["systemProcessId"]

    return begin


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


@pytest.fixture(scope="module")
def running_job(folders):
    """debugged_torch.py for all tests of a file that leave it as it was: importing torch takes seconds."""
    with contextlib.ExitStack() as ended:
        yield Job(lambda python, program, *words, **more: ended.enter_context(Target(python, program, words, **more)), folders)


@pytest.fixture
def shared_job(running_job, client):
    """shared_job(): (that program, a client attached to it)."""

    def begin():
        session = client()
        session.attach(running_job.pid)
        return running_job, session

    return begin


@pytest.fixture
def job(start, folders, client):
    """job(*arguments, **of attach): (debugged_torch.py, a client attached to it)."""

    def begin(*arguments, **more):
        program, session = Job(start, folders, *arguments), client()
        session.attach(program.pid, **more)
        return program, session

    return begin
