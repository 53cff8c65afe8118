"""Modules and tensors that gdb's commands look at, where it waits for its input's end."""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(3, 4), nn.ReLU()) for _ in range(2))
        self.named = nn.ModuleDict({"norm": nn.LayerNorm(4)})
        self.scales = nn.ParameterList([torch.zeros(2), torch.ones(5)])


def step(net):
    batch = torch.arange(24.0).reshape(2, 3, 4)
    batch[0, 0, 0] = float("nan")
    loss = 4.5
    array = batch.numpy()
    times = torch.tensor([1234567890123])
    print("ready", flush=True)
    sys.stdin.readline()
    return batch, loss, array, times


torch.set_num_threads(1)
step(Net())
