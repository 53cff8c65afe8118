"""C functions that call back into Python, nested: each begins a new call of the evaluator."""

import functools
import json
import operator
import re
from xml.parsers import expat

import oracle


class Key:
    def __hash__(self):
        return stand()

    def __lt__(self, other):
        return {self: 1}

    def __getattr__(self, name):
        return min(Key(), self.__class__.__new__(Key))


def stand():
    oracle.park(0)
    return 1


def attribute(value):
    return operator.attrgetter("absent")(Key())


def replaced(match):
    return functools.reduce(lambda total, item: attribute(item), [1, 2])


def parsed(pairs):
    return re.sub("b", replaced, "abc")


def element(name, attributes):
    return json.loads('{"a": 1}', object_pairs_hook=parsed)


def bound(first, second, third=None):
    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    return parser.Parse("<a/>", True)


def key(item):
    return functools.partial(bound, 1, third=3)(item)


def main():
    return sorted(map(key, [3, 1, 2]), key=str)


main()
