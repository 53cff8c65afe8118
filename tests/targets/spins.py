"""Waits for CUDA, waits for NCCL and computes, by turns: 60, 30 and 10 % of the processor time (tests/sample/spins.c)."""

import ctypes
import os
import sys

library = ctypes.CDLL(sys.argv[1])
os.write(1, b"ready\n")
while True:
    library.cudaStreamSynchronize(60)
    library.ncclGroupEnd(30)
    library.compute(10)
