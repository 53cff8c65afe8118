"""Makes dicts and frees them without a pause; their memory then holds other bytes."""

import random
import sys
import threading

print("ready", flush=True)
threading.Thread(target=sys.stdin.read, daemon=True).start()
keep = []
while True:
    keep = [{i: [] for i in range(random.choice((6, 30, 200)))} for _ in range(300)]
    keep.clear()
    reused = [bytes([random.randrange(256)]) * random.choice((300, 1000, 7000)) for _ in range(300)]
