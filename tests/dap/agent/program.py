"""What the cases debug.  Lines are found by their marks."""


class Thing(object):
    kind = "class attribute"

    def __init__(self, size):
        self.size = size  # INIT

    @property
    def double(self):
        return self.size * 2

    def grow(self, by=1):
        self.size += by  # GROW
        return self.size


def inner(a, b):
    total = a + b  # INNER
    return total


def outer(n):
    value = 0  # OUTER
    for i in range(n):
        value = inner(value, i)  # LOOP
        value += 0  # AFTER
    return value  # OUTER_END


def caller(n):
    found = outer(n)  # CALLER
    return found + 1  # CALLER_END


def nested(n):
    thing = Thing(inner(n, 1))  # NESTED
    return thing.grow(inner(1, 2))  # NESTED_END


def containers():
    big = list(range(1000000))
    table = {"a": 1, 2: "two", (1, "x"): [1]}
    some = {5}
    text = "line\n\u00e9"
    thing = Thing(3)
    pair = (thing, big)
    blob = bytearray(b"0123456789")
    frozen = b"abcdef"
    return big, table, some, text, thing, pair, blob, frozen  # CONTAINERS


def fails(n):
    if n == 0:
        raise ValueError("no more")  # RAISE
    return fails(n - 1)


def catches():
    try:
        fails(2)
    except ValueError as error:
        return str(error)  # CAUGHT


def generator(n):
    for i in range(n):
        yield i  # YIELD
    del n  # GENERATED


def generate(n):
    total = 0
    for one in generator(n):
        total += one  # CONSUME
    return total


def jumps():
    a = 1  # JUMP_FROM
    a = 2
    a = 3  # JUMP_TO
    return a  # JUMPED


def changes(thing):
    other = 0
    other += 1
    thing.size = 5  # CHANGE
    other += 1  # CHANGED
    return other


def spins(state):
    while not state.get("end"):
        state["count"] = state.get("count", 0) + 1  # SPIN
