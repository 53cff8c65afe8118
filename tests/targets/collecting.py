"""A garbage collection that hangs within a callback, with the GIL."""

import ctypes
import gc
import sys
import threading

import oracle

process = ctypes.PyDLL(None)  # PyDLL: calls keep the GIL


def during(phase, details):
    if phase == "start":
        oracle.next_line(sys._getframe(), 3, gil_state="holding", gc=True)
        process.write(1, b"ready\n", 6)
        # No Python code runs from here on.
        process.pause()


def collect():
    gc.collect()


threading.Thread(target=oracle.park, kwargs={"gc": False}, name="other", daemon=True).start()
oracle.wait(1)
gc.callbacks.append(during)
collect()
