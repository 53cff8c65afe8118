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


class Nested(torch.autograd.Function):
    """Backward within backward: below some depth autograd goes on in threads of its own."""

    @staticmethod
    def forward(context, x, depth):
        context.depth = depth
        return x.clone()

    @staticmethod
    def backward(context, grad):
        if context.depth:
            with torch.enable_grad():
                nested(context.depth - 1)
            return grad, None
        deepest = grad * 2                              # at nested
        return deepest, None


def nested(depth):
    Nested.apply(torch.ones(1, requires_grad=True), depth).backward()


class Batch:
    """What the DataLoader's own thread pins: by this method."""

    def __init__(self, rows):
        self.rows = rows

    def pin_memory(self):
        count = len(self.rows)                          # at pinned
        return (self, count)


def pins():
    """Two batches by way of a pin thread, as where there is a GPU."""
    device = torch.accelerator
    device.is_available, device.current_device_index, device.set_device_index = (lambda: True), (lambda: 0), (lambda _: None)
    loader = torch.utils.data.DataLoader(list(range(8)), batch_size=4, num_workers=1, pin_memory=True, collate_fn=Batch)
    assert [count for _, count in loader] == [4, 4]


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
        elif word == "compiles":
            print("compiles {}".format(torch._dynamo.utils.counters["frames"]["ok"]), flush=True)
        elif word == "nested":
            nested(100)
        elif word == "pins":
            pins()
        else:
            step(1)
        print("done {}".format(word), flush=True)


if __name__ == "__main__":
    main()
