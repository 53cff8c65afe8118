"""A function that calls itself, directly and through another."""

import oracle


def down(depth):
    if depth == 0:
        oracle.park(0)
    elif depth % 3:
        down(depth - 1)
    else:
        around(depth)


def around(depth):
    return down(depth - 1)


down(60)
