"""Modules of a class torch.nn.Module, and what their calls do while they are followed: a line of JSON for each command that it reads.

torch_slots.py [fake]: fake: with the torch of fake_torch, which any CPython has.
slots: every type's tp_call, and the engine's method; calls N: so many; and the names of the functions below.
"""

import ctypes
import gc
import json
import os
import sys
import threading

if "fake" in sys.argv:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_torch"))
import torch.nn  # noqa: E402

if os.environ.get("TORCH_VERSION"):
    torch.__version__ = os.environ["TORCH_VERSION"]
if os.environ.get("TORCH_SILENT"):
    class Silent:
        """A record_function whose label arrives nowhere."""

        def __init__(self, *_):
            pass

        __enter__ = __exit__ = __init__

    torch.autograd.profiler.record_function = Silent
library = ctypes.CDLL(os.environ["TORCH_LIBRARY"]) if os.environ.get("TORCH_LIBRARY") else None

HEADER = object.__basicsize__
TP_CALL = HEADER + 112


class Leaf(torch.nn.Module):
    def forward(self, value):
        if value == "raise":
            raise ValueError("as asked")
        if value == "deep":
            return self(value + "er")
        return value


class Own(Leaf):
    """It has a __call__ of its own."""

    def __call__(self, value):
        return "own {}".format(Leaf.__call__(self, value))


class Slotted(Leaf):
    __slots__ = ("slot",)


class Root(torch.nn.Module):
    def __init__(self):
        torch.nn.Module.__init__(self)
        self.leaf, self.own, self.slotted = Leaf(), Own(), Slotted()

    def forward(self, value):
        return [self.leaf(value), self.own(value), self.slotted(value)]


root = Root()


def all_types():
    seen = {}
    todo = [object]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        todo.extend(type.__subclasses__(one))
    return seen.values()


def word(address):
    return ctypes.c_uint64.from_address(address).value


def slots():
    """{name: tp_call} of all types, and the function behind run_backward."""
    gc.collect()
    found = {}
    for one in all_types():
        found.setdefault(one.__module__ + "." + one.__name__ if isinstance(one.__module__, str) else one.__name__, []).append(word(id(one) + TP_CALL))
    engine = getattr(getattr(torch, "_C", None), "_ImperativeEngine", None)
    if engine is not None:
        found["run_backward"] = [word(word(id(engine.run_backward) + HEADER + 24) + 8)]
    return {name: sorted(words) for name, words in found.items()}


def calls(count):
    return len([root(1) for _ in range(count)])


def raising():
    try:
        root("raise")
    except ValueError as error:
        return str(error)


def recursion():
    return root("deep")


def keywords():
    return [root.leaf(value=3), Leaf.__call__(root.leaf, 4)]


def in_threads():
    done = []
    threads = [threading.Thread(target=lambda: done.append(calls(100))) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return done


def class_made_later():
    class Later(Leaf):
        pass

    globals()["later"] = Later()
    return later(5)  # noqa: F821


def classes(count):
    """So many more, each below the one before in groups of ten."""
    made = globals().setdefault("many", [])
    for number in range(count):
        made.append(type("Many%d" % number, (made[-1] if number % 10 else Leaf,), {}))
    return len(made)


def later_again():
    return later(6)  # noqa: F821


def reassigned():
    """As torch.fx and torch.export do for a while."""
    before = torch.nn.Module.__call__

    def patched(self, *args, **kwargs):
        return before(self, *args, **kwargs)

    torch.nn.Module.__call__ = patched
    try:
        return root(1)
    finally:
        torch.nn.Module.__call__ = before


def undone():
    """The same; whether a class's slot is another one then."""
    before = word(id(Leaf) + TP_CALL)
    torch.nn.Module.__call__ = torch.nn.Module.__call__
    return word(id(Leaf) + TP_CALL) != before


def observers():
    """That the stand-in of torch's library has."""
    return ctypes.c_int.in_dll(library, "observers").value


def labelled():
    with torch.profiler.record_function("a label"):
        return 1


def updates(count):
    """So many steps of an optimizer, one more that raises; how many hooks there are of all optimizers."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.ones(2)).sum().backward()
        optimizer.step()
    try:
        optimizer.step("no closure")
    except TypeError:
        pass
    hooked = sys.modules["torch.optim.optimizer"]
    return [len(hooked._global_optimizer_pre_hooks), len(hooked._global_optimizer_post_hooks)]


def forked():
    pid = os.fork()
    if not pid:
        os._exit(7 if root(1) == [1, "own 1", 1] else 1)
    return os.waitpid(pid, 0)[1] >> 8


def errors():
    told = []
    for wrong in (lambda: root(), lambda: root.leaf(1, 2), lambda: torch.nn.Module()(1)):
        try:
            wrong()
        except (TypeError, AttributeError, NotImplementedError) as error:
            told.append(type(error).__name__)
    return told


def looked_at():
    """All that PyTorch and pickle see of a module: what recording must not change."""
    import copy
    import io

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    saved = io.BytesIO()
    torch.save(model, saved)
    copied = copy.deepcopy(model)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model(torch.zeros(2, 3)).sum().backward()
    exported = torch.export.export(model, (torch.zeros(2, 3),))
    compiled = torch.compile(copied, backend="eager", fullgraph=True)
    return [len(saved.getvalue()), sorted(copied.__dict__), sorted(torch.nn.Linear.__dict__), sorted(torch.nn.Module.__dict__),
            sorted(event.key for event in profile.key_averages()), str(exported.graph), list(compiled(torch.zeros(2, 3)).shape),
            len(torch.nn.modules.module._global_forward_hooks), torch.nn.Module.__call__.__qualname__,
            [len(model.__dict__[name]) for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")]]


def held():
    """Call a module whose forward returns when the next line comes."""
    class Holding(torch.nn.Module):
        def forward(self):
            print(json.dumps("inside"), flush=True)
            sys.stdin.readline()
            return root(1)

    return Holding()()


print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    name, arguments = line.split()[0], [int(each) for each in line.split()[1:]]
    print(json.dumps(globals()[name](*arguments)), flush=True)
