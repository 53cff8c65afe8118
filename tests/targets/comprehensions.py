"""Comprehensions of every kind, one within the other, and a lambda."""

import oracle


def stand(value):
    if value == 2:
        oracle.park(0)
    return value


def lists():
    return [[stand(inner) for inner in range(outer, outer + 2)] for outer in range(3)]


def sets():
    return {len(lists()) + item for item in (1, 2)}


def dicts():
    return {key: sets() for key in "a"}


class Holder:
    numbers = [dicts() for _ in range(1)]
