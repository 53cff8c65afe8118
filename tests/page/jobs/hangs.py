"""Works for a moment, then its main thread waits for ever for a queue that nobody fills; two workers wait for a lock."""

import queue
import threading


def load_batch(batches):
    return batches.get()


def worker(lock):
    with lock:
        pass


def main():
    lock = threading.Lock()
    lock.acquire()
    for i in range(2):
        threading.Thread(target=worker, args=(lock,), name="worker {}".format(i), daemon=True).start()
    print("ready", flush=True)
    load_batch(queue.Queue())


main()
