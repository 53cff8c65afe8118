"""A job of N ranks over gloo on this machine: an all_reduce in each step.  collectives.py N [LATE MS]

Says "pids RANK0 RANK1 ...", then "ready" when each has made a step.  LATE is a rank that comes MS later to each.
A line "RANK hold S" has that rank keep the GIL for so long, and "RANK sleep S" sleep before its next collective; both say
"begun".  "RANK tell" prints its collectives as JSON: [[begin, end], ...], seconds since the epoch; "RANK count" how many.  "RANK dump N"
has torch write its Flight Recorder N times, and prints what that took: [[ms, ms of CPU], ...], or null where it cannot.  With
TRANSFERS in the environment rank 0 sends to rank 1 after each, with PAUSE_MS each comes so long after the one before (10).  MASTER_PORT: where they meet, if it is given.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time


class Text(ctypes.Structure):
    """std::string, as libstdc++ has it."""
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("more", ctypes.c_char * 16)]


def dump(count):
    """Each on a thread of its own, without the GIL."""
    import torch
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    write = getattr(library, "_ZN4c10d18dump_fr_trace_jsonB5cxx11Ebb", None)
    if write is None:
        return None
    write.restype, write.argtypes, took = Text, [ctypes.c_bool, ctypes.c_bool], []

    def once():
        began, spent = time.perf_counter(), time.thread_time()
        text = write(True, False)
        took.append([1e3 * (time.perf_counter() - began), 1e3 * (time.thread_time() - spent)])
        library._ZdlPv(ctypes.c_void_p(text.data))

    for _ in range(count):
        thread = threading.Thread(target=once)
        thread.start()
        thread.join()
    return took


class Rank:
    def __init__(self, late):
        self.late = late
        self.lock = threading.Lock()
        self.asked = []
        self.done = []  # [begin, end] of each collective

    def read(self):
        for line in sys.stdin:
            word = line.split()
            if word[0] == "dump":
                print(json.dumps(dump(int(word[1]))), flush=True)
                continue
            with self.lock:
                if word[0] == "tell":
                    print(json.dumps(self.done), flush=True)
                elif word[0] == "count":
                    print(len(self.done), flush=True)
                else:
                    self.asked.append((word[0], float(word[1])))

    def obey(self):
        with self.lock:
            asked, self.asked = self.asked, []
        for what, seconds in asked:
            print("begun", flush=True)
            if what == "hold":
                ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # keeps the GIL
            else:
                time.sleep(seconds)

    def run(self):
        import torch
        from torch import distributed

        torch.set_num_threads(1)
        distributed.init_process_group("gloo")
        threading.Thread(target=self.read, daemon=True).start()
        tensor = torch.ones(1000)
        while True:
            time.sleep(float(os.environ.get("PAUSE_MS", "10")) / 1e3)
            self.obey()
            time.sleep(self.late)
            begin = time.time()
            try:
                distributed.all_reduce(tensor.fill_(1))
            except RuntimeError:  # a peer has ended
                print("alone", flush=True)
                time.sleep(600)
            with self.lock:
                self.done.append([begin, time.time()])
            if "TRANSFERS" in os.environ and distributed.get_rank() < 2:
                time.sleep(self.late)
                distributed.recv(tensor, 0) if distributed.get_rank() else distributed.send(tensor, 1)
            if len(self.done) == 1:
                print("stepped", flush=True)


def launch(count, late, milliseconds):
    ranks, port = [], os.environ.get("MASTER_PORT")
    if not port:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
    for rank in range(count):
        variables = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count),
                         MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        for name in ("LD_PRELOAD", "SHIFT_MS", "LATE_EVERY"):  # RANK1_SHIFT_MS is of rank 1 alone
            if "RANK{}_{}".format(rank, name) in variables:
                variables[name] = variables["RANK{}_{}".format(rank, name)]
        ranks.append(subprocess.Popen([sys.executable, __file__, "rank", str(milliseconds if rank == late else 0)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables))
    print("pids", *[one.pid for one in ranks], flush=True)
    for one in ranks:
        assert one.stdout.readline() == b"stepped\n"
    print("ready", flush=True)
    for line in sys.stdin:
        rank, words = line.split(None, 1)
        one = ranks[int(rank)]
        os.write(one.stdin.fileno(), words.encode())
        answer = one.stdout.readline().decode()
        while answer == "alone\n" and words.split()[0] != "wait":
            answer = one.stdout.readline().decode()
        os.write(1, answer.encode())


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # not longer than whoever started it
    if sys.argv[1] == "rank":
        Rank(float(sys.argv[2]) / 1000).run()
    else:
        launch(int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else -1, float(sys.argv[3]) if sys.argv[3:] else 0)
