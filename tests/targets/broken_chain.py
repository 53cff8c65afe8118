"""Threads that wait, each in a function of its own, while their frame pointers lead nowhere every other moment, as one may look while a
frame is made.  CPython 3.13 and later."""

import ctypes
import gc
import os
import sys
import threading

COUNT, NOWHERE = 40, 0x1000
READ = ("0", "63")  # read(2) on x86-64 and AArch64
FRAME = """
def wait_{0}(asleep):
    places.append(place_of_frame())
    asleep.set()
    os.read(pipe[0], 1)
"""
pipe, places = os.pipe(), []


def word(at):
    return ctypes.c_uint64.from_address(at)


def place_of_frame():
    """(the word of this thread's PyThreadState that is current_frame, the caller's frame)."""
    own, caller = word(id(sys._getframe()) + 24).value, word(id(sys._getframe(1)) + 24).value  # PyFrameObject.f_frame
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    state, read = get(), ctypes.c_uint64.from_address
    for at in range(state, state + 512, 8):
        if read(at).value == own:  # no call of Python code here: it would move the pointer
            return at, caller
    raise SystemExit("no pointer to the frame in the thread's state")


def in_read(thread):
    with open("/proc/self/task/{}/syscall".format(thread.native_id)) as call:
        return call.read().split()[0] in READ


def flip():
    words = [(word(at), frame) for at, frame in places]
    print("ready", flush=True)
    while not ended.is_set():
        for one, _ in words:
            one.value = NOWHERE
        for one, frame in words:
            one.value = frame


gc.disable()  # it looks at the frames of all threads
for number in range(COUNT):
    exec(FRAME.format(number))
    asleep = threading.Event()
    thread = threading.Thread(target=globals()["wait_{}".format(number)], args=(asleep,), daemon=True)
    thread.start()
    asleep.wait()
    while not in_read(thread):
        pass
ended = threading.Event()
flipper = threading.Thread(target=flip)
flipper.start()
input()
ended.set()
flipper.join()
os._exit(0)
