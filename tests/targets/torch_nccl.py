"""A job of two ranks over NCCL on one CUDA device, an all_reduce in each step; rank 1 comes 20 ms later.

NCCL refuses two ranks of one host on one device, so each says that it is a host of its own; they talk over sockets of the loopback device.  Says
"pids RANK0 RANK1", then "ready" when each has made three steps.  A line is passed on to rank 1: "stop" has it stay out of the next collective.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def rank(number):
    import torch
    from torch import distributed

    torch.cuda.set_device(0)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", 0))
    asked = threading.Event()
    threading.Thread(target=lambda: [asked.set() for line in sys.stdin], daemon=True).start()
    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    steps = 0
    while True:
        time.sleep(0.02 * number)
        while asked.is_set():
            time.sleep(0.05)
        model(torch.ones(64, 512, device="cuda")).square().mean().backward()
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        steps += 1
        if steps == 3:
            print("stepped", flush=True)


def launch():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    ranks = []
    for number in range(2):
        variables = dict(os.environ, RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                         NCCL_HOSTID="host{}".format(number), NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_P2P_DISABLE="1",
                         NCCL_SHM_DISABLE="1", NCCL_CUMEM_ENABLE="0", OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, __file__, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables))
    print("pids", *[one.pid for one in ranks], flush=True)
    for one in ranks:
        line = one.stdout.readline()
        while line and line != b"stepped\n":  # NCCL writes there, too
            line = one.stdout.readline()
    print("ready", flush=True)
    for line in sys.stdin:
        os.write(ranks[1].stdin.fileno(), line.encode())


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # not longer than whoever started it
    rank(int(sys.argv[1])) if sys.argv[1:] else launch()
