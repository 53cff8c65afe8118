"""Commands that work inside the target: inject, eval, config, detach, launch; real targets."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from support.terminal import on_a_terminal
from support.waits import until

PROBING = os.environ["PROBING"]
USAGE, NOT_FOUND, UNSUPPORTED, GONE, TIMEOUT, BUSY = 2, 3, 6, 7, 13, 14
LOADED = re.compile(r"loaded in [\d.]+ ms, one thread paused \d+ µs \(thread \d+\)\n")
DEADLINE = 120

PROGRAM = """
import sys, threading, time
limit = 41
class Model:
    "A model."
    def __init__(self): self.layers, self.name = [1, 2, 3], "tiny"
model = Model()
def work(gate, depth=3):
    inner = "of the thread"
    gate.wait()
gate = threading.Event()
threading.Thread(target=work, args=(gate,), name="worker", daemon=True).start()
def hold(path):
    "Keeps the GIL until somebody writes to the pipe of that name."
    import ctypes, os
    ctypes.PyDLL(None).read(os.open(path, os.O_RDONLY), ctypes.create_string_buffer(1), 1)
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
"""


@pytest.fixture
def bare(start):
    """A target without a probe."""
    return start(PROGRAM, "inside-test")


@pytest.fixture(scope="module")
def loaded(start, probing):
    """A target with a probe, for tests that leave it as it was."""
    process = start(PROGRAM, "inside-test")
    probing(process.pid, "inject").works()
    return process


def sockets_of(pid):
    with open("/proc/{}/net/unix".format(pid)) as file:
        start = open("/proc/{}/stat".format(pid)).read().rsplit(")", 1)[1].split()[19]
        return {line.split()[-1] for line in file if line.rpartition("/")[2].startswith("{}-{}-".format(pid, start))}


def has_probe(probing, pid):
    import json

    return next(one["has_probe"] for one in json.loads(probing("list", "--json").works()) if one["pid"] == pid)


# ---- inject, list, detach ----


def test_inject_list_detach(probing, bare):
    assert not has_probe(probing, bare.pid)
    assert LOADED.fullmatch(probing(bare.pid, "inject").works())
    assert has_probe(probing, bare.pid)
    lines = probing("list").works().splitlines()
    assert "PROBE" in lines[0].split()
    assert re.search(r"\byes\b", next(line for line in lines if line.split()[0] == str(bare.pid)))
    assert "already" in probing(bare.pid, "in").works()
    assert probing(bare.pid, "detach").works() == "the probe of process {} ended\n".format(bare.pid)
    assert not has_probe(probing, bare.pid)
    probing(bare.pid, "detach").fails(NOT_FOUND)
    assert probing(bare.pid, "i").works()
    assert has_probe(probing, bare.pid)
    assert bare.poll() is None


@pytest.mark.parametrize("words", [["config", "PID"], ["eval", "PID", "6 * 7"], ["inject", "PID"], ["detach", "PID"]], ids=lambda words: words[0])
def test_the_pid_after_the_command(probing, loaded, words):
    assert probing(*[loaded.pid if word == "PID" else word for word in words]).status == 0
    probing(loaded.pid, "inject").works()


def test_wrong_settings_load_nothing(probing, bare):
    """Nor does reading what a probe would begin with."""
    for words in (["config", "nope"], ["config", "probing.max_memroy=1GB"], ["config", "probing.max_memory=lots"],
                  ["config", "probing.max_memory=1GB", "nope=1"], ["config", "probing.torch.profiling=on,ratee=1"],
                  ["inject", "-D", "nope=1"], ["inject", "-D", "probing.max_memory=lots"],
                  ["inject", "-D", "probing.listen=nowhere"]):
        assert probing(bare.pid, *words).status in (USAGE, NOT_FOUND, UNSUPPORTED), words
    probing("launch", "-D", "probing.nope=1", "true").fails(NOT_FOUND, "no setting")
    done = probing(bare.pid, "config", "probing.max_memory")
    assert done.works() == "256MiB\n" and "no probe" in done.err
    keys = [one["key"] for one in json.loads(probing(bare.pid, "config", "--json").works())]
    assert "probing.max_memory" in keys
    assert not has_probe(probing, bare.pid)


def test_settings_at_injection_and_after(probing, bare):
    probing(bare.pid, "inject", "-D", "probing.max_memory=64MB", "-D", "probing.retention_days=3").works()
    assert "64" in probing(bare.pid, "config", "probing.max_memory").works()
    probing(bare.pid, "inject", "-D", "probing.max_memory=32MB").works()
    assert "32" in probing(bare.pid, "config", "probing.max_memory").works()


def test_wrong_words(probing, loaded, bare):
    probing("inject").fails(USAGE, "needs a target")
    probing(loaded.pid, bare.pid, "inject").fails(USAGE, "2 targets", "choose one")
    probing("-t", "{}\n{}".format(loaded.pid, bare.pid), "eval", "1").fails(USAGE, "2 targets", "choose one")
    probing(bare.pid, "inject", "-D", "nonsense").fails(USAGE, "KEY=VALUE")
    probing(bare.pid, "inject", "--dll", "/nowhere.so", "-D", "probing.max_memory=64MB").fails(USAGE, "--dll")
    probing(bare.pid, "inject", "--method", "magic").fails(USAGE, "auto, thread, remote-exec")
    probing(loaded.pid, "eval").fails(USAGE, "needs an argument")
    probing(loaded.pid, "eval", "--timeout", "soon", "1").fails(USAGE, "seconds")
    probing(loaded.pid, "eval", "-", "-", input="1").fails(USAGE, "once")
    probing("launch").fails(USAGE, "needs an argument")
    probing(loaded.pid, "launch", "true").fails(USAGE, "no target")
    assert not has_probe(probing, bare.pid)


def test_no_such_process(probing):
    child = subprocess.Popen(["true"])
    child.wait()
    for words in (["inject"], ["eval", "1"], ["config"], ["repl"]):
        probing(child.pid, *words).fails(probing(child.pid, *words).status)
        assert probing(child.pid, *words).status in (NOT_FOUND, GONE)


# ---- loading unasked ----


def test_eval_loads_the_probe_and_says_so(probing, bare):
    done = probing(bare.pid, "eval", "limit + 1")
    assert done.works() == "42\n"
    assert re.fullmatch(r"probing: note: process {} had no probe: loaded in .*\n".format(bare.pid), done.err)
    again = probing(bare.pid, "eval", "limit + 1")
    assert (again.works(), again.err) == ("42\n", "")


def test_auto_inject_off(probing, bare, start):
    for words in (["eval", "1"], ["repl"], ["config", "probing.max_memory=1GB"]):
        probing(bare.pid, *words, env={**os.environ, "PROBING_AUTO_INJECT": "off"}).fails(NOT_FOUND, "AUTO_INJECT=off",
                                                                                      "inject")
    other = start(PROGRAM, "inside-test", env={**os.environ, "PROBING_AUTO_INJECT": "OFF"})
    probing(other.pid, "eval", "1").fails(NOT_FOUND, "started with", "AUTO_INJECT=OFF")
    assert not has_probe(probing, bare.pid) and not has_probe(probing, other.pid)


def test_a_stopped_target(probing, bare):
    def stopped():
        with open("/proc/{}/stat".format(bare.pid)) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"

    bare.send_signal(signal.SIGSTOP)
    until(stopped)
    probing(bare.pid, "eval", "1").fails(BUSY, "stopped", "kill -CONT")
    assert stopped()
    bare.send_signal(signal.SIGCONT)
    until(lambda: sockets_of(bare.pid))  # mapped comes before it
    bare.send_signal(signal.SIGSTOP)
    until(stopped)
    probing(bare.pid, "eval", "1").fails(TIMEOUT, "does not answer")
    bare.send_signal(signal.SIGCONT)
    assert probing(bare.pid, "eval", "9").works() == "9\n"


def test_detach_does_not_load(probing, bare):
    probing(bare.pid, "detach").fails(NOT_FOUND)
    assert not has_probe(probing, bare.pid)


# ---- eval ----


@pytest.mark.parametrize("words, out", [
    (["1 + 1"], "2\n"),
    (["'a' * 3"], "'aaa'\n"),
    (["None"], ""),
    (["x_ = 1", "x_ + 1"], "2\n"),
    (["import math\nmath.floor(2.5)"], "2\n"),
    (["for i in range(2):\n    print(i)"], "0\n1\n"),
    (["--", "-1"], "-1\n"),
    (["model.layers"], "[1, 2, 3]\n"),
    (["--namespace", "own", "y_ = 5\ny_"], "5\n"),
    (["'\\u540d'"], "'名'\n"),
])
def test_eval(probing, loaded, words, out):
    done = probing(loaded.pid, "eval", *words)
    assert (done.works(), done.err) == (out, "")


def test_eval_from_standard_input(probing, loaded):
    assert probing(loaded.pid, "e", "-", input="a = 2\n\na * 3\n").works() == "6\n"


def test_eval_keeps_the_streams_apart(probing, loaded):
    done = probing(loaded.pid, "eval", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n7")
    assert (done.works(), done.err) == ("out\n7\n", "err\n")


def test_eval_that_raises(probing, loaded):
    for code, last in (("1/0", "ZeroDivisionError"), ("raise SystemExit(3)", "SystemExit"), ("1 +", "SyntaxError")):
        done = probing(loaded.pid, "eval", code)
        assert (done.status, done.out) == (1, "")
        assert last in done.err.splitlines()[-1]
    assert probing(loaded.pid, "eval", "1").works() == "1\n"


def test_a_file_is_not_code(probing, loaded, tmp_path):
    (tmp_path / "look.py").write_text("print(limit)\n")
    probing(loaded.pid, "eval", tmp_path / "look.py").fails(USAGE, "is a file", "eval - < ")
    assert "NameError" in probing(loaded.pid, "eval", "look.py").err


def test_settings_on_a_terminal_have_their_whole_meaning(loaded):
    """Where the table does not fit, a setting takes two lines."""
    status, text = on_a_terminal([PROBING, str(loaded.pid), "config"], TERM="xterm", COLUMNS="80", NO_COLOR="1")
    lines = text.decode().splitlines()
    assert status == 0 and max(map(len, lines)) <= 80
    assert lines[:2] == ["probing.sample_rate = 1 ratio", "    the part of the steps and spans that is recorded"]
    status, text = on_a_terminal([PROBING, str(loaded.pid), "config"], TERM="xterm", COLUMNS="200", NO_COLOR="1")
    assert text.decode().split()[:5] == ["KEY", "VALUE", "DEFAULT", "UNIT", "MEANING"]


def test_an_exception_is_coloured_on_a_terminal_only(probing, loaded):
    command = [PROBING, str(loaded.pid), "eval", "1/0"]
    assert b"\x1b[33mZeroDivisionError" in on_a_terminal(command, stderr="terminal", TERM="xterm", NO_COLOR=None)[1]
    assert b"\x1b" not in on_a_terminal(command, stderr="terminal", TERM="xterm", NO_COLOR="1")[1]
    assert "\x1b" not in probing(loaded.pid, "eval", "1/0").err


def test_eval_where_a_thread_stands(probing, loaded):
    for thread in ("worker", thread_number(probing, loaded.pid, "worker")):
        # wait() of threading stands on top of the function that we mean.
        for frame in range(4):
            done = probing(loaded.pid, "eval", "--thread", thread, "--frame", frame, "inner")
            if done.status == 0:
                break
        assert done.works() == "'of the thread'\n"
    probing(loaded.pid, "eval", "--thread", "nobody", "1").fails(NOT_FOUND, '"nobody"', "backtrace")
    assert probing(loaded.pid, "eval", "--thread", "worker", "--frame", "work", "inner").works() == "'of the thread'\n"
    assert probing(loaded.pid, "repl", input="%thread worker work\ninner\n").works().endswith("'of the thread'\n")
    assert probing(loaded.pid, "eval", "--frame", "<module>", "limit").works() == "41\n", "the main thread's"
    probing(loaded.pid, "eval", "--thread", "worker", "--frame", "nobody", "1").fails(NOT_FOUND, "does not run a function nobody")
    for wrong in ("-1", "1.5", "9999999", ""):
        probing(loaded.pid, "eval", "--thread", "worker", "--frame=" + wrong, "1").fails(USAGE, "frame number")
    probing(loaded.pid, "eval", "--thread", "worker", "--frame", "99", "1").fails(NOT_FOUND, "worker (", " frames")


def test_a_long_value_is_whole_in_a_pipe(probing, loaded):
    """As print is.  A prompt, and a terminal, get the beginning."""
    assert probing(loaded.pid, "eval", "'x' * 500000").works() == "'{}'\n".format("x" * 500000)
    assert probing(loaded.pid, "eval", "list(range(100000))").works() == "{}\n".format(list(range(100000)))
    assert "(3000000 in all)" in probing(loaded.pid, "eval", "'\\x01' * 3000000").works()
    _, text = on_a_terminal([PROBING, str(loaded.pid), "eval", "'x' * 500000"], stderr="terminal")
    assert 65536 <= text.count(b"x") + 1 < 66000 and b"the rest is left out on a terminal" in text


def test_main_thread_of_a_program_without_threading(probing, start):
    process = start("import sys\nprint('ready', flush=True)\ndef f(local): sys.stdin.read()\nf(8)")
    probing(process.pid, "inject").works()
    assert probing(process.pid, "eval", "--thread", "MainThread", "local").works() == "8\n"


def thread_number(probing, pid, name):
    return re.search(r'Thread (\d+) "{}"'.format(name), probing(pid, "bt").works()).group(1)


def test_output_is_streamed(loaded):
    code = "import time\nprint('first', flush=True)\nwhile not go: time.sleep(0.01)\nprint('second')"
    run = subprocess.run([PROBING, str(loaded.pid), "eval", "--namespace", "__main__", "go = False"], timeout=DEADLINE)
    assert run.returncode == 0
    with subprocess.Popen([PROBING, str(loaded.pid), "eval", code], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"first\n"
        subprocess.run([PROBING, str(loaded.pid), "eval", "--namespace", "__main__", "go = True"], timeout=DEADLINE, check=True)
        assert child.stdout.read() == b"second\n"
        assert child.wait(DEADLINE) == 0


def test_timeout(probing, loaded):
    assert probing(loaded.pid, "eval", "--timeout", "0.3", "while True: pass").status != 0
    assert probing(loaded.pid, "eval", "2").works() == "2\n"


def test_ctrl_c_interrupts(probing, loaded):
    with subprocess.Popen([PROBING, str(loaded.pid), "eval", "print('on', flush=True)\nwhile True: pass"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as child:
        assert child.stdout.readline() == "on\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=DEADLINE)
    assert (child.returncode, out) == (130, "")
    assert "KeyboardInterrupt" in err
    assert probing(loaded.pid, "eval", "3").works() == "3\n"


def test_a_second_ctrl_c_leaves(probing, bare):
    probing(bare.pid, "inject").works()
    code = ("import time\nprint('on', flush=True)\nlast = time.monotonic() + 600\n"
            "def go():\n    while time.monotonic() < last:\n        try: time.sleep(0.05)\n"
            "        except BaseException: pass\ngo()")
    with subprocess.Popen([PROBING, str(bare.pid), "eval", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8") as child:
        assert child.stdout.readline() == "on\n"
        child.send_signal(signal.SIGINT)
        assert "interrupting" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(DEADLINE) == 130
    assert bare.poll() is None


def test_held_gil_names_the_thread_and_its_place(probing, bare, tmp_path):
    probing(bare.pid, "inject").works()
    os.mkfifo(str(tmp_path / "gate"))
    bare.stdin.write("hold({!r})\n".format(str(tmp_path / "gate")))
    bare.stdin.flush()
    with open(str(tmp_path / "gate"), "wb"):
        wait_for_holder(probing, bare.pid)
        err = probing(bare.pid, "eval", "--gil-timeout", "0.3", "1").fails(BUSY, "held by thread {}".format(bare.pid),
                                                                         "hold (<string>:")
        assert "--gil-timeout" in err
        waiting = subprocess.Popen([PROBING, str(bare.pid), "eval", "--gil-timeout", "100", "4"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert waiting.communicate(timeout=DEADLINE) == ("4\n", "")


def wait_for_holder(probing, pid):
    until(lambda: "+gil" in probing(pid, "bt").works())


def test_socket_as_target(probing, loaded):
    (path,) = sockets_of(loaded.pid)
    assert probing("-t", path, "eval", "limit").works() == "41\n"
    assert probing(path, "eval", "limit").works() == "41\n"
    assert "worker" in probing("-t", path, "bt").works()
    probing("-t", path, "inject").fails(USAGE, "loaded already")


def test_escapes_reach_no_terminal(loaded):
    command = [PROBING, loaded.pid, "eval", "print('\\x1b]0;evil\\x07', end='\\n\\n'); 'x'"]
    status, text = on_a_terminal(command)
    assert status == 0
    assert text == b"\\x1b]0;evil\\a\r\n\r\n'x'\r\n"


# ---- config ----


def test_config(probing, loaded):
    import json

    listed = {one["key"]: one for one in json.loads(probing(loaded.pid, "config", "--json").works())}
    for key in ("probing.sample_rate", "probing.max_memory", "probing.retention_days"):
        assert listed[key]["meaning"]
        assert key in probing(loaded.pid, "cfg").works()
    assert "probing.max_memory = " in probing(loaded.pid, "config", "probing.max_memory=1GB").works()
    value = probing(loaded.pid, "config", "probing.max_memory").works().strip()
    assert value == json.loads(probing(loaded.pid, "c", "-j").works())[list(listed).index("probing.max_memory")]["value"]
    assert value != listed["probing.max_memory"]["value"]
    probing(loaded.pid, "config", "probing.max_memory={}".format(listed["probing.max_memory"]["default"])).works()


def test_wrong_settings(probing, loaded):
    assert "probing.max_memory" in probing(loaded.pid, "config", "probing.max_memroy=1GB").err
    assert probing(loaded.pid, "config", "probing.max_memroy=1GB").status != 0
    assert probing(loaded.pid, "config", "probing.max_memory=lots").status != 0
    assert probing(loaded.pid, "config", "nonsense").status != 0


# ---- launch ----


def test_launch_is_the_program(probing):
    assert probing("launch", sys.executable, "-c", "import sys; sys.exit(5)").status == 5
    assert probing("launch", sys.executable, "-c", "import sys; print(sys.argv[1:])", "-x", "--help").works() == (
        "['-x', '--help']\n")
    assert probing("launch", "/nowhere/at/all").status == 127
    assert probing("launch", "/etc/passwd").status == 126


def test_launch_loads_the_probe(probing):
    with subprocess.Popen([PROBING, "launch", "-D", "probing.retention_days=2", sys.executable, "-c", PROGRAM],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as child:
        assert child.stdout.readline() == "ready\n"
        until(lambda: has_probe(probing, child.pid))  # its socket may come after the program's first words
        done = probing(child.pid, "eval", "limit")
        assert (done.works(), done.err) == ("41\n", "")
        assert probing(child.pid, "config", "probing.retention_days").works().startswith("2")
        child.send_signal(signal.SIGTERM)
        assert child.wait(DEADLINE) == -signal.SIGTERM


FAMILY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("words, both", [([], False), (["-r"], True)])
def test_launch_and_children(probing, words, both):
    with subprocess.Popen([PROBING, "launch", *words, sys.executable, "-c", FAMILY], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, encoding="utf-8") as parent:
        child = int(parent.stdout.readline())
        for pid in (parent.pid, child) if both else (parent.pid,):
            until(lambda: has_probe(probing, pid))
        assert has_probe(probing, child) == both
        parent.stdin.close()
        assert parent.wait(DEADLINE) == 0
