"""A training loop in which nothing but a local counts: SGD keeps no state, and there is no DataLoader.

torch_bare.py FIRST: its number of the first step.  A rank of torchrun's wraps its model; rank 0 says "pid N".
"""

import ctypes
import os
import signal
import sys
import time

import torch

torch.set_num_threads(1)


def wrapped(model):
    if "RANK" not in os.environ:
        return model
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with its launcher
    torch.distributed.init_process_group("gloo")
    if os.environ["RANK"] == "0":
        print("pid {}".format(os.getpid()), flush=True)
    return torch.nn.parallel.DistributedDataParallel(model)


def train(first):
    model = wrapped(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(first, 1 << 60):
        for i in range(2):  # micro-batches
            model(torch.randn(128, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.003)
        if step == first + 3 and os.environ.get("RANK", "0") == "0":
            print("ready", flush=True)


if __name__ == "__main__":
    train(int(sys.argv[1]))
