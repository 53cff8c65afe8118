"""A training job of 30 threads, or as many as its argument says, for the benchmarks: torch on the CPU, steps of a few
milliseconds, which it times itself.

Each line it reads from standard input ends a period: it answers with one line of JSON about the steps since the last.
"""

import json
import os
import queue
import sys
import threading
import time

import torch
from torch import nn

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 30


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=128, depth=4):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.blocks(x))


def feeder(work, depth):
    """A thread of the kind every job has: waits for work at the end of a few calls."""
    if depth:
        return feeder(work, depth - 1)
    return work.get()


def step(model, optimizer, data, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(data), labels)
    loss.backward()
    optimizer.step()
    return loss


def reports(times):
    for _ in sys.stdin:
        period, times[:] = sorted(times), []
        told = {"steps": len(period)}
        if period:
            told.update(median=period[len(period) // 2], worst=period[-1], mean=sum(period) / len(period))
        print(json.dumps(told), flush=True)
    os._exit(0)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    data, labels = torch.randn(64, 128), torch.randint(0, 10, (64,))
    step(model, optimizer, data, labels)  # brings up torch's own threads
    times, work = [], queue.Queue()
    threading.Thread(target=reports, args=(times,), daemon=True, name="reports").start()
    while len(os.listdir("/proc/self/task")) < THREADS:
        number = len(os.listdir("/proc/self/task"))
        threading.Thread(target=feeder, args=(work, number % 9), daemon=True, name="feeder {}".format(number)).start()
    for _ in range(20):
        step(model, optimizer, data, labels)
    print("ready", flush=True)
    while True:
        start = time.perf_counter()
        step(model, optimizer, data, labels)
        times.append(time.perf_counter() - start)


main()
