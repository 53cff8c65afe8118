import pytest

from support import pythons
from support.target import TARGETS, Target
from support.torch_python import torch_python

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]


def pytest_generate_tests(metafunc):
    pythons.parametrize(metafunc)


@pytest.fixture
def loop():
    """loop(shape): a training loop that goes on; ended with the test.  ddp, or ranked: rank 0 of torchrun's two."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    started = []

    def begin(shape, program="torch_loops.py", ranked=False):
        launcher = [torch_python(), *TORCHRUN] if ranked or shape == "ddp" else []
        python = pythons.Python(launcher, torch_python(), pythons.ask([torch_python()])[0], "torch")
        target = Target(python, program, [shape], folder=TARGETS)
        started.append(target)
        for note in target.notes:
            if note.startswith("pid "):
                target.pid = int(note.split()[1])
        return target

    yield begin
    for target in started:
        target.end()
