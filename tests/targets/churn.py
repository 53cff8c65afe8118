"""Threads are born and end without pause."""

import os
import threading


def short(depth):
    return short(depth - 1) if depth else None


def main():
    os.write(1, b"ready\n")
    while True:
        threads = [threading.Thread(target=short, args=(n,), name="short") for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


main()
