"""Once it is told to go on, works a little, then ends, or becomes another program: argument "exit" or "exec"."""

import os
import sys


def work(steps):
    total = 0
    for step in range(steps):
        total += step
    return total


def main(how, steps):
    os.write(1, b"ready\n")
    os.read(0, 1)
    work(steps)
    if how == "exec":
        os.execv("/bin/sleep", ["sleep", "30"])


main(sys.argv[1], int(sys.argv[2]))
