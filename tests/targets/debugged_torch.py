"""A training job to debug: each line of input is a step of it; "done STEP" is the answer.  Marks as in debugged.py."""

import sys

import numpy
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2)

    def forward(self, x):
        hidden = torch.relu(self.first(x))              # at forward
        return self.second(hidden)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, grad):
        doubled = grad * 2                              # at backward
        return doubled


def helper(x):
    print("in helper", flush=True)                      # at helper
    return x + 1


def to_compile(x):
    y = torch.sin(x) * 2                                # at compiled
    y = helper(y)
    return y.sum()


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters())
compiled = torch.compile(to_compile, backend="eager") if sys.argv[1:] == ["compile"] else None


def step(number):
    data = torch.arange(12.0).reshape(3, 4)
    odd = torch.tensor([1.0, float("nan"), float("inf"), -2.0])
    half = torch.ones(2, 3, dtype=torch.bfloat16)
    array = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
    loss = Doubled.apply(model(data)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    extra = float(compiled(data)) if compiled else 0.0
    return float(loss) + extra + len(odd) + half.numel() + array.size + number  # at step


def main():
    step(0)
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        word = line.strip()
        if word == "end":
            break
        if word == "group":
            torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        elif word == "ranks":  # env://, two processes; the time-out is short
            from datetime import timedelta
            torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=45))
        elif word == "reduce":
            torch.distributed.all_reduce(torch.ones(1))
        else:
            step(1)
        print("done {}".format(word), flush=True)


if __name__ == "__main__":
    main()
