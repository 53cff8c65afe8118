"""Computes the same thing again and again in two threads and says when it does not come out the same.

Each line on standard input is answered with how often it did; the end of the input ends it.
"""

import sys
import threading

rounds = [0, 0]
wrong = []
ending = threading.Event()


def compute(lane):
    wanted = None
    while not ending.is_set():
        numbers = [(lane + n) * 1.000001 for n in range(300)]
        got = (sum(numbers), str(numbers[-1]), {n: [n] for n in range(50)} == {n: [n] for n in range(50)}, sorted(numbers)[7])
        wanted = wanted or got
        if got != wanted:
            wrong.append((lane, got, wanted))
        rounds[lane] += 1


threads = [threading.Thread(target=compute, args=(lane,), daemon=True) for lane in range(2)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for line in sys.stdin:
    print("wrong {}".format(wrong[0]) if wrong else "{} {}".format(*rounds), flush=True)
ending.set()
for thread in threads:
    thread.join()
