"""A model that trains in PyTorch on batches of a DataLoader; each 20th step takes longer.  With "log" it logs loss and tokens itself."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if sys.argv[1:] == ["log"]:
    import probing


def train(model, optimizer, loader):
    step = 0
    while True:
        for (batch,) in loader:
            loss = (model(batch) - batch[:, :4]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == 5:
                print("ready", flush=True)
            if sys.argv[1:] == ["log"]:
                probing.step()
                probing.log(loss=loss, tokens=8 * 16)
            time.sleep(0.15 if step % 20 == 0 else 0.01)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train(model, optimizer, DataLoader(TensorDataset(torch.randn(800, 16)), batch_size=8))


main()
