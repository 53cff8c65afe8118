"""A loop that only counts."""

import time


def main():
    step = 0
    while True:
        step += 1
        time.sleep(0.005)


print("ready", flush=True)
main()
