"""A training loop on a CUDA device, a step of some 10 ms.

told has what the allocator had as each forward began and ended: {MB that are allocated at its end: (MB at its begin, MB at most, MB reserved)}; no
two of some hundred steps have the same.  losses has each loss.  Each line of its input is evaluated, and the result printed.
"""

import json
import sys
import threading
import time

import torch

MB = 1 << 20
told, losses, times, kept, lines, is_halted = {}, [], [], [], [], []


def memory():
    stats = torch.cuda.memory_stats()
    return [stats[name] / MB for name in ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current")]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(SIZE, SIZE), torch.nn.Linear(SIZE, 1)

    def forward(self, x):
        begin = memory()
        kept.append(torch.empty(128 * (1 + len(told) % 200), device="cuda"))  # a number of its own
        if len(kept) > 200:
            kept.clear()
        y = self.second(torch.relu(self.first(x)))
        now = memory()
        told[now[0]] = (begin[0], now[1], now[2])
        return y


def train():
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    while True:
        begin = time.perf_counter()
        x = torch.ones(SIZE, SIZE, device="cuda")
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        times.append(time.perf_counter() - begin)
        if len(losses) == 3:
            print("ready", flush=True)
        while lines:
            print(json.dumps(eval(lines.pop(0))), flush=True)
        while is_halted:
            time.sleep(0.01)
            while lines:
                print(json.dumps(eval(lines.pop(0))), flush=True)


def halt():
    """The loop stands here; what it has then, as memory() says it."""
    is_halted.append(True)
    torch.cuda.synchronize()
    return memory()


def sleep(seconds):
    """A kernel that goes on for so long, and the loop behind it."""
    torch.cuda._sleep(int(seconds * 1.9e9))  # cycles


def write_nowhere():
    """A kernel writes where nothing is: CUDA is over for this process, and the driver tells of an Xid."""
    source = 'extern "C" __global__ void write(int where) { *(volatile int *)(long)where = 1; }'
    torch.cuda._compile_kernel(source, "write")(grid=(1, 1, 1), block=(1, 1, 1), args=(16,))


SIZE = int(sys.argv[1]) if sys.argv[1:] else 4096
threading.Thread(target=lambda: [lines.append(line) for line in sys.stdin], daemon=True).start()
train()
