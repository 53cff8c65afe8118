"""What is watched by the bench: calls of a function, and steps of a training loop; each line of input is a command.

calls N: ns of a call of work().  steps N: µs of the median step.  python calls|steps N: the same with hooks in Python that read loss.
"""

import statistics
import sys
import time

try:
    import torch
except ImportError:
    torch = None


def work(number):
    loss = number * 0.5
    return loss


def calls(count):
    loop, clock = range(count), time.perf_counter
    began = clock()
    for number in loop:
        work(number)
    return 1e9 * (clock() - began) / count


def train(count, model, optimizer, batch):
    took, clock = [], time.perf_counter
    for _ in range(count):
        began = clock()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        took.append(clock() - began)
    return 1e6 * statistics.median(took)


def steps(count):
    return train(count, model, optimizer, batch)


kept = []


def python_calls(count):
    """As a profile function would have it."""
    def hook(frame, event, value):
        if event == "return" and frame.f_code is work.__code__:
            kept.append(frame.f_locals["loss"])
            del kept[:]
    sys.setprofile(hook)
    try:
        return calls(count)
    finally:
        sys.setprofile(None)


def python_steps(count):
    """As a hook of the optimizer would have it."""
    def hook(*_):
        frame = sys._getframe()
        while frame.f_code is not train.__code__:
            frame = frame.f_back
        kept.append(frame.f_locals["loss"].item())
        del kept[:]
    handle = optimizer.register_step_post_hook(hook)
    try:
        return steps(count)
    finally:
        handle.remove()


if torch:
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.ones(4, 8)
    steps(200)
calls(10000)
print("ready", flush=True)
for line in sys.stdin:
    *words, count = line.split()
    print(globals()["_".join(words)](int(count)), flush=True)
