"""A garbage collection whose finalizer, or callback of a weak reference (argument "weak"), stands without the GIL.
With "busy" another thread computes meanwhile, and has it; one more stands all the time."""

import gc
import sys
import threading
import weakref

import oracle

BUSY, WEAK = "busy" in sys.argv, "weak" in sys.argv
begun = threading.Event()


def stand():
    oracle.park(1, gil_state="none", gc=True)


class Cycle:
    def __init__(self):
        self.own = self


def finalizer(cycle):
    stand()


def callback(reference):
    stand()


def compute():
    begun.set()
    while True:
        sum(range(100))


def collect():
    cycle = Cycle()
    kept = weakref.ref(cycle, callback) if WEAK else None
    del cycle
    gc.collect()
    return kept


gc.disable()  # the others' beginnings leave garbage, too
if not WEAK:
    Cycle.__del__ = finalizer
threading.Thread(target=oracle.park, kwargs={"gc": False}, name="other", daemon=True).start()
if BUSY:
    threading.Thread(target=compute, name="busy", daemon=True).start()
    begun.wait()
collect()
