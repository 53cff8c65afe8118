"""Calls to debug: answers each line of input with nanoseconds of a call and of a round of a loop; a big list to look at.

Nanoseconds of CPU time, of all threads: what a debugger's own threads take counts, what other processes take does not.
"""

import sys
import time


def tiny(x):
    if x < 0:
        return 0                                 # at rare
    return x + 1                                 # at call


def loop(count):
    total = 0
    for i in range(count):
        total += i
        total ^= i
    if total < 0:
        return 0                                 # at rare
    return total


def never():
    return "cold"                                # at never


def measure():
    best_call = best_round = 1e9
    for _ in range(9):
        began = time.process_time()
        for i in range(20000):
            tiny(i)
        best_call = min(best_call, (time.process_time() - began) / 20000)
        began = time.process_time()
        loop(50000)
        best_round = min(best_round, (time.process_time() - began) / 50000)
    return "{:.2f} {:.2f}".format(best_call * 1e9, best_round * 1e9)


def look():
    x = 42
    items = list(range(1000000))
    return x + len(items)                        # at look


def steps():
    total = 0                                    # at steps
    for number in range(100000):
        total += number
        total ^= number
    return total


COMMANDS = {"look": look, "steps": steps}


def set_evaluator(path):
    import ctypes

    return ctypes.PyDLL(path).evaluator_set()


def main():
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        words = line.split()
        if words and words[0] == "evaluator":
            print(set_evaluator(words[1]), flush=True)
        else:
            print(COMMANDS[words[0]]() if words else measure(), flush=True)


main()
