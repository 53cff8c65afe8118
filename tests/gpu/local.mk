# What needs a CUDA device, and a PyTorch that knows it; skipped elsewhere.
PYTESTS += %D%/test_cuda.py %D%/test_ranks.py
EXTRA_DIST += %D%/conftest.py
