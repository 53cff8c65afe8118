"""Calls that stretch over several lines and columns: where exactly does each frame stand?"""

import oracle


def stand(*args, **kwargs):
    oracle.park(0)


def several(first):
    return (first +
            stand(
                first,
                "second argument",
                key={
                    "é": 1,
                },
            ))


def after_wide_text():
    é = "日本語"; return (é, several(len(é)), é)


def operators(value):
    return value.left @ (
        value
    )


class Operand:
    @property
    def left(self):
        return self

    def __matmul__(self, other):
        return after_wide_text(
        )


def raising():
    try:
        raise ValueError("x")
    except ValueError:
        for value in [Operand()]:
            result = [1, 2, operators(
                value)][0]
            return result
    finally:
        print("never")


def backwards():
    return max(
        0,
        *[raising()
          ])


def long_line():
    return                                                                                                                                                                                                                                                                                        backwards()


def far():



























































































































































    return long_line()


far()
