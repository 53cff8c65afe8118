"""Targets that cannot be looked at: one clear message each, its own status, nothing on standard output."""

import os
import signal
import subprocess
import sys

import pytest

PROBING = os.environ["PROBING"]
NOT_FOUND, NOT_PYTHON, PERMISSION, CORRUPT, GONE = 3, 4, 5, 8, 7
NOBODY = 65534


def test_no_such_process(probing):
    pid = int(open("/proc/sys/kernel/pid_max").read()) - 1
    probing(pid, "bt").fails(NOT_FOUND, str(pid))
    probing(2**31 - 1, "query", "SELECT 1").fails(NOT_FOUND)


def test_a_process_that_ended(probing, start):
    process = start("print('ready')")
    process.wait()
    probing(process.pid, "bt").fails(NOT_FOUND, str(process.pid))


def test_no_such_name_or_file(probing):
    probing("-n", "no-such-program-anywhere", "bt").fails(NOT_FOUND, "no-such-program-anywhere")
    probing("-t", "/no/such/core", "bt").fails(NOT_FOUND, "/no/such/core")
    probing("no-such-program-anywhere", "bt").fails(NOT_FOUND)


def test_files_that_are_no_targets(probing, tmp_path):
    """An existing file of another kind is told as what it is."""
    fifo = tmp_path / "a-fifo"
    os.mkfifo(str(fifo))
    for path, kind in ((tmp_path, "folder"), ("/dev/full", "device"), (fifo, "pipe")):
        err = probing(path, "bt").fails(2, "{} is a {}".format(path, kind), "core file")
        assert err == probing("-t", path, "bt").fails(2)


def test_a_name_that_several_have(probing, start):
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    pids = [start(program, "twin-program").pid for _ in range(2)]
    err = probing("-n", "twin-program", "bt").fails(2)
    assert all(str(pid) in err for pid in pids)


def test_not_python_names_its_python_children(probing):
    program = "{} -c 'import sys; print(\"ready\", flush=True); sys.stdin.read()'; true".format(sys.executable)
    process = subprocess.Popen(["sh", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        child = open("/proc/{0}/task/{0}/children".format(process.pid)).read().strip()
        probing(process.pid, "bt").fails(NOT_PYTHON, str(process.pid), child)
    finally:
        process.stdin.close()
        process.wait(timeout=20)
        process.stdout.close()


def test_not_python_without_children(probing):
    process = subprocess.Popen(["sleep", "60"])
    try:
        probing(process.pid, "bt").fails(NOT_PYTHON, str(process.pid))
    finally:
        process.kill()
        process.wait()


def test_no_permission(job):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")

    def become_nobody():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    def run(*words):
        return subprocess.run([PROBING, *words], preexec_fn=become_nobody, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", cwd="/", timeout=60)

    try:
        run("--version")
    except PermissionError:
        pytest.skip("nobody may not reach the build folder")
    for words in (["bt"], ["bt", "--native"], ["query", "SELECT * FROM python.backtrace"]):
        done = run(str(job.pid), *words)
        assert (done.returncode, done.stdout) == (PERMISSION, ""), done.stderr
        assert done.stderr.startswith("probing: ") and done.stderr.count("\n") <= 4
        assert "root" in done.stderr or "uid" in done.stderr or "user" in done.stderr
    listed = run("list")
    assert listed.returncode == 0 and "Traceback" not in listed.stderr


def write_core(process, path):
    if subprocess.run(["sh", "-c", "command -v gcore"], stdout=subprocess.DEVNULL).returncode:
        pytest.skip("no gcore here (package gdb)")
    subprocess.run(["gcore", "-o", str(path), str(process.pid)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, timeout=60)
    return "{}.{}".format(path, process.pid)


def test_a_core_and_a_truncated_one(probing, job, tmp_path):
    core = write_core(job, tmp_path / "core")
    assert "innermost" in probing("-t", core, "bt").works()
    assert "innermost" in probing(core, "bt", "--locals").works()
    size = os.path.getsize(core)
    for kept in (size // 2, 4096, 100, 20):
        os.truncate(core, kept)
        probing("-t", core, "bt").fails(CORRUPT, core)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x7fELF", b"\x7fELF" + bytes(60), os.urandom(5000)])
def test_files_that_are_no_core(probing, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    done = probing("-t", path, "bt")
    assert done.status in (2, 3, CORRUPT, 6) and done.out == ""
    assert str(path) in done.err


def test_snapshot_and_back(probing, job, tmp_path):
    path = tmp_path / "job.snap"
    live = probing(job.pid, "bt", "--locals").works()
    assert str(path) in probing(job.pid, "snapshot", path, "--locals").works()
    kept = probing("-t", path, "bt", "--locals").works()
    assert kept.splitlines()[2:] == live.splitlines()[2:]
    assert kept.startswith("Snapshot of process {}".format(job.pid))
    assert os.path.getsize(path) < 4 << 20
    os.truncate(path, os.path.getsize(path) // 2)
    probing("-t", path, "bt").fails(CORRUPT)


def test_snapshot_without_registers_says_so(probing, job, tmp_path):
    path = tmp_path / "job.snap"
    probing(job.pid, "snapshot", path).works()
    assert "taken without --native" in probing(path, "bt", "--native").err
    probing(job.pid, "snapshot", path, "--native").works()
    assert probing(path, "bt", "--native").err == ""


def test_snapshot_where_nothing_can_be_written(probing, job):
    done = probing(job.pid, "snapshot", "/no/such/folder/file")
    assert done.status != 0 and done.out == "" and "/no/such/folder/file" in done.err


def test_watch_ends_with_the_target(start, job):
    process = start(job.args[2])
    watching = subprocess.Popen([PROBING, str(process.pid), "bt", "--watch=0.05"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8")
    seen = [watching.stdout.readline() for _ in range(60)]  # more than one picture
    assert sum(line.startswith("Process ") for line in seen) >= 2
    process.kill()
    process.wait()
    out, err = watching.communicate(timeout=30)
    assert watching.returncode == 0, err
    assert out.splitlines()[-1] == "Process {} ended.".format(process.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_ends_when_asked(job, number):
    watching = subprocess.Popen([PROBING, str(job.pid), "bt", "--watch=60"], stdout=subprocess.PIPE,
                                encoding="utf-8")
    while "outer" not in watching.stdout.readline():
        pass
    watching.send_signal(number)
    watching.communicate(timeout=30)
    assert watching.returncode == 0
