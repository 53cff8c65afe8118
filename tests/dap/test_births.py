"""Child processes are caught at their birth: a breakpoint in their first line stops, and none of them ever waits for long."""

import os
import select
import shutil
import signal
import tempfile

import pytest

from client import Socket
from debuggee import marks, resume, stopped, top
from support.target import DEADLINE, SRCDIR, probing

PROGRAM = "births.py"
LONG = 2 * DEADLINE  # subProcessTimeout: a busy machine takes longer to open a session than the 3 s that a child waits without the setting
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
    for name in ("probing_c.pth", "_probing_hook.py", "_probing_rules.py", "_probing_birth.py"):
        shutil.copy(os.path.join(SRCDIR, "python", name), site)
    yield "/" + os.path.relpath(folder, python.root or "/")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def parent(start, client, python, base):
    """parent(**arguments): (births.py, a client attached to it)."""

    def begin(**arguments):
        target, session = start(python, PROGRAM, variables={"PYTHONUSERBASE": base}), client()
        session.attach(target.pid, **dict({"subProcess": True, "subProcessTimeout": LONG}, **arguments))
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

    def begin(configuration, transport=None, mark="child"):
        line = marks(PROGRAM)[mark]
        child = client(transport)
        child.attach(configure=lambda one: one.request("setBreakpoints", {"source": {"path": path_of(folders, python)},
                                                                         "breakpoints": [{"line": line}]}), **configuration)
        body = stopped(child, "breakpoint")
        frame = top(child, body["threadId"])
        assert frame["line"] == line and frame["name"].split(".")[-1] in ("child", "fork"), frame
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


def test_line_after_the_fork(forks, parent, open_child):
    """In a function that runs already."""
    target, session = parent()
    say(target, "fork")
    child, thread = open_child(offered(session), mark="forked")
    resume(child, thread)
    done(target, "fork")


def test_pool(forks, parent, client):
    """Four workers at once, each with a session; they work when those are configured."""
    target, session = parent()
    say(target, "pool")
    workers = []
    for _ in range(4):
        workers.append(client())
        workers[-1].initialize()
        workers[-1].ready(workers[-1].send("attach", offered(session)))
    for one in workers:  # not before: the pool ends those that have no work
        one.send("configurationDone")
    done(target, "pool", 8)
    for one in workers:
        one.event("terminated")


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
    assert 0.4 < done(target, "fork") < DEADLINE
    session.said("had no configured session within 0.5 s")


def test_goes_on_when_the_client_refuses(forks, parent):
    target, session = parent()
    say(target, "fork")
    session.reply(session.reverse_request("startDebugging"), success=False, message="no")
    assert done(target, "fork") < DEADLINE
    session.said("opened no session")


def test_goes_on_when_its_session_leaves(forks, parent, client):
    target, session = parent()
    for how in ("disconnect", "kill"):
        say(target, "fork")
        child = client()
        child.initialize()
        child.ready(child.send("attach", offered(session)))
        if how == "kill":
            child.kill()
        else:
            child.disconnect()
        assert done(target, "fork") < DEADLINE


@pytest.mark.parametrize("how", ["disconnect", "client killed", "probe detached", "child killed", "parent killed"])
def test_goes_on_when_the_session_of_its_parent_leaves(forks, parent, python, how):
    target, session = parent()
    say(target, "fork")
    pid = offered(session)["processId"]
    if how == "disconnect":
        session.disconnect()
    elif how == "client killed":
        session.kill()
    elif how == "child killed":
        os.kill(pid, signal.SIGKILL)
    elif how == "parent killed":
        its_end = os.pidfd_open(pid)
        os.kill(target.pid, signal.SIGKILL)
        assert select.select([its_end], [], [], DEADLINE)[0]
        os.close(its_end)
        return
    else:
        probing("-t", target.pid, "detach")
    assert done(target, "fork", 0 if how == "child killed" else 7) < DEADLINE
    if how != "child killed":
        say(target, "fork")  # and the next one does not wait at all
        assert done(target, "fork") < DEADLINE


def test_nobody_waits_where_nobody_asks(forks, parent):
    target, session = parent(subProcess=False)
    say(target, "fork")
    assert done(target, "fork") < DEADLINE and not session.requests


def test_before_an_exec(forks, parent):
    """subprocess with preexec_fn forks in Python, but only to start another program."""
    target, session = parent()
    say(target, "before_exec")
    assert done(target, "before_exec", 0) < DEADLINE
    assert not session.requests


def test_a_signal_meanwhile(forks, parent):
    """Its handler runs at once, and what it raises is the program's."""
    target, session = parent()
    say(target, "interrupted")
    os.kill(offered(session)["processId"], signal.SIGTERM)
    assert done(target, "interrupted", 9) < DEADLINE


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
    assert target.line() == "0 0" and done(target, "variables") < DEADLINE


@pytest.mark.parametrize("how", ["nobody", "disconnect", "client killed"])
def test_a_started_program_goes_on(parent, how):
    target, session = parent(subProcessTimeout=0.5 if how == "nobody" else LONG)
    say(target, "script")
    offered(session)
    if how == "disconnect":
        session.disconnect()
    elif how == "client killed":
        session.kill()
    assert done(target, "script") < DEADLINE
    if how == "nobody":
        session.said("had no configured session within 0.5 s")
        say(target, "isolated")
        assert done(target, "isolated") < DEADLINE  # not asked; one that lives long is offered, as any process that is found


def test_exec(parent, open_child):
    """os.execv() of Python: the new program is a child, and the session ends with the process."""
    target, session = parent()
    say(target, "exec")
    wanted = offered(session)
    assert wanted["processId"] == target.pid
    child, thread = open_child(wanted)
    session.said("has started another Python program")
    assert not session.seen("terminated")
    resume(child, thread)
    child.event("terminated")
    session.event("terminated")
    assert target.child.wait(DEADLINE) == 7
    assert session.seen("exited") in ([], [{"exitCode": 7}])


@pytest.fixture
def once(python):
    """These wait for seconds; nothing in them depends on the interpreter."""
    if python.minor < (3, 12) or python.root:
        pytest.skip("run on one CPython")


def test_exec_without_the_hook(once, parent, client):
    """Found by looking: the session does not end before."""
    target, session = parent()
    say(target, "exec_isolated")
    wanted = offered(session)
    assert wanted["processId"] == target.pid
    session.said("has started another Python program")
    child = client()
    child.attach(**wanted)
    target.child.stdin.close()
    session.event("terminated")


def test_exec_of_another_program(once, parent):
    target, session = parent()
    say(target, "exec_other")
    session.event("terminated")
    assert not session.requests


@pytest.fixture
def program(tmp_path, python, base):
    """program(text): arguments of launch for a script."""

    def begin(text):
        path = tmp_path / "script.py"
        path.write_text(text)
        return {"program": str(path), "env": {"PYTHONUSERBASE": base}, "subProcessTimeout": LONG}

    return begin


@pytest.mark.parametrize("how", ["end", "terminate", "disconnect"])
def test_launched_and_replaced(launch, python, program, client, how):
    """subProcess is on for launch.  The program's output is still shown, and Stop ends it."""
    arguments = program("import os, sys\nif len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
                        "print('first line')\n" + ("" if how == "end" else "import time; time.sleep(100)\n"))
    session, pid = launch(python, **arguments)
    child = client()
    child.attach(configure=lambda one: one.request("setBreakpoints", {"source": {"path": arguments["program"]},
                                                                     "breakpoints": [{"line": 4}]}), **offered(session))
    resume(child, stopped(child, "breakpoint")["threadId"])
    session.said("first line")
    if how == "terminate":
        session.request("terminate")
    elif how == "disconnect":
        session.disconnect()
    child.event("terminated")
    if how != "disconnect":
        assert session.event("exited")["exitCode"] == (0 if how == "end" else 143)
        session.event("terminated")


def test_launched_with_workers(launch, python, program, client, forks):
    """A breakpoint in the first line of a worker of a launched program, with no setting."""
    arguments = program("import multiprocessing\ndef work():\n    print('worked')\nif __name__ == '__main__':\n"
                        "    one = multiprocessing.get_context('fork').Process(target=work)\n    one.start()\n    one.join()\n")
    session, pid = launch(python, **arguments)
    child = client()
    child.attach(configure=lambda one: one.request("setBreakpoints", {"source": {"path": arguments["program"]},
                                                                     "breakpoints": [{"line": 3}]}), **offered(session))
    resume(child, stopped(child, "breakpoint")["threadId"])
    assert session.event("exited")["exitCode"] == 0


def test_through_a_server(serve, client, start, python, base, open_child):
    """`debug` of one process: its child, and what replaces it."""
    target = start(python, PROGRAM, variables={"PYTHONUSERBASE": base})
    listening = serve(target, "--listen")
    session = client(Socket(listening.address))
    session.attach(type="debugpy", request="attach", subProcess=True, subProcessTimeout=LONG)
    for kind in ("script", "exec"):
        say(target, kind)
        wanted = offered(session)
        assert (wanted["subProcessId"] == target.pid) is (kind == "exec")
        connect = wanted.pop("connect")
        child, thread = open_child(wanted, Socket((connect["host"], connect["port"])))
        resume(child, thread)
        child.event("terminated")
    session.event("terminated")
