"""Allocates, and times itself: each line of standard input, the name of a loop, is answered with CPU time a turn, in ns.

allocates.py [tracemalloc FRAMES]: with tracemalloc from the start.
"""

import sys
import time


def containers(turns):
    for _ in range(turns):
        a, b, c = [1], {}, {1}
    return a, b, c


def blocks(turns):
    for _ in range(turns):
        bytes(2000)


def training():
    """A step of bench/train.py's job."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = 128
    layers = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    data, labels = torch.randn(64, width), torch.randint(0, 10, (64,))

    def steps(turns):
        for _ in range(turns):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data), labels).backward()
            optimizer.step()

    return steps


def keep(turns):
    kept.append([bytes(1000) for _ in range(turns)])


TURNS = {"containers": 100000, "blocks": 50000, "steps": 20, "keep": 200000}
kept = []
loops = {"containers": containers, "blocks": blocks, "keep": keep}
if sys.argv[1:2] == ["tracemalloc"]:
    import tracemalloc

    tracemalloc.start(int(sys.argv[2]))
print("ready", flush=True)
for line in sys.stdin:
    name = line.strip()
    if name == "steps" and name not in loops:
        loops[name] = training()
        loops[name](20)
    start = time.process_time_ns()
    loops[name](TURNS[name])
    print((time.process_time_ns() - start) / TURNS[name], flush=True)
