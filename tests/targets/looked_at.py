"""A program with values to unfold, an exception that it handles, and a thread in native code.

Works on every CPython from 3.6; keep it so.
"""

import collections
import os
import sys
import threading
import time

GLOBAL = {"answer": 42}


class Model:
    def __init__(self):
        self.name = "tiny"
        self.layers = [[1, 2], [3, 4]]
        self.child = None


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self):
        self.left = "l"
        self.right = "r"


class Counted(dict):
    pass


def sleeper(wanted):
    while True:
        time.sleep(wanted)


def stand(argument):
    model = Model()
    model.child = Slotted()
    numbers = list(range(500))
    mapping = {"key": "value", 7: [1, 2, 3], (1, 2): "pair", b"b": None}
    counted = Counted(one=1)
    counted.note = "an attribute"
    several = {1, 2, 3}
    recent = collections.deque([5, 6, 7], 5)
    pair = ("a", "b")
    text = "unicode \N{SNOWMAN}"
    empty = []
    hidden = -255
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer", 2)
    except ValueError:
        print("ready", flush=True)
        if argument == "abort":
            os.abort()
        sys.stdin.read()
    return model, numbers, mapping, counted, several, recent, pair, text, empty, hidden


def main():
    threading.Thread(target=sleeper, args=(3600,), name="sleeper", daemon=True).start()
    stand(sys.argv[1] if len(sys.argv) > 1 else "wait")


main()
