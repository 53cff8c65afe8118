"""Two threads that compute by turns, half a second each: who is the busiest changes."""

import os
import threading
import time


def turn(number):
    while True:
        if int(time.time() * 2) % 2 == number:
            sum(range(1000))
        else:
            time.sleep(0.01)


for number in range(2):
    threading.Thread(target=turn, args=(number,), name="turn-{}".format(number), daemon=True).start()
os.write(1, b"ready\n")
while True:
    time.sleep(100)
