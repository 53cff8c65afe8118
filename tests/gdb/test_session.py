"""gdb's session goes on whatever our commands meet; other ways to drive gdb; other plugins beside ours."""

import os
import re
import signal
import subprocess
import sys

import pytest

from support import gdbs
from support.target import Target, probing
from support.waits import until

READ = ("0", "63")  # the number of read(2) on x86-64 and AArch64


@pytest.fixture
def resting(start, any_python):
    return start(any_python, "debugged_by_gdb.py").settle()


def test_nothing_to_look_at(gdb):
    """Without a process, in a program that is no Python, and after the end."""
    told = gdb.batch("py-bt", "py-locals", "probing tables", "print $py_line()", "bt", "probing", before=[])
    assert all("there is no process" in text or "No thread selected" in text for text in told[:4]), told
    assert "probing query" in told[5]
    told = gdb.batch("break main", "run", "py-bt", "bt", "probing query SELECT 1", "continue", "py-bt", before=["/bin/true"])
    assert "Traceback" not in "".join(told)
    told = gdb.batch("starti", "py-bt", "bt", "kill", "py-bt", before=["/bin/true"])
    assert "Traceback" not in "".join(told) and len(told[1].strip().splitlines()) == 1
    assert "there is no process" in told[4]


def test_goes_on(gdb, resting):
    """What was read is read anew after the program went on; breakpoints of gdb are not seen as the program's bytes."""
    told = gdb.batch("py-bt -thread -python", "break read", "py-locals", "detach", "py-bt", "attach {}".format(resting.pid), "py-bt",
                     before=gdbs.attach(resting))
    assert "inner" in told[0] and "step = 7" in told[2]
    assert "there is no process" in told[4] and "inner" in told[6]


def test_condition(gdb, start, any_python):
    """A breakpoint that stops where a Python variable has a value."""
    target = start(any_python, "debugged_by_gdb.py").settle()
    reader = os.fdopen(os.dup(target.child.stdin.fileno()), "wb", buffering=0)
    with gdbs.Mi(gdb, "-iex", "set mi-async on", "-ex", "source " + gdbs.PLUGIN, "-p", str(target.pid)) as mi:
        for step in 8, 7:
            result, _ = mi.console('break write if $_streq($py_function(), "inner") && $py_local("step") == {}'.format(step))
            assert result == "^done"
        assert mi.ask("-exec-continue")[0].startswith("^running")
        reader.write(b"\n")
        mi.until(rb"\*stopped,reason=\"breakpoint-hit\"[^\n]*bkptno=\"2\"")
        # The same function again and again: each time its variables are those of that time.
        assert mi.ask("-break-delete")[0] == "^done"
        result, _ = mi.console('break write if $_streq($py_function(), "counting") && $py_local("turn") == 5')
        assert result == "^done"
        reader.write(b"\n")
        assert mi.ask("-exec-continue")[0].startswith("^running")
        mi.until(rb"\*stopped,reason=\"breakpoint-hit\"[^\n]*bkptno=\"3\"")
        assert mi.console("py-locals turn")[1].count("turn = 5") == 1
        assert mi.ask("-exec-continue")[0].startswith("^running")
        mi.until(rb"\*stopped,reason=\"exited-normally\"")
    reader.close()


def test_machine_interface(gdb, resting):
    with gdbs.Mi(gdb) as mi:
        assert mi.console("source " + gdbs.PLUGIN)[0] == "^done"
        assert mi.ask("-target-attach {}".format(resting.pid))[0].startswith("^done")
        result, text = mi.console("py-bt -thread")
        assert result == "^done" and "called_back" in text
        result, _ = mi.console("py-print nothing_here")
        assert result.startswith("^error") and "there is no nothing_here" in result and "Traceback" not in result
        mi.ask("-enable-frame-filters")
        stack = mi.ask("-stack-list-frames")[0]
        assert [name for name in re.findall(r'func="([^"]*)"', stack) if name in ("inner", "called_back", "middle", "main")] == \
            ["inner", "called_back", "middle", "main"]
        inner = re.search(r'func="inner"[^}]*', stack).group(0)
        assert "debugged_by_gdb.py" in inner and 'line="' in inner
        local = mi.ask("-stack-list-locals --all-values")[0]
        assert local.startswith("^done")


def test_debug_adapter(gdb, resting):
    """A client of gdb's own debug adapter sees Python's frames and variables."""
    if int(gdb.version.split(".")[0]) < 14:
        pytest.skip("gdb {} has no debug adapter".format(gdb.version))
    with gdbs.Dap(gdb, "-iex", "source " + gdbs.PLUGIN) as dap:
        dap.ask("initialize", clientID="test", adapterID="gdb")
        attach = dap.request("attach", pid=resting.pid)
        done = dap.request("configurationDone")
        dap.answer(attach)
        del done
        threads = dap.ask("threads")["threads"]
        main = min(thread["id"] for thread in threads)
        frames = dap.ask("stackTrace", threadId=main)["stackFrames"]
        names = [frame["name"] for frame in frames]
        ours = [name for name in names if name in ("inner", "called_back", "middle", "main")]
        assert ours == ["inner", "called_back", "middle", "main"], names
        inner = next(frame for frame in frames if frame["name"] == "inner")
        assert inner["source"]["path"].endswith("debugged_by_gdb.py") and inner["line"] > 1
        variables = {}
        for scope in dap.ask("scopes", frameId=inner["id"])["scopes"]:
            if scope["variablesReference"] and not scope.get("expensive") and scope["name"] in ("Arguments", "Locals"):
                for variable in dap.ask("variables", variablesReference=scope["variablesReference"])["variables"]:
                    variables[variable["name"]] = variable["value"]
        assert variables["step"] == "7" and "[0, 1, 4, 9, 16]" in variables["values"]
        dap.ask("disconnect", terminateDebuggee=False)


NUMBERS = "probing query WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT {} FROM c"


def spoken_to(gdb, target):
    talk = gdbs.Talk(gdb, *gdbs.attach(target), "-ex", "source " + gdbs.PLUGIN, "-ex", "echo @@loaded@@\\n", errors=subprocess.STDOUT)
    talk.until(rb"@@loaded@@")
    return talk


def test_interrupt(gdb, resting):
    """Ctrl-C ends long work wherever it stands, without a word of Python's, and the session goes on."""
    with spoken_to(gdb, resting) as talk:
        for turn in range(6):
            talk.send(NUMBERS.format("n").encode() + b"\n")
            talk.until(rb"\n%d\n" % (400 + 97 * turn))
            talk.child.send_signal(signal.SIGINT)
            talk.send(b"echo @@over@@\\n\n")
            said = talk.until(rb"^(.*)@@over@@").group(1)
            assert b"Traceback" not in said and b"ignored" not in said, said[-1000:]
        talk.send((NUMBERS.format("count(*)") + "\necho @@over@@\\n\n").encode())
        computes(talk.child.pid)
        talk.child.send_signal(signal.SIGINT)
        said = talk.until(rb"^(.*)@@over@@").group(1)
        assert b"Traceback" not in said, said
        talk.send(b"py-bt -thread\n")
        talk.until(rb"called_back")


def computes(pid, seconds=0.5):
    """Until its main thread has run so long: the statement, which says nothing, runs."""
    def ran():
        with open("/proc/{0}/task/{0}/schedstat".format(pid)) as told:
            return int(told.read().split()[0])

    first = ran()
    until(lambda: ran() >= first + seconds * 1e9)


def reads_a_byte(pid):
    """Whether its main thread waits in a read(2) of one byte, and is not stopped there."""
    with open("/proc/{0}/task/{0}/stat".format(pid)) as stat, open("/proc/{0}/task/{0}/syscall".format(pid)) as call:
        state, words = stat.read().rsplit(")", 1)[1].split()[0], call.read().split()
    return state == "S" and words[0] in READ and words[3] == "0x1"


def test_eval_is_interrupted(gdb, resting):
    """Ctrl-C ends the code that `probing eval` runs, and the program is as it was; twice leaves it half way."""
    with spoken_to(gdb, resting) as talk:
        talk.send(b"probing eval [None for _ in iter(int, 1)]\n")
        talk.until(rb"running code in process")
        computes(resting.pid)
        talk.child.send_signal(signal.SIGINT)
        talk.until(rb"the code was stopped")
        talk.send(b"probing eval __import__('os').read(0, 1)\n")
        talk.until(rb"running code in process")
        until(lambda: reads_a_byte(resting.pid))
        talk.child.send_signal(signal.SIGINT)
        talk.until(rb"gets a KeyboardInterrupt")
        until(lambda: reads_a_byte(resting.pid))  # again, as it goes on
        talk.child.send_signal(signal.SIGINT)
        talk.until(rb"stands half way in thread %d" % resting.pid)
        talk.send(b"continue\n")
        talk.until(rb"Continuing")
        os.write(resting.child.stdin.fileno(), b"x")
        talk.until(rb"left half way in thread %d has ended" % resting.pid)
        talk.send(b"py-bt -thread -python\nprobing eval step + 1\n")
        talk.until(rb"inner.*called_back.*running code[^\n]*\n8\n")
        talk.send(b"detach\n")
        talk.until(rb"detached")
        resting.child.stdin.close()
        assert resting.child.wait(gdbs.DEADLINE) == 0


WANTED = """
import itertools, os, threading
def spin():
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
os.write(1, b"ready\\n")
sum(itertools.repeat(0))  # never gives the GIL, for which it is soon asked
"""


def test_eval_while_the_gil_is_wanted(gdb, any_python, tmp_path):
    """Who runs the code gives the GIL to who asks for it, and waits until it was taken: that one has to run, too."""
    (tmp_path / "wanted.py").write_text(WANTED)
    target = Target(any_python, "wanted.py", folder=str(tmp_path))
    try:
        asked = "SELECT count(*) FROM python.threads WHERE gil_state = 'waiting'"
        until(lambda: "\n1\n" in probing("-t", target.pid, "query", "-f", "csv", asked).stdout)
        told = gdb.batch("probing eval 6 * 7", "probing eval len([0 for _ in range(300000)])", before=gdbs.attach(target))
        assert told[0].strip().endswith("42") and told[1].strip().endswith("300000"), told
        assert target.child.poll() is None
    finally:
        target.end()


def test_beside_cpythons_own(gdb, resting, tmp_path):
    """python-gdb.py of CPython defines commands of the same names: ours stay within reach, and nothing breaks."""
    theirs = tmp_path / "python-gdb.py"
    theirs.write_text("import gdb\n"
                      "class Theirs(gdb.Command):\n"
                      "    def __init__(self, name): gdb.Command.__init__(self, name, gdb.COMMAND_STACK)\n"
                      "    def invoke(self, args, from_tty): print('theirs')\n"
                      "for name in ('py-bt', 'py-list', 'py-up', 'py-down', 'py-print', 'py-locals'): Theirs(name)\n")
    told = gdb.batch("source {}".format(theirs), "probing bt -thread -python", "py-backtrace -thread -python", "probing locals",
                     "source " + gdbs.PLUGIN, "py-bt -thread -python", before=gdbs.attach(resting))
    assert all("inner" in told[i] for i in (1, 2, 5)) and "step = 7" in told[3]


def test_beside_cpythons_real_one(gdb, resting):
    """The script that CPython's build puts beside its interpreter: commands, printers and `bt` work with both loaded."""
    script = os.path.realpath("/proc/{}/exe".format(resting.pid)) + "-gdb.py"
    if not os.path.exists(script):
        pytest.skip("this interpreter came without " + os.path.basename(script))
    for order in ([script, gdbs.PLUGIN], [gdbs.PLUGIN, script]):
        commands = ["source " + path for path in order] + [
            "py-backtrace -thread -python", "bt", "probing locals", "probing print MODEL.layers[0]", 'print $py_local("MODEL")', "py-bt"]
        told = gdb.batch(*commands, load=False, before=gdbs.attach(resting))
        backtrace, plain, local, _, value, either = told[2:]
        assert "inner" in backtrace and "called_back" in either
        assert re.search(r"inner \(step=7", plain) and "EvalFrame" not in plain
        assert "step = 7" in local and "Model" in value
        assert "Traceback (most recent call last):\n  File \"" + gdbs.PLUGIN not in "".join(told)
        assert "our mistake" not in "".join(told)


def test_snapshot(gdb, resting, tmp_path):
    path = str(tmp_path / "taken")
    told, = gdb.batch("probing snapshot " + path, before=gdbs.attach(resting))
    assert re.match(re.escape(path) + r": [\d,]+ bytes\n?$", told)
    assert "called_back" in probing("-t", path, "backtrace", "--native").stdout
    told = gdb.batch("py-bt -thread", "probing query SELECT source FROM system.process", before=["-c", path])
    assert "called_back" in told[0] and "snapshot" in told[1]


def test_handed_over(gdb, resting):
    """`probing debug` detaches and serves; at its end gdb is at its prompt again."""
    with gdbs.Talk(gdb, "-p", str(resting.pid), "-ex", "source " + gdbs.PLUGIN) as talk:
        talk.send(b"probing debug --address 127.0.0.1:0\n")
        talk.until(rb"waiting for a debugger on 127\.0\.0\.1:(\d+)")
        status = open("/proc/{}/status".format(resting.pid)).read()
        assert re.search(r"TracerPid:\t0\n", status)
        children = [int(pid) for pid in open("/proc/{0}/task/{0}/children".format(talk.child.pid)).read().split()]
        for pid in children:
            if "debug" in open("/proc/{}/cmdline".format(pid)).read():
                os.kill(pid, signal.SIGINT)
        talk.send(b"attach %d\npy-bt -thread\n" % resting.pid)
        talk.until(rb"comes back.*called_back")


def test_old_python_could_read_it():
    """The plugin runs in gdb's own Python, from 3.6 on: no later syntax."""
    import ast

    folder = os.path.join(os.path.dirname(gdbs.PLUGIN), "probing_gdb")
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(path, name), encoding="utf-8") as file:
                    arguments = {"feature_version": (3, 6)} if sys.version_info >= (3, 8) else {}
                    ast.parse(file.read(), name, **arguments)


def test_structs_are_printed():
    """Every field of the headers' structs: structs.py is what mirror.py prints of them."""
    headers = [os.path.join(gdbs.SRCDIR, "lib", name) for name in ("probing.h", "format/format.h")]
    folder = os.path.dirname(gdbs.PLUGIN)
    printed = subprocess.run([sys.executable, os.path.join(folder, "mirror.py")] + headers, check=True, stdout=subprocess.PIPE)
    with open(os.path.join(folder, "probing_gdb", "structs.py"), "rb") as file:
        assert file.read() == printed.stdout


def test_header_agrees(tmp_path):
    """The plugin's structs are those of probing.h, by the compiler's word."""
    sys.path.insert(0, os.path.dirname(gdbs.PLUGIN))
    try:
        from probing_gdb import structs as mirror
    finally:
        sys.path.pop(0)
    structs = {"prb_" + re.sub("(?<=.)(?=[A-Z])", "_", name).lower(): kind for name, kind in vars(mirror).items()
               if isinstance(kind, type) and kind.__module__ == mirror.__name__}
    assert len(structs) > 15
    lines, wanted = [], []
    for name, struct in structs.items():
        lines.append('printf("%zu\\n", sizeof(struct {}));'.format(name))
        wanted.append(__import__("ctypes").sizeof(struct))
        for field in struct._fields_:
            lines.append('printf("%zu\\n", offsetof(struct {}, {}));'.format(name, field[0]))
            wanted.append(getattr(struct, field[0]).offset)
    source = tmp_path / "offsets.c"
    source.write_text('#include <stdio.h>\n#include "format/format.h"\nint main(void) {\n' + "\n".join(lines) + "\nreturn 0; }\n")
    program = str(tmp_path / "offsets")
    subprocess.run([os.environ.get("CC", "cc"), "-I", os.path.join(gdbs.SRCDIR, "lib"), "-o", program, str(source)], check=True)
    told = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.split()
    assert [int(word) for word in told] == wanted
