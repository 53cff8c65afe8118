"""The conversation with a target: scripts by a pipe, people at a terminal, targets that end."""

import os
import re
import select
import signal
import subprocess
import time

import pytest

PROBING = os.environ["PROBING"]
GONE = 7
DEADLINE = 120

PROGRAM = """
import sys, threading
limit = 41
class Model:
    "A small model."
    def __init__(self): self.layers, self.name = [1, 2, 3], "tiny"
model = Model()
def work(gate):
    inner = "of the thread"
    gate.acquire()
gate = threading.Lock()
gate.acquire()
threading.Thread(target=work, args=(gate,), name="worker", daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
"""


@pytest.fixture(scope="module")
def target(start, probing):
    process = start(PROGRAM, "repl-test")
    probing(process.pid, "inject").works()
    return process


@pytest.fixture
def script(probing, target):
    """script(text): what a script says, and its status."""
    return lambda text, *words: probing(target.pid, "repl", *words, input=text)


# ---- scripts ----


@pytest.mark.parametrize("text, out", [
    ("1 + 1\n", "2\n"),
    ("1 + 1", "2\n"),
    ("\n\n# a comment\n7\n", "7\n"),
    ("a_ = 5\na_ * 2\n", "10\n"),
    ("for i in range(2):\n    print(i)\n\n3\n", "0\n1\n3\n"),
    ("for i in range(2):\n    print(i)\n3\n", "0\n1\n3\n"),
    ("for i in range(2):\n    print(i)", "0\n1\n"),
    ("if limit == 0:\n    1\nelif limit == 41:\n    2\nelse:\n    3\n4\n", "2\n4\n"),
    ("def f_(x):\n    y = x\n\n    return y + 1\nf_(1)\n", "2\n"),
    ("@staticmethod\ndef g_():\n    return 1\n2\n", "2\n"),
    ("[1,\n2,\n3]\n", "[1, 2, 3]\n"),
    ("s_ = '''a\nb\n\nc'''\nlen(s_)\n", "6\n"),
    ("1 + \\\n2\n", "3\n"),
    ("try:\n    1/0\nexcept ZeroDivisionError:\n    print('caught')\n5\n", "caught\n5\n"),
    ("1\nexit\n2\n", "1\n"),
    ("1\nquit()\n2\n", "1\n"),
    ("1\n%quit\n2\n", "1\n"),
    ("model.name\n", "'tiny'\n"),
])
def test_scripts(script, text, out):
    done = script(text)
    assert (done.works(), done.err) == (out, "")


def test_a_script_goes_on_after_a_fault_and_tells_it(script):
    done = script("1/0\n2\n")
    assert (done.status, done.out) == (1, "2\n")
    assert "ZeroDivisionError" in done.err
    done = script("%nonsense\n2\n")
    assert (done.status, done.out) == (1, "2\n")
    assert "unknown command %nonsense" in done.err
    assert script("(1,\n").status == 1


def test_help_and_tables(script):
    out = script("%help\n").works()
    for name in ("bt", "query", "tables", "inspect", "thread", "config", "help", "quit"):
        assert re.search(r"^  %{}\b".format(name), out, re.M)
    assert "python.backtrace" in script("%tables\n").works()
    assert "lineno" in script("%tables python.backtrace\n").works()


def test_looking_without_the_probe(script, target):
    out = script("%bt\n").works()
    assert '"worker"' in out and "work (<string>" in out
    tid = re.search(r'Thread (\d+) "worker"', out).group(1)
    out = script("%bt {} locals\n".format(tid)).works()
    assert "inner = 'of the thread'" in out and "MainThread" not in out
    assert "worker" in script("%query SELECT thread_name FROM python.threads\n").works()
    assert script("%query SELEC\n").status == 1
    assert script("%bt elsewhere\n").status == 1


def test_inspect(script):
    out = script("%inspect model\n").works()
    for words in ("Model at 0x", "layers: list = [1, 2, 3]", "name: str = 'tiny'", "A small model."):
        assert words in out
    assert "len = 3" in script("%inspect model.layers\n").works()
    assert script("%inspect nobody\n").status == 1
    assert script("%inspect\n").status == 1


def test_threads(script):
    out = script("%thread\n").works()
    assert "worker" in out and "MainThread" in out
    done = script("%thread worker\ninner\n%thread off\ninner\n")
    assert done.status == 1 and "of the thread" in done.out and "NameError" in done.err
    assert "of the thread" in script("inner\n", "--thread", "worker").works()
    assert script("%thread nobody\n").status == 1


def test_config(script):
    assert "probing.max_memory" in script("%config\n").works()
    assert "probing.retention_days = 5" in script("%config probing.retention_days=5\n").works()
    assert script("%config probing.nonsense=5\n").status == 1


def test_a_script_whose_target_ends(probing, start):
    process = start(PROGRAM, "repl-test")
    done = probing(process.pid, "repl", input="1\nimport os; os._exit(3)\n2\n3\n")
    assert (done.status, done.out) == (GONE, "1\n")
    assert "process {} ended".format(process.pid) in done.err


# ---- a terminal ----


class Terminal:
    """probing repl at a terminal of its own."""

    def __init__(self, pid, *words, state):
        self.primary, secondary = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(state), "LC_ALL": "C.UTF-8"}
        self.child = subprocess.Popen([PROBING, str(pid), "repl", *words], stdin=secondary, stdout=secondary,
                                      stderr=secondary, env=environment, start_new_session=True, close_fds=True)
        os.close(secondary)
        self.text = ""

    def wait(self, *words):
        """Until its output since the last wait has the words, in this order."""
        until = time.monotonic() + DEADLINE
        while not re.search(".*".join(map(re.escape, words)), self.text, re.S):
            assert time.monotonic() < until and select.select([self.primary], [], [], DEADLINE)[0], self.text
            try:
                self.text += os.read(self.primary, 65536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError("it ended: " + self.text)
        seen, self.text = self.text, ""
        return seen

    def type(self, text):
        os.write(self.primary, text.encode())

    def end(self):
        self.type("\x04")
        try:
            while os.read(self.primary, 65536):
                pass
        except OSError:
            pass
        return self.child.wait(DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.child.kill()
        self.child.wait()
        os.close(self.primary)


@pytest.fixture
def terminal(target, tmp_path):
    with Terminal(target.pid, state=tmp_path) as one:
        one.wait("process {}".format(target.pid), ">>> ")
        yield one


def test_typing(terminal):
    terminal.type("1 + 1\n")
    terminal.wait("\n2\r\n", ">>> ")
    terminal.type("for i in range(2):\n")
    terminal.wait("... ")
    terminal.type("    print('value', i)\n\n")
    terminal.wait("value 0\r\nvalue 1\r\n", ">>> ")
    assert terminal.end() == 0


def test_completion_of_live_objects(terminal):
    terminal.type("model.lay\t")
    terminal.wait("ers")
    terminal.type("\n")
    terminal.wait("[1, 2, 3]", ">>> ")
    terminal.type("%ins\t")
    terminal.wait("pect")
    terminal.type(" model.name\n")
    terminal.wait("'tiny'", ">>> ")
    terminal.type("if limit:\n\t'indented'\n\n")
    terminal.wait("'indented'\r\n", ">>> ")


def test_history_is_kept(target, tmp_path):
    for typed, shown in (("limit + 1\n", "42"), ("\x1b[A\n", "42")):
        with Terminal(target.pid, state=tmp_path) as one:
            one.wait(">>> ")
            one.type(typed)
            one.wait(shown + "\r\n", ">>> ")
            assert one.end() == 0
    path = tmp_path / "probing" / "history"
    assert "limit" in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_ctrl_c(terminal):
    terminal.type("some words")
    terminal.wait("some words")
    terminal.child.send_signal(signal.SIGINT)
    terminal.wait(">>> ")
    terminal.type("6 * 7\n")
    terminal.wait("\n42\r\n", ">>> ")
    terminal.type("while True: pass\n\n")
    terminal.wait("... ")
    time.sleep(0.3)  # nothing shows that it runs by now; an interrupt at the prompt does the same to this test
    terminal.child.send_signal(signal.SIGINT)
    terminal.wait(">>> ")
    terminal.type("6 * 8\n")
    terminal.wait("\n48\r\n", ">>> ")


def test_the_target_ends_at_the_prompt(start, probing, tmp_path):
    process = start(PROGRAM, "repl-test")
    probing(process.pid, "inject").works()
    with Terminal(process.pid, state=tmp_path) as one:
        one.wait(">>> ")
        process.kill()
        process.wait()
        one.wait("process {} ended".format(process.pid), ">>> ")
        one.type("1\n")
        one.wait("process {} ended".format(process.pid), ">>> ")
        one.type("%help\n")
        one.wait("%inspect", ">>> ")
        assert one.end() == 0


def test_the_probe_ends_at_the_prompt_and_comes_back(start, probing, tmp_path):
    process = start(PROGRAM, "repl-test")
    probing(process.pid, "inject").works()
    with Terminal(process.pid, state=tmp_path) as one:
        one.wait(">>> ")
        probing(process.pid, "detach").works()
        one.wait("the probe of process {} ended".format(process.pid), ">>> ")
        one.type("limit + 2\n")
        one.wait("43\r\n", ">>> ")
        assert one.end() == 0


PASTED = """def tally(n):
    total = 0
    for i in range(n):

        if i % 2:
            total += i

        else:
            total -= 1
    return total

class K:
    x = 1

    def method(self): return self.x
"""


def paste(text):
    """As terminals send it: marked, Enter between the lines."""
    return "\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~"


def test_a_pasted_block_runs_whole(terminal):
    """With empty lines inside, several statements at once, when Enter is pressed."""
    terminal.type(paste(PASTED))
    terminal.wait("... ", "... ")
    terminal.type("\r")
    terminal.wait(">>> ")
    terminal.type("tally(6), K().method()\r")
    assert "Traceback" not in terminal.wait("(6, 1)", ">>> ")
    terminal.type("1 +" + paste(" 41") + "\r")  # of one line: typed for you
    terminal.wait("\n42\r\n", ">>> ")
    terminal.type(paste("    a = 5\n    b = 6\n"))  # indented as a whole
    terminal.type("\ra * b, '~'\r")
    terminal.wait("(30, '~')", ">>> ")
    terminal.type(paste("1 / 0\n2\n"))
    terminal.wait("1 / 0\r\n", "... 2\r\n", "... ")
    terminal.child.send_signal(signal.SIGINT)
    assert "ZeroDivisionError" not in terminal.wait(">>> ")
    assert terminal.end() == 0


def test_an_indented_first_line_is_an_error(terminal, script):
    """What is left of a block that an empty line ended does not run at top level."""
    terminal.type("    total = 99\r")
    said = terminal.wait("IndentationError", ">>> ")
    assert "codeop" not in said and "Traceback" not in said
    terminal.type("total\r")
    terminal.wait("NameError", ">>> ")
    done = script("x = (\n")
    assert done.status != 0
