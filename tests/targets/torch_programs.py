"""Training programs of many shapes that say what they did: for each line "N" that they read they do N steps, and print a line of JSON
with what happened in each, in order.

torch_programs.py SHAPE: a name of SHAPES below; "pid N" and "ready" come first.  A step ends with the optimizer that has most parameters,
as PyTorch tracing counts (without an optimizer: with the outermost call of a module).

A step is {"events": [[what, name, depth, recompute], ...], "micro_steps": N, "optimizers": [class, ...]}; what: forward (a module's call, in
the order in which calls begin), backward (outermost), optimizer, zero_grad, data, scope.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
import time
import warnings

import torch
import torch.utils.checkpoint
from torch import nn

BEFORE = 2  # steps that are done before the first line is read

torch.set_num_threads(1)
torch.manual_seed(0)


class Truth:
    """What happens, told by the program itself: modules in their forward, the loop around what it calls."""

    def __init__(self):
        self.lock = threading.Lock()
        self.of_thread = threading.local()
        self.in_backward = 0
        self.names = {}
        self.steps = []
        self.begin()

    def begin(self):
        self.now = {"events": [], "micro_steps": 0, "optimizers": []}

    def tell(self, what, name, depth=0):
        with self.lock:
            self.now["events"].append([what, name, depth, int(what == "forward" and self.in_backward > 0)])

    @contextlib.contextmanager
    def call(self, module):
        depth = getattr(self.of_thread, "depth", 0)
        self.tell("forward", self.names.get(id(module), "?"), depth)
        self.of_thread.depth = depth + 1
        try:
            yield
        finally:
            self.of_thread.depth = depth

    @contextlib.contextmanager
    def backward(self):
        if not self.in_backward:
            self.tell("backward", "")
            self.now["micro_steps"] += 1
        self.in_backward += 1
        try:
            yield
        finally:
            self.in_backward -= 1

    def update(self, optimizer, closure=None):
        self.tell("optimizer", type(optimizer).__name__)
        self.now["optimizers"].append(type(optimizer).__name__)
        return optimizer.step(closure) if closure else optimizer.step()

    def zero_grad(self, optimizer):
        self.tell("zero_grad", type(optimizer).__name__)
        optimizer.zero_grad()

    def fetch(self, batches):
        self.tell("data", "")
        return next(batches)

    def step_ends(self):
        self.steps.append(self.now)
        self.begin()

    def name(self, *roots):
        for root in roots:
            for name, module in root.named_modules():
                self.names.setdefault(id(module), name)


truth = Truth()


def told(kind):
    """The class of modules, whose calls are told."""
    class Module(kind):
        def forward(self, *given):
            with truth.call(self):
                return super().forward(*given)

    Module.__name__ = Module.__qualname__ = kind.__name__
    return Module


Linear, Norm, Sequential = told(nn.Linear), told(nn.LayerNorm), told(nn.Sequential)


class PlainBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = Norm(width)
        self.inner = Sequential(Linear(width, width), Linear(width, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


Block = told(PlainBlock)


class PlainModel(nn.Module):
    def __init__(self, width=16, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = Linear(width, 4)
        self.checkpoint = None

    def forward(self, x):
        for block in self.blocks:
            if self.checkpoint is None:
                x = block(x)
            else:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=self.checkpoint)
        return self.head(x)


Model = told(PlainModel)


def backward(loss):
    with truth.backward():
        loss.backward()


def batch(width=16):
    return torch.randn(8, width)


def loss_of(model, x=None):
    return model(batch() if x is None else x).square().mean()


# ---- the shapes: each makes what it needs, and gives the function of one step ----

def plain():
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    truth.name(model)
    batches = iter(torch.utils.data.DataLoader([torch.randn(16) for _ in range(1 << 14)], batch_size=8))

    def step():
        x = truth.fetch(batches)
        truth.zero_grad(optimizer)
        backward(loss_of(model, x))
        truth.update(optimizer)
        truth.step_ends()
    return step


def gan():
    generator, critic = Model(), Model(depth=3)
    truth.name(generator, critic)
    small, large = torch.optim.Adam(generator.parameters()), torch.optim.RMSprop(critic.parameters())
    widen = nn.functional.pad

    def step():
        truth.zero_grad(small)
        backward(critic(widen(generator(batch()), (0, 12))).mean())
        truth.update(small)
        truth.zero_grad(large)
        backward(loss_of(critic))
        backward(-critic(widen(generator(batch()).detach(), (0, 12))).mean())
        truth.update(large)
        truth.step_ends()
    return step


def accumulate():
    model = Model()
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        truth.zero_grad(optimizer)
        for _ in range(3):
            backward(loss_of(model))
        truth.update(optimizer)
        truth.step_ends()
    return step


def checkpointed(reentrant):
    def make():
        model = Model()
        truth.name(model)
        model.checkpoint = reentrant
        optimizer = torch.optim.AdamW(model.parameters())

        def step():
            backward(loss_of(model, batch().requires_grad_()))
            truth.update(optimizer)
            truth.step_ends()
        return step
    return make


def two_optimizers():
    """Both step after one backward; the larger one first."""
    model = Model()
    truth.name(model)
    matrices = [one for one in model.parameters() if one.dim() == 2]
    rest = [one for one in model.parameters() if one.dim() != 2]
    first, second = torch.optim.Adamax(matrices), torch.optim.SGD(rest, lr=0.01)

    def step():
        backward(loss_of(model))
        truth.update(first)
        truth.update(second)
        truth.step_ends()
    return step


def repeated():
    """One optimizer stepped several times for one update, as ZeRO's parts are."""
    model = Model()
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        backward(loss_of(model))
        for _ in range(3):
            truth.update(optimizer)
        truth.step_ends()
    return step


def lbfgs():
    model = Model()
    truth.name(model)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1e-3, max_iter=3)

    def step():
        x = batch()

        def closure():
            truth.zero_grad(optimizer)
            loss = loss_of(model, x)
            backward(loss)
            return loss
        truth.update(optimizer, closure)
        truth.step_ends()
    return step


def skipped():
    """As GradScaler does when a gradient is not finite: every second update is left out."""
    model = Model()
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        backward(loss_of(model))
        backward(loss_of(model))
        truth.update(optimizer)
        truth.step_ends()
    return step


def generate():
    """No optimizer: a root call for each token."""
    model = Model().eval()
    truth.name(model)

    @torch.no_grad()
    def step():
        model(batch())
        truth.step_ends()
    return step


def pipeline():
    """Two stages by hand: forwards of all micro-batches, then backwards through both."""
    first, second = Model(), Model()
    truth.name(first, second)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)

    def step():
        sent = []
        for _ in range(2):
            out = first(batch())
            received = nn.functional.pad(out, (0, 12)).detach().requires_grad_()
            sent.append((out, received, second(received).square().mean()))
        for out, received, loss in sent:
            backward(loss)
            with truth.backward():
                torch.autograd.backward(out, received.grad[:, :4])
        truth.update(optimizer)
        truth.step_ends()
    return step


def threads():
    """Replicas of a model are called by threads, as DataParallel does."""
    model = Model()
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        losses = []
        work = [threading.Thread(target=lambda: losses.append(loss_of(model))) for _ in range(3)]
        for one in work:
            one.start()
        for one in work:
            one.join()
        backward(sum(losses))
        truth.update(optimizer)
        truth.step_ends()
    return step


def labels():
    """The user's own scopes, nested."""
    model = Model()
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        truth.tell("scope", "outer label")
        with torch.profiler.record_function("outer label"):
            truth.tell("scope", "inner")
            with torch.profiler.record_function("inner"):
                loss = loss_of(model)
        backward(loss)
        truth.update(optimizer)
        truth.step_ends()
    return step


def compiled():
    """One graph: inside of it no module is called."""
    inner = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    model = torch.compile(inner, backend="eager")
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    counters = torch._dynamo.utils.counters
    warnings.simplefilter("error")

    def step():
        truth.tell("forward", "")
        backward(loss_of(model))
        truth.now["graphs"] = counters["stats"]["unique_graphs"]
        truth.now["breaks"] = sum(counters["graph_break"].values())
        truth.update(optimizer)
        truth.step_ends()
    return step


def traced():
    """torch.fx traces the model after its fourth step, and torch.export exports it after its eighth."""
    inner = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    truth.name(inner)
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.01)
    done = []

    def step():
        truth.tell("forward", "")
        backward(loss_of(inner))
        truth.update(optimizer)
        done.append(1)
        if len(done) == 4 + BEFORE:
            torch.fx.symbolic_trace(inner)
        if len(done) == 8 + BEFORE:
            torch.export.export(inner, (batch(),))
        time.sleep(0.03)
        truth.step_ends()
    return step


def ranked():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # it ends with its launcher
    torch.distributed.init_process_group("gloo")


def ddp():
    ranked()
    inner = Model()
    model = nn.parallel.DistributedDataParallel(inner)
    truth.name(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        truth.tell("forward", "")
        truth.of_thread.depth = 1
        loss = loss_of(model)
        truth.of_thread.depth = 0
        backward(loss)
        total = loss.detach()
        torch.distributed.all_reduce(total)
        truth.update(optimizer)
        truth.step_ends()
    return step


def fsdp():
    from torch.distributed.fsdp import fully_shard

    ranked()
    model = Model()
    truth.name(model)
    names = dict(model.named_modules())
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    assert dict(model.named_modules()).keys() == names.keys()
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        backward(loss_of(model))
        truth.update(optimizer)
        truth.step_ends()
    return step


SHAPES = {"plain": plain, "gan": gan, "accumulate": accumulate, "checkpoint": checkpointed(False), "reentrant": checkpointed(True),
          "two_optimizers": two_optimizers, "repeated": repeated, "lbfgs": lbfgs, "skipped": skipped, "generate": generate,
          "pipeline": pipeline, "threads": threads, "labels": labels, "compiled": compiled, "traced": traced, "ddp": ddp, "fsdp": fsdp}


def orders():
    """Numbers of steps, read by rank 0 and told to the others."""
    leads = os.environ.get("RANK", "0") == "0"
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    while True:
        count = int(sys.stdin.readline() or 0) if leads else 0
        if ranks > 1:
            told_count = torch.tensor([count])
            torch.distributed.broadcast(told_count, 0)
            count = int(told_count)
        if not count:
            return
        yield count


def main(shape):
    step = SHAPES[shape]()
    for _ in range(BEFORE):
        step()
    leads = os.environ.get("RANK", "0") == "0"
    if leads:
        print("pid {}".format(os.getpid()), flush=True)
        print("ready", flush=True)
    for count in orders():
        truth.begin()
        truth.steps = []
        for _ in range(count):
            step()
        if leads:
            print(json.dumps(truth.steps), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
