"""As much of PyTorch as recording its modules needs, in Python alone: for every CPython."""
