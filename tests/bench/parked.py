"""COUNT threads, each parked on a stack of 12 to 24 frames; a second argument is a module to import first."""

import os
import sys
import threading

COUNT = int(sys.argv[1])
for name in sys.argv[2:]:
    __import__(name)
parked = threading.Semaphore(0)


def down(depth):
    if depth:
        return down(depth - 1)
    parked.release()
    return os.read(0, 1)


for number in range(COUNT - 1):
    threading.Thread(target=down, args=(8 + number * 12 // COUNT,), daemon=True).start()
for number in range(COUNT - 1):
    parked.acquire()
os.write(1, b"ready\n")
down(15)
