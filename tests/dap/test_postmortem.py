"""Sessions that only look, as a client has them: a live process without the probe, its core, its crash dump, its snapshot."""

import os
import shutil
import signal
import subprocess

import pytest

from client import Socket
from debuggee import local_variables, python_frames, stack
from support.target import DEADLINE, probing

NOT_THERE = [("continue", {"threadId": 1}), ("next", {"threadId": 1}),
             ("setVariable", {"variablesReference": 1, "name": "x", "value": "1"}),
             ("goto", {"threadId": 1, "targetId": 1}), ("writeMemory", {"memoryReference": "0x1", "data": ""})]


@pytest.fixture(params=["core", "crash", "snapshot", "look"])
def looked_at(request, debuggee, client, tmp_path, any_python):
    """A session with what the fixture's name says of a program whose thread waits in suspended()."""
    if any_python.root:
        pytest.skip("writes cores of this machine's processes only")
    program = debuggee(any_python, "suspended")
    program.target.settle()
    arguments = {"processId": program.pid, "look": True}
    if request.param == "snapshot":
        path = str(tmp_path / "job.snapshot")
        probing("-t", program.pid, "snapshot", "--locals", path, check=False)
        assert os.path.exists(path)
        arguments = {"snapshot": path}
    elif request.param == "crash":
        # Large enough for all threads' variables: which are left out of a small one, its first stacks decide.
        probing("-p", program.pid, "inject", "-c", "-D", "probing.crash_dir={}".format(tmp_path), "-D", "probing.crash_size=16MiB")
        os.kill(program.pid, signal.SIGSEGV)
        program.target.child.wait(DEADLINE)
        arguments = {"core": str(next(tmp_path.glob("crash-*.snap")))}
    elif request.param == "core":
        if not shutil.which("gcore"):
            pytest.skip("needs gdb's gcore")
        subprocess.run(["gcore", "-o", str(tmp_path / "core"), str(program.pid)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=DEADLINE, check=True)
        arguments = {"core": str(tmp_path / "core.{}".format(program.pid))}
    session = client()
    session.attach(**arguments)
    if request.param == "look":  # it runs: what is shown is of the moment of a pause, which it does not feel
        session.request("pause", {"threadId": 0})
        session.event("stopped")
    return program, session


def waiting_frame(session):
    """The frame of suspended(), in whichever thread."""
    for thread in session.request("threads")["threads"]:
        for frame in python_frames(stack(session, thread["id"])):
            if frame["name"].split(".")[-1] == "suspended":
                return frame
    raise AssertionError("no thread is in suspended()")


def test_stacks_and_variables(looked_at):
    program, session = looked_at
    frame = waiting_frame(session)
    assert frame["source"]["path"] == program.path and frame["line"] == program.line("suspended") - 2
    assert local_variables(session, frame)["i"]["value"] == "0"
    assert session.seen("stopped")


def test_evaluations_that_would_run_code(looked_at):
    """Names, attributes and items are told; anything else is refused with the reason, and the session goes on."""
    _, session = looked_at
    frame = waiting_frame(session)
    assert session.request("evaluate", {"expression": "i", "frameId": frame["id"]})["result"] == "0"
    for expression in ("i + 1", "print(i)", "i = 2", "__import__('os')"):
        told = session.refused("evaluate", {"expression": expression, "frameId": frame["id"], "context": "repl"})
        assert "no code can run here" in str(told), (expression, told)
    assert local_variables(session, waiting_frame(session))["i"]["value"] == "0"
    session.disconnect()


def test_what_needs_the_process_is_refused(looked_at):
    _, session = looked_at
    live = session.seen("process")[-1].get("systemProcessId")  # it may be looked at anew
    for command, arguments in NOT_THERE:
        if not live or command not in ("continue", "pause"):
            session.refused(command, arguments)
    changed = session.seen("capabilities")[-1]["capabilities"]
    assert changed.get("supportsSetVariable") is False and changed.get("supportsGotoTargetsRequest") is False
    assert waiting_frame(session)
    session.disconnect()


def test_looking_changes_nothing(debuggee, client, any_python):
    """No library of ours, no thread, no stop."""
    program = debuggee(any_python, "hot")
    session = client()
    session.attach(program.pid, look=True)
    assert session.request("threads")["threads"]
    program.moves("hot")
    with open("/proc/{}/maps".format(program.pid)) as maps:
        assert "libprobe" not in maps.read()
    session.disconnect()


def test_snapshot_of_a_live_job(debuggee, client, serve, any_python):
    """`debug --snapshot`: read in one go; the job never stands still."""
    program = debuggee(any_python, "hot", "suspended")
    server = serve(program, "--snapshot")
    session = client(Socket(server.address))
    session.attach()
    assert local_variables(session, waiting_frame(session))["i"]["value"] == "0"
    program.moves("hot")
    session.disconnect()


def test_core_by_its_option(debuggee, client, serve, tmp_path, any_python):
    """`debug --core FILE`: the client's attach names no target."""
    if any_python.root or not shutil.which("gcore"):
        pytest.skip("needs gdb's gcore, and writes cores of this machine's processes only")
    program = debuggee(any_python, "suspended")
    program.target.settle()
    subprocess.run(["gcore", "-o", str(tmp_path / "core"), str(program.pid)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=DEADLINE, check=True)
    server = serve(None, "--core", str(tmp_path / "core.{}".format(program.pid)))
    program.target.end()  # the file is enough
    session = client(Socket(server.address))
    session.attach()
    frame = waiting_frame(session)
    assert frame["source"]["path"] == program.path and local_variables(session, frame)["i"]["value"] == "0"
    session.refused("continue", {"threadId": 1})
    session.disconnect()


RAISES = """
import sys
def find(name):
    raise KeyError(name)
print("ready", flush=True)
sys.stdin.readline()
find("lost")
"""


def test_a_crash_by_an_exception(any_python, client, tmp_path):
    """The editor is told of the exception, at its thread, and not of a pause."""
    if any_python.root:
        pytest.skip("like the others")
    child = subprocess.Popen(any_python.command("-c", RAISES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert child.stdout.readline() == b"ready\n"
        probing("-p", child.pid, "inject", "-c", "-D", "probing.crash_dir={}".format(tmp_path))
        child.communicate(b"go\n", DEADLINE)
    finally:
        child.kill()
        child.wait()
    session = client()
    session.attach(core=str(next(tmp_path.glob("crash-*.snap"))))
    stopped = session.event("stopped")
    assert (stopped["reason"], stopped["text"], stopped["threadId"]) == ("exception", "KeyError: 'lost'", child.pid)
    told = session.request("exceptionInfo", {"threadId": stopped["threadId"]})
    assert told["exceptionId"] == "KeyError" and "in <module>" in told["details"]["stackTrace"]
    frames = stack(session, stopped["threadId"])[:2]
    assert [frame["name"] for frame in frames] == ["find", "<module>"]
    assert local_variables(session, frames[0])["name"]["value"] == "'lost'"
    session.disconnect()
