"""Whatever ends a profile leaves a good file of what was seen; what cannot work is told before it begins."""

import os
import shutil
import signal
import subprocess

import pytest

from profiles import Told, profile, sampling, stacks
from support.target import DEADLINE, PROBING, Target, children, probing


def begin(pid, path, *options):
    """The command, sampling: when the first samples were taken."""
    return subprocess.Popen([PROBING, "-v", "-t", str(pid), "profile", "-o", str(path), *map(str, options)],
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(start, any_python, tmp_path, number):
    target = start(any_python, "shares.py", "gil")
    command = begin(target.pid, tmp_path / "p.txt")
    sampling(target.pid, command)
    command.send_signal(number)
    _, said = command.communicate(timeout=DEADLINE)
    assert command.returncode == 0, said
    assert Told(said).samples > 0 and stacks(tmp_path / "p.txt")


def test_an_unknown_end_of_the_name(tmp_path):
    """No flame graph by the name of something else."""
    done = probing("-t", os.getpid(), "profile", "-d", 1, "-o", tmp_path / "p.pb.gz", check=False)
    assert done.returncode == 2 and ".gz" in done.stderr and "--format" in done.stderr
    assert not list(tmp_path.iterdir())


def test_target_ends(start, any_python, tmp_path):
    target = start(any_python, "shares.py", "gil")
    command = begin(target.pid, tmp_path / "p.txt")
    sampling(target.pid, command)
    target.child.kill()
    target.child.wait()
    _, said = command.communicate(timeout=DEADLINE)
    assert command.returncode == 0, said
    assert stacks(tmp_path / "p.txt")


def test_target_becomes_another_program(any_python, tmp_path):
    program = tmp_path / "becoming.py"
    program.write_text("import os, select\nos.write(1, b'ready\\n')\nwhile not select.select([0], [], [], 0)[0]: pass\n"
                       "os.execv('/bin/sleep', ['sleep', '600'])\n")
    target = Target(any_python, "becoming.py", folder=str(tmp_path))
    try:
        command = begin(target.pid, tmp_path / "p.txt")
        sampling(target.pid, command)
        target.child.stdin.write(b"\n")
        target.child.stdin.flush()
        _, said = command.communicate(timeout=DEADLINE)
        assert command.returncode == 0, said
        assert stacks(tmp_path / "p.txt")
    finally:
        target.end()


FORKING = """
import os, time
def parent():
    while True:
        pass
def child():
    while True:
        pass
os.write(1, b"ready\\n")
time.sleep(0.5)
for number in range(20):
    if os.fork() == 0:
        os._exit(0)
if os.fork() == 0:
    child()
parent()
"""


@pytest.mark.parametrize("options", [[], ["-s"]])
def test_target_forks(any_python, tmp_path, options):
    """Children are sampled when that is asked for; those that end at once harm nothing."""
    (tmp_path / "forking.py").write_text(FORKING)
    target = Target(any_python, "forking.py", folder=str(tmp_path))
    try:
        told = profile(target.pid, tmp_path / "p.txt", *options, seconds=4, least=100)
        names = {frame.split(" (")[0] for frames, _ in stacks(tmp_path / "p.txt") for frame in frames}
    finally:
        for pid in children(target.pid):
            os.kill(pid, signal.SIGKILL)
        target.end()
    assert "parent" in names and ("child" in names) == bool(options), (told.text, names)


def test_target_is_stopped(start, any_python, tmp_path):
    """Nothing waits for it, and it stays stopped."""
    target = start(any_python, "shares.py", "gil")
    os.kill(target.pid, signal.SIGSTOP)
    try:
        told = profile(target.pid, tmp_path / "p.txt", "--idle", least=20)
        with open("/proc/{}/stat".format(target.pid)) as file:
            assert file.read().rsplit(")", 1)[1].split()[0] == "T"
    finally:
        os.kill(target.pid, signal.SIGCONT)
    assert told.samples > 10 and len(stacks(tmp_path / "p.txt")) == 1


def test_too_high_a_rate(start, any_python, tmp_path):
    """What the machine reaches is said."""
    target = start(any_python, "shares.py", "gil")
    told = profile(target.pid, tmp_path / "p.txt", "-r", 1000000)
    assert told.skipped > 0 and "was not reached" in told.text


@pytest.mark.parametrize("path", ["/no/such/folder/p.svg", "/", "/proc/p.svg"])
def test_output_that_cannot_be(start, any_python, path):
    """Known before anything is sampled."""
    target = start(any_python, "shares.py", "gil")
    done = probing("-t", target.pid, "profile", "-d", 600, "-o", path, check=False)
    assert done.returncode not in (0, 70)
    assert done.stderr.startswith("probing: ")


def test_full_disk(start, any_python, tmp_path):
    """The file is whole elsewhere, and where is said."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs a small file system of its own")
    target = start(any_python, "shares.py", "gil")
    script = ('mount -t tmpfs -o size=64k none "$1" 2>/dev/null || exit 77; head -c 60000 /dev/zero >"$1/filling"; '
              'TMPDIR=$2 exec "$3" -t "$4" profile -d 1 -o "$1/p.svg"')
    small, other = tmp_path / "small", tmp_path / "other"
    small.mkdir()
    other.mkdir()
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(small), str(other), PROBING, str(target.pid)],
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=90)
    if done.returncode in (1, 77) and "probing" not in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 11 and str(other) in done.stderr, done.stderr
    (made,) = other.iterdir()
    assert made.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_damaged_files(start, any_python, tmp_path):
    """A profile cut short or changed is an error, never a crash."""
    target = start(any_python, "shares.py", "gil")
    profile(target.pid, tmp_path / "p.db")
    good = (tmp_path / "p.db").read_bytes()
    bad = tmp_path / "bad.db"
    whole = probing("-t", tmp_path / "p.db", "query", "SELECT count(*) FROM profiling_data").stdout
    for cut in range(16, len(good), max(1, len(good) // 23)):
        bad.write_bytes(good[:cut])
        done = probing("-t", bad, "query", "SELECT count(*) FROM profiling_data", check=False)
        assert 0 < done.returncode < 70 or done.stdout == whole  # what was cut off held nothing of it
    for at in range(100, len(good), max(1, len(good) // 97)):
        bad.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1:])
        assert 0 <= probing("-t", bad, "query", "SELECT count(*) FROM profiling_data", check=False).returncode < 70
    (tmp_path / "bad.txt").write_text("no stack at all\n")
    assert probing("diff", tmp_path / "bad.txt", bad, "-o", tmp_path / "d.svg", check=False).returncode == 8


def test_wrong_options(any_python):
    for options in (["-r", "0"], ["-d", "-1"], ["-r", "x"], ["--mode", "any"], ["--format", "x"], ["--group", "x"]):
        done = probing("-t", os.getpid(), "profile", *options, check=False)
        assert done.returncode == 2, (options, done.stderr)
