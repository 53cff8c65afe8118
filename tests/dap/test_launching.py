"""launch: a program under the debugger from its first line, in a terminal of the client's too; what is refused."""

import os
import shlex
import subprocess

import pytest

from client import Failed
from debuggee import evaluate, marks, python_frames, resume, stack, stopped, top
from support.injection import wait_until
from support.target import DEADLINE, die_with_parent

SHORT = "import sys\nx = 1\nprint('the end', sys.argv[1:], __name__)\n"


def alive(pid):
    """And no zombie, which waits for the adapter's own end."""
    try:
        with open("/proc/{}/stat".format(pid)) as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_launch(launch, python, folders, tmp_path):
    program = os.path.join(folders(python)[1], "debugged.py")

    def configure(session):
        answer = session.request("setBreakpoints", {"source": {"path": program}, "breakpoints": [{"line": marks()["main"]}]})
        assert len(answer["breakpoints"]) == 1

    session, pid = launch(python, configure, program=program, cwd=str(tmp_path), args=[])
    body = session.event("stopped")
    assert body["reason"] == "breakpoint" and top(session, body["threadId"])["line"] == marks()["main"]
    assert session.seen("process")[0]["startMethod"] == "launch" and alive(pid)
    session.request("continue", {"threadId": body["threadId"]})
    session.event("output", lambda output: "ready" in output["output"])
    session.disconnect(terminateDebuggee=True)
    wait_until(lambda: not alive(pid))


def test_stop_on_entry(launch, python, tmp_path):
    """At the first line of the program, with no frame but its own."""
    path = tmp_path / "short.py"
    path.write_text(SHORT)
    session, _ = launch(python, program=str(path), stopOnEntry=True)
    body = session.event("stopped")
    frames = session.request("stackTrace", {"threadId": body["threadId"]})["stackFrames"]
    shown = [(frame["source"]["path"], frame["line"]) for frame in python_frames(frames)]
    assert body["reason"] == "entry" and shown == [(str(path), 1)], (body, frames)
    session.request("next", {"threadId": body["threadId"]})
    assert session.event("stopped")["reason"] == "step"
    session.request("continue", {"threadId": body["threadId"]})
    session.said("the end [] __main__")
    assert session.event("exited")["exitCode"] == 0
    session.event("terminated")


@pytest.mark.parametrize("settings, count", [({}, 4), ({"maxExceptionStackFrames": 3}, 3), ({"maxExceptionStackFrames": 0}, 4)])
def test_the_trace_of_an_exception(launch, any_python, tmp_path, settings, count):
    """It begins with the program, not with what began it; maxExceptionStackFrames leaves the outer frames out."""
    path = tmp_path / "raises.py"
    path.write_text("def a(): raise ValueError(5)\ndef b(): a()\ndef c(): b()\nc()\n")
    uncaught = {"filters": ["uncaught"]}
    session, _ = launch(any_python, lambda session: session.request("setExceptionBreakpoints", uncaught), program=str(path), **settings)
    body = session.event("stopped")
    trace = session.request("exceptionInfo", {"threadId": body["threadId"]})["details"]["stackTrace"]
    assert trace.count('File "{}"'.format(path)) == trace.count("File ") == count, trace
    session.disconnect(terminateDebuggee=True)


def test_arguments_and_environment(launch, any_python, tmp_path):
    path = tmp_path / "told.py"
    path.write_text("import os, sys\nprint(sys.argv[1:], os.getcwd(), os.environ.get('PRB_TOLD'), 'HOME' in os.environ)\nsys.exit(3)\n")
    session, _ = launch(any_python, program="told.py", cwd=str(tmp_path), args=["a b", ""], env={"PRB_TOLD": "yes", "HOME": None})
    wanted = "['a b', ''] {} yes False".format(tmp_path)
    session.said(wanted)
    assert session.event("exited")["exitCode"] == 3
    session.event("terminated")


def test_output_comes_once(launch, any_python, tmp_path):
    path = tmp_path / "prints.py"
    path.write_text("import sys\nprint('to stdout')\nprint('to stderr', file=sys.stderr)\n")
    session, _ = launch(any_python, program=str(path), redirectOutput=True)
    session.event("terminated")
    for stream in ("stdout", "stderr"):
        text = "".join(one["output"] for one in session.seen("output", lambda one: one.get("category") == stream))
        assert text == "to {}\n".format(stream)


def test_output_before_the_end_comes_before_it(launch, any_python, tmp_path):
    """Also where the program has left a process that has its output open, and writes on."""
    path = tmp_path / "leaves.py"
    path.write_text("import subprocess, sys\nsubprocess.Popen(['sh', '-c', 'while echo more; do sleep 0.01; done'])\n"
                    "sys.stdout.write('x' * 60000 + ' the last')\nsys.stdout.flush()\nsys.exit(7)\n")
    session, _ = launch(any_python, program=str(path))
    exited = session.event("exited")
    assert exited["exitCode"] == 7
    before = session.events[:next(i for i, one in enumerate(session.events) if one.get("event") == "exited")]
    text = "".join(one["body"]["output"] for one in before if one.get("event") == "output" and one["body"].get("category") == "stdout")
    assert text.replace("more\n", "").count("x") == 60000 and " the last" in text


@pytest.mark.parametrize("wrong, says", [({"cwd": "/nowhere/at all"}, "No such file"), ({"cwd": "/dev/null"}, "Not a directory"),
                                         ({"python": "/nowhere/python3"}, "No such file")])
def test_what_does_not_start(client, any_python, tmp_path, wrong, says):
    """The child's own reason is the answer's."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    (tmp_path / "program.py").write_text("pass\n")
    session = client()
    session.initialize()
    answer = session.answer(session.send("launch", dict({"program": str(tmp_path / "program.py"), "python": any_python.executable}, **wrong)))
    assert answer["success"] is False and "starting " in answer["message"] and says in answer["message"], answer


@pytest.mark.parametrize("dialect", ["-Xdev", "-Werror"])
def test_no_warning_of_ours(launch, any_python, tmp_path, dialect):
    path = tmp_path / "quiet.py"
    path.write_text("import sys\nprint('the end')\n")
    if any_python.minor < (3, 7) and dialect == "-Xdev":
        pytest.skip("came with 3.7")
    session, _ = launch(any_python, program=str(path), pythonArgs=[dialect, "-Xtracemalloc"])
    session.event("terminated")
    assert not session.seen("output", lambda one: one.get("category") == "stderr")


def test_module(launch, any_python, tmp_path):
    (tmp_path / "short_module.py").write_text(SHORT)
    session, _ = launch(any_python, module="short_module", args=["one"], env={"PYTHONPATH": str(tmp_path)})
    session.said("the end ['one'] __main__")
    assert session.event("exited")["exitCode"] == 0


def test_launch_in_a_terminal(client, any_python, tmp_path):
    """The client's terminal runs what runInTerminal says, through a shell; its output stays there."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "it's a program.py"
    path.write_text("import os, sys\nname = os.environ['NAME']\nprint(sys.argv[1:], name, os.getcwd())\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "integratedTerminal",
                                     "cwd": str(tmp_path), "args": ["a b", "$HOME"], "env": {"NAME": "of env"}})
    request = session.reverse_request("runInTerminal")
    wanted = request["arguments"]
    assert wanted["kind"] == "integrated" and wanted["cwd"] == str(tmp_path) and wanted["env"] == {"NAME": "of env"}
    assert not any("\n" in word for word in wanted["args"]), wanted["args"]
    terminal = subprocess.Popen(["sh", "-c", " ".join(map(shlex.quote, wanted["args"]))], cwd=wanted["cwd"],
                                env=dict(os.environ, **wanted["env"]), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                preexec_fn=die_with_parent)
    try:
        session.reply(request, {"shellProcessId": terminal.pid})
        session.ready(launch)
        session.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": [{"line": 3}]})
        session.request("configurationDone")
        session.wait(launch)
        body = stopped(session, "breakpoint")
        frames = python_frames(stack(session, body["threadId"]))
        assert [(frame["line"], frame["name"]) for frame in frames] == [(3, "<module>")], frames
        assert evaluate(session, "name", frames[0])["result"] == "'of env'"
        resume(session, body["threadId"])
        session.event("terminated")
        assert terminal.wait(30) == 0
        assert terminal.stdout.read().decode() == "['a b', '$HOME'] of env {}\n".format(tmp_path)
        assert not session.seen("output", lambda output: output.get("category") in ("stdout", "stderr"))
    finally:
        terminal.kill()
        terminal.wait()
        terminal.stdout.close()


def test_a_program_that_waits_ends_with_its_adapter(client, any_python, tmp_path):
    """Killed, the adapter says nothing: the end of the connection does."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "program.py"
    path.write_text("print('it runs')\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "integratedTerminal"})
    request = session.reverse_request("runInTerminal")
    terminal = subprocess.Popen(request["arguments"]["args"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                preexec_fn=die_with_parent)
    try:
        session.reply(request, {"processId": terminal.pid})
        session.ready(launch)  # it waits for configurationDone
        session.kill()
        assert terminal.wait(DEADLINE) == 1
        assert terminal.stdout.read() == b""
    finally:
        terminal.kill()
        terminal.wait()
        terminal.stdout.close()


@pytest.mark.parametrize("shell", [True, False])
def test_typed_arguments_in_a_terminal(client, any_python, tmp_path, shell):
    """A shell reads them where the client can have it read them; else they are split by its rules, without expansion."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "it's a program.py"
    path.write_text("import sys\nprint(sys.argv[1:])\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True, supportsArgsCanBeInterpretedByShell=shell)
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "integratedTerminal",
                                     "args": "one 'two  three' $VALUE"})
    request = session.reverse_request("runInTerminal")
    wanted = request["arguments"]
    assert wanted.get("argsCanBeInterpretedByShell", False) is shell
    words = wanted["args"] if shell else map(shlex.quote, wanted["args"])
    terminal = subprocess.Popen(["sh", "-c", " ".join(words)], env=dict(os.environ, VALUE="of a shell"),
                                stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    session.reply(request, {"shellProcessId": terminal.pid})
    session.ready(launch)
    session.request("configurationDone")
    session.event("terminated")
    expected = ["one", "two  three"] + (["of", "a", "shell"] if shell else ["$VALUE"])
    assert terminal.communicate(timeout=30)[0].decode() == "{}\n".format(expected)


@pytest.mark.parametrize("typed", [r"""a 'b c' d\ e "f \"g\" $h" '' "" """, "", "  "])
def test_typed_arguments(launch, any_python, tmp_path, typed):
    path = tmp_path / "typed.py"
    path.write_text("import sys\nprint(sys.argv[1:])\n")
    session, _ = launch(any_python, program=str(path), args=typed)
    session.said("{}\n".format(shlex.split(typed)))
    session.event("terminated")


@pytest.mark.parametrize("reason", ["", "no terminal here"])
def test_a_terminal_that_is_refused(client, any_python, tmp_path, reason):
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "program.py"
    path.write_text("pass\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "externalTerminal"})
    request = session.reverse_request("runInTerminal")
    assert request["arguments"]["kind"] == "external"
    session.reply(request, success=False, **({"message": reason} if reason else {}))
    answer = session.answer(launch)
    assert answer["success"] is False and answer["message"].endswith("runInTerminal: " + (reason or "it gave no reason")), answer


def test_a_long_reason_in_other_letters(client, any_python, tmp_path):
    """The reason is cut off within a character, and still shown."""
    if any_python.root:
        pytest.skip("launches programs of this machine only")
    path = tmp_path / "program.py"
    path.write_text("pass\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    for more in "", "x":
        launch = session.send("launch", {"program": str(path), "python": any_python.executable, "console": "externalTerminal"})
        session.reply(session.reverse_request("runInTerminal"), success=False, message=more + "\u00e9" * 2000)
        answer = session.answer(launch)
        assert answer["success"] is False and "\u00e9" * 20 in answer["message"], answer


def test_a_console_that_is_none(client, any_python, tmp_path):
    path = tmp_path / "program.py"
    path.write_text("pass\n")
    session = client()
    session.initialize(supportsRunInTerminalRequest=True)
    answer = session.answer(session.send("launch", {"program": str(path), "python": any_python.executable, "console": "terminal"}))
    assert answer["success"] is False and "integratedTerminal" in answer["message"], answer


def test_the_main_thread_has_its_name(launch, any_python, tmp_path):
    """Though the program has no threading, which knows the names; the debugger may have imported it just before."""
    path = tmp_path / "program.py"
    path.write_text("import sys, time\nsys.modules.pop('threading', None)\nwhile True:\n    time.sleep(0.01)\n")
    session, pid = launch(any_python, program=str(path))
    assert [(one["id"], one["name"]) for one in session.request("threads")["threads"]] == [(pid, "MainThread")]


def test_terminate_what_was_launched(launch, any_python, folders):
    session, pid = launch(any_python, program=os.path.join(folders(any_python)[1], "debugged.py"), args=["hot"])
    session.request("terminate", {})
    session.event("terminated")
    wait_until(lambda: not alive(pid))


def test_terminated_comes_before_the_answer(launch, any_python, tmp_path):
    """However fast the program ends: a client may stop reading at the response of disconnect."""
    path = tmp_path / "program.py"
    path.write_text("import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.001)\n")
    for _ in range(12):
        session, _ = launch(any_python, program=str(path))
        session.said("ready")
        answer = session.answer(session.send("disconnect", {"terminateDebuggee": True}))
        session.wait_end()
        assert [one["seq"] < answer["seq"] for one in session.events if one.get("event") == "terminated"] == [True]


TREE = """import signal, subprocess, sys, time
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
first = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True)
first.stdout.readline()
second = subprocess.check_output(["sh", "-c", "sleep 600 >/dev/null & echo $!"]).decode().strip()
print("children", first.pid, second, "all")
signal.pause()
"""


@pytest.mark.parametrize("how", ["terminate", "disconnect"])
def test_the_programs_tree_ends_with_it(launch, any_python, tmp_path, how):
    """A child in a session of its own that ignores SIGTERM, and an orphan of the program's group."""
    path = tmp_path / "tree.py"
    path.write_text(TREE)
    session, pid = launch(any_python, program=str(path))
    session.said(" all")
    text = "".join(one["output"] for one in session.seen("output"))
    children = [int(word) for word in text.split("children", 1)[1].split()[:2]]
    assert all(alive(one) for one in children)
    if how == "terminate":
        session.request("terminate", {})
        session.event("terminated")
    answer = session.answer(session.send("disconnect", {"terminateDebuggee": True}))
    if how == "disconnect":  # a client may stop reading at the response
        assert [one["seq"] < answer["seq"] for one in session.events if one.get("event") == "terminated"] == [True]
    wait_until(lambda: not any(alive(one) for one in [pid] + children))
    assert len(session.seen("terminated")) == 1


@pytest.mark.parametrize("arguments", [{"program": "/no/such/program.py"}, {}, {"program": 5},
                                       {"program": __file__, "python": "/no/such/python"},
                                       {"program": __file__, "args": 5}, {"program": __file__, "args": "'no end"}, {"program": __file__, "python": "/bin/false"}])
def test_launch_of_nothing(client, arguments):
    session = client()
    session.initialize()
    with pytest.raises(Failed):
        session.ready(session.send("launch", arguments))
