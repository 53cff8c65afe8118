"""A model that trains in PyTorch; from the step on that the first argument names, a weight is NaN."""

import sys
import time

import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
bad = int(sys.argv[1])
for step in range(10**9):
    x = torch.randn(8, 16)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == bad:
        with torch.no_grad():
            model[2].weight[0, 0] = float("nan")
    if step == bad + 1:
        print("ready", flush=True)
    time.sleep(0.02)
