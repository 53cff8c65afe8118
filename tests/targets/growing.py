"""A job that leaks: into a list of an object, into a module's dict, and into a chain."""

import time


class Sample:
    def __init__(self, number):
        self.data = [number]


class Trainer:
    def __init__(self):
        self.history = []


class Node:
    def __init__(self, before):
        self.before = before


class Entry:
    pass


trainer = Trainer()
kept = {}
chain = None
print("ready", flush=True)
number = 0
while True:
    for _ in range(50):
        trainer.history.append(Sample(number))
        chain = Node(chain)
        kept[number] = Entry()
        number += 1
    time.sleep(0.01)
