"""The crash handler in the worst moments: the process ends as it would without it, and soon."""

import os
import platform
import re
import subprocess
import time

import pytest

import parties

LIBPROBE = os.path.abspath(os.path.join(parties.BUILD, ".libs", "libprobe.so"))
BEFORE = """
import ctypes, faulthandler, mmap, os, resource, signal, sys, threading, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
fault = lambda: ctypes.string_at(8)
"""
WAYS = {
    "a wild pointer is freed": "libc.free(ctypes.c_void_p(0x1234567))",
    "a double free": "block = ctypes.c_void_p(libc.malloc(3000)); libc.free(block); libc.free(block); libc.abort()",
    "eight threads": "for _ in range(8): threading.Thread(target=fault).start()\ntime.sleep(60)",
    "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGSEGV}); fault()",
    "ignored": "signal.signal(signal.SIGSEGV, signal.SIG_IGN); fault()",
    "ignored and sent": "signal.signal(signal.SIGSEGV, signal.SIG_IGN); os.kill(os.getpid(), signal.SIGSEGV)",
    "a handler of the program": "signal.signal(signal.SIGSEGV, lambda *_: sys.exit(7)); os.kill(os.getpid(), signal.SIGSEGV); time.sleep(60)",
    "faulthandler": "faulthandler.enable(); fault()",
    "not dumpable": "libc.prctl(4, 0, 0, 0, 0); fault()",
    "no more processes": "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)); fault()",
    "no more files": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); fault()",
    "no file may grow": "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); fault()",
    "killed": "os.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "os.abort()",
    "leaves": "sys.exit(3)",
    "an exception": "1 / 0",
}
if platform.machine() == "x86_64":
    WAYS["no stack"] = ("code = mmap.mmap(-1, 4096, prot=7); code.write(bytes([0x31, 0xe4, 0x50]))  # xor esp, esp; push rax\n"
                        "ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()")
if os.geteuid() == 0:
    WAYS["another root"] = "os.chroot({root!r}); os.chdir('/'); fault()"


@pytest.mark.parametrize("way", WAYS)
def test_the_end_is_what_it_would_have_been(python, tmp_path, way):
    root = tmp_path / "root"
    root.mkdir()
    code = BEFORE + WAYS[way].replace("{root!r}", repr(str(root)))
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    probed = dict(plain, LD_PRELOAD=LIBPROBE, PROBE="1", PROBING_CRASH="1", PROBING_CRASH_DIR=str(tmp_path / "dumps"), PROBING_CRASH_WAIT="5")

    def end(environment):
        return subprocess.run([python, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=parties.DEADLINE, cwd="/").returncode

    without = end(plain)
    began = time.monotonic()
    assert end(probed) == without
    assert time.monotonic() - began < 60  # none sleeps to its end


FORKS = """
import ctypes, os, sys, time
for number in range({}):
    if os.fork() == 0:
        time.sleep(number * 0.01)
        ctypes.string_at(8)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


def crowd(python, tmp_path, count, budget):
    """Crashes at about one time; the dumps that were told, and those that are there, both earliest first."""
    dumps = tmp_path / "dumps"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "LD_PRELOAD": LIBPROBE, "PROBING": "2",
                   "PROBING_CRASH": "1", "PROBING_CRASH_DIR": str(dumps), "PROBING_CRASH_BUDGET": budget,
                   "PROBING_CRASH_WAIT": "100"}  # eight at a time are not done within the default's 10 s on a busy machine
    done = subprocess.run([python, "-c", FORKS.format(count)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace", timeout=2 * parties.DEADLINE, cwd="/")
    told = re.findall(r"^probing: (/\S+\.snap) \(", done.stderr, re.M)
    return sorted(told), sorted(str(path) for path in dumps.iterdir() if path.suffix == ".snap"), done.stderr


def test_a_crowd_within_the_budget_loses_none(python, tmp_path):
    told, there, said = crowd(python, tmp_path, 8, "256MiB")
    assert len(told) == 8 and there == told, said


def test_a_crowd_beyond_the_budget_keeps_its_first(python, tmp_path):
    told, there, said = crowd(python, tmp_path, 8, "4MiB")
    assert 1 < len(told) == 8 and 1 < len(there) < 8, said
    assert os.path.basename(there[0])[:22] == os.path.basename(told[0])[:22] and there[0] == told[0], said
    assert sum(map(os.path.getsize, there)) <= 8 << 20
