"""A program to stop: threads that count (daemons: argument), and a word on standard input for each thing that it does.

Notes: "line NUMBER" is the line that every call of count() runs.
"""

import os
import sys
import threading
import time

# Its threads compute without end: the shorter their turns, the sooner a test gets the GIL.
if "PRB_TEST_SWITCH" in os.environ:
    sys.setswitchinterval(float(os.environ["PRB_TEST_SWITCH"]))

NAMES = ("calls", "loop", "line", "sleeps")
counts = dict.fromkeys(NAMES, 0)
over = False


def count(name):
    counts[name] += 1  # the line
    return name


def calls():
    while not over:
        count("calls")


def loop():
    while not over:
        counts["loop"] += 1


def line():
    while not over: counts["line"] += 1  # noqa: E701


def sleeps():
    while not over:
        count("sleeps")
        time.sleep(0.01)


def fork():
    child = os.fork()
    if child == 0:
        for _ in range(1000):
            count("calls")
        os._exit(7)
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


def main():
    global over
    local = 41
    threads = [threading.Thread(target=globals()[name], name=name, daemon="daemons" in sys.argv) for name in NAMES]
    for thread in threads:
        thread.start()
    print("line", count.__code__.co_firstlineno + 1)
    print("ready", flush=True)
    for word in sys.stdin:
        word = word.strip()
        if word == "fork":
            print("forked", fork(), flush=True)
        elif word == "end":
            break
        elif word == "leave":
            print("left", flush=True)
            return
        else:
            print(word, local, flush=True)
    over = True
    for thread in threads:
        thread.join()
    print("over", flush=True)


main()
