"""Statistics of tensors in GB/s of float32 and CPU time, beside what numpy and torch take inside for the same set: a part
of bench.py."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from support.torch_python import torch_python

SPEED = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "tensor_speed")

# Says "ADDRESS" of its tensor and GB/s of the same numbers by either library on one thread, without and with the histogram.
INSIDE = """
import sys, time
import numpy, torch
torch.set_num_threads(1)
tensor = torch.randn(64 << 20)
array = tensor.numpy()
def by_numpy():
    return (array.size, numpy.isnan(array).sum(), numpy.isinf(array).sum(), (array == 0).sum(), array.min(), array.max(),
            array.mean(), array.std(), numpy.linalg.norm(array))
def by_torch():
    return (tensor.numel(), tensor.isnan().sum(), tensor.isinf().sum(), (tensor == 0).sum(), tensor.min(), tensor.max(),
            tensor.mean(), tensor.std(), tensor.norm())
def speed(*work):
    times = []
    for _ in range(3):
        begin = time.process_time()
        for each in work:
            each()
        times.append(time.process_time() - begin)
    return tensor.numel() * 4e-9 / min(times)
print(id(tensor), speed(by_numpy), speed(by_torch), speed(by_numpy, lambda: numpy.histogram(array, 40)),
      speed(by_torch, lambda: torch.histc(tensor, 40)), flush=True)
sys.stdin.read()
"""


def speed(*words):
    return json.loads(subprocess.run([SPEED] + [str(word) for word in words], stdout=subprocess.PIPE, check=True).stdout.decode())


def beside(figures, where, told, cached, peers):
    name = "statistics of float32 " + where
    figures.add(name, told["sums"], "GB/s", "≥ 0.9 × the kernel's", told["sums"] >= 0.9 * told["copy"], "the bytes alone, by the kernel",
                told["copy"], told["sums"] / told["copy"])
    figures.account(name, "ns a KB", 1e3 / told["sums"], {"the kernel's copy": 1e3 / told["copy"], "the sums, from the cache": 1e3 / cached,
                                                        "the rest": 1e3 / told["sums"] - 1e3 / told["copy"] - 1e3 / cached}, {})
    for i, peer in enumerate(("numpy, inside", "torch, inside, one thread")):
        for key, what, theirs in (("sums", "the same", peers[i]), ("histogram", "the same, histogram too", peers[i + 2])):
            figures.add(what, told[key], "GB/s", "≥ " + peer, told[key] >= theirs, peer, theirs, theirs / told[key])


def of_a_core(figures, pid, address, cached, peers):
    if not shutil.which("gcore"):
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if shutil.disk_usage(folder).free < 8 << 30:
            print("  no room for a core of 1 GB: left out", file=sys.stderr)
            return
        path = os.path.join(folder, "core")
        subprocess.run(["gcore", "-o", path, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=True)
        beside(figures, "of a core", speed("{}.{}".format(path, pid), address), cached, peers)


def tensors(figures, options):
    told = speed()
    for name, key in (("in the cache", "cache"), ("in memory, without reading", "sums"), ("of this process, by the kernel", "reading")):
        figures.add("statistics of float32 " + name, told[key], "GB/s", "≥ 5 GB/s", told[key] >= 5)
    if not torch_python():
        return
    child = subprocess.Popen([torch_python(), "-c", INSIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        address, *peers = child.stdout.readline().decode().split()
        peers = [float(word) for word in peers]
        beside(figures, "of another process", speed(child.pid, address), told["cache"], peers)
        of_a_core(figures, child.pid, address, told["cache"], peers)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


PARTS = [tensors]
