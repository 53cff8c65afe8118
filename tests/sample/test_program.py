"""`probing profile -- PROGRAM`: what it starts is found, told of and ended as a shell would, whatever the program does."""

import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

from profiles import function, sampling, stacks
from support.injection import DEADLINE, wait_until
from support.target import PROBING, children, probing

# Of processor time, as a busy machine gives little of it.
BUSY = "import time\ndef busy():\n    end = time.process_time() + {}\n    while time.process_time() < end: pass\nbusy()"


def as_in_a_terminal():
    """Who runs the tests in the background, or by nohup(1), has these ignored, and so would all that they start."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def begin(path, *words):
    return subprocess.Popen([PROBING, "profile", "-o", str(path), *words], stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, encoding="utf-8", preexec_fn=as_in_a_terminal)


def run(path, *words):
    return probing("-v", "profile", "-o", path, *words, check=False)


@pytest.mark.parametrize("code,status", [("import sys; sys.exit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_status(any_python, tmp_path, code, status):
    done = run(tmp_path / "p.txt", "--", any_python.executable, "-c", BUSY.format(1) + "\n" + code)
    assert done.returncode == status, done.stderr
    assert any(function(frames[-1]) == "busy" for frames, _ in stacks(tmp_path / "p.txt"))


def test_no_program(tmp_path):
    done = run(tmp_path / "p.txt", "--", "/no/such/program")
    assert done.returncode == 3 and "/no/such/program" in done.stderr and "No such file" in done.stderr
    assert not (tmp_path / "p.txt").exists()


def test_program_without_python(tmp_path):
    done = run(tmp_path / "p.txt", "--", "true")
    assert (done.returncode, done.stderr) == (4, "probing: true ended, and no Python was seen in it\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("options", [[], ["-d", "0.3"]])
def test_signals_go_on(any_python, tmp_path, number, options):
    """Who ends the command ends the program, also one whose profile is done; the profile is written."""
    path = tmp_path / "p.txt"
    command = begin(path, *options, "--", any_python.executable, "-c", BUSY.format(600))
    if options:
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.01)
    else:
        sampling(None, command)
    command.send_signal(number)
    _, said = command.communicate(timeout=DEADLINE)
    assert command.returncode in (128 + number, 1), (command.returncode, said)  # KeyboardInterrupt ends with 1 before 3.8
    assert stacks(path)


def is_sleep(pid):
    with contextlib.suppress(OSError), open("/proc/{}/comm".format(pid)) as comm:
        return comm.read() == "sleep\n"
    return False


def test_signal_before_python(tmp_path):
    """A program that is no Python: the command waits for its end, and a signal ends both at once."""
    command = begin(tmp_path / "p.txt", "--", "sleep", "600")
    wait_until(lambda: any(is_sleep(pid) for pid in children(command.pid)))
    command.send_signal(signal.SIGTERM)
    _, said = command.communicate(timeout=DEADLINE)
    assert command.returncode not in (0, 70), said


def test_waiting_costs_little(tmp_path):
    before = os.times()
    run(tmp_path / "p.txt", "--", "sleep", "4")
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1


SHORT = """
import subprocess, sys
for number in range(8):
    subprocess.run([sys.executable, "-c", "import time\\nend = time.time() + 0.4\\nwhile time.time() < end: pass"])
"""


def test_rate_of_short_lives(any_python, tmp_path):
    """Samples a second of a process, while it lived; and a query of the file has nothing to warn of when none was dropped."""
    done = run(tmp_path / "p.db", "-s", "-r", "50", "--", any_python.executable, "-c", SHORT)
    assert done.returncode == 0, done.stderr
    seconds, rate = map(float, re.search(r" samples in ([\d.]+) s \((\d+) a second\)", done.stderr).groups())
    dropped, skipped = (int(re.search(r"(\d+) " + what, done.stderr).group(1)) for what in ("dropped", "skipped"))
    reached = 1 - skipped / (50 * seconds)  # a busy machine lets few be taken
    assert 25 * reached < rate < 60, done.stderr  # 8 of the 9 processes lived for a tenth of the time
    asked = probing("-t", tmp_path / "p.db", "query", "SELECT count(*) FROM profiling_data", check=False)
    assert bool(asked.stderr) == bool(dropped), (asked.stderr, done.stderr)


SCRIPT = "sleep 0.2; {python} -c '{first}'; sleep 0.5; {python} -c '{second}'; exit 6"


def test_below_a_shell(any_python, tmp_path):
    """With -s: a script that starts Python is followed, from its first Python process to its own end."""
    script = SCRIPT.format(python=any_python.executable, first=BUSY.format(1),
                           second=BUSY.format(1).replace("busy", "later"))
    done = run(tmp_path / "p.txt", "-s", "--", "sh", "-c", script)
    assert done.returncode == 6, done.stderr
    names = {function(frame) for frames, _ in stacks(tmp_path / "p.txt") for frame in frames}
    assert {"busy", "later"} <= names, (names, done.stderr)


def computes(pid):
    """Whether it is the program BUSY, and has begun: a Python needs less to start."""
    with contextlib.suppress(OSError):
        with open("/proc/{}/cmdline".format(pid), "rb") as command, open("/proc/{}/schedstat".format(pid)) as ran:
            return b"busy" in command.read() and int(ran.read().split()[0]) > 300000000
    return False


def test_target_is_a_shell(any_python, tmp_path):
    """The same of one that runs already."""
    shell = subprocess.Popen(["sh", "-c", SCRIPT.format(python=any_python.executable, first=BUSY.format(600),
                                                        second="")])
    try:
        wait_until(lambda: any(computes(pid) for pid in children(shell.pid)))
        done = probing("-t", shell.pid, "profile", "-s", "-d", 3, "-o", tmp_path / "p.txt", check=False)
        assert done.returncode == 0, done.stderr
        assert any(function(frames[-1]) == "busy" for frames, _ in stacks(tmp_path / "p.txt"))
    finally:
        below = children(shell.pid)
        shell.kill()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shell.wait()
