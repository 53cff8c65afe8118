"""One rank of a training job that torchrun starts: an all_reduce over gloo in each step, batches from a DataLoader with
two workers.  Says "step RANK NUMBER" after each step."""

import ctypes
import signal
import time
from datetime import timedelta

import torch
from torch import distributed
from torch.utils.data import DataLoader, IterableDataset


class Numbers(IterableDataset):
    def __iter__(self):
        value = 0
        while True:
            value += 1
            yield torch.tensor(float(value))


def step(batch):
    total = batch.sum()
    distributed.all_reduce(total)                       # at reduce
    return total.item()


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)          # not longer than torchrun
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=timedelta(seconds=50))
    rank = distributed.get_rank()
    for number, batch in enumerate(DataLoader(Numbers(), batch_size=2, num_workers=2)):
        step(batch)
        print("step {} {}".format(rank, number), flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
