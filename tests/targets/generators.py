"""Generators: advanced by next(), for, yield from, send() and a generator expression."""

import oracle


def innermost():
    value = yield 1
    oracle.park(0)
    yield value


def delegating():
    yield 0
    yield from innermost()


def sending():
    inner = delegating()
    next(inner)
    next(inner)
    yield inner.send("go")


def main():
    suspended = delegating()  # one that stands elsewhere and is on no stack
    next(suspended)
    for value in (item for item in sending()):
        print(value)


main()
