# Sampled allocations.
PYTESTS += %D%/test_python.py
EXTRA_DIST += %D%/conftest.py
