#!/usr/bin/env python3
"""The shape of a training job with nothing but the standard library, for machines without PyTorch.

Fits a two-layer perceptron to a function of two numbers by stochastic gradient descent in plain Python, fed by two
loader processes, watched by a thread that keeps metrics.  Runs until stopped, or for --steps N.  The first line,
"ready PID", is written when the first step is done.  Python 3.6 and later.
"""

import argparse
import math
import multiprocessing
import os
import queue
import random
import signal
import sys
import threading
import time

try:
    import probing  # for the table python.losses: rows are kept while a probe is in this process, else dropped
except ImportError:
    probing = None


def samples(seed):
    """Endless points and the value to learn there."""
    source = random.Random(seed)
    while True:
        x, y = source.uniform(-1, 1), source.uniform(-1, 1)
        yield (x, y), math.sin(3 * x) * math.cos(2 * y)


def load(batches, seed, size):
    """A loader process: put batches until the parent is gone."""
    stream = samples(seed)
    parent = os.getppid()
    while os.getppid() == parent:
        batch = [next(stream) for _ in range(size)]
        while os.getppid() == parent:
            try:
                batches.put(batch, timeout=1)
                break
            except queue.Full:
                continue


class Layer:
    """Weights, a bias, and their gradients."""

    def __init__(self, inputs, outputs, source):
        scale = 1 / math.sqrt(inputs)
        self.weights = [[source.gauss(0, scale) for _ in range(inputs)] for _ in range(outputs)]
        self.bias = [0.0] * outputs

    def forward(self, values):
        return [sum(w * v for w, v in zip(row, values)) + b for row, b in zip(self.weights, self.bias)]

    def backward(self, values, gradients, rate):
        """Descend along the gradients of the outputs; return those of the inputs."""
        back = [sum(g * row[i] for g, row in zip(gradients, self.weights)) for i in range(len(values))]
        for row, gradient in zip(self.weights, gradients):
            for i, value in enumerate(values):
                row[i] -= rate * gradient * value
        self.bias = [b - rate * g for b, g in zip(self.bias, gradients)]
        return back


class Model:
    """Two numbers to one, through a hidden layer."""

    def __init__(self, hidden=32):
        source = random.Random(0)
        self.first = Layer(2, hidden, source)
        self.second = Layer(hidden, 1, source)

    def forward(self, point):
        hidden = [math.tanh(v) for v in self.first.forward(point)]
        return hidden, self.second.forward(hidden)[0]

    def learn(self, point, target, rate):
        hidden, value = self.forward(point)
        error = value - target
        back = self.second.backward(hidden, [2 * error], rate)
        self.first.backward(point, [g * (1 - h * h) for g, h in zip(back, hidden)], rate)
        return error * error


class Metrics(threading.Thread):
    """Keeps the loss of each step and says now and then how training goes."""

    def __init__(self, every):
        super().__init__(name="metrics", daemon=True)
        self.every = every
        self.steps = queue.Queue()
        self.losses = probing.table("losses", {"step": int, "loss": float}) if probing else None

    def run(self):
        since = time.monotonic()
        while True:
            step, loss = self.steps.get()
            if self.losses:
                self.losses.append(step, loss)
            if step % self.every == 0:
                rate = self.every / (time.monotonic() - since)
                print("step %d: loss %.4f, %.1f steps/s" % (step, loss, rate), flush=True)
                since = time.monotonic()


def train_step(model, batch, rate):
    losses = [model.learn(point, target, rate) for point, target in batch]
    return sum(losses) / len(losses)


def train(model, batches, metrics, steps, rate):
    step = 0
    while step != steps or not steps:
        step += 1
        loss = train_step(model, batches.get(), rate)
        metrics.steps.put((step, loss))
        if step == 1:
            print("ready %d" % os.getpid(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=0, help="stop after so many (0: run until stopped)")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2, help="processes that make the batches")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--every", type=int, default=1000, help="steps between two lines of output")
    arguments = parser.parse_args()

    batches = multiprocessing.Queue(maxsize=8)
    workers = [
        multiprocessing.Process(target=load, args=(batches, seed, arguments.batch), name="loader-%d" % seed, daemon=True)
        for seed in range(arguments.workers)
    ]
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # ends the loaders, too
    metrics = Metrics(arguments.every)
    metrics.start()
    try:
        train(Model(), batches, metrics, arguments.steps, arguments.lr)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
