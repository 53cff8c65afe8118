"""A program that waits far within a library: train() calls so many layers of it, the innermost reads standard input.
A second thread waits, too, as editors list the threads of a running program only where there are several.

Works on every CPython from 3.6; keep it so.
"""

import os
import sys
import threading

LIBRARY = """
def layer(left):
    return layer(left - 1) if left else read(0, 1)
"""


def train(layers):
    library = {"read": os.read}
    exec(compile(LIBRARY, "/nowhere/site-packages/layers.py", "exec"), library)  # its folder makes it a library
    print("ready", flush=True)
    return library["layer"](layers - 1)


def main():
    threading.Thread(target=threading.Event().wait, name="idle", daemon=True).start()
    train(int(sys.argv[1]))


main()
