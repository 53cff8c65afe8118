"""What the command says, and leaves alone, where it lacks something: standard streams, descriptors, memory, room on a disk."""

import os
import resource
import subprocess

import pytest

PROBING = os.environ["PROBING"]
LOADER = 127  # the status of the loader, which wants the same before we begin
COMMANDS = [["backtrace"], ["snapshot", "FILE"], ["query", "SELECT count(*) FROM python.backtrace"], ["list"]]


def closed(*streams):
    def close():
        for stream in streams:
            os.close(stream)
    return close


def limited(what, most):
    return lambda: resource.setrlimit(what, (most, most))


@pytest.mark.parametrize("streams", [(0,), (1,), (2,), (1, 2), (0, 1, 2)], ids=str)
def test_closed_streams(probing, job, tmp_path, streams):
    """A file that is opened does not take the place of a closed stream: nothing is printed into it."""
    path = tmp_path / "one.snap"
    done = subprocess.run([PROBING, "-v", "-t", str(job.pid), "snapshot", str(path)], preexec_fn=closed(*streams),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    content = path.read_bytes()
    assert content.startswith(b"\x7fELF") and b"snapshot" not in content[:64]
    assert "innermost" in probing(path, "backtrace").works()
    # What could not be printed is told by the status.
    assert done.returncode == 0 or 1 in streams, done.stderr


def test_closed_output_is_an_error(job):
    done = subprocess.run([PROBING, "-t", str(job.pid), "eval", "1 + 1"], preexec_fn=closed(1), stderr=subprocess.PIPE, timeout=120,
                          encoding="utf-8")
    assert done.returncode != 0 and "Bad file descriptor" in done.stderr
    assert subprocess.run([PROBING, "-t", str(job.pid), "eval", "2 + 3"], stdout=subprocess.PIPE, timeout=120).stdout == b"5\n"


@pytest.mark.parametrize("words", [["-t", "JOB", "repl"], ["dap"], ["-t", "JOB", "query", "-"]], ids=lambda words: words[-1])
def test_closed_input_ends_it(job, words):
    words = [str(job.pid) if word == "JOB" else word for word in words]
    done = subprocess.run([PROBING, *words], preexec_fn=closed(0), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode >= 0 and job.poll() is None, done
    assert subprocess.run([PROBING, "-t", str(job.pid), "eval", "2 + 3"], stdout=subprocess.PIPE, timeout=120).stdout == b"5\n"


# Without these a mapped file is opened by its path, as for an ordinary user; root alone has /proc/PID/map_files.
ORDINARY = ["setpriv", "--bounding-set=-sys_admin,-checkpoint_restore"]


@pytest.mark.parametrize("rights", [[], ORDINARY], ids=["all", "fewer"])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_few_descriptors(job, tmp_path, words, rights):
    if rights and subprocess.run([*rights, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("setpriv may not take rights away: an ordinary user has none of them")
    words = [str(tmp_path / "x.snap") if word == "FILE" else word for word in words]
    target = [] if words == ["list"] else ["-t", str(job.pid)]
    refused = 0
    for most in range(3, 20):
        done = subprocess.run([*rights, PROBING, *target, *words], preexec_fn=limited(resource.RLIMIT_NOFILE, most),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120)
        if done.returncode not in (0, LOADER):
            refused += 1
            assert "open files" in done.stderr, (most, done.stderr)
    assert done.returncode == 0 and (refused or words == ["list"])


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_little_memory(job, tmp_path, words):
    words = [str(tmp_path / "x.snap") if word == "FILE" else word for word in words]
    target = [] if words == ["list"] else ["-t", str(job.pid)]
    for most in [n << 20 for n in (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 30, 200)]:
        done = subprocess.run([PROBING, *target, *words], preexec_fn=limited(resource.RLIMIT_AS, most), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120)
        if done.returncode not in (0, LOADER):
            assert "memory" in done.stderr or "libsqlite3" in done.stderr, (most >> 20, done.returncode, done.stderr)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["backtrace"], ["backtrace", "--json"], ["list"], ["query", "SHOW TABLES"], ["help"]],
                         ids=lambda words: " ".join(words))
def test_full_device(job, words):
    with open("/dev/full", "w") as full:
        target = ["-t", str(job.pid)] if words[0] in ("backtrace", "query") else []
        done = subprocess.run([PROBING, *target, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=120)
    assert done.returncode != 0 and "No space left on device" in done.stderr
