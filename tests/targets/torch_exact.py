"""Trains a small model with a fixed seed, again and again until a line comes on standard input, and prints a hash of its weights each time: the
same one, or something broke."""

import hashlib
import select
import sys

import torch
from torch import nn

torch.use_deterministic_algorithms(True)


def trained(steps):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, labels = torch.randn(64, 64), torch.randint(8, (64,))
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    return hashlib.sha256(weights).hexdigest()


print("ready", flush=True)
while not select.select([0], [], [], 0)[0]:
    print(trained(int(sys.argv[1])), flush=True)
