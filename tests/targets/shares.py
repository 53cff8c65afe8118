"""Three functions with known shares of the time, 60, 30 and 10 %, until it is ended.

usage: shares.py cpu|wall|gil [CYCLE].  Each measures itself; each line on standard input is answered by JSON: seconds by function, and
how many cycles (of CYCLE s, 0.1) there were until now.
"""

import json
import os
import select
import sys
import time

CYCLE = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
CLOCKS = {"cpu": getattr(time, "thread_time", time.process_time), "wall": time.monotonic, "gil": time.monotonic}


def spend(kind, seconds):
    clock = CLOCKS[kind]
    begin = clock()
    if kind == "wall":
        time.sleep(seconds)
    else:
        while clock() < begin + seconds:
            pass
    return clock() - begin


def sixty(kind):
    return spend(kind, 0.6 * CYCLE)


def thirty(kind):
    return spend(kind, 0.3 * CYCLE)


def ten(kind):
    return spend(kind, 0.1 * CYCLE)


def main(kind):
    spent, cycles = {"sixty": 0.0, "thirty": 0.0, "ten": 0.0}, 0
    os.write(1, b"ready\n")
    while True:
        if select.select([0], [], [], 0)[0] and os.read(0, 1):
            os.write(1, json.dumps(dict(spent, cycles=cycles)).encode() + b"\n")
        spent["sixty"] += sixty(kind)
        spent["thirty"] += thirty(kind)
        spent["ten"] += ten(kind)
        cycles += 1
        if kind == "gil":
            time.sleep(CYCLE / 2)


main(sys.argv[1])
