"""Keeps some MB more each second, as a list of a type of its own."""

import time


class Sample:
    def __init__(self, text):
        self.text = text
        self.more = {"text": text}


kept = []
print("ready", flush=True)
while True:
    kept.extend(Sample("x" * 20000) for _ in range(100))
    time.sleep(0.1)
