"""probing demo: everything that it shows is real, and nothing of it stays."""

import os
import re
import signal
import subprocess
import sys

import pytest

from support.waits import until

PROBING = os.environ["PROBING"]
SECONDS = 280  # that the whole may take beside other programs: 5 on an idle machine


def own_files():
    """What Probing keeps for a user: sockets, tables, caches."""
    found = set()
    for place in "/tmp", "/dev/shm":
        for name in os.listdir(place):
            if name.startswith("probing"):
                for folder, _, files in os.walk(os.path.join(place, name)):
                    found.update(os.path.join(folder, file) for file in files)
    return found


class Stage:
    """An environment of its own, by which its processes are known."""

    def __init__(self, folder, python=sys.executable):
        self.folder = str(folder)
        self.mark = "DEMO_MARK=" + self.folder
        self.environment = dict(os.environ, DEMO_MARK=self.folder, TMPDIR=self.folder, HOME=self.folder, PROBING_PYTHON=python)

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/{}/environ".format(pid), "rb") as told:
                    if self.mark.encode() in told.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def start(self, ignored=None):
        """ignored: a signal that is ignored from the beginning, as SIGINT of a shell's background job is."""
        return subprocess.Popen([PROBING, "demo"], preexec_fn=lambda: ignored and signal.signal(ignored, signal.SIG_IGN), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                env=self.environment, encoding="utf-8", errors="replace")

    def nothing_stays(self):
        until(lambda: self.processes() == [])  # the last one may be on its way out
        assert os.listdir(self.folder) == []


@pytest.fixture
def stage(tmp_path_factory):
    return Stage(tmp_path_factory.mktemp("demo"))


def check_story(out):
    """Each part is there, and says what is true of the script."""
    pid = re.match(r"A small job runs: process (\d+), ", out).group(1)
    stacks = out[out.index("$ probing {} backtrace".format(pid)):]
    assert re.search(r'Thread {} "MainThread"[^\n]*\n(?:    [^\n]+\n)*    train_step \(train\.py:\d+\)'.format(pid), stacks)
    assert re.search(r'"?loader"?.* load|load \(train\.py', stacks)
    assert re.search(r"backward|error", out[out.index("$ probing {} top".format(pid)):])
    stop = re.search(r"stopped at a breakpoint in backward \(train\.py:(\d+)\)\n    called by train_step", out)
    with open(os.path.join(os.environ["SRCDIR"], "cli", "demo", "job.py"), encoding="utf-8") as text:
        assert "loss += error" in text.read().splitlines()[int(stop.group(1)) - 1]
    assert re.search(r"\n    error = -?\d+\.\d+", out[stop.end():]) and "batch = " in out[stop.end():]
    assert re.search(r"\n\(\d\.\d, \d\.\d\)\n", out)
    crash = out[out.index("the job ended by signal 11"):]
    assert "SIGSEGV" in crash and re.search(r"backward \(train\.py:\d+\)", crash)


def test_shows_everything_and_leaves_nothing(stage):
    before = own_files()
    demo = stage.start()
    out, err = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 0, out + err
    check_story(out)
    stage.nothing_stays()
    assert not [path for path in own_files() - before if "demo" in path]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_leaves_nothing_on_overlayfs(stage):
    """As in a container whose layers are on two file systems: its files have other device numbers than their folders."""
    assert len(stage.folder) <= 40  # a longer TMPDIR is not used
    script = """mount -t tmpfs top "$0" && mkdir "$0/up" "$0/work" &&
mount -t overlay -o "lowerdir=$1,upperdir=$0/up,workdir=$0/work" demo "$0" || { echo no overlay; exit 77; }
"$PROBING" demo && find "$0" -path '*/probing-demo*'"""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, stage.folder, os.path.dirname(__file__)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=stage.environment, timeout=SECONDS, encoding="utf-8", errors="replace")
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(done.stderr.strip() or done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    check_story(done.stdout)
    assert "/probing-demo-" not in done.stdout[done.stdout.index("\nThe job and its files are gone."):]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_early_leaves_nothing(stage, number):
    demo = stage.start(ignored=number)
    assert "A small job runs" in demo.stdout.readline()
    demo.send_signal(number)
    demo.communicate(timeout=SECONDS)
    assert demo.returncode == -number
    stage.nothing_stays()


def test_no_python(stage):
    stage.environment.update(PATH="/nonexistent", PROBING_PYTHON="")
    demo = stage.start()
    out, err = demo.communicate(timeout=SECONDS)
    assert (demo.returncode, out) == (3, "") and "no python on PATH" in err
    stage.nothing_stays()
