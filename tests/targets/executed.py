"""Code without a file of its own: exec, eval, lambdas, and class bodies."""

import oracle

SOURCE = """
def made(value):
    class Body:
        inner = (lambda argument:
                 stand(argument))(value)
    return Body

made(1)
"""


def stand(argument):
    oracle.park(0)


def run():
    exec(compile(SOURCE, "<made up>", "exec"), {"stand": stand})


class Outer:
    class Inner:
        eval("(lambda go: go())(run)")
