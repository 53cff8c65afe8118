"""A program whose signals raise: it says what reached it, and "on" when its loop turns again.

Each turn passes the marked line; with the argument "throw" it raises an exception and takes it.
Note: "line NUMBER" of that line.
"""

import os
import signal
import sys

TURNS = 50
seen = {"quiet": 0}


def leave(number, frame):
    sys.exit(0)


class Alarm(object):
    """A handler that is no function."""

    def __call__(self, number, frame):
        raise TimeoutError("the alarm")


def quiet(number, frame):
    seen["quiet"] += 1


def turn(i):
    total = i + 1  # the line
    return total


def throw(i):
    try:
        raise ValueError(i)
    except ValueError:
        return i + 1


def turns(function):
    i = 0
    while True:
        i = function(i)
        if i == TURNS:
            os.write(1, b"on\n")  # not through what stands in for sys.stdout


def once(function):
    try:
        turns(function)
    except KeyboardInterrupt as error:
        found = "interrupted", error
    except TimeoutError as error:
        found = "timed out", error
    trace, ours = found[1].__traceback__, 0
    while trace is not None:
        ours += trace.tb_frame.f_code.co_filename.startswith("<")
        trace = trace.tb_next
    return "{} {}".format(found[0], ours)


def main():
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGALRM, Alarm())
    signal.signal(signal.SIGUSR1, quiet)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("line", turn.__code__.co_firstlineno + 1)
    print("ready", flush=True)
    try:
        while True:
            print(once(throw if "throw" in sys.argv else turn), flush=True)
    finally:
        print("left", seen["quiet"], flush=True)


main()
