"""Allocates what it is told to, at places that can be known: lines on standard input, answered by what was done, as JSON.

keep N SIZE: N bytes objects that stay, made by keeper(); drop N SIZE: N that go, by dropper(); both in a thread: THREAD keep …
load FILE: a library, such as tests/allocation/native.c; native WAY N SIZE STAYS: its native_make(), in a function native().
free: all that stayed goes; old N SIZE: as keep, but not forgotten by free; fork: a child allocates and frees; its status.
storm THREADS: until the next line, threads allocate in every way, check what they have, and fork; how many turns were wrong.
"""

import ctypes
import json
import os
import sys
import threading

kept = []
old = []
libraries = []


def keeper(place, count, size):
    blocks = [None] * count
    for i in range(count):
        blocks[i] = bytes(size)
    place.append(blocks)


def dropper(count, size):
    for _ in range(count):
        bytes(size)


def native(way, count, size, stays):
    assert libraries[0].native_make(way.encode(), ctypes.c_size_t(count), ctypes.c_size_t(size), stays) == count


def in_child(count, size):
    del kept[:], old[:]
    keeper(kept, count, size)
    dropper(count, size)


def turn(number):
    """Blocks of all sizes that grow, move and go; wrong: what they held is gone."""
    texts = [bytes([number % 251]) * (number * k % 5000) for k in range(20)]
    table, grown = {}, []
    for k in range(200):
        table[str(k)] = [k] * (k % 7)
        grown.append((k, str(number)))
    if libraries:
        for way in (b"malloc", b"calloc", b"realloc", b"posix_memalign", b"mmap"):
            libraries[0].native_make(way, ctypes.c_size_t(3), ctypes.c_size_t(1 + number * 37 % 70000), 0)
    right = all(len(text) == number * k % 5000 and text.count(number % 251) == len(text) for k, text in enumerate(texts))
    return right and table["199"] == [199] * 3 and grown[-1] == (199, str(number))


def child_is_well(number):
    child = os.fork()
    if not child:
        os._exit(0 if all(turn(number + k) for k in range(5)) else 1)
    return os.waitpid(child, 0)[1] == 0


def storm(threads):
    stop, wrong = threading.Event(), []

    def work(number):
        while not stop.is_set():
            number += 1
            if not turn(number) or (number % 50 == 0 and not child_is_well(number)):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(1000 * k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    sys.stdin.readline()
    stop.set()
    for worker in workers:
        worker.join()
    return len(wrong)


def told(command, count=0, size=0, *more):
    if command == "load":
        libraries.append(ctypes.CDLL(count))
    elif command == "native":
        native(count, size, *more)
    elif command == "storm":
        return storm(count)
    elif command == "unload":
        libraries[0].native_free()
    elif command == "keep":
        keeper(kept, count, size)
    elif command == "old":
        keeper(old, count, size)
    elif command == "drop":
        dropper(count, size)
    elif command == "free":
        del kept[:]
    elif command == "forget":
        del old[:]
    elif command == "fork":
        child = os.fork()
        if not child:
            in_child(count, size)
            os._exit(0)
        return os.waitpid(child, 0)[1]
    return 0


def main():
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        words = line.split()
        in_thread = words[0] == "THREAD"
        command, numbers = words[in_thread], [int(word) if word.isdigit() else word for word in words[in_thread + 1:]]
        status = []
        if in_thread:
            thread = threading.Thread(target=lambda: status.append(told(command, *numbers)))  # noqa: B023 joined here
            thread.start()
            thread.join()
        else:
            status.append(told(command, *numbers))
        # What one object takes: its header, and a zero behind its bytes.
        known = len(numbers) == 2
        each = sys.getsizeof(bytes(numbers[1])) if known else 0
        print(json.dumps({"bytes": each * numbers[0] if known else 0, "status": status[0]}), flush=True)


main()
