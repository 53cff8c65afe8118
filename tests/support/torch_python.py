"""A Python that has torch: PROBING_TORCH_PYTHON, or the build's own, or the one that runs this."""

import functools
import os
import subprocess
import sys


@functools.lru_cache(maxsize=None)
def torch_python():
    for path in (os.environ.get("PROBING_TORCH_PYTHON"), os.path.join(os.environ.get("BUILDDIR", "."), "venv", "bin", "python3"),
                 sys.executable):
        if path and os.access(path, os.X_OK):
            code = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"
            if subprocess.run([path, "-c", code]).returncode == 0:
                return path
    return None
