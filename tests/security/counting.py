"""A job whose threads count, each in a page of its own way: argument 1 is a file that is mapped, 8 bytes a thread.
They compute, sleep, wait for a lock, wait in select, and read a pipe."""

import mmap
import os
import select
import struct
import sys
import threading
import time

KINDS = 5
lock = threading.Condition()
reading, writing = os.pipe()


def compute():
    sum(range(2000))


def sleep():
    time.sleep(0.001)


def wait():
    with lock:
        lock.wait(0.001)


def watch():
    select.select([reading], [], [], 0.001)


def pass_on():
    os.write(writing, b"x")
    os.read(reading, 1)


def count(slot, step):
    number = 0
    while True:
        step()
        number += 1
        shared[8 * slot:8 * slot + 8] = struct.pack("<Q", number)


if __name__ == "__main__":
    with open(sys.argv[1], "r+b") as file:
        shared = mmap.mmap(file.fileno(), 8 * KINDS)
    for slot, step in enumerate((compute, sleep, wait, watch, pass_on)):
        threading.Thread(target=count, args=(slot, step), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
