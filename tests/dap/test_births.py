"""Child processes are caught at their birth: a breakpoint in their first line stops, and none of them ever waits for long."""

import os
import shutil
import signal
import tempfile

import pytest

from debuggee import marks, resume, stopped, top
from support.target import SRCDIR, probing

PROGRAM = "births.py"
FORKS = ["fork", "mp_fork"]
STARTED = ["script", "mp_spawn", "mp_forkserver", "posix_spawn"]


@pytest.fixture
def forks(python):
    if python.minor < (3, 7):
        pytest.skip("CPython 3.6 has no hook of os.fork(): children are found by looking")


@pytest.fixture
def base(python):
    """A user base with the start-up hook of the package, as the interpreter sees it."""
    folder = tempfile.mkdtemp(prefix="probing-tests-", dir=os.path.join(python.root or "/", "tmp"))
    site = os.path.join(folder, "lib", "python{}.{}".format(*python.minor), "site-packages")
    os.makedirs(site)
    for name in ("probing.pth", "_probing_hook.py", "_probing_rules.py", "_probing_birth.py"):
        shutil.copy(os.path.join(SRCDIR, "python", name), site)
    yield "/" + os.path.relpath(folder, python.root or "/")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def parent(start, client, python, base):
    """parent(**arguments): (births.py, a client attached to it)."""

    def begin(**arguments):
        target, session = start(python, PROGRAM, variables={"PYTHONUSERBASE": base}), client()
        session.attach(target.pid, **dict({"subProcess": True}, **arguments))
        return target, session

    return begin


def say(target, kind):
    target.child.stdin.write(kind.encode() + b"\n")
    target.child.stdin.flush()


def done(target, kind, status=7):
    """Its child has ended; the seconds that this took."""
    words = target.line().split()
    assert words[:3] == ["done", kind, str(status)], words
    return float(words[3])


def offered(session):
    asked = session.reverse_request("startDebugging")
    session.reply(asked)
    assert asked["arguments"]["request"] == "attach"
    return asked["arguments"]["configuration"]


def path_of(folders, python):
    outside, inner = folders(python)
    return os.path.join(inner if python.root else os.path.realpath(inner), PROGRAM)


@pytest.fixture
def open_child(client, folders, python):
    """open_child(configuration): a session that has stopped in the first line of child()."""

    def begin(configuration):
        line = marks(PROGRAM)["child"]
        child = client()
        child.attach(configure=lambda one: one.request("setBreakpoints", {"source": {"path": path_of(folders, python)},
                                                                         "breakpoints": [{"line": line}]}), **configuration)
        body = stopped(child, "breakpoint")
        frame = top(child, body["threadId"])
        assert frame["line"] == line and frame["name"].endswith("child"), frame
        return child, body["threadId"]

    return begin


def test_first_line_of_a_fork(forks, parent, open_child):
    target, session = parent()
    for kind in FORKS:
        say(target, kind)
        child, thread = open_child(offered(session))
        resume(child, thread)
        done(target, kind, 0 if kind.startswith("mp") else 7)
        child.event("terminated")


def test_grandchild_is_offered_by_the_child(forks, parent, open_child):
    target, session = parent()
    say(target, "grandchild")
    child, thread = open_child(offered(session))
    resume(child, thread)
    grandchild, its_thread = open_child(offered(child))
    resume(grandchild, its_thread)
    done(target, "grandchild")
    assert not session.requests


def test_goes_on_without_a_session(forks, parent):
    """Nobody opens a session: the child goes on, and the client knows why.  A shorter time may be set."""
    target, session = parent(subProcessTimeout=0.5)
    say(target, "fork")
    offered(session)
    assert 0.4 < done(target, "fork") < 30
    session.said("had no configured session within 0.5 s")


def test_goes_on_when_its_session_leaves(forks, parent, client):
    target, session = parent(subProcessTimeout=60)
    for how in ("disconnect", "kill"):
        say(target, "fork")
        child = client()
        child.initialize()
        child.ready(child.send("attach", offered(session)))
        if how == "kill":
            child.kill()
        else:
            child.disconnect()
        assert done(target, "fork") < 30


@pytest.mark.parametrize("how", ["disconnect", "client killed", "probe detached", "child killed"])
def test_goes_on_when_the_session_of_its_parent_leaves(forks, parent, python, how):
    target, session = parent(subProcessTimeout=60)
    say(target, "fork")
    pid = offered(session)["processId"]
    if how == "disconnect":
        session.disconnect()
    elif how == "client killed":
        session.kill()
    elif how == "child killed":
        os.kill(pid, signal.SIGKILL)
    else:
        probing("-t", target.pid, "detach")
    assert done(target, "fork", 0 if how == "child killed" else 7) < 30
    if how != "child killed":
        say(target, "fork")  # and the next one does not wait at all
        assert done(target, "fork") < 30


def test_nobody_waits_where_nobody_asks(forks, parent):
    target, session = parent(subProcess=False, subProcessTimeout=60)
    say(target, "fork")
    assert done(target, "fork") < 30 and not session.requests


def test_before_an_exec(forks, parent):
    """subprocess with preexec_fn forks in Python, but only to start another program."""
    target, session = parent(subProcessTimeout=60)
    say(target, "before_exec")
    assert done(target, "before_exec", 0) < 30
    assert not session.requests


def test_a_signal_meanwhile(forks, parent):
    """Its handler runs at once, and what it raises is the program's."""
    target, session = parent(subProcessTimeout=60)
    say(target, "interrupted")
    os.kill(offered(session)["processId"], signal.SIGTERM)
    assert done(target, "interrupted", 9) < 30


def test_first_line_of_a_started_program(parent, open_child, python):
    """With the package's start-up hook; the helpers of multiprocessing are not offered."""
    target, session = parent()
    for kind in STARTED:
        if (kind == "posix_spawn" and python.minor < (3, 8)) or (kind == "mp_forkserver" and python.minor < (3, 7)):
            continue
        say(target, kind)
        child, thread = open_child(offered(session))
        resume(child, thread)
        done(target, kind, 0 if kind.startswith("mp") else 7)
    assert not session.requests
    session.disconnect()
    say(target, "variables")
    assert target.line() == "0 0" and done(target, "variables") < 30


@pytest.mark.parametrize("how", ["nobody", "disconnect", "client killed"])
def test_a_started_program_goes_on(parent, how):
    target, session = parent(subProcessTimeout=0.5 if how == "nobody" else 60)
    say(target, "script")
    offered(session)
    if how == "disconnect":
        session.disconnect()
    elif how == "client killed":
        session.kill()
    assert done(target, "script") < 30
    if how == "nobody":
        session.said("had no configured session within 0.5 s")
        say(target, "isolated")
        assert done(target, "isolated") < 30 and not session.requests
