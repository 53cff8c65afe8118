"""GPUs on a machine without any: a stand-in for NVIDIA's management library (tests/host/nvml.c)."""

import os
import shutil

from support.injection import built


def pretend(monkeypatch, folder, words="", library="host/nvml.so"):
    """From now on `probing` finds that library; words: what it does, see nvml.c."""
    shutil.copy(built(library), os.path.join(str(folder), "libnvidia-ml.so.1"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setenv("PRB_FAKE_NVML", words)
