"""A training step of torch that stands within a custom autograd function's backward, fed by a DataLoader's worker."""

import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import oracle


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), float(index)), index % 3


class Standing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, gradient):
        oracle.park(1)
        return gradient * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, values):
        return Standing.apply(self.inside(values))


def background():
    oracle.park()


def step(net, optimizer, values, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(values), labels)
    loss.backward()
    optimizer.step()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    threading.Thread(target=background, name="background", daemon=True).start()
    for values, labels in DataLoader(Numbers(), batch_size=4, num_workers=1):
        step(net, optimizer, values, labels)


if __name__ == "__main__":
    main()
