"""Nested values made by chance, always the same for one seed, and what repr() says of each.  SEED COUNT

Prints as values.py does.  Characters are such as every Unicode since 9.0 agrees about.
Works on every CPython from 3.6; keep it so.
"""

import json
import os
import random
import struct
import sys

LIMIT = 4096
CHARACTERS = [(0, 0x80), (0, 0x250), (0x4E00, 0x9FA0), (0xD700, 0xE010), (0x1F600, 0x1F640)]

random.seed(int(sys.argv[1]))


def text(length):
    return "".join(chr(random.randrange(*random.choice(CHARACTERS))) for _ in range(length))


SCALARS = [
    lambda: random.getrandbits(random.randrange(1, 400)) * random.choice((1, -1)),
    lambda: struct.unpack("<d", struct.pack("<Q", random.getrandbits(64)))[0],
    lambda: random.uniform(-1e3, 1e3),
    lambda: complex(random.uniform(-5, 5), random.choice((0, -0.0, 1.5, 1e30))),
    lambda: text(random.randrange(12)),
    lambda: "".join(random.choice("abc'\"\\\n") for _ in range(random.randrange(8))),
    lambda: bytes(random.getrandbits(8) for _ in range(random.randrange(10))),
    lambda: random.choice((None, True, False, ...)),
    lambda: random.randrange(-10, 300),
]


def scalar():
    return random.choice(SCALARS)()


def with_holes(depth, count):
    made = {scalar(): value(depth) for _ in range(count)}
    for key in list(made)[::3]:
        del made[key]
    return made


CONTAINERS = [
    lambda depth, count: [value(depth) for _ in range(count)],
    lambda depth, count: tuple(value(depth) for _ in range(count)),
    lambda depth, count: {"key {}".format(i): value(depth) for i in range(count)},
    lambda depth, count: {scalar() for _ in range(count)},
    lambda depth, count: frozenset(scalar() for _ in range(count)),
    with_holes,
]


def value(depth):
    if not depth or random.random() < 0.3:
        return scalar()
    return random.choice(CONTAINERS)(depth - 1, random.choice((0, 1, 2, 3, 5, 9, 20)))


VALUES = {"value {}".format(i): value(random.randrange(5)) for i in range(int(sys.argv[2]))}

for name, made in VALUES.items():
    told = repr(made)
    print(json.dumps({"name": name, "literal": False,
                      **({"text": told} if len(told) <= LIMIT else {"begins": told[:LIMIT - 1]})}))
sys.stdout.flush()
os.write(1, b"ready\n")
os.read(0, 1)
