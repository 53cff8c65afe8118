"""Objects of many classes, counted and measured by the interpreter itself.  "churn": another thread makes and drops more.
"ring": the frozen objects' list leads into a ring of young ones (CPython 3.8 and later).  "release": it says that it is an
earlier or later release of its 3.13, as one that a distribution has patched."""

import collections
import ctypes
import gc
import json
import os
import sys
import threading


class Plain(object):
    def __init__(self, number):
        self.number = number
        self.other = None


class Slotted(object):
    __slots__ = ("a", "b", "__weakref__")


class Listed(list):
    pass


class Mapped(dict):
    pass


class Sized(tuple):
    pass


class Chosen(set):
    pass


def make():
    kept = [[Plain(i) for i in range(1234)]]
    for one in kept[0]:
        one.other = one  # a cycle
    kept.append([Slotted() for _ in range(777)])
    kept.append([Listed([[]] * i) for i in range(100)])
    kept.append([Mapped(("key%d" % k, []) for k in range(i)) for i in range(60)])
    kept.append([Mapped((k, []) for k in range(i)) for i in range(60)])
    kept.append([Sized([[]] * i) for i in range(50)])
    kept.append([Chosen(range(i)) for i in range(50)])
    kept.append(collections.deque([] for _ in range(5)))
    return kept


def churn():
    while True:
        made = [Plain(i) for i in range(300)]
        made.append({"made": made})


def ring(frozen):
    """Two young objects whose links say that a collection works on them, and lead from one to the other for ever."""
    def links(one):
        return (ctypes.c_size_t * 2).from_address(id(one) - 16)  # PyGC_Head: next, prev

    pair = [], []
    for one, other in zip(pair, reversed(pair)):
        links(one)[0] = id(other) - 16
        links(one)[1] |= 2
    links(frozen)[0] = id(pair[0]) - 16
    return pair


def change_release():
    offsets = (ctypes.c_uint64 * 2).in_dll(ctypes.pythonapi, "_PyRuntime")  # _Py_DebugOffsets: cookie, version
    assert offsets[1] == sys.hexversion
    offsets[1] = 0x030d05f0 if sys.hexversion >= 0x030d1200 else 0x030d12f0  # 3.13.5, 3.13.18


KEPT = make()
gc.collect()
if "release" in sys.argv:
    change_release()
if "freeze" in sys.argv and hasattr(gc, "freeze"):
    gc.freeze()
if "churn" in sys.argv:
    threading.Thread(target=churn, daemon=True).start()
elif "ring" in sys.argv:
    gc.disable()
    gc.freeze()
    PAIR = ring(KEPT)
else:
    gc.disable()
    young = make()
    known = gc.get_objects()
    frozen = gc.get_freeze_count() if "freeze" in sys.argv and hasattr(gc, "freeze") else 0
    told = {}
    for one in known + (sum(KEPT[:7], []) if frozen else []):
        if type(one).__module__ == "__main__":
            counts = told.setdefault("__main__." + type(one).__name__, [0, 0])
            counts[0] += 1
            counts[1] += sys.getsizeof(one)
    del known, one
    # Now: looking at all types makes 3.15 import modules that were to be imported lazily.
    print(json.dumps({"types": told, "objects": len(gc.get_objects()) + getattr(gc, "get_freeze_count", int)()}), flush=True)
print("ready", flush=True)
sys.stdin.read()
if "ring" in sys.argv:
    os._exit(0)  # no list of objects may be walked any more
