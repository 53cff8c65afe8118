"""Loops hot enough for a compiler, which park in the last round, deep within what was compiled."""

import oracle

ROUNDS = 30000


def last(item, rounds):
    if item == rounds - 1:
        oracle.park(0)
    return item


def step(item, rounds):
    total = 0
    for value in (1, 2, 3):
        total += last(item, rounds) * value
    return total


def numbers(rounds):
    for item in range(rounds):
        yield step(item, rounds)


class Summing:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value
        return self

    def run(self, rounds):
        for value in numbers(rounds):
            self.add(value)
        return self.total


def main():
    Summing().run(ROUNDS // 2 - 1)
    print(Summing().run(ROUNDS))


main()
