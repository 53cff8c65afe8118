"""No half file, and no temporary one, is left where the tool is killed while it writes one."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from parties import DEADLINE

PROBING = os.environ["PROBING"]
SLEEPER = "import sys\ndef innermost():\n    print('ready', flush=True)\n    sys.stdin.read()\ninnermost()"
COMMANDS = [["snapshot", "--locals", "FILE"], ["profile", "-d", "0.2", "-o", "FILE"]]
BY_NAME = [words[0] for words in COMMANDS]


@pytest.fixture
def job(spawn):
    return spawn([sys.executable, "-c", SLEEPER])


def run(job, words, path, **options):
    words = [str(path) if word == "FILE" else word for word in words]
    return subprocess.run([PROBING, "-t", str(job.pid), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, **options)


def killed_by_size():
    """The kernel kills who writes behind this, in the middle of the write."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


@pytest.mark.parametrize("there", [False, True], ids=["new", "replaced"])
@pytest.mark.parametrize("words", COMMANDS, ids=BY_NAME)
def test_killed_while_writing(job, tmp_path, words, there):
    path = tmp_path / "file.svg"
    if there:
        path.write_text("as it was")
    done = run(job, words, path, preexec_fn=killed_by_size)
    assert done.returncode == -signal.SIGXFSZ, done
    assert os.listdir(str(tmp_path)) == (["file.svg"] if there else [])
    assert not there or path.read_text() == "as it was"


@pytest.mark.parametrize("words", COMMANDS, ids=BY_NAME)
def test_written(job, tmp_path, words):
    path = tmp_path / "file.svg"
    for _ in range(2):  # new, then replaced
        done = run(job, words, path)
        assert done.returncode == 0, done.stderr
        assert os.listdir(str(tmp_path)) == ["file.svg"] and path.stat().st_size > 1024
    # What a link leads to stays; the link is replaced.
    other = tmp_path / "other"
    other.write_text("of another")
    path.unlink()
    path.symlink_to(other)
    assert run(job, words, path).returncode == 0
    assert other.read_text() == "of another" and not path.is_symlink()
    assert words[0] != "snapshot" or stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_without_nameless_files(job, tmp_path):
    """A file system that has none (strace plays it): written under another name first."""
    path, log = tmp_path / "in" / "x.snap", tmp_path / "log"
    path.parent.mkdir()
    done = subprocess.run(["strace", "-o", str(log), "-P", str(path.parent), "-e", "trace=openat", "-e",
                           "inject=openat:error=EOPNOTSUPP:when=1", PROBING, "-t", str(job.pid), "snapshot", str(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE)
    if "INJECTED" not in log.read_text():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0 and os.listdir(str(path.parent)) == ["x.snap"], done.stderr
    assert path.read_bytes().startswith(b"\x7fELF")


FULL = """mount -t tmpfs -o size=128k none "$1" 2>/dev/null || exit 99
cd "$1" && echo "as it was" >x.snap && head -c 60000 /dev/zero >filling
"$2" -t "$3" snapshot x.snap
echo "status $?" && ls && cat x.snap"""


def test_full_disk(job, tmp_path, namespaces):
    """Told, with nothing left behind and the old file as it was."""
    done = subprocess.run([*namespaces("--mount"), "sh", "-c", FULL, "sh", str(tmp_path), PROBING, str(job.pid)], timeout=DEADLINE,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode == 99:
        pytest.skip("no file system can be mounted here")
    assert "No space left on device" in done.stderr and "Free some space" in done.stderr
    assert done.stdout.splitlines() == ["status 11", "filling", "x.snap", "as it was"]


@pytest.mark.parametrize("reads", [False, True], ids=["nobody", "one"])
def test_a_pipe_is_written_to(job, tmp_path, reads):
    """Where nobody reads it, that is told: no Ctrl-C would end the wait."""
    path = tmp_path / "pipe.txt"
    os.mkfifo(str(path))
    reader = subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE, encoding="utf-8") if reads else None
    done = run(job, ["profile", "-d", "0.2", "--idle", "--format", "collapsed", "-o", "FILE"], path)
    if not reads:
        assert done.returncode == 11 and "nobody reads the pipe {}".format(path) in done.stderr, done
        return
    assert done.returncode == 0 and "innermost" in reader.communicate(timeout=DEADLINE)[0], done.stderr


def test_a_profile_from_a_pipe(tmp_path):
    """All of it: what kind of file it is, is not found by reading the beginning."""
    stacks = tmp_path / "stacks.txt"
    stacks.write_text("outermost;inner 3\noutermost;other 4\n")
    def diff(before):
        return subprocess.run(["bash", "-c", '"$1" diff {} "$2" -o "$3"'.format(before), "bash", PROBING, str(stacks), str(tmp_path / "diff.svg")],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE)

    done = diff('<(cat "$2")')
    assert done.returncode == 0, done
    done = diff("/dev/zero")
    assert done.returncode == 8 and "line 1 is not a stack" in done.stderr, done


def test_a_device_stays_one(job, tmp_path, users):
    """A device is never replaced: root's `snapshot /dev/null` would take it away from everybody."""
    path = tmp_path / "null"
    os.mknod(str(path), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    done = run(job, COMMANDS[0], path)
    assert done.returncode == 2 and "regular file" in done.stderr
    assert stat.S_ISCHR(os.lstat(str(path)).st_mode)
