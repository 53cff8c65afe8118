"""400 threads, each on a stack of its own shape."""

import threading

import oracle

COUNT = 400


def even(depth):
    oracle.park() if depth == 0 else odd(depth - 1)


def odd(depth):
    oracle.park() if depth == 0 else even(depth - 1)


threading.stack_size(256 * 1024)
for number in range(COUNT):
    threading.Thread(target=even, args=(number % 17,), name="worker {}".format(number), daemon=True).start()
oracle.park(COUNT)
