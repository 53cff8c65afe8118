"""Finalization hangs in the last flush of standard output, when no Python frame is left."""

import os
import sys

os.write(1, b"ready\n")
reading, writing = os.pipe()
os.set_blocking(writing, False)
try:
    while True:
        os.write(writing, b"x" * 4096)
except BlockingIOError:
    pass
os.set_blocking(writing, True)
sys.stdout = open(writing, "w")
sys.stdout.write("never read")
