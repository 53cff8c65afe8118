"""What a crash dump costs: the time that it keeps a process that crashes, and its size, beside whole cores."""

import glob
import json
import os
import statistics
import subprocess
import tempfile
import threading
import time

from support import pythons
from support import target as live
from support.torch_python import torch_python
from timing import floor, in_turn, peer

PIECES = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "crash_pieces")

PYTHON_THREADS, NATIVE_THREADS = 100, 30
BAR_MS, BAR_BYTES = 40, 2 << 20

THREADS = """
import ctypes, sys, threading
stop = threading.Event()
def work(number):
    batch = [number] * 3
    stop.wait()
for i in range({}):
    threading.Thread(target=work, args=(i,), daemon=True).start()
def train(loss):
    print("ready", flush=True)
    sys.stdin.readline()
    ctypes.string_at(0)
train(0.25)
"""
TORCH = """
import ctypes, sys, torch
torch.set_num_threads({})
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
def train(batch):
    loss = model(batch).square().mean()
    loss.backward()
    torch.randn(2000, 2000).mm(torch.randn(2000, 2000))
    print("ready", flush=True)
    sys.stdin.readline()
    ctypes.string_at(0)
train(torch.randn(64, 512))
"""


def start(python, program):
    child = subprocess.Popen([python, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, preexec_fn=no_core)
    assert child.stdout.readline() == b"ready\n"
    return child


def no_core():
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_of(child):
    """Milliseconds from the word to the end, to the moment: wait() with a time-out looks every 50 ms at last."""
    late = threading.Timer(live.DEADLINE, child.kill)
    late.start()
    began = time.perf_counter()
    child.stdin.write(b"go\n")
    child.stdin.flush()
    child.wait()
    took = 1000 * (time.perf_counter() - began)
    late.cancel()
    child.stdin.close()
    child.stdout.close()
    return took


def crash(python, program, folder, writer=None):
    """The same, with a dump (folder) or without (None), by the command or another writer."""
    child = start(python, program)
    if folder:
        more = ["-D", "probing.crash_program=" + writer] if writer else []
        live.probing("-p", child.pid, "inject", "-c", "-D", "probing.crash_dir=" + folder, *more)
    return end_of(child)


def pieces_of(python, program, rounds):
    """{what: milliseconds} of the writer from the stop to the file (crash_pieces.c)."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            crash(python, program, folder, PIECES)
        with open(os.path.join(folder, "PIECES")) as told:
            runs = [json.loads(line) for line in told]
    assert len(runs) == rounds
    names = [name for run in runs for name in run]
    return {name: statistics.median(run.get(name, 0) for run in runs) for name in dict.fromkeys(names)}


def gcore(python, program, folder):
    """(milliseconds, bytes) of a core by gdb."""
    child = start(python, program)
    path = os.path.join(folder, "core")
    try:
        began = time.perf_counter()
        subprocess.run([peer("gcore"), "-o", path, str(child.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True)
        took = 1000 * (time.perf_counter() - began)
        path = "{}.{}".format(path, child.pid)
        size = os.path.getsize(path)
        os.unlink(path)
        return took, size
    finally:
        child.kill()
        child.wait()


def bare(python, program, size):
    """Milliseconds of what a dump cannot do without: {what: value}."""
    child = start(python, program)
    try:
        told = floor(child.pid)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
    with tempfile.TemporaryFile() as file:
        began = time.perf_counter()
        file.write(bytes(size))
        file.flush()
        wrote = 1000 * (time.perf_counter() - began)
    threads = told["threads"]
    return {f"stat of {threads} threads": told["stat"] / 1e3,
            f"two readings of {threads} stacks": told["readings"] / 1e3, "a copy of {:.2g} MiB".format(size / (1 << 20)): told["copy"] / 1e3 * size / (1 << 20),
            "a file of that": wrote}


def of_job(figures, options, name, python, program):
    with tempfile.TemporaryDirectory() as folder:
        plain, dumped = [], []
        for _ in range(options.rounds):
            plain.append(crash(python, program, None))
            dumped.append(crash(python, program, folder))
        sizes = [os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*.snap"))]
        assert len(sizes) == options.rounds
        took = statistics.median(dumped) - statistics.median(plain)
        figures.bound("crash dump of {}: time".format(name), took, "ms", BAR_MS)
        start = in_turn(3, [live.PROBING, "--version"])[0]["ms"]
        told = pieces_of(python, program, options.rounds)
        rest = took - start - sum(told.values())
        figures.account("crash dump of " + name, "ms", took,
                        {"start of the writer": start, **told, "the text beside it, its last word, its end": rest},
                        {"`probing --version`": start, **bare(python, program, max(sizes))})
        figures.bound("crash dump of {}: size".format(name), max(sizes) / (1 << 20), "MiB", BAR_BYTES / (1 << 20))
        if peer("gcore"):
            took, size = gcore(python, program, folder)
            figures.add("gcore of {}: time".format(name), took, "ms")
            figures.add("gcore of {}: size".format(name), size / (1 << 20), "MiB")


def crashes(figures, options):
    plain = [python for python in pythons.found() if not python.root][-1]
    of_job(figures, options, "{} Python threads".format(PYTHON_THREADS), plain.executable, THREADS.format(PYTHON_THREADS))
    if torch_python():
        of_job(figures, options, "a torch job of {} threads".format(NATIVE_THREADS), torch_python(),
               TORCH.format(NATIVE_THREADS))


PARTS = [crashes]
