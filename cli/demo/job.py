"""The job that `probing demo` looks at: fits a line to points, fed by a thread.  Nothing in it knows of Probing."""

import faulthandler
import os
import queue
import random
import threading

SIZE = 500


class Model:
    """y = slope * x + offset"""

    def __init__(self):
        self.slope = self.offset = 0.0
        self.broken = False

    def error(self, x, y):
        return self.slope * x + self.offset - y


def load(batches):
    source = random.Random(0)
    points = [source.uniform(-1, 1) for _ in range(SIZE)]
    while True:
        shift = source.gauss(0, 0.1)
        batches.put([(x, 3 * x + 1 + shift) for x in points])


def backward(model, batch):
    """The loss, and its derivatives by slope and offset."""
    loss = slope = offset = 0.0
    for x, y in batch:
        error = model.error(x, y)
        loss += error * error
        slope += 2 * error * x
        offset += 2 * error
    if model.broken:
        faulthandler._sigsegv()  # as a faulty extension would
    return loss / len(batch), slope / len(batch), offset / len(batch)


def train_step(model, batch, rate):
    loss, slope, offset = backward(model, batch)
    model.slope -= rate * slope
    model.offset -= rate * offset
    return loss


def train(model, batches, rate=0.01):
    step = 0
    while True:
        step += 1
        loss = train_step(model, batches.get(), rate)
        if step == 1:
            print("ready {}: loss {:.3f}".format(os.getpid(), loss), flush=True)


model = Model()
waiting = queue.Queue(maxsize=8)
threading.Thread(target=load, args=(waiting,), name="loader", daemon=True).start()
train(model, waiting)
