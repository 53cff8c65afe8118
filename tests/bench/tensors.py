"""Statistics of tensors in GB/s of float32, beside what numpy and torch need inside for the same: a part of bench.py."""

import json
import os
import subprocess

from torch_python import torch_python

SPEED = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", "tensor_speed")

# Says "ADDRESS NUMPY TORCH": where its tensor is, and GB/s of the same numbers by either library on one thread.
INSIDE = """
import sys, time
import numpy, torch
torch.set_num_threads(1)
tensor = torch.randn(64 << 20)
array = tensor.numpy()
def by_numpy():
    return (numpy.isnan(array).sum(), numpy.isinf(array).sum(), (array == 0).sum(), array.min(), array.max(), array.mean(),
            array.std(), numpy.linalg.norm(array))
def by_torch():
    return (tensor.isnan().sum(), tensor.isinf().sum(), (tensor == 0).sum(), tensor.min(), tensor.max(), tensor.mean(),
            tensor.std(), tensor.norm())
def speed(work):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return tensor.numel() * 4e-9 / min(times)
print(id(tensor), speed(by_numpy), speed(by_torch), flush=True)
sys.stdin.read()
"""


def tensors(figures, options):
    told = json.loads(subprocess.run([SPEED], stdout=subprocess.PIPE, check=True).stdout)
    for name, key in (("statistics of float32, one core", "sums"), ("the same, read from the kernel", "reading")):
        figures.add(name, told[key], "GB/s", "≥ 5 GB/s", told[key] >= 5)
    if not torch_python():
        return
    child = subprocess.Popen([torch_python(), "-c", INSIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        address, by_numpy, by_torch = child.stdout.readline().decode().split()
        ours = json.loads(subprocess.run([SPEED, str(child.pid), address], stdout=subprocess.PIPE, check=True).stdout)["process"]
        for peer, theirs in (("numpy, inside", float(by_numpy)), ("torch, inside, one thread", float(by_torch))):
            figures.add("statistics of another process's float32", ours, "GB/s", "≥ " + peer, ours >= theirs, peer, theirs,
                        theirs / ours)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


PARTS = [tensors]
