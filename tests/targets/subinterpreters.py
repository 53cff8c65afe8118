"""Two subinterpreters, one in a thread and one called by the main thread; exits with 77 where there are none."""

import os
import sys
import threading

import oracle

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit(77)

INSIDE = """
import sys
sys.path.insert(0, {folder!r})
sys.argv = ["inside"]
import os
import oracle

oracle.interpreter = {number}


def inside(depth):
    if depth:
        inside(depth - 1)
    else:
        oracle.next_line(sys._getframe(), 2)
        os.write({pipe}, b"x")
        os.read(0, 1)


inside(3)
"""


def run(number, pipe):
    made = interpreters.create()
    code = INSIDE.format(folder=os.path.dirname(os.path.abspath(__file__)), number=int(number), pipe=pipe)
    # What this thread shows of the main interpreter, before it goes below.
    oracle.next_line(sys._getframe())
    interpreters.run_string(made, code)


def main():
    reading, writing = os.pipe()
    threading.Thread(target=run, args=(1, writing), name="below", daemon=True).start()
    os.read(reading, 1)
    waiter = threading.Thread(target=announce, args=(reading,), daemon=True, name="announcer")
    waiter.start()
    run(2, writing)


def announce(reading):
    os.read(reading, 1)
    oracle.park(0)


main()
