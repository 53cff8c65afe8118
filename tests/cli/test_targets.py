"""Targets that cannot be looked at: one clear message each, its own status, nothing on standard output."""

import glob
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from support.terminal import on_a_terminal

PROBING = os.environ["PROBING"]
NOT_FOUND, NOT_PYTHON, PERMISSION, CORRUPT, GONE = 3, 4, 5, 8, 7
NOBODY = 65534
NAME = "{{}}-of-test-{}".format(os.getpid())  # no other one's of a test that runs at the same time


def test_no_such_process(probing):
    pid = int(open("/proc/sys/kernel/pid_max").read())  # the first that no process can have
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


def test_a_file_that_a_job_runs(probing, start, tmp_path, monkeypatch):
    """Where the script lies in the current folder, its name still means the job."""
    script = NAME.format("script") + ".py"
    (tmp_path / script).write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    monkeypatch.chdir(tmp_path)
    probing("-t", script, "bt").fails(NOT_FOUND, script + " is neither a core file nor a snapshot", "no Python process")
    process = start("exec(open({!r}).read())".format(script), script)
    for words in (("-t", script), (script,)):
        assert probing(*words, "bt").works().startswith("Process {}:".format(process.pid))
    probing(process.pid, "snapshot", script).works()
    assert probing("-t", script, "bt").works().startswith("Snapshot of process")
    probing("-t", "./" + script, "bt").works()


def test_a_name_that_several_have(probing, start):
    """Processes that do not belong together: none is taken, and each is named by what tells it apart."""
    program = "import sys; print('ready', flush=True); sys.stdin.read()"
    pids = [start(program, NAME.format("twin"), which).pid for which in ("first", "second")]
    err = probing("-n", NAME.format("twin"), "bt").fails(2)
    assert all(re.search(r"^ +{}  python\S* -c import sys".format(pid), err, re.M) for pid in pids)


# A parent and two that it forks; what is ready when all run.
FAMILY = """import os, sys
children = [os.fork() or os.read(0, 1) or os._exit(0) for _ in range(2)]
print('ready', *children, flush=True)
sys.stdin.read()"""
# A launcher with two ranks, each with a worker.
JOB = """import os, subprocess, sys
rank = "import os, sys; os.fork() or os.read(0, 1); print('ready', flush=True); sys.stdin.read()"
ranks = [subprocess.Popen([sys.executable, "-c", rank, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=dict(os.environ, RANK=str(1 - i), WORLD_SIZE="2")) for i in range(2)]
[one.stdout.readline() for one in ranks]
print('ready', *[one.pid for one in ranks], flush=True)
sys.stdin.read()"""


def test_a_name_of_a_process_and_its_workers(probing, start):
    process = start(FAMILY, NAME.format("family"))
    done = probing("-n", NAME.format("family"), "bt")
    assert done.works().startswith("Process {}:".format(process.pid))
    assert "process {} is taken".format(process.pid) in done.err
    assert str(process.pid) in probing(NAME.format("family"), "bt").works()


def test_a_name_of_a_job(probing, start):
    """The launcher waits for its ranks: the lowest of them is meant."""
    process = start(JOB, NAME.format("job"))
    rank0 = process.ready.split()[2]
    done = probing("-n", NAME.format("job"), "bt")
    assert done.works().startswith("Process {}:".format(rank0))
    assert "rank 0 of 2, process {}".format(rank0) in done.err


@pytest.mark.parametrize("words", [
    ["bt", "PID"], ["dump", "--pid", "PID"], ["dump", "-p", "PID"], ["remote", "PID"], ["tasks", "PID"], ["tables", "PID"],
    ["query", "PID", "SELECT pid FROM system.process"], ["query", "SELECT pid FROM system.process", "PID"],
    ["inspect", "PID", "threads"], ["inspect", "threads", "PID"], ["snapshot", "PID", "FILE"], ["snapshot", "FILE", "PID"],
    ["top", "PID", "--count", "1", "--delay", "0.1"], ["profile", "PID", "-d", "0.1", "-o", "FILE"],
    ["record", "-o", "FILE", "--pid", "PID", "-d", "0.1"], ["record", "-d", "0.1", "PID", "-o", "FILE"]], ids=" ".join)
def test_the_pid_after_the_command(probing, job, tmp_path, words):
    words = [{"PID": job.pid, "FILE": tmp_path / "x.svg"}.get(word, word) for word in words]
    done = probing(*words)
    assert done.works() or (tmp_path / "x.svg").exists()


def test_words_that_are_no_pid(probing, job):
    probing("profile", "./12345").fails(NOT_FOUND, "./12345")
    probing("profile", "--", "12345").fails(NOT_FOUND, "12345")
    probing("bt", job.pid, job.pid).works()  # the second is a thread
    probing("-p", job.pid, "bt", 1).fails(NOT_FOUND, "no thread 1")
    probing("bt", job.pid, 1, 2).fails(2, "one argument too many")


@pytest.mark.parametrize("words", [["bt", "metrics"], ["bt", "--thread", "metrics"]], ids=len)
def test_a_thread_by_its_name(probing, start, words):
    process = start("import sys, threading; wait = threading.Event().wait; threading.Thread(target=wait, name='metrics').start();"
                    "print('ready', flush=True); sys.stdin.read()")
    out = probing(process.pid, *words).works()
    assert re.findall(r'^Thread \d+ "(.*?)"', out, re.M) == ["metrics"]
    assert json.loads(probing(process.pid, *words, "--json").works())[0]["thread_name"] == "metrics"
    for word in ("no-such-thread", "7"):
        err = probing(process.pid, "bt", "--thread", word).fails(NOT_FOUND, word, "its threads are: {} MainThread, ".format(process.pid))
        assert err.rstrip().endswith(" metrics")


def test_the_tool_is_no_python_process(probing, start, job):
    """It maps libpython, to read its symbols, but runs none of it."""
    top = subprocess.Popen([PROBING, str(job.pid), "top", "--count", "1000", "--delay", "0.1"], stdout=subprocess.PIPE)
    try:
        assert top.stdout.read(1)
        assert top.pid not in [one["pid"] for one in json.loads(probing("list", "--json").works())]
    finally:
        top.kill()
        top.wait()
        top.stdout.close()


def on_terminal(*words):
    """The lines that a terminal of 80 columns gets."""
    status, text = on_a_terminal([PROBING, *words], stdin="terminal", stderr=subprocess.DEVNULL, COLUMNS="80", NO_COLOR="1")
    assert status == 0
    return text.decode().splitlines()


def test_a_list_on_a_narrow_terminal(probing, tmp_path):
    """The script's name is there, whatever the folders of it and of its interpreter."""
    folder = tmp_path / ("deep" * 12)
    folder.mkdir()
    script = folder / "x.py"
    script.write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    process = subprocess.Popen([sys.executable, str(script), "--rate", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        row, = [line for line in on_terminal("list") if line.split()[0] == str(process.pid)]
        assert len(row) <= 80 and re.search(r" python\S* …/x.py", row)
        assert str(script) in probing("list").works()  # a pipe gets it whole
    finally:
        process.communicate()


@pytest.mark.parametrize("timeout", ["x", "", "0", "-1", "nan", "1e9"])
def test_a_timeout_that_is_no_number(probing, job, timeout):
    """Also where no job is asked, which it is for."""
    probing("--timeout", timeout, job.pid, "bt").fails(2, '--timeout is a number of seconds from 0.001 to 3600, not "{}"'.format(timeout))


def test_a_thread_of_the_kernel(probing):
    if os.path.exists("/proc/2/exe") or not os.path.exists("/proc/2/comm") or open("/proc/2/comm").read() != "kthreadd\n":
        pytest.skip("no kernel thread is visible here")
    probing(2, "bt").fails(NOT_PYTHON, "thread of the kernel")


def test_a_python_that_is_too_old(probing):
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python2.7"))
    if not found:
        pytest.skip("no Python 2.7")
    process = subprocess.Popen([found[0], "-c", "print('ready'); import sys; sys.stdout.flush(); sys.stdin.read()"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        probing(process.pid, "bt").fails(6, "CPython 2.7 is too old")
    finally:
        process.communicate()


def test_files_where_another_command_is_meant(probing, job, tmp_path):
    path = tmp_path / "job.snap"
    probing(job.pid, "snapshot", path).works()
    probing(path, "debug", "--listen").fails(2, "debug --core FILE")
    probing("crash", "list", path).fails(11, "crash show FILE")
    probing("diff", tmp_path / "a", tmp_path / "b").fails(NOT_FOUND, "No such file")


def test_not_python_names_its_python_children(probing):
    program = "{} -c 'import sys; print(\"ready\", flush=True); sys.stdin.read()'; true".format(sys.executable)
    process = subprocess.Popen(["sh", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        child = open("/proc/{0}/task/{0}/children".format(process.pid)).read().strip()
        probing(process.pid, "bt").fails(NOT_PYTHON, str(process.pid), child)
    finally:
        process.stdin.close()
        process.wait(timeout=120)
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
                              stderr=subprocess.PIPE, encoding="utf-8", cwd="/", timeout=200)

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
                   stderr=subprocess.DEVNULL, check=True, timeout=200)
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
    out, err = watching.communicate(timeout=120)
    assert watching.returncode == 0, err
    assert out.splitlines()[-1] == "Process {} ended.".format(process.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_ends_when_asked(job, number):
    watching = subprocess.Popen([PROBING, str(job.pid), "bt", "--watch=60"], stdout=subprocess.PIPE,
                                encoding="utf-8")
    for line in watching.stdout:
        if "outer" in line:
            break
    else:
        raise AssertionError("it ended before it was asked to")
    watching.send_signal(number)
    watching.communicate(timeout=120)
    assert watching.returncode == 0
