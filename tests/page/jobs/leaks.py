"""Keeps 2 MB more each second, as a list of a type of its own, until that is 2 GB."""

import time


class Sample:
    def __init__(self, text):
        self.text = text
        self.more = {"text": text}


kept = []
print("ready", flush=True)
while len(kept) < 100000:
    kept.extend(Sample("x" * 20000) for _ in range(10))
    time.sleep(0.1)
while True:
    time.sleep(1)
