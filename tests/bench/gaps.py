"""A target that feels every stop: the main thread computes without a break and times itself, a second thread is parked.

Each line on standard input is answered with the longest break of the main thread since the last, in milliseconds.
"""

import sys
import threading
import time

asked = []


def questions():
    for _ in sys.stdin:
        asked.append(True)
    asked.append(False)


sys.setswitchinterval(0.0001)
threading.Thread(target=questions, daemon=True).start()
threading.Thread(target=threading.Event().wait, name="parked", daemon=True).start()
print("ready", flush=True)
longest, last = 0.0, time.perf_counter()
while True:
    now = time.perf_counter()
    longest, last = max(longest, now - last), now
    if asked:
        if not asked.pop():
            break
        print(longest * 1e3, flush=True)
        longest, last = 0.0, time.perf_counter()
