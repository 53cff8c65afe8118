"""Forty threads (or as many as the first word says), each 900 frames deep (the second), in stacks that differ; each SIGUSR1 they return, and go down through another line."""

import signal
import sys
import threading

THREADS, DEPTH = (int(word) for word in sys.argv[1:] or ("40", "900"))
sys.setrecursionlimit(5000)
threading.stack_size(16 << 20)
turn = 0
changed = threading.Condition()
arrived = threading.Semaphore(0)


def down(depth, mine):
    if depth:
        down(depth - 1, mine)
        return
    arrived.release()
    with changed:
        changed.wait_for(lambda: turn != mine)


def make(number):
    """A function of its own, so that its stack has no frame in common with others'."""
    names = {"down": down}
    exec("\n" * number + "def enter_{0}_{1}(mine): down({2}, mine)".format(number, number % 7, DEPTH), names)
    return names["enter_{}_{}".format(number, number % 7)]


def work(number):
    for at in range(10**6):
        make(number + THREADS * at)(at)


def go_on(*_):
    threading.Thread(target=next_turn, daemon=True).start()


def next_turn():
    global turn
    with changed:
        turn += 1
        changed.notify_all()


def main():
    signal.signal(signal.SIGUSR1, go_on)
    for number in range(THREADS):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    for _ in range(THREADS):
        arrived.acquire()
    print("ready", flush=True)
    stand()


def stand():
    while True:
        signal.pause()


main()
