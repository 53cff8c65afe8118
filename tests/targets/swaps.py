"""One thread that goes down some calls in its own interpreter and in a subinterpreter, by turns: under one GIL there."""

import os
import sys

try:
    import _xxsubinterpreters as interpreters  # 3.8 to 3.12
except ImportError:
    sys.exit(77)

CODE = """
def down(levels):
    if levels:
        down(levels - 1)
    else:
        sum(range(20000))
down({})
"""


def down(levels):
    if levels:
        down(levels - 1)
    else:
        sum(range(20000))


guest = interpreters.create(isolated=False) if sys.version_info >= (3, 10) else interpreters.create()
os.write(1, b"ready\n")
while True:
    for levels in range(8):
        down(levels)
        interpreters.run_string(guest, CODE.format(levels))
