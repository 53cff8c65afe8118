"""A stack with known frames and variables that a debugger finds: it says ready and waits for its input's end.

Works on every CPython from 3.6; keep it so.
"""

import os
import sys
import threading

LIMIT = 1000


class Layer:
    def __init__(self, width):
        self.width = width
        self.names = ["first", "second", "third"]


class Model:
    def __init__(self):
        self.layers = [Layer(8), Layer(16)]
        self.settings = {"rate": 0.5, 3: "three"}


MODEL = Model()


def inner(step, text):
    values = [n * n for n in range(5)]
    big = 2 ** 80
    print("ready", flush=True)
    sys.stdin.readline()  # here it stands
    return values, big


def called_back(model, step=7):
    label = "äöü\u202e"
    inner(step, label)
    return step


def middle(model):
    return sorted([3, 1], key=lambda number: called_back(model) + number)


def sleeping(started):
    started.set()
    threading.Event().wait()


def counting(turns):
    for turn in range(turns):
        os.write(1, b"")


def main():
    started = threading.Event()
    threading.Thread(target=sleeping, args=(started,), name="sleeper", daemon=True).start()
    started.wait()
    middle(MODEL)
    counting(9)


main()
