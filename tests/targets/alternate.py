"""Two chains of functions, A or B, run in turn: a stack with functions of both cannot exist.

usage: alternate.py own|shared LEVELS.  own: each level is a function of its chain.  shared: one function of both chains
stands between each two levels, so that its frames come and go in the same places.  Function names carry chain and
level: a0 ... a14, b0 ... b14, shared.
"""

import os
import sys


def build(chain, levels, shared):
    """Source of one chain, outermost a0; each calls the next one directly or through shared()."""
    lines = []
    for level in range(levels):
        name = "{}{}".format(chain, level)
        if level == levels - 1:
            lines += ["def {}():".format(name), "    return 1", ""]
        else:
            below = "{}{}".format(chain, level + 1)
            call = "shared({})".format(below) if shared else "{}()".format(below)
            lines += ["def {}():".format(name), "    return {}".format(call), ""]
    return "\n".join(lines)


def main(shape, levels):
    names = {}
    exec("def shared(function):\n    return function()\n", names)
    for chain in "ab":
        exec(build(chain, levels, shape == "shared"), names)
    first, second = names["a0"], names["b0"]
    os.write(1, b"ready\n")
    while True:
        first()
        second()


main(sys.argv[1], int(sys.argv[2]))
