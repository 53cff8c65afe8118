"""A job of two ranks as a launcher starts it, without torch: each rank computes, and has a worker process that waits and
inherits its RANK.  Says "ready LAUNCHER RANK0 RANK1 WORKER0 WORKER1" (pids).  For each line of input it ends the ranks and
starts them anew, as an elastic launcher does, and says the same of them."""

import os
import signal
import subprocess
import sys
import time


def watch_parent():
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def working():
    watch_parent()
    while True:
        time.sleep(0.01)


def computing(worker):
    print(worker, flush=True)
    while True:  # its parent's end is its own
        sum(range(1000))


def rank():
    watch_parent()
    pid = os.fork()
    if pid == 0:
        working()
    computing(pid)


def round_of_ranks():
    ranks = [subprocess.Popen([sys.executable, __file__, "rank"], stdout=subprocess.PIPE,
                              env=dict(os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2"))
             for number in range(2)]
    workers = [int(one.stdout.readline()) for one in ranks]
    line = " ".join(map(str, ["ready", os.getpid()] + [one.pid for one in ranks] + workers))
    os.write(1, line.encode() + b"\n")
    return ranks


def launcher():
    ranks = round_of_ranks()
    for _ in sys.stdin:
        for one in ranks:
            one.kill()
            one.wait()
        time.sleep(0.3)  # nobody is there for a while
        ranks = round_of_ranks()
    for one in ranks:
        one.wait()


if sys.argv[1:] == ["rank"]:
    rank()
else:
    launcher()
