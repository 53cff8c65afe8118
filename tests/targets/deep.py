"""5,000 frames in one thread, or as many as the argument says."""

import sys
import threading

import oracle

DEPTH = int(sys.argv[1]) if len(sys.argv) > 1 else 5000


def down(depth):
    if depth == 0:
        oracle.park()
    else:
        down(depth - 1)


sys.setrecursionlimit(DEPTH + 500)
threading.stack_size(512 * 1024 * 1024)  # up to 3.10 every frame is one of the C stack too
threading.Thread(target=down, args=(DEPTH,), name="deep", daemon=True).start()
oracle.park(1)
