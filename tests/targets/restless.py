"""Eight threads that go down some calls, wait a moment there, and come up again; one of them now and then ends."""

import os
import random
import threading
import time


def down(levels, wait):
    if levels:
        down(levels - 1, wait)
        sideways(levels)
    else:
        time.sleep(wait)


def sideways(levels):
    return sum(range(levels))


def rounds(number, count):
    chance = random.Random(number)
    while count:
        down(chance.randrange(20), chance.choice((0, 0.0001, 0.001)))
        count -= 1


def one_after_another():
    while True:
        thread = threading.Thread(target=rounds, args=(99, 50))
        thread.start()
        thread.join()


for number in range(7):
    threading.Thread(target=rounds, args=(number, -1), daemon=True).start()
threading.Thread(target=one_after_another, daemon=True).start()
os.write(1, b"ready\n")
rounds(100, -1)
