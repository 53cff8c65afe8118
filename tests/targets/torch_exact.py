"""Trains a small model with a fixed seed and prints a hash of its weights: the same in every run, or something broke."""

import hashlib
import sys

import torch
from torch import nn

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(64, 64), torch.randint(8, (64,))
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print(hashlib.sha256(weights).hexdigest(), flush=True)
