# Code of a file that is in no namespace of a module and in no frame that runs: kept by an object, a closure, a generator that
# rests, a task, or a class that was made in a function.  Looked for where a breakpoint found nothing else; other threads run in between.
# (The collector could list all objects, but only in one go, which takes tens of milliseconds in a process with torch.)
import sys
import types

codes = probe.part("codes")
ITEMS_MAX = 2000  # of one container
VALUES_MAX = 200000
DEPTH_MAX = 4
RESTING = {types.GeneratorType: ("gi_code", "gi_yieldfrom"), types.CoroutineType: ("cr_code", "cr_await"),
           types.AsyncGeneratorType: ("ag_code", "ag_await")}
PLAIN = (int, float, complex, str, bytes, bool, type(None), types.ModuleType)


def space_of(value):
    try:
        space = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return space if type(space) is dict else {}


class Search(object):
    def __init__(self, path):
        self.path = path
        self.found = {}
        self.seen = set()
        self.loops = []  # of asyncio that it comes by
        self.loop = getattr(sys.modules.get("asyncio.events"), "AbstractEventLoop", None)

    def code(self, code):
        if codes.mine.key(code.co_filename) == self.path:
            codes.tree(code, self.found)

    def value(self, value, depth=0):
        if depth > DEPTH_MAX or isinstance(value, PLAIN) or id(value) in self.seen or len(self.seen) > VALUES_MAX:
            return
        self.seen.add(id(value))
        if len(self.seen) % 64 == 0:
            probe.engine.yield_gil()
        for one in self.inner(value):
            self.value(one, depth + 1)

    def inner(self, value):
        """What it holds that may be, or hold, code."""
        kind = type(value)
        if self.loop and self.loop in kind.__mro__:
            self.loops.append(value)
        if kind is codes.Function:
            self.code(value.__code__)
            return codes.inner_functions(value)
        if kind in RESTING:
            code, inner = RESTING[kind]
            self.code(getattr(value, code))
            return [getattr(value, inner, None)]
        if kind is types.MethodType:
            return [value.__func__, value.__self__]
        if kind in (list, tuple, set, frozenset):
            return list(value)[:ITEMS_MAX]
        if kind is dict:
            return list(value.values())[:ITEMS_MAX]
        if isinstance(value, type):
            return []
        return codes.inner_functions(value) or list(space_of(value).values())[:ITEMS_MAX]


def subclasses(names):
    """All classes of these modules, those that no namespace holds among them."""
    found, waiting, seen = [], [object], set()
    while waiting:
        kind = waiting.pop()
        if id(kind) in seen:
            continue
        seen.add(id(kind))
        if len(seen) % 256 == 0:
            probe.engine.yield_gil()
        waiting += type.__subclasses__(kind)
        if type.__dict__["__dict__"].__get__(kind).get("__module__") in names:
            found.append(kind)
    return found


def running_loops():
    """Those of asyncio that threads run."""
    found = []
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_name == "run_forever" and frame.f_globals.get("__name__") == "asyncio.base_events":
                found.append(frame.f_locals.get("self"))
            frame = frame.f_back
    return found


def all_tasks(loops):
    """Of asyncio: from its own sets; where it has none of all tasks (3.6, and from 3.14 on), it gives those of a loop."""
    module = sys.modules.get("asyncio.tasks")
    found = [task for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks") for task in list(getattr(module, name, None) or ())]
    if module and not hasattr(module, "_all_tasks"):
        all_of = module.all_tasks if hasattr(module, "all_tasks") else module.Task.all_tasks
        for loop in loops + running_loops():
            found += all_of(loop)
    return found


def coroutines(loops):
    found = []
    try:
        for task in all_tasks(loops):
            found.append(task.get_coro() if hasattr(task, "get_coro") else task._coro)
    except Exception as error:
        probe.caught(error)
    return found


def of_file(path):
    """{id: code}"""
    search = Search(path)
    own = codes.modules_of(path)
    for _, module in own:
        search.value(dict(module.__dict__))
    for kind in subclasses(set(name for name, _ in own)):
        search.value(dict(type.__dict__["__dict__"].__get__(kind)))
    search.value(coroutines(search.loops))
    return search.found
