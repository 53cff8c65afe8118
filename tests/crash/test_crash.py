"""Crash dumps: real crashes of every CPython found, what the dump tells of them, and that nothing else changed."""

import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
import time

import pytest

from housed import housed
from support.target import DEADLINE, PROBING, SRCDIR, probing
from support.target import query as query_of
from support.torch_python import torch_python
from support.waits import until

BUILDDIR = os.path.abspath(os.environ.get("BUILDDIR", "."))
FAULTS = os.path.join(BUILDDIR, "tests", "crash", ".libs", "faults.so")
CRASHER = os.path.join(SRCDIR, "tests", "crash", "crasher.py")
WAIT = 90  # s that a process waits for its dump
WHERE = {}  # of a dump: where the files of its process are, when it is not here

# How it ends: the signal, or with 0 by itself.
ENDS = {
    "null": signal.SIGSEGV, "gil": signal.SIGSEGV, "abort": signal.SIGABRT, "divide": signal.SIGFPE,
    "illegal": signal.SIGILL, "trap": signal.SIGTRAP, "bus": signal.SIGBUS, "stack": signal.SIGSEGV, "stack-thread": signal.SIGSEGV,
    "thread": signal.SIGSEGV, "many": signal.SIGSEGV, "kill": signal.SIGSEGV, "malloc": signal.SIGABRT,
    "terminate": signal.SIGABRT, "closed": signal.SIGSEGV,
}


class Crasher:
    """crasher.py under an interpreter, with the probe injected for crashes."""

    def __init__(self, python, folder, way, *words, settings=(), variables=None, options=("-c",), before=()):
        self.folder = str(folder)
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **(variables or {}))
        command = [python.executable, CRASHER, way, FAULTS, *words] if before else python.command(CRASHER, way, FAULTS, *words)
        self.child = subprocess.Popen([*before, *command], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        try:
            ready = self.line()
            assert ready.startswith("ready"), ready
            self.pid = int(ready.split()[1])
            # A busy machine may take longer than the usual 10 s to write a dump.
            given = ["probing.crash_dir=" + self.folder, "probing.crash_wait={}".format(WAIT), *settings]
            if options:
                probing("-p", self.pid, "inject", *options, *(word for one in given for word in ("-D", one)))
        except BaseException:
            self.end()
            raise

    def line(self):
        assert select.select([self.child.stdout], [], [], DEADLINE)[0], "it says nothing"
        return self.child.stdout.readline().decode()

    def crash(self):
        """Let it; its exit status, as Popen has it."""
        try:
            self.out, self.told = (text.decode("utf-8", "replace") for text in self.child.communicate(b"go\n", DEADLINE))
        finally:
            self.end()
        return self.child.returncode

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            stream.close()

    @property
    def dumps(self):
        return sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.endswith(".snap"))


@pytest.fixture
def crashed(tmp_path):
    """crashed(python, way, ...): it crashed; the one dump is .dump."""
    def run(python, way, *words, count=1, **options):
        before = housed(python, SRCDIR, BUILDDIR, tmp_path) if python.root else ()
        if before is None:
            pytest.skip("no mount namespace can be made here")
        if python.container:
            pytest.skip("like the root that it is in")
        one = Crasher(python, tmp_path, way, *words, before=before, **options)
        one.status = one.crash()
        assert len(one.dumps) == count, (one.dumps, one.told)
        one.dump = one.dumps[0] if one.dumps else None
        WHERE.update((dump, ("--sysroot", python.root)) for dump in one.dumps if python.root)
        return one
    return run


def query(target, sql):
    return query_of(target, sql, *WHERE.get(target, ()))


def account(dump):
    rows = query(dump, "SELECT * FROM system.crash")
    assert len(rows) == 1, rows
    return rows[0]


def python_stack(dump, tid):
    """(function, file, line), innermost first."""
    rows = query(dump, "SELECT func, file, lineno FROM python.backtrace WHERE os_thread_id = {} AND frame_type = 'Python' "
                       "ORDER BY depth".format(tid))
    return [(row["func"], row["file"], row["lineno"]) for row in rows]


def faulthandler_stack(text):
    """The same of faulthandler's current thread."""
    part = text[text.index("Current thread"):].split("\n\n")[0]
    return [(name, file, int(line)) for file, line, name in re.findall(r'File "([^"]*)", line (\d+) in (.*)', part)]


@pytest.mark.parametrize("way", sorted(ENDS))
def test_every_kind_leaves_a_dump_and_its_status(python, crashed, way):
    if way == "divide" and os.uname().machine != "x86_64":
        pytest.skip("this processor does not fault on it")
    one = crashed(python, way)
    assert one.status == -ENDS[way], one.told
    told = account(one.dump)
    assert (told["kind"], told["signal"], told["pid"]) == ("signal", ENDS[way], one.pid)
    functions = [frame[0] for frame in python_stack(one.dump, one.pid)]
    assert functions[-3:] == ["inner", "outer", "<module>"], functions
    for path in (one.dump, one.dump[:-5] + ".txt"):
        mode = os.lstat(path)
        assert stat.S_ISREG(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o600
    assert os.path.getsize(one.dump) <= 2 << 20
    assert one.dump in one.told or way == "closed"


def test_a_stack_overflow_right_after_injection(any_python, crashed):
    """The main thread gets its stack for signals when it next runs Python: by then the hooks are in, however long that takes beside a thread that computes."""
    one = crashed(any_python, "stack", "computing")
    assert one.status == -signal.SIGSEGV and account(one.dump)["signal"] == signal.SIGSEGV, one.told


def test_a_process_that_is_killed_meanwhile(any_python, crashed, tmp_path):
    """The writer goes on and tells of the dump, though nobody waits for it any more."""
    one = crashed(any_python, "killed", str(tmp_path))
    assert one.status == -signal.SIGKILL and one.dump in one.told, (one.status, one.told)


def test_the_thread_that_crashed_says_so(any_python, crashed):
    """Also where it had released the GIL, and so would be idle in a live process."""
    one = crashed(any_python, "null")
    for words in (["crash", "show", one.dump], ["-t", one.dump, "backtrace"]):
        told = dict(re.findall(r"^Thread (\d+)(.*)", probing(*words).stdout, re.M))
        assert "crashed here (SIGSEGV)" in told.pop(str(one.pid))
        assert not any("crashed" in head for head in told.values())


@pytest.mark.parametrize("way", ["heap", "objects"])
def test_a_broken_heap_does_not_matter(python, crashed, way):
    one = crashed(python, way)
    assert one.status in (-signal.SIGSEGV, -signal.SIGABRT), one.told
    assert "outer" in [frame[0] for frame in python_stack(one.dump, one.pid)]


@pytest.mark.parametrize("when", ["faulthandler-before", "faulthandler-after"])
def test_faulthandler_says_the_same(python, crashed, when):
    one = crashed(python, "gil", when)
    assert one.status == -signal.SIGSEGV
    assert one.told.count("Fatal Python error: Segmentation fault") == 1, one.told
    assert python_stack(one.dump, one.pid) == faulthandler_stack(one.told)


def test_variables_of_the_thread_that_crashed(python, crashed):
    one = crashed(python, "null")
    rows = query(one.dump, "SELECT func, name, value FROM python.locals WHERE os_thread_id = {} AND func IN "
                           "('inner', 'outer')".format(one.pid))
    values = {(row["func"], row["name"]): row["value"] for row in rows}
    assert values[("inner", "loss")] == "0.25" and values[("inner", "epoch")] == "3"
    assert values[("outer", "batch")] == "[1, 2, 3]"


def test_native_frames_of_where_it_happened(python, crashed):
    if python.root:
        pytest.skip("its root has not the library of the fault, when it is looked for")
    one = crashed(python, "null")
    rows = query(one.dump, "SELECT func FROM python.backtrace WHERE os_thread_id = {} AND frame_type = 'Native' "
                           "ORDER BY depth LIMIT 1".format(one.pid))
    assert [row["func"] for row in rows] == ["fault_null"]


@pytest.mark.parametrize("way,function", [("malloc", "malloc"), ("terminate", "__cxa_throw")])
def test_native_frames_of_an_abort(any_python, crashed, way, function):
    """With a lock of malloc held; out of a C++ exception that nobody catches."""
    one = crashed(any_python, way)
    rows = query(one.dump, "SELECT func FROM python.backtrace WHERE os_thread_id = {} AND frame_type = 'Native'".format(one.pid))
    functions = [row["func"] for row in rows]
    assert any(function in name for name in functions), functions


def test_a_program_without_standard_streams(any_python, crashed):
    """No file of the dump may become the standard error of who writes it."""
    one = crashed(any_python, "closed")
    with open(one.dump[:-5] + ".txt") as text:
        assert text.read().startswith("SIGSEGV")


def test_an_exception_that_nobody_handles(python, crashed):
    one = crashed(python, "raise", "one", "two")
    assert one.status == 1 and "ValueError: wrong: 2" in one.told
    told = account(one.dump)
    assert (told["kind"], told["exception"], told["message"]) == ("exception", "ValueError", "wrong: 2")
    assert told["func"] == "raise_it"
    rows = query(one.dump, "SELECT type, message, func, frames FROM python.exception WHERE depth = 0")
    assert {"type": "ValueError", "message": "wrong: 2", "func": "raise_it", "frames": 4} in rows
    head = probing("crash", "show", one.dump, *WHERE.get(one.dump, ())).stdout.split("\n\n")[0]
    assert head.count("ValueError: wrong: 2") == 1, head
    shown = probing("-t", one.dump, *WHERE.get(one.dump, ()), "backtrace").stdout
    assert "crashed here (ValueError), where the exception was raised" in shown.replace(", with the GIL", "")
    frames = where_raised(one.dump, "MainThread")
    assert [frame["name"] for frame in frames] == ["raise_it", "inner", "outer", "<module>"]
    values = [{local["name"]: local["repr"] for local in frame["locals"]} for frame in frames]
    assert values[1] == {"loss": "0.25", "epoch": "3"} and values[2] == {"batch": "[1, 2, 3]"} and values[3]["way"] == "'raise'"


def where_raised(dump, name):
    """The Python frames of the one thread that is told as it was when its exception was raised."""
    done = probing("-t", dump, *WHERE.get(dump, ()), "backtrace", "--json", "--locals", "--native", check=False)
    told = json.loads(done.stdout)  # of another root a note about the probe's own file may be there, too
    one, = [thread for thread in told if thread.get("raised")]
    assert one["thread_name"] == name
    assert not [frame for frame in one["frames"] if frame["filename"] == "<probing crash>"]
    return [frame for frame in one["frames"] if frame["kind"] == "python"]


LAUNCHED = """
import sys, time
end = time.time() + 100
while sys.excepthook is sys.__excepthook__ and time.time() < end:
    time.sleep(0.01)
"""
IN_MAIN = """
raise ValueError("launched")
"""
IN_THREAD = """
import threading
while type(threading.excepthook) is type(len) and time.time() < end:
    time.sleep(0.01)
def fail():
    raise ValueError("launched")
thread = threading.Thread(target=fail, name="raiser")
thread.start()
thread.join()
assert threading.main_thread().ident == threading.get_ident()
sys.exit(1)
"""
# The first package that an interpreter imports: without it, it can load no other one.
SLOW_START = """
import _thread, sys
lock = _thread.allocate_lock()
lock.acquire()
lock.acquire(True, 0.3)
sys.path.remove({!r})
del sys.modules["encodings"]
import encodings
"""


def launched(python, tmp_path, program, **variables):
    """The account of the dump of a program that fails as soon as the probe's hook is there."""
    if python.root or python.container:
        pytest.skip("launch starts programs of our own root")
    dumps = tmp_path / "dumps"
    done = subprocess.run([PROBING, "launch", "-D", "probing.crash=on", "-D", "probing.crash_dir={}".format(dumps),
                           python.executable, "-c", LAUNCHED + program],
                          env=dict(os.environ, **variables), stderr=subprocess.PIPE, timeout=DEADLINE)
    assert done.returncode == 1 and b"ValueError: launched" in done.stderr
    (dump,) = dumps.glob("*.snap")
    return account(dump)


def test_an_exception_of_a_program_that_was_launched(python, tmp_path):
    """The probe is there before the interpreter is."""
    told = launched(python, tmp_path, IN_MAIN)
    assert (told["kind"], told["message"]) == ("exception", "launched")


def test_a_launched_program_that_begins_slowly(python, tmp_path):
    """3.6 says that it has begun, and has the GIL to give, when nothing can be imported yet."""
    package = tmp_path / "first" / "encodings"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(SLOW_START.format(str(package.parent)))
    assert launched(python, tmp_path, IN_MAIN, PYTHONPATH=str(package.parent))["kind"] == "exception"


def test_an_exception_of_a_launched_program_s_thread(python, tmp_path):
    """The probe is there before the program imports threading, which has to believe that the main thread did."""
    if python.minor < (3, 8):
        pytest.skip("it has no threading.excepthook")
    told = launched(python, tmp_path, IN_THREAD)
    assert (told["kind"], told["thread_name"]) == ("exception", "raiser")


def test_an_exception_of_a_thread(python, crashed):
    if python.minor < (3, 8):
        pytest.skip("it has no threading.excepthook")
    one = crashed(python, "raise-thread")
    assert one.status == 0 and "ended" in one.out and "ValueError: wrong: 0" in one.told
    assert account(one.dump)["thread_name"] == "raiser"
    names = [frame["name"].rpartition(".")[2] for frame in where_raised(one.dump, "raiser")]
    assert names[:3] == ["raise_it", "run", "_bootstrap_inner"] and names.count("_bootstrap_inner") == 1, names


def test_exceptions_leave_room_for_the_end(any_python, crashed):
    """However many were told, what ends the process is told, too."""
    one = crashed(any_python, "raise-often", count=17)
    assert one.status == -signal.SIGSEGV
    kinds = sorted(account(dump)["kind"] for dump in one.dumps)
    assert kinds == ["exception"] * 16 + ["signal"]


def test_signals_on_their_way_arrive(any_python, crashed):
    """While exceptions are told, all threads are held again and again: no signal may get lost."""
    one = crashed(any_python, "signals", count=16)
    assert one.status == 0
    sent, got = (int(word) for word in one.out.split()[:2])
    assert sent == got > 0


def test_leaving_is_no_crash(python, crashed):
    assert crashed(python, "exit", count=0).status == 3


def test_a_child_of_fork(python, crashed):
    one = crashed(python, "child")
    assert one.status == 0 and "child {} ".format(int(signal.SIGSEGV)) in one.out
    assert account(one.dump)["pid"] == int(one.out.split()[2])


def test_several_threads_at_once_leave_one(any_python, crashed):
    one = crashed(any_python, "many")
    assert one.told.count("crashed:") == 1


def test_sigterm_only_when_asked(any_python, crashed):
    assert crashed(any_python, "term", count=0).status == -signal.SIGTERM
    one = crashed(any_python, "term", settings=["probing.crash_term=on"])
    assert one.status == -signal.SIGTERM and account(one.dump)["kind"] == "asked"


def test_the_rank_is_in_the_name(any_python, crashed):
    one = crashed(any_python, "null", variables={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"})
    assert "-rank3-pid{}.snap".format(one.pid) in one.dump
    told = account(one.dump)
    assert (told["rank"], told["local_rank"], told["world_size"]) == (3, 1, 8)


def test_secrets_stay(any_python, crashed):
    one = crashed(any_python, "null", variables={"SOME_API_TOKEN": "swordfish", "PLAIN": "visible"})
    variables = {row["name"]: row["value"] for row in query(one.dump, "SELECT * FROM system.environment")}
    assert variables["PLAIN"] == "visible" and variables["SOME_API_TOKEN"] == "***"
    with open(one.dump, "rb") as dump:
        assert b"swordfish" not in dump.read()


def test_a_full_disk_is_told_and_ends(any_python, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(small)]).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        one = Crasher(any_python, small, "null")
        assert one.crash() == -signal.SIGSEGV
        assert "No space left" in one.told and not one.dumps
        assert not [name for name in os.listdir(str(small)) if not name.endswith(".txt")]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_disk_full_from_the_start(tmp_path):
    """Preloaded, the probe finds no place for its socket and does not start: a crash is told all the same."""
    words = ["unshare", "--mount", "sh", "-c", 'for one in /run /dev/shm /var/tmp /tmp; do mount -t tmpfs -o nr_inodes=1 none "$one" || exit 77; done; exec "$@"',
             "sh", sys.executable, "-c", "import ctypes; ctypes.string_at(0)"]
    variables = dict(os.environ, LD_PRELOAD=os.path.join(os.path.realpath(os.environ["BUILDDIR"]), ".libs", "libprobe.so"), PROBING="1",
                     PROBING_CRASH="on")
    variables.pop("XDG_RUNTIME_DIR", None)
    if os.geteuid() != 0 or os.path.realpath(os.environ["BUILDDIR"]).startswith(("/tmp/", "/var/tmp/", "/run/")):
        pytest.skip("no file system can be mounted here")
    done = subprocess.run(words, env=variables, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == -signal.SIGSEGV
    assert "probing: SIGSEGV in process" in done.stderr and "nothing can be written" in done.stderr and "no space left" in done.stderr


def test_a_folder_that_cannot_be_written(any_python, tmp_path):
    place = tmp_path / "file"
    place.write_text("no folder")
    one = Crasher(any_python, place, "null")
    assert one.crash() == -signal.SIGSEGV
    assert "is not a folder" in one.told and place.read_text() == "no folder"


def test_links_are_not_followed(any_python, tmp_path):
    """The text's name could be guessed: nobody's file behind a link is written to."""
    one = Crasher(any_python, tmp_path, "null")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    now = time.time()
    for ahead in range(30):
        name = time.strftime("crash-%Y%m%dT%H%M%SZ", time.gmtime(now + ahead))
        for ending in (".txt", ".snap"):
            os.symlink(str(victim), str(tmp_path / "{}-pid{}{}".format(name, one.pid, ending)))
    assert one.crash() == -signal.SIGSEGV
    assert victim.read_text() == "mine"


def test_the_budget_removes_the_oldest(any_python, tmp_path):
    old = tmp_path / "crash-20200101T000000Z-pid1.snap"
    other = tmp_path / "notes.snap"
    for path in (old, other):
        path.write_bytes(b"x" * (3 << 20))
    one = Crasher(any_python, tmp_path, "null", settings=["probing.crash_budget=3MiB"])
    assert one.crash() == -signal.SIGSEGV
    assert not old.exists() and other.exists()
    assert len([path for path in one.dumps if "-pid{}".format(one.pid) in path]) == 1


def test_a_small_dump_keeps_what_counts(any_python, crashed):
    one = crashed(any_python, "null", settings=["probing.crash_size=1MiB"])
    assert os.path.getsize(one.dump) <= 1 << 20
    assert [frame[0] for frame in python_stack(one.dump, one.pid)][-3:] == ["inner", "outer", "<module>"]


def test_without_the_program_a_text_is_left(any_python, tmp_path):
    one = Crasher(any_python, tmp_path, "null", options=("-c", "-D", "probing.crash_wait=0.1"),
                  settings=["probing.crash_program=/bin/false"])
    assert one.crash() == -signal.SIGSEGV
    (text,) = tmp_path.glob("crash-*.txt")
    told = text.read_text()
    assert told.startswith("SIGSEGV in process {}".format(one.pid)) and "address 0x8" in told
    assert "/faults.so" in told and stat.S_IMODE(text.stat().st_mode) == 0o600


HOLDER = """#!{} -IS
import ctypes, os, time
libc = ctypes.CDLL(None)
for task in os.listdir("/proc/{{}}/task".format(os.getppid())):
    libc.ptrace(0x4206, int(task), None, None)
    libc.ptrace(0x4207, int(task), None, None)
with open(os.path.join("{}", "status"), "w") as file:
    file.write(open("/proc/self/status").read())
time.sleep(600)
"""


def test_a_writer_that_hangs(any_python, tmp_path):
    """It holds the thread that waits for it, too: it is ended all the same, and the process ends as it would have."""
    writer = tmp_path / "writer"
    writer.write_text(HOLDER.format(sys.executable, tmp_path))
    writer.chmod(0o755)
    one = Crasher(any_python, tmp_path, "null", settings=["probing.crash_program={}".format(writer), "probing.crash_wait=15"])
    assert one.crash() == -signal.SIGSEGV
    status = dict(line.split(":\t", 1) for line in (tmp_path / "status").read_text().splitlines() if ":\t" in line)
    # What ends a whole job must not end who writes the dump.
    ignored = int(status["SigIgn"], 16)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGTSTP):
        assert ignored >> (number - 1) & 1
    assert int(status["SigBlk"], 16) == 0
    assert list(tmp_path.glob("crash-*.txt"))


@pytest.mark.parametrize("writes", [True, False])
def test_a_standard_error_that_nobody_reads(any_python, tmp_path, writes):
    """A pipe that is full: the dump is not lost, and the process ends."""
    settings = [] if writes else ["probing.crash_program=/bin/false"]
    one = Crasher(any_python, tmp_path, "null", "full-stderr", settings=settings)
    try:
        one.child.stdin.write(b"go\n")
        one.child.stdin.flush()
        assert one.child.wait(DEADLINE) == -signal.SIGSEGV
    finally:
        one.end()
    names = sorted(path.name.rsplit(".", 1)[1] for path in tmp_path.iterdir())
    assert names == (["snap", "txt"] if writes else ["txt"])


def test_it_is_held_though_others_crash(any_python, tmp_path):
    """A second thread that crashes waits as long as the first one is held."""
    one = Crasher(any_python, tmp_path, "many", options=("-c", "--hold=60", "-D", "probing.crash_wait=0.1"),
                  settings=["probing.crash_program=/bin/false"])
    try:
        one.child.stdin.write(b"go\n")
        one.child.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            one.child.wait(8)  # longer than a thread that crashed waits for another one's account
        probing("-p", one.pid, "config", "probing.crash_hold=0")
        assert one.child.wait(DEADLINE) == -signal.SIGSEGV
    finally:
        one.end()


def test_it_is_held_for_a_debugger(any_python, tmp_path):
    one = Crasher(any_python, tmp_path, "null", options=("-c", "--hold=200"))
    try:
        one.child.stdin.write(b"go\n")
        one.child.stdin.flush()
        kept = "kept for 200 s for a debugger: `gdb -p {0}` or `probing {0} debug --snapshot`".format(one.pid)
        assert any(kept in line.decode() for line in one.child.stderr)  # said after all files are written
        assert os.path.exists(one.dumps[0][:-5] + ".txt") and one.child.poll() is None
        stacks = query(one.pid, "SELECT func FROM python.backtrace WHERE os_thread_id = {} ORDER BY depth".format(one.pid))
        assert "inner" in [row["func"] for row in stacks]
        probing("-p", one.pid, "config", "probing.crash_hold=0")
        assert one.child.wait(DEADLINE) == -signal.SIGSEGV
    finally:
        one.end()


def test_detached_means_left_alone(any_python, tmp_path):
    one = Crasher(any_python, tmp_path, "null")
    probing("-p", one.pid, "detach")
    assert one.crash() == -signal.SIGSEGV
    assert not one.dumps


def test_list_show_and_export(any_python, tmp_path):
    """Equal crashes of two ranks are one line, the earliest first."""
    for rank in ("0", "1"):
        assert Crasher(any_python, tmp_path, "null", variables={"RANK": rank}).crash() == -signal.SIGSEGV
    assert Crasher(any_python, tmp_path, "raise").crash() == 1
    lines = probing("crash", "list", tmp_path).stdout.splitlines()
    assert len(lines) == 3, lines
    assert re.search(r"\b2 +0 1\b", lines[1]) and "SIGSEGV" in lines[1]
    assert "ValueError: wrong: 0" in lines[2]
    assert len(probing("crash", "list", "--all", tmp_path).stdout.splitlines()) == 4
    shown = probing("crash", "show", tmp_path).stdout
    assert shown.startswith("ValueError: wrong: 0") and "raise_it" in shown
    told = json.loads(probing("crash", "export", tmp_path).stdout)
    assert told["crash"]["kind"] == "exception" and told["exceptions"][0]["frames"][-1]["function"] == "raise_it"
    names = {frame["name"] for thread in told["backtrace"] for frame in thread["frames"]}
    assert "raise_it" in names and "tell_crash" not in names


def removed(group):
    try:
        os.rmdir(group)
    except OSError:
        return False
    return True


def test_memory_that_runs_out(any_python, tmp_path):
    """The control group's use over the threshold: one dump, and the process lives on."""
    group = "/sys/fs/cgroup/memory/probing-test-{}".format(os.getpid())
    limit, members = "memory.limit_in_bytes", "cgroup.procs"
    try:
        os.mkdir(group)
        with open(os.path.join(group, limit), "w") as file:
            file.write(str(64 << 20))
    except OSError:
        pytest.skip("no control group can be made here")
    one = Crasher(any_python, tmp_path, "null", options=())
    try:
        with open(os.path.join(group, members), "w") as file:
            file.write(str(one.pid))
        probing("-p", one.pid, "inject", "-c", "-D", "probing.crash_dir={}".format(tmp_path),
                "-D", "probing.crash_memory=0.01")
        until(lambda: one.dumps)
        told = account(one.dumps[0])
        assert told["kind"] == "memory" and "64 MiB" in told["title"] and told["os_thread_id"] == one.pid
        assert one.child.poll() is None
    finally:
        one.end()
        until(lambda: removed(group))  # who wrote the dump may be in it still


# ---- PyTorch's own handlers ----

WORKERS = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import torch
from torch.utils.data import DataLoader, Dataset
class Bad(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        if i == 5:
            ctypes.string_at(0)
        return torch.zeros(2)
print("ready", flush=True)
sys.stdin.readline()
try:
    try:
        for batch in DataLoader(Bad(), batch_size=2, num_workers=1):
            pass
    except (RuntimeError, EOFError, OSError) as error:  # what it finds first: a dead worker, or its closed socket
        print(error)
except RuntimeError as error:  # its handler of SIGCHLD raises wherever the program is, once
    print(error)
"""


def test_a_worker_of_dataloader(tmp_path):
    """It takes the signals for handlers of its own, after ours."""
    if not torch_python():
        pytest.skip("no Python with torch")
    child = subprocess.Popen([torch_python(), "-c", WORKERS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        probing("-p", child.pid, "inject", "-c", "-D", "probing.crash_dir={}".format(tmp_path))
        out, told = child.communicate(b"go\n", DEADLINE)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    assert child.returncode == 0 and b"segmentation fault" in told.lower(), (child.returncode, out, told)
    (dump,) = tmp_path.glob("*.snap")
    functions = [frame[0] for frame in python_stack(dump, account(dump)["pid"])]
    assert "__getitem__" in functions and "_worker_loop" in functions


def torch_crash(program, tmp_path):
    """A program that says ready, reads a line, and crashes: the process that ended, and its dump."""
    if not torch_python():
        pytest.skip("no Python with torch")
    child = subprocess.Popen([torch_python(), "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        probing("-p", child.pid, "inject", "-c", "-D", "probing.crash_dir={}".format(tmp_path))
        child.communicate(b"go\n", DEADLINE)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    (dump,) = tmp_path.glob("*.snap")
    assert os.path.getsize(str(dump)) <= 2 << 20
    return child, dump


AUTOGRAD = """
import ctypes, sys, torch
class Deeper(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        if not ctx.depth:
            ctypes.string_at(0)
        with torch.enable_grad():
            Deeper.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).backward()
        return grad, None
print("ready", flush=True)
sys.stdin.readline()
Deeper.apply(torch.ones(1, requires_grad=True), 80).backward()
"""


def test_a_thread_of_autograd(tmp_path):
    """Backward within backward, deep enough for a thread of the engine's own."""
    child, dump = torch_crash(AUTOGRAD, tmp_path)
    told = account(dump)
    assert child.returncode == -signal.SIGSEGV and told["os_thread_id"] != child.pid
    assert python_stack(dump, told["os_thread_id"])[1][0].endswith("backward")


TENSORS = """
import ctypes, sys, torch
def train(batch):
    weight = torch.tensor([[1.0, float("nan")], [0.0, 4.0]], requires_grad=True)
    print("ready", flush=True)
    sys.stdin.readline()
    ctypes.string_at(0)
train(torch.arange(10))
"""


def test_tensors_of_the_thread_that_crashed(tmp_path):
    child, dump = torch_crash(TENSORS, tmp_path)
    rows = {row["name"]: row for row in query(dump, "SELECT * FROM python.crash_tensors WHERE func = 'train'")}
    weight, batch = rows["weight"], rows["batch"]
    assert (weight["shape"], weight["dtype"], weight["device"], weight["requires_grad"]) == ("[2, 2]", "float32", "cpu", 1)
    assert (weight["nan"], weight["zero"], weight["min"], weight["max"]) == (1, 1, 0.0, 4.0)
    assert weight["first"] == "[[1.0, nan], [0.0, 4.0]]"
    assert (batch["dtype"], batch["elements"], batch["mean"]) == ("int64", 10, 4.5)
    values = {row["name"]: row["value"] for row in query(dump, "SELECT name, value FROM python.locals WHERE func = 'train'")}
    assert "shape=(2, 2)" in values["weight"]
