"""A thread that never moves, and one that moves when a line comes."""

import os
import sys
import threading


def still():
    threading.Event().wait()


def before():
    sys.stdin.readline()


def after():
    sys.stdin.readline()


threading.Thread(target=still, name="still", daemon=True).start()
os.write(1, b"ready\n")
before()
after()
