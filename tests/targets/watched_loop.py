"""A loop whose variables are functions of its step, so that what is read of them can be checked.

watched_loop.py [PAUSE]: seconds that a step sleeps; 0: it computes without pause.
"""

import sys
import threading
import time

PAUSE = float(sys.argv[1]) if len(sys.argv) > 1 else 0.002


class Trainer:
    def __init__(self):
        self.rate = 1.0
        self.history = []

    def fit(self, name):
        step = 0
        loss, out, text = 0.0, {"loss": 0}, ""
        while True:
            step += 1
            loss = step * 0.25  # noqa: F841 all these are read from outside
            out = {"loss": -step, "nested": [step, (step, 7)]}  # noqa: F841
            text = "step %d" % step  # noqa: F841
            good = step % 2 == 0
            self.rate = 1 / step
            self.history = [step]
            big = "x" * 1000
            if PAUSE:
                time.sleep(PAUSE)
            if step == 3:
                print("ready", flush=True)
            del big, good


def other():
    loss = "another"
    threading.Event().wait(10 ** 6)
    return loss


threading.Thread(target=other, daemon=True).start()
threading.Thread(target=sys.stdin.read, daemon=True).start()
Trainer().fit("a name")
