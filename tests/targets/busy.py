"""One thread computes without pause, in known functions; the main thread waits for it."""

import os
import threading


def leaf(value):
    return value * value


def middle(rounds):
    total = 0
    for value in range(rounds):
        total += leaf(value)
    return total


def outer():
    while True:
        middle(1000)


threading.Thread(target=outer, name="busy", daemon=True).start()
os.write(1, b"ready\n")
os.read(0, 1)
