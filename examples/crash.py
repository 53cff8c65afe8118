#!/usr/bin/env python3
"""A training job that crashes, to read its dump with probing: PyTorch, no GPU.

    PROBING=1 PROBING_CRASH=1 python crash.py            # a bad pointer in "native code", at step 3
    PROBING=1 PROBING_CRASH=1 python crash.py --raise    # an exception that nobody handles
    probing crash show

The variables need the package installed (pip install .); PYTHONPATH is not enough.  Without it: `python crash.py --wait`, then `probing PID inject -c`, then Enter.
"""

import argparse
import ctypes
import os
import sys
import threading

import torch
from torch import nn

try:
    import probing  # for training_logs: rows are kept while a probe is in this process, else dropped
except ImportError:
    probing = None


def fused_kernel(logits, address):
    """Stands for an extension that follows a wrong pointer."""
    ctypes.memset(address, 0, logits.numel())


def train_step(model, batch, labels, step, options):
    logits = model(batch)
    loss = nn.functional.cross_entropy(logits, labels)
    loss.backward()
    if probing:
        probing.step(step)
        probing.log(loss=loss.item())
    if step == options.at and options.exception:
        raise RuntimeError("loss is no longer what it was: {:.3f}".format(loss.item()))
    if step == options.at:
        fused_kernel(logits, 0)


def train(options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    for step in range(10):
        train_step(model, torch.randn(32, 64), torch.randint(0, 10, (32,)), step, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raise", dest="exception", action="store_true", help="an exception in place of a bad pointer")
    parser.add_argument("--at", type=int, default=3, metavar="STEP", help="where it goes wrong (3)")
    parser.add_argument("--wait", action="store_true", help="for Enter, before the first step")
    options = parser.parse_args()
    threading.Thread(target=threading.Event().wait, name="metrics", daemon=True).start()
    if options.wait:
        print("ready", os.getpid(), flush=True)
        sys.stdin.readline()
    train(options)


if __name__ == "__main__":
    main()
