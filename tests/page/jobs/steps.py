"""Computes in steps, of which it says itself where each begins."""

import time

import probing


def compute(n):
    return sum(i * i for i in range(n))


def train():
    while True:
        probing.step()
        compute(20000)
        time.sleep(0.01)


print("ready", flush=True)
train()
