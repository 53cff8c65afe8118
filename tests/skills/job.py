"""A training job with one planted fault, which its first argument names; "healthy": none.

Prints "ready" once the fault is there.
"""

import os
import sys
import threading
import time


def ready():
    print("ready", flush=True)


# ---- hang: two threads that take two locks in opposite order ----

left, right = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def transfer(first, second):
    with first:
        both.wait()
        with second:  # deadlock
            pass


def tell_when_it_waits():
    """A look that begins before that sees the main thread move."""
    while True:
        frame = sys._current_frames()[threading.main_thread().ident]
        with open("/proc/self/task/{}/stat".format(os.getpid())) as stat:
            state = stat.read().rpartition(")")[2].split()[0]
        if frame.f_code is transfer.__code__ and left.locked() and right.locked() and state == "S":
            break
        time.sleep(0.01)
    ready()


def hang():
    threading.Thread(target=tell_when_it_waits).start()
    threading.Thread(target=transfer, args=(right, left), name="other", daemon=True).start()
    transfer(left, right)


# ---- idle: a pool whose worker has nothing to do ----


def idle():
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(len, ("x",))
        ready()
        threading.Event().wait()


# ---- slow: a loader that takes longer than the step ----


def load_batch():
    time.sleep(0.05)  # the disk
    return list(range(1000))


def step(batch):
    return sum(value * value for value in batch)


def slow():
    ready()
    while True:
        step(load_batch())


# ---- leak: whatever a sample was is kept ----


class Sample:
    def __init__(self):
        self.pixels = bytearray(2000)


class Trainer:
    def __init__(self):
        self.history = []


trainer = Trainer()


def leak():
    ready()
    while True:
        for _ in range(20):
            trainer.history.append(Sample())
        time.sleep(0.01)


def healthy():
    first = True
    while True:
        for _ in range(50):
            step(range(200))
        time.sleep(0.002)
        if first:
            ready()
            first = False


# ---- nan: a learning rate that is far too large ----


def nan():
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e6)
    told = False
    while True:
        optimizer.zero_grad()
        loss = (model(torch.randn(16, 4)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        if not told and not torch.isfinite(model[0].weight).all():
            told = True
            ready()
        time.sleep(0.01)


def trains():
    """The same with a learning rate that works."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number in range(10**9):
        optimizer.zero_grad()
        loss = (model(torch.randn(16, 4)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        if number == 50:
            ready()


# ---- comm: of the ranks of a job, the last one is slow ----


def slow_step():
    time.sleep(0.2)


def comm():
    import os

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    value = torch.ones(4)
    for number in range(10**9):
        if dist.get_rank() == int(os.environ["WORLD_SIZE"]) - 1 and len(sys.argv) > 2:
            slow_step()
        dist.all_reduce(value)
        value.fill_(1)
        if number == 3:
            ready()


globals()[sys.argv[1]]()
