"""Threads that only compute: spinners.py COUNT PAGE; each counts in its lane of the page."""

import mmap
import sys
import threading
import time


def spin(lanes, lane):
    i = 0
    while True:
        i += 1
        lanes[lane] = i


def main():
    with open(sys.argv[2], "r+b") as file:
        page = mmap.mmap(file.fileno(), 4096)
    lanes = memoryview(page).cast("Q")
    for lane in range(int(sys.argv[1])):
        threading.Thread(target=spin, args=(lanes, lane), daemon=True).start()
    print("ready", flush=True)
    time.sleep(10 ** 6)


main()
