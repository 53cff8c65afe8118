"""Training loops that measure their own phases: a line of JSON for each line that they read.

torch_loops.py SHAPE: plain; closure, as Lightning has it (all of a step inside optimizer.step(closure)); recompute, with activation
checkpoints; sgd, whose optimizer counts nothing; inference; ddp, a rank of torchrun's: rank 0 says "pid N" and answers.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time

import torch
import torch.utils.checkpoint
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.wide(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=128, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return torch.randn(128), index % 10


class Clock:
    """Seconds of each phase since the last report."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seconds = dict.fromkeys(["data", "forward", "backward", "optimizer", "zero_grad"], 0.0)
        self.since = time.perf_counter()
        self.steps = 0

    def spend(self, phase, began):
        now = time.perf_counter()
        with self.lock:
            self.seconds[phase] += now - began
        return now

    def report(self):
        with self.lock:
            now = time.perf_counter()
            told = {phase: seconds / (now - self.since) for phase, seconds in self.seconds.items()}
            told["steps"] = self.steps
            for phase in self.seconds:
                self.seconds[phase] = 0.0
            self.since = now
        print(json.dumps(told), flush=True)


def answer(clock):
    for _ in sys.stdin:
        clock.report()


def ranked(model):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with its launcher
    torch.distributed.init_process_group("gloo")
    return nn.parallel.DistributedDataParallel(model)


class Step:
    """One step of each shape; it spends the clock's time."""

    def __init__(self, clock, shape):
        self.clock = clock
        self.model = ranked(Model()) if shape == "ddp" else Model()
        self.recompute = shape == "recompute"
        make = torch.optim.SGD if shape == "sgd" else torch.optim.AdamW
        self.optimizer = make(self.model.parameters(), lr=1e-3)
        self.loss_function = nn.CrossEntropyLoss()
        self.batches = iter(torch.utils.data.DataLoader(Numbers(), batch_size=32))

    def batch(self):
        at = time.perf_counter()
        found = next(self.batches)
        self.clock.spend("data", at)
        return found

    def forward(self, x, y):
        at = time.perf_counter()
        if self.recompute:
            out = torch.utils.checkpoint.checkpoint(self.model, x, use_reentrant=False)
        else:
            out = self.model(x)
        loss = self.loss_function(out, y)
        self.clock.spend("forward", at)
        return loss

    def backward(self, loss):
        at = time.perf_counter()
        loss.backward()
        self.clock.spend("backward", at)

    def zero_grad(self):
        at = time.perf_counter()
        self.optimizer.zero_grad()
        self.clock.spend("zero_grad", at)

    def plain(self):
        self.backward(self.forward(*self.batch()))
        at = time.perf_counter()
        self.optimizer.step()
        self.clock.spend("optimizer", at)
        self.zero_grad()

    def closure(self):
        spent = []

        def closure():
            began = time.perf_counter()
            self.zero_grad()
            self.backward(self.forward(*self.batch()))
            spent.append(time.perf_counter() - began)

        at = time.perf_counter()
        self.optimizer.step(closure)
        self.clock.spend("optimizer", at + sum(spent))

    def inference(self):
        with torch.no_grad():
            self.forward(*self.batch())


def train(clock, shape):
    one = Step(clock, shape)
    body = {"closure": one.closure, "inference": one.inference}.get(shape, one.plain)
    for step in range(1 << 60):
        body()
        clock.steps = step + 1
        if step == 3 and os.environ.get("RANK", "0") == "0":
            if shape == "ddp":
                print("pid {}".format(os.getpid()), flush=True)
            threading.Thread(target=answer, args=(clock,), daemon=True).start()
            print("ready", flush=True)


if __name__ == "__main__":
    train(Clock(), sys.argv[1])
