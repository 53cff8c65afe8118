"""A process of a given size, for the figures of growth: sized.py threads|depth|mappings|objects N."""

import mmap
import sys
import threading


def feeder(depth, ready, forever):
    """A thread of the kind every job has: waits at the end of some calls."""
    if depth:
        return feeder(depth - 1, ready, forever)
    ready.release()
    forever.wait()


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    ready, forever, kept = threading.Semaphore(0), threading.Event(), []
    if kind == "threads":
        threading.stack_size(256 * 1024)
        for _ in range(count):
            threading.Thread(target=feeder, args=(5, ready, forever), daemon=True).start()
        for _ in range(count):
            ready.acquire()
    elif kind == "depth":
        sys.setrecursionlimit(count + 1000)
        threading.stack_size(min(1 << 30, 1 << 16 | count * 1024))
        threading.Thread(target=feeder, args=(count, ready, forever), daemon=True).start()
        ready.acquire()
    elif kind == "mappings":
        for i in range(count):  # the kernel merges neighbours that are alike
            kept.append(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE * (i % 2)))
    elif kind == "objects":
        kept += [[i] for i in range(count)]
    print("ready", flush=True)
    forever.wait()


main()
