"""asyncio: tasks that wait for each other in every way asyncio has, on two event loops; each told as Python sees it.

One line for each task: its id, the label it was given here, its name, its coroutine, the functions and lines that it
stands in (innermost first), and the labels of the tasks that wait for it.  With "running": a task that blocks its loop.
With "many N": N tasks below one gather.  With "busy": tasks that come and go for ever.  With "working": tasks that
compute, each for some 10 ms, below a gather, a wait_for and a task with a name.
"""

import asyncio
import gc
import os
import sys
import threading
import time
import types

import oracle

FOREVER = 100000
labels = {}  # task: label
awaited_by = {}  # label: labels that wait for it
new = sys.version_info >= (3, 8)


def mark(label, *waiters):
    current = asyncio.current_task()  # 3.14 and later: None in a task that is not of the C module's class
    if current is not None:
        labels.setdefault(current, label)
    awaited_by.setdefault(label, sorted(waiters))


def task(coroutine, **more):
    return asyncio.ensure_future(coroutine)


async def sleeping(label, *waiters):
    mark(label, *waiters)
    await asyncio.sleep(FOREVER)


async def deeper(label, *waiters):
    await sleeping(label, *waiters)


async def direct():
    mark("direct", "main")
    await task(deeper("direct-1", "direct"))


async def gathering():
    mark("gathering", "main")
    await asyncio.gather(deeper("gathered-1", "gathering"), sleeping("gathered-2", "gathering"),
                         return_exceptions=True)


async def nesting():
    mark("nesting", "main")
    inner = asyncio.gather(sleeping("nested-1", "nesting"), sleeping("nested-2", "nesting"))
    await asyncio.gather(inner, sleeping("nested-3", "nesting"))


async def shielding():
    mark("shielding", "main")
    await asyncio.shield(deeper("shielded", "shielding"))


async def timing():
    mark("timing", "main")
    own = sys.version_info >= (3, 12)  # it no longer makes a task
    await asyncio.wait_for(deeper("timed", *(["main"] if own else ["timing"])), FOREVER)


async def shared():
    """Two wait for one."""
    mark("shared", "main")
    one = task(sleeping("wanted", "shared", "shared-2"))
    other = task(wants(one))
    await asyncio.sleep(0)
    awaited_by["shared-2"] = ["main"]
    extra.append(other)
    await one


async def wants(one):
    labels.setdefault(asyncio.current_task(), "shared-2")
    await one


async def stubborn():
    mark("stubborn", "main")
    try:
        await asyncio.sleep(FOREVER)
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def queueing():
    mark("queueing", "main")
    await asyncio.Queue().get()


async def locking():
    mark("locking", "main")
    lock = asyncio.Lock()
    async with lock:
        await lock.acquire()


async def ticks():
    yield 0
    await asyncio.sleep(FOREVER)


async def iterating():
    mark("iterating", "main")
    async for tick in ticks():
        pass


class Awaitable:
    def __await__(self):
        return (yield from asyncio.sleep(FOREVER).__await__())


async def wrapping():
    mark("wrapping", "main")
    await Awaitable()


@types.coroutine
def by_generator():
    future = asyncio.get_event_loop().create_future()
    yield from future


async def generating():
    mark("generating", "main")
    await by_generator()


class Derived(asyncio.Task):
    pass


async def done():
    return 1


extra = []
groups = """
async def grouping():
    mark("grouping", "main")
    async with asyncio.TaskGroup() as group:
        group.create_task(sleeping("grouped-1", "grouping"))
        group.create_task(inner())

async def inner():
    mark("inner", "grouping")
    async with asyncio.TaskGroup() as group:
        group.create_task(deeper("grouped-2", "inner"))

async def eager():
    mark("eager", "main")
    await asyncio.Task(deeper("eager-1", "eager"), loop=asyncio.get_running_loop(), eager_start=True)
"""


def all_coroutines():
    found = [direct, gathering, nesting, shielding, timing, shared, queueing, locking, iterating, wrapping, generating]
    if hasattr(asyncio, "TaskGroup"):
        exec(compile(groups, __file__, "exec"), globals())
        found.append(globals()["grouping"])
        if sys.version_info >= (3, 12):
            found.append(globals()["eager"])
    return found


async def main():
    mark("main")
    loop = asyncio.get_event_loop()
    tasks = [task(function()) for function in all_coroutines()]
    cancelled = task(stubborn())
    derived = Derived(sleeping("derived", "main"), loop=loop)
    python = asyncio.tasks._PyTask(sleeping("python", "main"), loop=loop)
    labels[python] = "python"
    if new:
        python.set_name("python")  # asyncio.tasks and the C module count by themselves
    finished = task(done())
    await finished
    for _ in range(5):
        await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.sleep(0.05)
    loop.call_later(0.05, tell_all, loop, "MainThread")
    await asyncio.wait(tasks + [cancelled, derived, python] + extra)


# ---- what the interpreter says ----

def next_of(awaiting):
    """What a coroutine, or an object that stands for one, awaits."""
    for prefix, attribute in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
        if hasattr(awaiting, attribute):
            return getattr(awaiting, prefix + "_frame"), getattr(awaiting, attribute)
    for inside in gc.get_referents(awaiting):
        if any(hasattr(inside, attribute) for attribute in ("cr_await", "gi_yieldfrom", "ag_await")):
            return None, inside
    return None, None


def stack(coroutine):
    frames = []
    while coroutine is not None:
        frame, coroutine = next_of(coroutine)
        if frame is not None:
            frames.insert(0, [frame.f_code.co_name, frame.f_lineno])
    return frames


def waiters(future, seen=()):
    """By the links that 3.14 and later keep: the tasks behind them."""
    found = set()
    for waiter in future._asyncio_awaited_by or ():
        if isinstance(waiter, asyncio.Task) or hasattr(waiter, "get_coro"):
            found.add(id(waiter))
        elif waiter not in seen:
            found |= waiters(waiter, (*seen, waiter))
    return found


def tell_all(loop, thread_name):
    # From 3.14 on all_tasks() overlooks tasks that are not of the C module's class.
    ours = {one for one in labels if one._loop is loop and not one.done()}
    for one in ours | asyncio.all_tasks(loop):
        label = labels.get(one)
        coroutine = one.get_coro() if new else one._coro
        told = {"id": id(one), "label": label, "coroutine": coroutine.__qualname__, "stack": stack(coroutine),
                "awaited_by": awaited_by.get(label), "loop": id(loop), "loop_thread": thread_name}
        if new:
            told["name"] = one.get_name()
        if hasattr(one, "cancelling"):
            told["cancels"] = one.cancelling()
        if hasattr(one, "_asyncio_awaited_by") and label != "python":
            told["links"] = sorted(waiters(one))
        oracle.tell([], task=told)
    print("ready" if thread_name == "MainThread" else "other ready", flush=True)


async def elsewhere(ready):
    mark("elsewhere")
    asyncio.get_event_loop().call_later(0.05, tell_then, ready)
    await asyncio.gather(sleeping("elsewhere-1", "elsewhere"))


def tell_then(ready):
    tell_all(asyncio.get_event_loop(), "other loop")
    ready.set()


# ---- other programs ----

def blocking():
    print("ready", flush=True)
    os.read(0, 1)


async def runs():
    mark("runs", "waits")
    await asyncio.sleep(0)
    blocking()


async def waits():
    mark("waits")
    await task(runs())


async def many(count):
    loop = asyncio.get_event_loop()
    loop.call_later(0.1, print, "ready")
    loop.call_later(0.2, sys.stdout.flush)
    await asyncio.gather(*[sleeping(str(i)) for i in range(count)])


async def hop(depth):
    if depth:
        await hop(depth - 1)
    await asyncio.sleep(0)


async def spin(depth):
    while True:
        await hop(depth)


async def busy():
    asyncio.get_event_loop().call_later(0.1, lambda: print("ready", flush=True))
    keep = [task(spin(depth)) for depth in range(10)]
    while True:
        await asyncio.gather(*[hop(3) for _ in range(20)])
        del keep[10:]


def burn():
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end:
        pass


async def fetch():
    await asyncio.sleep(0)
    burn()


async def batch():
    await asyncio.gather(fetch(), fetch())


async def epochs():
    while True:
        await asyncio.wait_for(batch(), FOREVER)
        named = task(fetch())
        if new:
            named.set_name("prefetch")
        await named


async def working():
    asyncio.get_event_loop().call_later(0.1, lambda: print("ready", flush=True))
    await asyncio.gather(epochs(), asyncio.sleep(FOREVER))


def start(mode):
    if mode == "running":
        return asyncio.run(waits())
    if mode == "many":
        return asyncio.run(many(int(sys.argv[2])))
    if mode == "working":
        return asyncio.run(working())
    if mode == "busy":
        return asyncio.run(busy())
    ready = threading.Event()
    threading.Thread(target=lambda: asyncio.run(elsewhere(ready)), name="other loop", daemon=True).start()
    ready.wait()
    return asyncio.run(main())


if sys.version_info < (3, 7):
    sys.exit(77)
start(sys.argv[1] if len(sys.argv) > 1 else "all")
