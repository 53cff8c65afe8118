"""Getting in by prb_inject: every interpreter found, twice, by two at once, refusals, and what a target notices."""

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from support.injection import thread_names, wait_until

BUILD = os.path.join(os.environ["BUILDDIR"], ".libs")
AUTO, THREAD, REMOTE_EXEC = range(3)
SLEEPER = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.02)"
DEADLINE = 100


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("sys", ctypes.c_int), ("addr", ctypes.c_uint64),
                ("text", ctypes.c_char * 360), ("remedy", ctypes.c_char * 360)]


class Options(ctypes.Structure):
    _fields_ = [("method", ctypes.c_int), ("library", ctypes.c_char_p), ("settings", ctypes.c_char_p),
                ("force", ctypes.c_bool), ("wait", ctypes.c_double)]


class Report(ctypes.Structure):
    _fields_ = [("already", ctypes.c_bool), ("will_load_later", ctypes.c_bool), ("method", ctypes.c_int),
                ("total_ms", ctypes.c_double), ("paused_us", ctypes.c_double), ("tid", ctypes.c_int),
                ("tries", ctypes.c_uint)]


class Refused(Exception):
    """With the library's code, text and remedy."""

    def __init__(self, code, text, remedy):
        super().__init__(text)
        self.code, self.text, self.remedy = code, text, remedy


library = ctypes.CDLL(os.path.join(BUILD, "libprobing.so.0"))
library.prb_code_name.restype = ctypes.c_char_p
library.prb_inject.restype = ctypes.c_bool
library.prb_control_open.restype = ctypes.c_void_p
library.prb_control_detach.restype = ctypes.c_bool


def inject(pid, method=AUTO, wait=0.0, force=False, dll=None):
    options = Options(method, dll and os.fsencode(dll), None, force, wait)
    report, error = Report(), Error()
    if library.prb_inject(pid, ctypes.byref(options), ctypes.byref(report), ctypes.byref(error)):
        return report
    raise Refused(library.prb_code_name(error.code).decode(), error.text.decode(), error.remedy.decode())


def refusal(pid, code, *words, **options):
    """Refused with this code, these words and one remedy: the text."""
    with pytest.raises(Refused) as caught:
        inject(pid, **options)
    assert caught.value.code == code, caught.value.text
    for word in words:
        assert word in caught.value.text
    assert caught.value.remedy
    return caught.value.text


def refused(pid, code, *words, **options):
    """And not one byte of the target, which rests, is changed by it."""
    before = open("/proc/{}/maps".format(pid)).read()
    refusal(pid, code, *words, **options)
    assert open("/proc/{}/maps".format(pid)).read() == before


def detach(pid):
    error = Error()
    control = library.prb_control_open(pid, ctypes.byref(error))
    assert control, error.text
    control = ctypes.c_void_p(control)
    assert library.prb_control_detach(control, ctypes.byref(error)), error.text
    library.prb_control_close(control)


def state(pid):
    return re.search(r"^State:\s+(\S)", open("/proc/{}/status".format(pid)).read(), re.M).group(1)


def until(what):
    deadline = time.monotonic() + DEADLINE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def inner(pid):
    """The process that `unshare --fork` started."""
    return int(open("/proc/{0}/task/{0}/children".format(pid)).read().split()[0])


@pytest.fixture
def run():
    """run(command): the pid of a program that has printed a line; ended with the test."""
    started = []

    def begin(command, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, **options)
        started.append(process)
        assert process.stdout.readline()
        return process.pid

    yield begin
    for process in started:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.wait()
        process.stdout.close()
        if process.stdin:
            process.stdin.close()


@pytest.fixture
def sleeper(run):
    return run([sys.executable, "-c", SLEEPER])


def test_every_python(run, python):
    pid = run(python.command("-c", SLEEPER))
    if python.container:
        pid = inner(pid)
    try:
        threads = len(thread_names(pid))
        report = inject(pid)
        assert not report.already and not report.will_load_later and report.method == THREAD
        assert report.tid == pid and report.tries >= 1
        assert 0 < report.paused_us < report.total_ms * 1e3
        until(lambda: thread_names(pid).count("probing") == 1)
        again = inject(pid)
        assert again.already and again.tries == 0
        detach(pid)
        until(lambda: len(thread_names(pid)) == threads)
        # The same copy begins again.
        assert not inject(pid).already
        mapped = [line for line in open("/proc/{}/maps".format(pid)) if "libprobe.so" in line]
        assert len({line.split()[4] for line in mapped}) == 1
        assert state(pid) in "SR"
    finally:
        if python.container:
            os.kill(pid, signal.SIGKILL)


def test_by_the_interpreters_own_door(run, python):
    pid = run(python.command("-c", SLEEPER))
    if python.container:
        pid = inner(pid)
    try:
        if python.minor < (3, 14):
            refused(pid, "unsupported", "PEP 768", method=REMOTE_EXEC)
            return
        report = inject(pid, method=REMOTE_EXEC)
        assert report.method == REMOTE_EXEC and report.tid == 0 and report.paused_us == 0
        assert inject(pid).already
        # Another tool's, of a moment, may lie there, too.
        until(lambda: not [name for folder in ("dev/shm", "tmp") for name in os.listdir("/proc/{}/root/{}".format(pid, folder))
                           if name.startswith(".probing-")])
    finally:
        if python.container:
            os.kill(pid, signal.SIGKILL)


def test_the_door_is_shut(run, python):
    if python.minor < (3, 14) or python.container:
        pytest.skip("has no such switch")
    pid = run(python.command("-X", "disable-remote-debug", "-c", SLEEPER))
    refused(pid, "permission", "PYTHON_DISABLE_REMOTE_DEBUG", method=REMOTE_EXEC)


EXECUTABLE = """
import ctypes
start, end = next([int(word, 16) for word in line.split()[0].split("-")] for line in open("/proc/self/maps") if line.endswith("[stack]\\n"))
if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 7):
    print("refused", flush=True)
"""


def test_an_executable_stack(run):
    """As every process has that loaded a library without a word about its stack, such as PyTorch 1.11's."""
    pid = run([sys.executable, "-c", EXECUTABLE + SLEEPER])
    with open("/proc/{}/maps".format(pid)) as maps:
        stack, = [line for line in maps if line.endswith("[stack]\n")]
    if "x" not in stack.split()[1]:
        pytest.skip("this system allows no executable stack")
    assert inject(pid).tid == pid
    detach(pid)


def test_two_at_once(sleeper):
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(inject(sleeper))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert sorted(report.already for report in reports) == [False, True, True, True]
    until(lambda: thread_names(sleeper).count("probing") == 1)


BUSY = "print('ready', flush=True)\nwhile True: keep = [bytes(700 + 13 * i) for i in range(300)]"


def test_busy_single_thread(run):
    pid = run([sys.executable, "-c", BUSY])
    report = inject(pid, method=THREAD, wait=10)
    assert report.tid == pid
    ticks = int(open("/proc/{}/stat".format(pid)).read().rsplit(")", 1)[1].split()[11])
    until(lambda: int(open("/proc/{}/stat".format(pid)).read().rsplit(")", 1)[1].split()[11]) > ticks)
    until(lambda: thread_names(pid).count("probing") == 1)


NUMBERS = """
import math, os, sys
def work():
    total = 0.0
    for i in range(20000):
        total += math.sin(i) * 0.25
    return total
first = work()
print("ready", flush=True)
while os.path.exists(sys.argv[1]):
    assert work() == first
print("same", flush=True)
"""


def test_numbers_stay(tmp_path, test_library):
    going = tmp_path / "going"
    going.write_text("")
    with subprocess.Popen([sys.executable, "-c", NUMBERS, str(going)], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL) as process:
        process.stdout.readline()
        for _ in range(10):
            inject(process.pid, wait=10, dll=test_library)
        going.unlink()
        assert process.stdout.read() == b"same\n" and process.wait(DEADLINE) == 0


def rests(pid, tid):
    """Whether the thread waits in the kernel without a time limit: that for the GIL has one."""
    words = open("/proc/{}/task/{}/syscall".format(pid, tid)).read().split()
    return len(words) > 4 and words[4] == "0x0"


def test_idle_pool_thread_first(run):
    pid = run([sys.executable, "-c", "import threading\n"
               "threading.Thread(target=threading.Event().wait, daemon=True).start()\n" + BUSY])
    tid, = [int(name) for name in os.listdir("/proc/{}/task".format(pid)) if int(name) != pid]
    until(lambda: rests(pid, tid))
    assert inject(pid).tid == tid


def sleeps(test_library):
    """Seconds that a sleep of 1.5 takes which is entered again and again."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time\nprint('ready', flush=True)\nbegin = time.monotonic()\n"
         "time.sleep(1.5)\nprint(time.monotonic() - begin)"], stdout=subprocess.PIPE)
    process.stdout.readline()
    entered = 0
    for _ in range(5):
        try:
            inject(process.pid, dll=test_library)
            entered += 1
        except Refused as why:
            if why.code not in ("gone", "not found", "timeout"):
                raise
    slept = float(process.stdout.read())
    process.stdout.close()
    assert process.wait(DEADLINE) == 0
    return slept, entered


def test_sleeps_to_its_end(test_library):
    """A busy machine may wake it late, or enter it too late, some times."""
    deadline, told = time.monotonic() + DEADLINE, []
    while not told or told[-1][0] >= 1.9 or told[-1][1] < 5:
        assert time.monotonic() < deadline, told
        told.append(sleeps(test_library))
        assert told[-1][0] >= 1.5, told


def test_stopped(sleeper):
    os.kill(sleeper, signal.SIGSTOP)
    until(lambda: state(sleeper) == "T")
    assert inject(sleeper).will_load_later and state(sleeper) == "T"
    assert inject(sleeper).will_load_later and state(sleeper) == "T"  # the second time, too, and only one is loaded
    assert "probing" not in thread_names(sleeper)
    os.kill(sleeper, signal.SIGCONT)
    until(lambda: "probing" in thread_names(sleeper))
    until(lambda: inject(sleeper).already)
    with open("/proc/{}/maps".format(sleeper)) as maps:
        assert len({line.split()[4] for line in maps if "libprobe" in line}) == 1  # inodes


@pytest.fixture
def test_library(tmp_path):
    """A library that does nothing."""
    source = tmp_path / "nothing.c"
    source.write_text("int nothing;\n")
    made = tmp_path / "nothing.so"
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source], check=True)
    return str(made)


def test_another_library(sleeper, test_library):
    inject(sleeper, dll=test_library)
    maps = open("/proc/{}/maps".format(sleeper)).read()
    assert test_library in maps and "libprobe" not in maps
    # The thread that loaded it ends by itself; where processors are scarce that takes a moment.
    until(lambda: "probing" not in thread_names(sleeper))


def test_a_library_that_cannot_be_loaded(sleeper, tmp_path, test_library):
    broken = tmp_path / "broken.so"
    broken.write_bytes(open(test_library, "rb").read()[:5000])
    for dll in (str(broken), "/nowhere/at/all.so"):
        with pytest.raises(Refused) as caught:
            inject(sleeper, dll=dll)
        assert dll in caught.value.text
    assert not inject(sleeper).already


def test_the_tool_has_no_descriptors_left(sleeper):
    """Wherever it runs out of them, it says so, and no thread of ours stays in the target to wait for it."""
    pid, limit = sleeper, resource.RLIMIT_NOFILE
    for count in range(5, 30):
        done = subprocess.run([os.environ["PROBING"], str(pid), "inject"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=lambda: resource.setrlimit(limit, (count, count)))
        if done.returncode == 0:
            break
        assert "Too many open files" in done.stderr, (count, done.stderr)
        wait_until(lambda: "probing" not in thread_names(pid), 20)  # at once, where the machine is not busy; else it has ten seconds
    assert done.returncode == 0


def test_a_probe_is_not_missed_for_want_of_descriptors(sleeper):
    """Four are enough for the libraries of the tool, and too few to look for the socket."""
    limit = resource.RLIMIT_NOFILE

    def evaluated(count):
        return subprocess.run([os.environ["PROBING"], str(sleeper), "eval", "1 + 1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=lambda: resource.setrlimit(limit, (count, count)))

    def told(done):
        return done.stdout == "2\n" or "Too many open files" in done.stderr and "ulimit -n" in done.stderr

    few = [evaluated(count) for count in (4, 5)]
    inject(sleeper)
    few += [evaluated(count) for count in (4, 5, 6)]
    assert all(map(told, few)), few


def test_in_another_mount_namespace(run):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root and unshare")
    hidden = os.path.realpath(BUILD)
    pid = run(["unshare", "--mount", "sh", "-c",
               'mount -t tmpfs none "$0" && exec "$1" -c "$2"', hidden, sys.executable, SLEEPER])
    assert not os.path.exists("/proc/{}/root{}/libprobe.so".format(pid, hidden))
    assert not inject(pid).already
    assert "memfd:libprobe.so" in open("/proc/{}/maps".format(pid)).read()
    assert inject(pid).already


# ---- refusals ----


def test_no_process():
    with pytest.raises(Refused) as caught:
        inject(2 ** 22 - 1)
    assert caught.value.code == "not found"


def test_itself():
    refusal(os.getpid(), "usage", "itself")


def test_not_python(run):
    pid = run(["sh", "-c", "echo ready; read line"], stdin=subprocess.PIPE)
    until(lambda: state(pid) == "S")
    refused(pid, "not python", "not a Python process")


C_TARGET = """
#include <stdio.h>
#include <sys/prctl.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    puts("ready");
    fflush(stdout);
    struct sock_filter allow = {6, 0, 0, 0x7fff0000};
    struct sock_fprog filter = {1, &allow};
    if (argc > 1 && *argv[1] == 's')
        prctl(PR_SET_SECCOMP, 1);
    if (argc > 1 && *argv[1] == 'f')
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), prctl(PR_SET_SECCOMP, 2, &filter);
    for (char c; read(0, &c, 1) != 0;)
        ;
}
"""


@pytest.fixture
def c_target(run, tmp_path):
    """c_target(flags, argument): a C program that waits in read(2)."""

    def begin(flags, *arguments):
        source = tmp_path / "target.c"
        source.write_text(C_TARGET)
        if not shutil.which("cc") or subprocess.run(["cc", *flags, "-o", tmp_path / "target", source],
                                                    stderr=subprocess.DEVNULL).returncode:
            pytest.skip("cannot be built here")
        pid = run([tmp_path / "target", *arguments], stdin=subprocess.PIPE)
        until(lambda: open("/proc/{}/syscall".format(pid)).read().startswith("0 0x0"))
        return pid

    return begin


def test_static(c_target):
    refused(c_target(["-static"]), "unsupported", "statically linked")


def test_32_bit(c_target):
    refused(c_target(["-m32"]), "unsupported", "32-bit")


def test_seccomp(c_target):
    refused(c_target([], "strict"), "unsupported", "strict", force=True)


def test_seccomp_filter(c_target):
    """One that allows all: root sees that it does."""
    pid = c_target([], "filter")
    if os.geteuid() == 0:
        refused(pid, "not python", "not a Python process")
    else:
        refused(pid, "unsupported", "seccomp filter")


def test_traced(sleeper):
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("no strace")
    with subprocess.Popen([strace, "-f", "-o", "/dev/null", "-p", str(sleeper)],
                          stderr=subprocess.DEVNULL) as tracer:
        try:
            until(lambda: "TracerPid:\t0" not in open("/proc/{}/status".format(sleeper)).read())
            refused(sleeper, "busy", "traced by process {} (strace)".format(tracer.pid), method=THREAD)
        finally:
            tracer.terminate()
            tracer.wait(DEADLINE)
    assert not inject(sleeper).already


def test_another_user(sleeper):
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or not setpriv:
        pytest.skip("needs root and setpriv")
    report = subprocess.run(
        [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", sys.executable, "-c",
         "import ctypes, sys\n"
         "l = ctypes.CDLL(sys.argv[1]); e = (ctypes.c_char * 752)()\n"
         "print(l.prb_inject(int(sys.argv[2]), None, None, e) & 255, e[16:].split(b'\\0')[0].decode())",
         os.path.join(BUILD, "libprobing.so.0"), str(sleeper)], stdout=subprocess.PIPE, timeout=DEADLINE)
    if report.returncode:
        pytest.skip("another user cannot read the library")
    assert report.stdout.startswith(b"0 ") and b"belongs to user id 0" in report.stdout


def test_a_refusal_counts_each_thread_once(run):
    """Its only thread sleeps in a callback of the dynamic loader, and is stopped to see whether it may be borrowed."""
    pid = run([sys.executable, "-c", "import ctypes, time\n"
               "kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)\n"
               "def each(*_):\n    print('ready', flush=True)\n    while True: time.sleep(1000)\n"
               "ctypes.CDLL(None).dl_iterate_phdr(kind(each), None)"])
    until(lambda: state(pid) == "S")

    def refusal_text():
        return refusal(pid, "timeout", wait=0.1)

    # Where others want the CPU it may not stop in time.
    until(lambda: refusal_text().endswith(": 1 inside the loader"))


def test_a_thread_that_is_given_no_cpu(run, test_library):
    """Where others keep its CPU busy it does not stop in time; that is no uninterruptible sleep."""
    processor = max(os.sched_getaffinity(0))

    def idle():
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

    def others():
        os.sched_setaffinity(0, {processor})

    pid = run([sys.executable, "-c", "print('ready', flush=True)\ninput()"], stdin=subprocess.PIPE, preexec_fn=idle)
    until(lambda: state(pid) == "S")
    for _ in range(4):
        run([sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"], preexec_fn=others)

    def said():
        """Of an injection that was refused; None of one that was in time."""
        try:
            inject(pid, wait=0.05, dll=test_library)
        except Refused as why:
            assert "uninterruptible" not in why.text, why.text
            return "given no CPU" in why.text

    until(said)


def test_ended(run):
    process = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: state(process.pid) == "Z")
    with pytest.raises(Refused) as caught:
        inject(process.pid)
    assert caught.value.code == "gone"
    process.wait()


def test_stubs_are_what_their_sources_say(tmp_path):
    for tool in ("clang", "llvm-objcopy"):
        if not shutil.which(tool):
            pytest.skip("needs " + tool)
    stubs = os.path.join(os.environ["SRCDIR"], "inject", "enter", "stub")
    subprocess.run(["sh", os.path.join(stubs, "mk-stubs.sh"), str(tmp_path)], check=True)
    names = sorted(os.listdir(str(tmp_path)))
    assert names == ["aarch64.h", "x86_64.h"]
    for name in names:
        assert (tmp_path / name).read_text() == open(os.path.join(stubs, name)).read()


COUNTS = """
import signal, sys, time
count = 0
def on(number, frame):
    global count
    count += 1
    if count % 100 == 0:
        print(count, flush=True)
signal.signal(signal.SIGUSR1, on)
print("ready", flush=True)
while True: time.sleep(5)
"""


def test_signals_pass(test_library):
    """Signals come through while it is entered again and again, and afterwards."""
    with subprocess.Popen([sys.executable, "-c", COUNTS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        stop = threading.Event()

        def storm():
            while not stop.wait(0.0005):
                os.kill(process.pid, signal.SIGUSR1)

        sender = threading.Thread(target=storm)
        sender.start()
        try:
            for _ in range(10):
                inject(process.pid, wait=20, dll=test_library)
            # What it has told until now fits into a pipe, so that it was never blocked.
            while int(process.stdout.readline()) < 400:
                pass
        finally:
            stop.set()
            sender.join()
            process.kill()
