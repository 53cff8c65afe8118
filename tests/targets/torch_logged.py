"""A training loop that records what it does with the package: steps, spans, an event each epoch, the loss and learning rate.

torch_logged.py [PAUSE]: seconds of sleep after each step.  Says "ready" when the fourth step is done.
"""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import probing

STEPS_OF_EPOCH = 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 128)
        self.second = nn.Linear(128, 1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def train(model, optimizer, loader, pause):
    step = 0
    for epoch in range(1 << 60):
        for x, y in loader:
            step += 1
            probing.step(step, epoch=epoch)
            with probing.span("forward"):
                loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            probing.log(epoch=epoch, step=step, loss=loss, lr=optimizer.param_groups[0]["lr"])
            if step == 4:
                print("ready", flush=True)
            time.sleep(pause)
        probing.event("epoch", number=epoch)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    data = TensorDataset(torch.randn(STEPS_OF_EPOCH * 16, 64), torch.randn(STEPS_OF_EPOCH * 16, 1))
    loader = DataLoader(data, batch_size=16)
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loader, float(sys.argv[1]) if len(sys.argv) > 1 else 0.01)


if __name__ == "__main__":
    main()
