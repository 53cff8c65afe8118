"""Says which processes there are: this one, a subprocess, a spawned and a forked one, as {"self": pid, ...}."""

import json
import multiprocessing
import os
import subprocess
import sys


def tell(queue):
    queue.put(os.getpid())


def child(method):
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=tell, args=(queue,))
    process.start()
    pid = queue.get()
    process.join()
    return pid


if __name__ == "__main__":
    said = {"self": os.getpid(), "variable": os.environ.get("PROBING"), "args": sys.argv[1:], "marked": os.environ.get("MARK")}
    if "alone" not in sys.argv:
        said["subprocess"] = int(subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"]))
        said["spawn"] = child("spawn")
        said["fork"] = child("fork")
    if "forkserver" in sys.argv:
        said["forkserver"] = child("forkserver")
    print(json.dumps(said))
