"""Waits, some frames deep, for the signal that it dies of."""

import time


def deep_inside():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)


def outside():
    deep_inside()


outside()
