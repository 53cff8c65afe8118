"""A program with the probe in it: probed.py LIBRARY [PROGRAM ARGUMENT...], the program run as __main__ after.

Without a program: a thread is parked with names of its own, and each line of input is a step of the main thread.
"""

import ctypes
import runpy
import sys
import threading


class Call(ctypes.Structure):  # inject/probe/start.h
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("settings", ctypes.c_char_p),
                ("how", ctypes.c_char_p), ("error", ctypes.c_char * 256), ("functions", ctypes.c_void_p)]


weight = [1, 2, 3]


class Layer(object):
    __slots__ = ("size", "bias")

    def __init__(self):
        self.size = 4
        self.bias = weight

    @property
    def ratio(self):
        raise SystemError("properties do not run")


layer = Layer()
stop = threading.Event()


def parked():
    secret = 7
    parking.set()
    stop.wait()
    print("secret", secret, flush=True)


parking = threading.Event()


def load():
    call = Call(1, ctypes.sizeof(Call), None, b"import")
    library = ctypes.CDLL(sys.argv[1])
    if library.prb_probe_start(ctypes.byref(call)) != 0:
        sys.exit(call.error.decode())


def main():
    thread = threading.Thread(target=parked, name="parked")
    thread.start()
    parking.wait()
    print("ready", flush=True)
    for line in sys.stdin:
        print("step", line.strip(), flush=True)
        if line == "end\n":
            break
    stop.set()
    thread.join()


load()
if len(sys.argv) > 2:
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")
else:
    main()
