"""Functions that are made, run for some ms, and freed: the next one's code takes the same addresses, its name too.

usage: reborn.py FILE HOW: a line "made_000123 BEGIN END" of seconds since the epoch for each, when it has ended.
HOW: spins, or sleeps: then a sample finds the same bytes as in the function before, but for the code.
"""

import gc
import os
import sys
import time

SOURCES = {
    "spins": "def made_{0:06d}(now, until, wait):\n    while now() < until:\n        pass\nrun = made_{0:06d}\n",
    "sleeps": "def made_{0:06d}(now, until, wait):\n    wait(0.004)\nrun = made_{0:06d}\n",
}


def one(number, log, source):
    names = {}
    begin = time.time()
    exec(compile(source.format(number), "<made>", "exec"), names)
    names["run"](time.time, begin + 0.004, time.sleep)
    names.clear()
    gc.collect(0)
    log.write("made_{:06d} {:.6f} {:.6f}\n".format(number, begin, time.time()))


def main(path, how):
    with open(path, "w", 1) as log:
        os.write(1, b"ready\n")
        number = 0
        while True:
            one(number, log, SOURCES[how])
            number += 1


main(*sys.argv[1:])
