"""A native call that keeps the GIL, while other threads wait for it and one sleeps without wanting it."""

import ctypes
import sys
import threading
import time

import oracle

started = threading.Semaphore(0)
process = ctypes.PyDLL(None)  # PyDLL: calls keep the GIL


def computing():
    started.release()
    count = 0
    while True: count += 1  # noqa: E701, one line whatever the moment


def stuck():
    oracle.next_line(sys._getframe(), 3, gil_state="holding")
    process.write(1, b"ready\n", 6)
    # No Python code runs from here on.
    process.pause()


def counting():
    """How many threads stand in the line that they never leave."""
    last = computing.__code__.co_firstlineno + 3
    return sum((frame.f_code, frame.f_lineno) == (computing.__code__, last) for frame in sys._current_frames().values())


def main():
    for number in range(2):
        threading.Thread(target=computing, name="computing {}".format(number), daemon=True).start()
        started.acquire()
    threading.Thread(target=oracle.park, name="asleep", daemon=True).start()
    oracle.wait(1)
    while counting() < 2:
        time.sleep(0.001)
    stuck()


main()
