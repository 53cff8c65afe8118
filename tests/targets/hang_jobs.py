"""Jobs of four ranks over gloo, one after the other, each made to hang.  A line "CASE GUILTY JOB" ends the last one and starts
the next; "pids RANK0 ... RANK3" is said when the guilty rank is at the place where it stays.  The ranks are forked, so that
torch is imported once; their RANK and the like are set inside, as Ray and torch.multiprocessing do.

Behind JOB may stand ADDRESS and DEVICE, and a process for each rank: the rank is in the namespaces of that process and reaches
the others by the device; ADDRESS is that of rank 0.  HANG_RANKS: another number of ranks; HANG_DEBUG_PORT: with
torch.distributed.debug, for tests/bench/across.py.

Under torchrun: hang_jobs.py CASE GUILTY is one rank.
"""

import ctypes
import itertools
import os
import select
import signal
import socket
import sys
import threading
import time

import torch
from torch import distributed

RANKS = int(os.environ.get("HANG_RANKS", 4))
READY = 10 * RANKS  # seconds in which the guilty rank comes to its place; else all begin anew, TRIES times
TRIES = 3
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class Rank:
    def __init__(self, case, guilty, ready):
        self.case, self.guilty, self.ready = case, guilty, ready
        self.rank = int(os.environ["RANK"])
        torch.set_num_threads(1)
        distributed.init_process_group("gloo")
        self.pairs = [distributed.new_group(ranks) for ranks in ((0, 1), (2, 3))]
        self.columns = [distributed.new_group(ranks) for ranks in ((0, 2), (1, 3))]
        self.gradients = torch.ones(100)
        if "HANG_DEBUG_PORT" in os.environ:
            from torch.distributed.debug import start_debug_server
            start_debug_server(port=int(os.environ["HANG_DEBUG_PORT"]))
        self.dp = distributed.new_group(list(range(RANKS)))

    def is_now(self, step):
        if step != 3 or self.rank != self.guilty:
            return False
        self.ready()
        return True

    # What the guilty rank does.

    def read_shard(self):
        time.sleep(3600)

    def count_tokens(self):
        while True:
            pass

    def take_lock(self):
        lock = threading.Lock()
        lock.acquire()
        with lock:
            pass

    def keep(self, take, entered):
        with take:
            entered.set()
            time.sleep(3600)

    def wait_for_other(self, lock):
        """Another thread has it, and sleeps."""
        entered = threading.Event()
        threading.Thread(target=self.keep, args=(lock, entered), name="keeper", daemon=True).start()
        entered.wait()
        with lock:
            pass

    def held_lock(self):
        self.wait_for_other(threading.Lock())

    def held_rlock(self):
        self.wait_for_other(threading.RLock())

    def nest_lock(self):
        lock = threading.Lock()
        with lock:
            with lock:
                pass

    def keep_gil(self):
        self.library.usleep(1 << 31)

    def want_gil(self):
        """A native call of another thread keeps it."""
        self.library = ctypes.PyDLL(None)
        threading.Thread(target=self.keep_gil, name="keeper", daemon=True).start()
        while True:
            pass

    def stop(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def extra_sync(self):
        distributed.all_reduce(self.gradients, group=self.dp)

    def load_batch(self, step):
        if self.is_now(step):
            {"reader": self.read_shard, "loop": self.count_tokens, "lock": self.take_lock, "stop": self.stop,
             "held": self.held_lock, "rlock": self.held_rlock, "nest": self.nest_lock, "gil": self.want_gil,
             "tensor": self.read_shard, "pipeline": self.read_shard}[self.case]()

    # What all do.

    def sync_grads(self):
        distributed.all_reduce(self.gradients, group=self.dp)

    def forward(self):
        distributed.all_reduce(self.gradients, group=self.pairs[self.rank // 2])

    def end_step(self):
        distributed.barrier()

    def plain(self, step):
        self.load_batch(step)
        self.sync_grads()
        self.end_step()

    def skip(self, step):
        if not self.is_now(step):
            self.sync_grads()
        self.end_step()

    def extra(self, step):
        self.sync_grads()
        if self.is_now(step):
            self.extra_sync()
        self.end_step()

    def tensor(self, step):
        self.load_batch(step)
        self.forward()
        distributed.all_reduce(self.gradients, group=self.columns[self.rank % 2])

    def pipeline(self, step):
        if self.rank:
            distributed.recv(self.gradients, self.rank - 1)
        self.load_batch(step)
        distributed.send(self.gradients, (self.rank + 1) % RANKS)
        if not self.rank:
            distributed.recv(self.gradients, RANKS - 1)

    def slow(self, step):
        self.is_now(step)
        if self.rank == self.guilty:
            time.sleep(0.1)
        self.sync_grads()

    def train(self):
        one_step = getattr(self, self.case if self.case in ("skip", "extra", "tensor", "pipeline", "slow") else "plain")
        step = 0
        while True:
            one_step(step)
            step += 1


def enter(space, tell):
    """Go on in a child of this process, which is in the namespaces of another and ends with this one."""
    spaces = os.pidfd_open(space)
    if LIBC.setns(spaces, CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    child = os.fork()
    if child:
        tell(child)
        os.waitpid(child, 0)
        os._exit(0)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


_ports = itertools.count(29500)


def begin(case, guilty, job, address, device, spaces):
    """(processes to end, ranks); no ranks: the guilty one did not come to its place."""
    port = next(_ports) if spaces else free_port()
    reader, writer = os.pipe()
    told, tell = os.pipe()
    pids = []
    for rank in range(RANKS):
        pids.append(os.fork())
        if not pids[-1]:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.environ.update(RANK=str(rank), LOCAL_RANK="0" if spaces else str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR=address,
                              MASTER_PORT=str(port), PROBING_JOB=job, GLOO_SOCKET_IFNAME=device)
            os.close(reader)
            if spaces:
                enter(int(spaces[rank]), lambda pid: os.write(tell, b"%d %d\n" % (rank, pid)))
            Rank(case, guilty, lambda: os.write(writer, b"x")).train()
    os.close(writer)
    os.close(tell)
    ready = came(reader, pids)
    os.close(reader)
    with open(told) as lines:
        inside = dict(map(int, lines.readline().split()) for _ in spaces) if ready else {}
    return pids, [] if not ready else [inside[rank] for rank in range(RANKS)] if spaces else pids


def came(reader, pids):
    """Whether a byte comes in time, and before one of the processes ends."""
    until = time.monotonic() + READY
    while not select.select([reader], [], [], 0.1)[0]:
        if time.monotonic() > until or any(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for pid in pids):
            return False
    return os.read(reader, 1) == b"x"


def start(case, guilty, job, address="127.0.0.1", device="lo", *spaces):
    """As begin().  Ranks that cannot reach each other look for each other for ever."""
    for _ in range(TRIES):
        pids, ranks = begin(case, guilty, job, address, device, spaces)
        if ranks:
            return pids, ranks
        print("hang_jobs: {} {}: rank {} did not come to its place".format(case, job, guilty), file=sys.stderr, flush=True)
        end(pids)
    sys.exit("hang_jobs: {}: given up".format(case))


def end(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def serve():
    pids = []
    print("ready", flush=True)
    for line in sys.stdin:
        end(pids)
        case, guilty, job, *where = line.split()
        pids, ranks = start(case, int(guilty), job, *where)
        print("pids", *ranks, flush=True)
    end(pids)


if len(sys.argv) > 1:
    Rank(sys.argv[1], int(sys.argv[2]), lambda: print("pid", os.getpid(), flush=True)).train()
else:
    serve()
