#!/usr/bin/env python3
"""A small language model in PyTorch, to look at with probing: no GPU, two cores suffice.

Trains a transformer block (embedding, attention, MLP) with AdamW to predict the next token of arithmetic sequences,
fed by a DataLoader with two worker processes, watched by a thread that keeps metrics.  Runs until stopped, or for
--steps N.  The first line, "ready PID", is written when the first step is done.
"""

import argparse
import math
import os
import queue
import signal
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

try:
    import probing  # for the table python.losses: rows are kept while a probe is in this process, else dropped
except ImportError:
    probing = None

VOCABULARY = 101
CONTEXT = 32


class Sequences(IterableDataset):
    """Endless arithmetic sequences modulo the vocabulary, different ones in each worker."""

    def __init__(self, seed):
        self.seed = seed

    def sequences(self, generator):
        while True:
            start, stride = torch.randint(1, VOCABULARY, (2,), generator=generator).tolist()
            yield torch.tensor([(start + i * stride) % VOCABULARY for i in range(CONTEXT + 1)])

    def __iter__(self):
        worker = get_worker_info()
        generator = torch.Generator()
        generator.manual_seed(self.seed + (worker.id if worker else 0))
        for tokens in self.sequences(generator):
            yield tokens[:-1], tokens[1:]


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def split(self, part):
        batch, time_, width = part.shape
        return part.view(batch, time_, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x):
        query, key, value = (self.split(part) for part in self.projection(x).chunk(3, dim=-1))
        weights = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = weights.masked_fill(future, float("-inf")).softmax(dim=-1)
        mixed = (weights @ value).transpose(1, 2).flatten(2)
        return self.output(mixed)


class Block(nn.Module):
    """Attention and an MLP, each added to what went in."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Model(nn.Module):
    """Tokens to the scores of the next token."""

    def __init__(self, width=64, heads=4, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Metrics(threading.Thread):
    """Keeps the loss of each step and says now and then how training goes."""

    def __init__(self, every):
        super().__init__(name="metrics", daemon=True)
        self.every = every
        self.steps = queue.SimpleQueue()
        self.losses = probing.table("losses", {"step": int, "loss": float}) if probing else None

    def report(self, step, loss, seconds):
        print(f"step {step}: loss {loss:.3f}, {self.every / seconds:.1f} steps/s", flush=True)

    def run(self):
        since = time.monotonic()
        while True:
            step, loss = self.steps.get()
            if self.losses:
                self.losses.append(step, loss)
            if step % self.every == 0:
                self.report(step, loss, time.monotonic() - since)
                since = time.monotonic()


def train_step(model, optimizer, batch):
    tokens, targets = batch
    scores = model(tokens)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, optimizer, loader, metrics, steps, pause):
    for step, batch in enumerate(loader, start=1):
        loss = train_step(model, optimizer, batch)
        metrics.steps.put((step, loss))
        if step == 1:
            print(f"ready {os.getpid()}", flush=True)
        if step == steps:
            return
        time.sleep(pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=0, help="stop after so many (0: run until stopped)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2, help="processes that make the batches")
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch's operators")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--every", type=int, default=200, help="steps between two lines of output")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of sleep after each step")
    arguments = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # ends the workers, too
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr)
    loader = DataLoader(Sequences(seed=1), batch_size=arguments.batch, num_workers=arguments.workers)
    metrics = Metrics(arguments.every)
    metrics.start()
    try:
        train(model, optimizer, loader, metrics, arguments.steps, arguments.pause)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
