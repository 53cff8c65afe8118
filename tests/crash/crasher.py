"""A program that crashes in the way its first argument names, once it got a line: under any CPython from 3.6 on.

It says "ready PID", and of its stack what a debugger must find.  argv: WAY [FAULTS, the library of faults.c] [word...];
words: faulthandler-before (in front of the probe), faulthandler-after, full-stderr (a pipe that nobody reads), computing (a thread that keeps the GIL
for 0.6 s each time).
"""

import ctypes
import faulthandler
import mmap
import os
import signal
import sys
import tempfile
import threading
import time

way, words = sys.argv[1], sys.argv[3:]
faults = ctypes.CDLL(sys.argv[2])
stop = threading.Event()


def idle():
    stop.wait()


def truncated():
    with tempfile.TemporaryFile() as file:
        file.truncate(8192)
        data = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        return data[4096]


def in_child():
    pid = os.fork()
    if pid == 0:
        faults.fault_null()
    print("child", os.WTERMSIG(os.waitpid(pid, 0)[1]), pid, flush=True)


def objects():
    """What the interpreter keeps to give out again, overwritten, and then asked for."""
    kept = [bytes(200) for _ in range(1000)]
    places = [id(one) for one in kept]
    del kept
    for place in places:
        ctypes.memset(place, 0x41, 64)
    for _ in range(1000):
        bytes(200)
    faults.fault_null()


def compute():
    while not stop.is_set():
        pass


def raise_it():
    raise ValueError("wrong: {}".format(len(words)))


def raise_in_thread():
    one = threading.Thread(target=raise_it, name="raiser")
    one.start()
    one.join()


def raise_often():
    for _ in range(20):
        raise_in_thread()
    faults.fault_null()


def terminate():
    """An exception of C++ that nobody catches."""
    ctypes.CDLL("libstdc++.so.6")._ZSt21__throw_runtime_errorPKc(b"nobody catches it")


def closed():
    os.closerange(0, 3)
    faults.fault_null()


def signals():
    """Queued signals that a child sends while exceptions are told: how many were sent, how many arrived."""
    faults.fault_count(signal.SIGRTMIN)
    parent = os.getpid()
    sender = os.fork()
    if sender == 0:
        for _ in range(8000):
            os.kill(parent, signal.SIGRTMIN)
            time.sleep(0.0001)
        os._exit(0)
    for _ in range(20):
        raise_in_thread()
    print(8000 if os.waitpid(sender, 0)[1] == 0 else -1, faults.fault_counted(), flush=True)


def overflow_in_thread():
    one = threading.Thread(target=faults.fault_recurse, args=(0,), name="deep")
    one.start()
    one.join()


WAYS = {
    "null": faults.fault_null,
    "gil": lambda: ctypes.string_at(0),
    "abort": faults.fault_abort,
    "divide": faults.fault_divide,
    "illegal": faults.fault_illegal,
    "trap": faults.fault_trap,
    "bus": truncated,
    "stack": lambda: faults.fault_recurse(0),
    "stack-thread": overflow_in_thread,
    "thread": faults.fault_in_thread,
    "killed": lambda: faults.fault_killed(sys.argv[3].encode()),
    "many": faults.fault_many,
    "heap": faults.fault_heap,
    "objects": objects,
    "kill": lambda: os.kill(os.getpid(), 11),
    "term": lambda: (os.kill(os.getpid(), 15), time.sleep(60)),
    "child": in_child,
    "raise": raise_it,
    "raise-thread": raise_in_thread,
    "raise-often": raise_often,
    "signals": signals,
    "malloc": faults.fault_malloc,
    "terminate": terminate,
    "closed": closed,
    "exit": lambda: sys.exit(3),
}


def inner(loss, epoch):
    WAYS[way]()


def outer():
    batch = [1, 2, 3]
    inner(0.25, epoch=len(batch))


threading.Thread(target=idle, name="idler", daemon=True).start()
if "faulthandler-before" in words:
    faulthandler.enable()
if "computing" in words:
    threading.Thread(target=compute, name="computer", daemon=True).start()
    sys.setswitchinterval(0.6)
print("ready", os.getpid(), flush=True)
sys.stdin.readline()
if "faulthandler-after" in words:
    faulthandler.enable()
if "full-stderr" in words:
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    try:
        while True:
            os.write(ends[1], bytes(4096))
    except BlockingIOError:
        os.set_blocking(ends[1], True)
    os.dup2(ends[1], 2)
outer()
stop.set()
print("ended", flush=True)
