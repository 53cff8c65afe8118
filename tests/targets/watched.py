"""For top: three quarters of the time in one function, a quarter in another, and threads that wait, by name."""

import threading
import time


def heavy():
    end = time.thread_time() + 0.03
    while time.thread_time() < end:
        pass


def light():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass


def waiting():
    threading.Event().wait()


def work():
    while True:
        heavy()
        light()


for number in range(2):
    threading.Thread(target=waiting, name="waiter-{}".format(number), daemon=True).start()
print("ready", flush=True)
work()
