"""A training job that is recorded by the bench: each line of input is a command, and is answered with a line of JSON.

calls TURNS, light TURNS: ns a call of a module, of a root with 1,500 modules below it; light ones do nothing.
scopes TURNS: ns a scope of a collective, which does nothing.  steps TURNS: ns of the median step of a transformer of
28 modules.  All are CPU time of the thread that trains.  hooks c|python|none: hooks of the peer's kind on all modules, or none.
observe on|off: an observer of PyTorch's user scopes that does nothing; whether this PyTorch has any.
held: the longest time for which a thread of the probe had the GIL since the last such question, ns of CPU time and of the clock.
clock: ns of a look at the clock.  go_on: steps until the next line; how many they were.
"""

import collections
import ctypes
import json
import os
import statistics
import sys
import threading
import time

import torch
from torch import nn

FOLDER = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "bench", ".libs")
WIDTH = 96


class Many(nn.Module):
    """A root, and modules whose calls are short."""

    def __init__(self, make):
        super().__init__()
        self.each = nn.ModuleList([make() for _ in range(1500)])

    def forward(self, x):
        for one in self.each:
            x = one(x)
        return x


def calls_of(root, turns):
    took = []
    with torch.no_grad():
        for _ in range(int(turns)):
            began = time.thread_time_ns()
            root(short)
            took.append((time.thread_time_ns() - began) / (len(root.each) + 1))
    return statistics.median(took)


def calls(turns):
    return calls_of(many, turns)


def light(turns):
    return calls_of(many_light, turns)


def scopes(turns):
    """As torch.distributed opens one around each collective."""
    took, label, loop = [], torch.autograd.profiler.record_function, range(1000)
    for _ in range(int(turns)):
        began = time.thread_time_ns()
        for _ in loop:
            with label("gloo:all_reduce"):
                pass
        took.append((time.thread_time_ns() - began) / len(loop))
    return statistics.median(took)


def step():
    loss = nn.functional.cross_entropy(model(data).mean(1), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def steps(turns):
    took = []
    for _ in range(int(turns)):
        began = time.thread_time_ns()
        step()
        took.append(time.thread_time_ns() - began)
    return statistics.median(took)


def python_hooks():
    kept, begun = collections.deque(maxlen=4096), []

    def before(module, args):
        begun.append(time.perf_counter_ns())

    def after(module, args, result):
        kept.append((id(module), begun.pop(), time.perf_counter_ns()))

    return before, after


def c_hooks():
    library = ctypes.PyDLL(os.path.join(FOLDER, "c_hook.so"))
    library.c_hook_new.restype = ctypes.py_object
    hook = library.c_hook_new()
    return hook, hook


def hooks(kind):
    while handles:
        handles.pop().remove()
    if kind != "none":
        before, after = {"c": c_hooks, "python": python_hooks}[kind]()
        handles.append(nn.modules.module.register_module_forward_pre_hook(before))
        handles.append(nn.modules.module.register_module_forward_hook(after))
    return kind


def observe(way):
    return bool(ctypes.PyDLL(os.path.join(FOLDER, "c_hook.so")).c_hook_observe(way == "on"))


def held():
    longest = ctypes.CDLL(None).gil_held_longest  # preloaded
    longest.restype, wall = ctypes.c_double, ctypes.c_double()
    return [longest(ctypes.byref(wall)), wall.value]


def clock():
    library = ctypes.PyDLL(os.path.join(FOLDER, "c_hook.so"))
    library.c_hook_clock.restype = ctypes.c_double
    return library.c_hook_clock(ctypes.c_long(100000))


def go_on():
    threading.Thread(target=lambda: lines.append(sys.stdin.readline()), daemon=True).start()
    count = 0
    while not lines:
        step()
        count += 1
    return count


torch.manual_seed(0)
torch.set_num_threads(1)
handles, lines = [], []
many, many_light, short = Many(lambda: nn.Linear(8, 8)), Many(nn.Identity), torch.zeros(1, 8)
layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True)
model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
optimizer = torch.optim.AdamW(model.parameters())
data, labels = torch.randn(4, 16, WIDTH), torch.randint(0, WIDTH, (4,))
steps(20)
print("ready", flush=True)
while True:
    line = lines.pop() if lines else sys.stdin.readline()
    if not line:
        break
    name, *words = line.split()
    if name in ("calls", "light", "scopes", "steps", "hooks", "observe", "held", "clock", "go_on"):
        print(json.dumps(globals()[name](*words)), flush=True)
