"""What PyTorch, pickle and profilers make of a module: a line of JSON for each line, the name of a function, that it reads.

Each gives the same whenever it is asked: recording must not change it.  Warnings that it causes are a part of what it gives.
"""

import collections
import copy
import cProfile
import hashlib
import io
import json
import multiprocessing
import pickle
import sys
import threading
import warnings

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def made():
    torch.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(8, 1))


def digest(*tensors):
    whole = hashlib.sha256()
    for one in tensors:
        whole.update(one.detach().numpy().tobytes())
    return whole.hexdigest()


def stepped(model, call=None, steps=3):
    """The losses and the parameters of so many steps, to the bit."""
    optimizer, data, losses = torch.optim.AdamW(model.parameters(), lr=0.01), torch.arange(32.0).reshape(4, 8) / 32, []
    for _ in range(steps):
        loss = (call or model)(data).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
    return digest(*losses, *model.parameters())


def trained():
    return stepped(made(), steps=100)


def saved():
    """torch.save of the module, its state and its optimizer's, and loading them."""
    model, file, state = made(), io.BytesIO(), io.BytesIO()
    optimizer = torch.optim.AdamW(model.parameters())
    torch.save(model, file)
    torch.save([model.state_dict(), optimizer.state_dict()], state)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    return [len(file.getvalue()), len(state.getvalue()), len(pickle.dumps(model)), stepped(loaded)]


def copied():
    model = made()
    one = copy.deepcopy(model)
    return [sorted(one.__dict__), sorted(one[0].__dict__), stepped(one), stepped(copy.copy(model))]


def in_a_process():
    """Pickled, and used in a child by fork."""
    def child(sender):
        sender.send(stepped(made()))

    receiver, sender = multiprocessing.Pipe(False)
    one = multiprocessing.get_context("fork").Process(target=child, args=(sender,))
    one.start()
    told = receiver.recv() if receiver.poll(60) else None
    one.join(60)
    return [told, one.exitcode]


def compiled_by(backend):
    """Graphs, breaks, and how often it was compiled."""
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    model = made()
    call = torch.compile(model, backend=backend, fullgraph=True)
    told = stepped(model, call, steps=8)
    stats = counters["stats"]
    return [told, stats["unique_graphs"], stats["calls_captured"], sum(counters["graph_break"].values()),
            sum(counters["recompile_limit"].values()), sorted(counters["frames"].items())]


def compiled():
    return compiled_by("eager")


def compiled_ahead():
    return compiled_by("aot_eager")


def exported():
    exported = torch.export.export(made(), (torch.zeros(4, 8),))
    return [str(exported.graph), sorted(exported.state_dict)]


def traced():
    return [str(torch.fx.symbolic_trace(made()).graph), torch.jit.trace(made(), torch.zeros(4, 8)).code]


def profiled():
    """The user's own profiler; its events are counted, as the profiler itself keeps them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        told = stepped(made())
    return [told, sorted((event.key, event.count) for event in profile.key_averages())]


def profiled_in_python():
    """cProfile, and functions of sys.setprofile and sys.settrace: what they see of PyTorch's calls."""
    first = cProfile.Profile()
    first.enable()
    told = stepped(made())
    first.disable()
    calls = collections.Counter()
    for name, set_one in ("profile", sys.setprofile), ("trace", sys.settrace):
        def see(frame, event, argument, name=name):
            if frame.f_code.co_name in ("forward", "_call_impl", "_wrapped_call_impl", "step"):
                calls["{} {} {}".format(name, event, frame.f_code.co_name)] += 1
        model = made()
        set_one(see)
        stepped(model)
        set_one(None)
    names = collections.Counter(code.co_name for code in (entry.code for entry in first.getstats()) if hasattr(code, "co_name"))
    return [told, sorted(calls.items()), sorted(names)]


def hooked():
    """The user's hooks, and what stands in dicts."""
    model, seen = made(), []
    handles = [model[0].register_forward_hook(lambda *_: seen.append("after")), model[0].register_forward_pre_hook(lambda *_: seen.append("before")),
               model[0].register_full_backward_hook(lambda *_: seen.append("backward"))]
    told = stepped(model)
    for one in handles:
        one.remove()
    return [told, seen, sorted(nn.Linear.__dict__), sorted(nn.Module.__dict__), nn.Module.__call__.__qualname__, nn.Linear.__call__.__qualname__,
            [len(getattr(nn.modules.module, name)) for name in ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")]]


def in_threads():
    told, model = [], made()
    threads = [threading.Thread(target=lambda: told.append(digest(model(torch.ones(4, 8))))) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return told


torch.set_num_threads(1)
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = globals()[line.strip()]()
    print(json.dumps([answer, sorted({str(one.message) for one in caught})]), flush=True)
