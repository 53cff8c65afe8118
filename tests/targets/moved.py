"""A thread that never moves, and one that moves when a line comes."""

import os
import sys
import threading

begun = threading.Event()


def still():
    begun.set()
    threading.Event().wait()


def before():
    os.write(1, b"ready\n")
    sys.stdin.readline()


def after():
    sys.stdin.readline()


threading.Thread(target=still, name="still", daemon=True).start()
begun.wait()
before()
after()
