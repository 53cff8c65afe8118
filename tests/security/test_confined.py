"""A target under a seccomp filter is entered where the filter lets it, else refused before it is touched."""

import os
import signal

import pytest

UNSUPPORTED = 6
# confine("kill") and so on: what denies this program to map code, from here on.
CONFINE = """
import ctypes, os, struct, sys
def confine(how):
    mmap, mprotect = {"x86_64": (9, 10), "aarch64": (222, 226)}[os.uname().machine]
    word = {"kill": 0x80000000, "errno": 0x00050001, "allow": 0x7fff0000}[how]
    steps = [(0x20, 0, 0, 0), (0x15, 1, 0, mmap), (0x15, 0, 2, mprotect), (0x20, 0, 0, 32), (0x45, 1, 0, 4), (6, 0, 0, 0x7fff0000), (6, 0, 0, word)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 4
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.addressof(program), 0, 0) == 0
def stay():
    print("ready", os.getpid(), flush=True)
    os.read(0, 1)
"""
ITSELF = CONFINE + "confine(sys.argv[1]); stay()"
WORKER = CONFINE + """
confine(sys.argv[1])
if os.fork():
    os.wait()
else:
    stay()
"""
GRANDCHILD = CONFINE + """
confine(sys.argv[1])
for i in range(2):
    if os.fork():
        os.wait()
        os._exit(0)
stay()
"""
STARTED = CONFINE + """
confine("allow")
if os.fork():
    os.wait()
else:
    os.execv(sys.executable, [sys.executable, "-c", "import os; print('ready', os.getpid(), flush=True); os.read(0, 1)"])
"""

# Denies one system call, by its number.
WITHOUT = CONFINE + """
libc = ctypes.CDLL(None)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 4
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, {"kill": 0x80000000, "errno": 0x00050001}[sys.argv[2]]), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.addressof(program), 0, 0) == 0
stay()
"""
NUMBERS = {"x86_64": {"fcntl": 72, "ftruncate": 77, "process_vm_readv": 310, "access": 21, "getdents64": 217},
           "aarch64": {"fcntl": 25, "ftruncate": 46, "process_vm_readv": 270, "access": 48, "getdents64": 61}}

# One thread confines itself, the others not; the main thread waits for it, or waits where it cannot be borrowed.
THREAD = CONFINE + """
import threading, time
done = threading.Event()
def guarded():
    confine(sys.argv[1])
    done.set()
    os.read(0, 1)
threading.Thread(target=guarded, daemon=True).start()
done.wait()
if sys.argv[2] == "free":
    threading.Thread(target=os.read, args=(0, 1), daemon=True).start()
print("ready", os.getpid(), flush=True)
import signal
signal.sigwait([signal.SIGUSR2])
"""


@pytest.fixture
def confined(python, spawn):
    """confined(program, *how): (pid of the process that is to be entered)."""
    made = []

    def begin(program, *how):
        job = spawn([python, "-c", program, *how], user=None)
        pid = int(job.line.split()[1])
        if pid != job.pid:
            made.append(pid)
        return pid

    yield begin
    for pid in made:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def alive(pid):
    try:
        with open("/proc/{}/stat".format(pid)) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("how", ["kill", "errno"])
@pytest.mark.parametrize("program", [ITSELF, WORKER, GRANDCHILD], ids=["itself", "worker", "grandchild"])
def test_filter_of_the_program(installed, confined, program, how):
    pid = confined(program, how)
    done = installed.run(pid, "inject")
    assert alive(pid), "the target died of it: " + done.stderr
    assert done.returncode == UNSUPPORTED and "seccomp filter" in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize("how", ["kill", "errno"])
@pytest.mark.parametrize("call", sorted(NUMBERS["x86_64"]))
def test_a_call_that_only_the_probe_makes(installed, confined, call, how):
    """A filter that kills for it is found before the probe is there; one that only refuses it may cost a part of the probe."""
    pid = confined(WITHOUT, str(NUMBERS[os.uname().machine][call]), how)
    said = ""
    for words in (["inject"], ["eval", "6*7"], ["config", "probing.memory.profile=on"], ["config", "probing.crash=on"], ["detach"]):
        said += installed.run(pid, *words).stderr
        assert alive(pid), "the target died of {}: {}".format(" ".join(words), said)
    assert "seccomp filter" in said or how == "errno", said


def test_filter_before_the_program(installed, confined):
    """It was there when the program was started, and let that load its libraries."""
    pid = confined(STARTED, "allow")
    done = installed.run(pid, "eval", "6*7")
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done.stderr
    assert alive(pid)


def test_a_thread_with_a_filter_of_its_own(installed, confined):
    """It is not borrowed, though no other can be."""
    pid = confined(THREAD, "kill", "alone")
    done = installed.run(pid, "inject", "--wait", "0.5", "--method", "thread")
    assert alive(pid), "the target died of it: " + done.stderr
    assert done.returncode != 0 and "1 under a seccomp filter of its own" in done.stderr, (done.returncode, done.stderr)


def test_another_thread_is_borrowed(installed, confined):
    pid = confined(THREAD, "kill", "free")
    done = installed.run(pid, "inject")
    assert alive(pid) and done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", [ITSELF, WORKER], ids=["itself", "worker"])
def test_a_filter_that_lets_us_in(users, installed, confined, program):
    """Root reads the filters, and finds nothing in them that stands in the way."""
    pid = confined(program, "allow")
    done = installed.run(pid, "eval", "6*7")
    if "seccomp filter" in done.stderr:
        pytest.skip("filters cannot be read here")
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done.stderr
    assert alive(pid)
