"""Threads: named when made, renamed later, unnamed, started below the threading module, subclassed."""

import _thread
import threading

import oracle


def plain(value):
    oracle.park()


class Worker(threading.Thread):
    def run(self):
        self.name = "renamed later: \N{SNOWMAN}"
        self.work(1)

    def work(self, value):
        plain(value)


def lowest():
    oracle.park(thread_name=None)


def main():
    threading.Thread(target=plain, args=(1,), name="first worker", daemon=True).start()
    threading.Thread(target=lambda: plain(2), daemon=True).start()
    Worker(daemon=True, name="early name").start()
    _thread.start_new_thread(lowest, ())
    oracle.park(4)


main()
