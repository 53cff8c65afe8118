"""Plain text on the same port: what nc gets is what the command line prints."""

import os
import signal
import time

import pytest

from serving import received_until, until
from support.target import probing


@pytest.mark.parametrize("tcp", [True, False], ids=["tcp", "unix"])
def test_commands(server, job, tcp):
    pid = "pid {}".format(job.pid)
    assert server.text(pid, "bt", tcp=tcp) == probing("-t", job.pid, "backtrace").stdout
    assert server.text(pid, "tasks", tcp=tcp) == probing("-t", job.pid, "tasks").stdout
    assert server.text(pid, "query SELECT 1 AS a, 'x y' AS b", tcp=tcp) == probing("query", "SELECT 1 AS a, 'x y' AS b").stdout
    assert str(job.pid) in server.text("list", tcp=tcp)
    assert "innermost" in server.text(pid, "tables", tcp=tcp)
    assert "resident" in server.text(pid, "memory", tcp=tcp)


def test_one_thread(server, job):
    assert server.text("pid {}".format(job.pid), "bt {}".format(job.pid)) == probing("-t", job.pid, "backtrace", str(job.pid)).stdout


def test_help_lists_every_command(server):
    told = server.text("help")
    for word in ("list", "bt", "tasks", "query", "tables", "memory", "config", "profile", "pid", "quit"):
        assert "\n" + word in "\n" + told


def test_nothing_is_said_first(server):
    with server.connected() as one:
        one.settimeout(0.3)
        with pytest.raises(OSError):
            one.recv(1)


def test_several_processes(server, start, any_python):
    jobs = [start(any_python, "threads.py").settle() for _ in range(2)]
    told = server.text("bt")
    assert told.startswith("which process?")
    for job in jobs:
        assert "\n{}  ".format(job.pid) in told


@pytest.mark.parametrize("line", ["bt --output /tmp/x", "bt -o /tmp/x", "list --anything", "bt 1 2", "bt $(id)", "bt ;id", "bt `id`", "bt --native=1",
                                  "profile", "profile 1 -o /tmp/x", "profile 1 2", "profile x", "config probing.sample_rate=1",
                                  "config --help", "pid x", "pid -1", "pid 1 2", "pid 99999999999", "tasks --output=x", "memory --watch",
                                  "config probing.x probing.y=1", "export --format=tensorboard", "export -o x", "tables /etc", "crashes /tmp",
                                  "inspect tensors -f", "query"])
def test_what_may_not_be_said(server, job, line):
    told = server.text("pid {}".format(job.pid), line)
    assert "not understood" in told or "pid needs a number" in told, told


@pytest.mark.parametrize("line", ["inject", "eval 1", "snapshot /tmp/x", "detach", "crash", "serve", "launch x", "1 + 1", "import os", "GETX /"])
def test_what_is_no_command(server, job, line):
    assert "no command" in server.text("pid {}".format(job.pid), line)


# ---- Python, where it is granted ----


@pytest.fixture
def granted(serve, job):
    server = serve("--allow", "eval")
    server.pid_line = "pid {}".format(job.pid)
    return server


def test_python(granted):
    assert granted.text(granted.pid_line, "6 * 7") == "42\n"
    assert granted.text(granted.pid_line, "print('a', end='')", "x = 5", "x + 1") == "a\n6\n"
    told = granted.text(granted.pid_line, "1 / 0")
    assert told.startswith("Traceback") and told.endswith("ZeroDivisionError: division by zero\n")
    assert "SyntaxError" in granted.text(granted.pid_line, "1 +* 2")
    assert "is Python" in granted.text("help")
    assert "/eval" not in granted.log and "text eval by 127.0.0.1" in granted.log and "6 * 7: done" in granted.log


def test_blocks(granted):
    assert granted.text(granted.pid_line, "for i in range(3):", "    print(i)", "", "i") == "0\n1\n2\n2\n"
    assert granted.text(granted.pid_line, "if True:", "    list", "", "quit") == "<class 'list'>\n"  # within a block no word is a command


def test_prompts(granted):
    """Who waits gets one, nobody else, and not before there was Python."""
    with granted.connected() as one:
        one.sendall((granted.pid_line + "\n6 * 7\n").encode())
        assert received_until(one, b">>> ") == b"42\n>>> "
        one.sendall(b"if 1:\n")
        assert received_until(one, b"... ") == b"... "
        one.sendall(b"  'done'\n")
        received_until(one, b"... ")
        one.sendall(b"\n")
        assert received_until(one, b">>> ") == b"'done'\n>>> "


def test_output_comes_as_it_is_printed(granted):
    with granted.connected() as one:
        one.sendall((granted.pid_line + "\nimport time\nfor i in range(100000): print(i); time.sleep(0.05)\n\n").encode())
        received_until(one, b"3\n")
        one.sendall(b"\x03")
        assert b"KeyboardInterrupt" in received_until(one, b">>> ")


def test_a_command_wins(granted, job):
    assert granted.text(granted.pid_line, "bt") == probing("-t", job.pid, "backtrace").stdout
    assert granted.text(granted.pid_line, "memory = 5", "memory") != "5\n"
    assert granted.text(granted.pid_line, "tasks = 7", "print(tasks)") == "7\n"


def test_python_prints_nothing_harmful(granted):
    told = granted.text(granted.pid_line, "print('\\x1b[31m\\x9b\\u202e')")
    assert "\x1b" not in told and "\x9b" not in told and "\u202e" not in told and told


def test_python_without_a_grant(server, job):
    told = server.text("pid {}".format(job.pid), "1 + 1")
    assert "--allow eval" in told
    assert server.text("pid {}".format(job.pid), "1 + 1", tcp=False) == "2\n"  # the Unix socket may do everything


@pytest.mark.parametrize("tcp", [True, False], ids=["tcp", "unix"])
@pytest.mark.parametrize("method", ["x", "patch", "PROPFIND", "bt", "print(1) or"])
def test_a_method_that_nobody_knows(granted, job, tmp_path, method, tcp):
    """A browser sends any word as the method to its page's own origin, and a proxy passes it on: no line of such a request is one of ours."""
    made = tmp_path / "made"
    asked = "{} / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 99\r\n\r\npid {}\nopen({!r}, 'w').close()\nbt\n".format(method, job.pid, str(made))
    assert granted.raw(asked.encode(), tcp=tcp, end=True) == b"" and not made.exists()
    granted.raw(asked.split("\r\n\r\n")[1].encode(), tcp=tcp, end=True)
    assert made.exists(), "the lines themselves are Python"


def test_control_characters(server):
    for line in ("list\x1b[31m", "li\x07st", "\x7f"):
        assert "control characters" in server.text("help", line)
    assert server.text("bt\0") == ""


def test_hostile_names(server, start, any_python):
    """Names of threads and functions with escapes: nothing of them reaches the terminal."""
    job = start(any_python, "hostile_names.py", "")
    for line in ("bt --locals", "list", "tables"):
        told = server.text("pid {}".format(job.pid), line)
        assert told and not [char for char in told if (ord(char) < 32 and char not in "\n\t") or 0x7f <= ord(char) < 0xa0
                             or char in "\u202e\u2066\u200f"]


def test_crlf_and_the_end(server):
    assert "bt" in server.raw(b"help\r\nquit\r\nhelp\r\n").decode()
    assert server.raw(b"help\r\nquit\r\nhelp\r\n").count(b"quit ") == 1
    assert b"bt" in server.raw(b"help", end=True)  # no end of line at the end of input


def test_a_long_line(server):
    assert server.raw(b"query " + b"x" * 70000, end=True) == b""
    assert server.alive()


def children(pid):
    found = []
    for task in os.listdir("/proc/{}/task".format(pid)):
        try:
            found += open("/proc/{}/task/{}/children".format(pid, task)).read().split()
        except OSError:
            pass
    return found


def test_interrupted(server, job):
    with server.connected() as one:
        one.sendall("pid {}\nprofile 100\n".format(job.pid).encode())
        until(lambda: children(server.pid))
        one.sendall(b"\x03")
        received_until(one, b"(ended)\n")
        assert not children(server.pid)
        one.sendall(b"help\n")
        received_until(one, b"quit ")


def test_who_leaves_ends_his_work(server, job):
    one = server.connected()
    one.sendall("pid {}\nprofile 100\n".format(job.pid).encode())
    until(lambda: children(server.pid))
    one.setsockopt(1, 13, b"\x01\0\0\0\0\0\0\0")  # SO_LINGER 0: a reset
    one.close()
    began = time.monotonic()
    until(lambda: not children(server.pid))
    assert time.monotonic() - began < 50  # of the hundred that it would take


def test_the_end_of_input_is_no_end(server, job):
    """`echo bt | nc -N`: what was asked is answered."""
    assert "\n" in server.text("pid {}".format(job.pid), "profile 1 --idle")


def test_a_target_that_ends(server, start, any_python):
    job = start(any_python, "threads.py").settle()
    os.kill(job.pid, signal.SIGKILL)
    job.child.wait()
    assert "no process {}".format(job.pid) in server.text("pid {}".format(job.pid), "bt")
