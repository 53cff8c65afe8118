"""Allocates what it is told to, at places that can be known: lines on standard input, answered by what was done, as JSON.

keep N SIZE: N bytes objects that stay, made by keeper(); drop N SIZE: N that go, by dropper(); both in a thread: THREAD keep …
load FILE: a library, such as tests/allocation/native.c; native WAY N SIZE STAYS: its native_make(), in a function native().
free: all that stayed goes; old N SIZE: as keep, but not forgotten by free; fork: a child allocates and frees, and tells its pid.
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


def told(command, count=0, size=0, *more):
    if command == "load":
        libraries.append(ctypes.CDLL(count))
    elif command == "native":
        native(count, size, *more)
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
