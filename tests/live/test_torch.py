"""torch: Python above C++ above Python in one stack, tensors among the locals, a DataLoader's worker process."""

import re

import pytest

from support.compare import entry_of, inner_tids, python_frames, same
from support.pythons import Python, ask
from support.target import backtrace, children, probing
from support.torch_python import torch_python


@pytest.fixture(scope="module")
def training(folders):
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    from support.target import TARGETS, Target

    told = ask([torch_python()])
    python = Python([], torch_python(), told[0], "torch")
    with Target(python, "torch_train.py", folder=TARGETS) as target:
        yield target.settle(only=True)


def test_stacks(training):
    entries = backtrace(training.pid)
    same(training, entries)
    names = {entry["thread_name"] for entry in entries}
    assert {"MainThread", "background"} <= names


def test_native(training):
    """The same Python frames in the same order, and the autograd engine where it stands: between them."""
    tid = inner_tids(training.pid)[training.truth[-1]["os_thread_id"]]
    frames = entry_of(backtrace(training.pid, "--native"), tid)["frames"]
    python = [frame["name"] for frame in frames if frame["kind"] == "python"]
    assert python == [frame["name"] for frame in training.truth[-1]["frames"]]
    kinds = [(frame["kind"], frame["name"], frame["module"] or "") for frame in frames]
    backward = next(i for i, frame in enumerate(kinds) if frame[:2] == ("python", "backward"))
    caller = next(i for i, frame in enumerate(kinds) if i > backward and frame[0] == "python" and "backward" in frame[1])
    between = kinds[backward + 1:caller]
    assert any("libtorch" in module for _, _, module in between), between
    assert any("autograd" in name for _, name, _ in between), between
    assert kinds[0][0] == "native"  # read(2), innermost


def test_native_threads(training):
    """torch's own threads are there with --native, without Python frames."""
    entries = backtrace(training.pid, "--native")
    alone = [entry for entry in entries if entry["interpreter"] is None]
    assert alone and all(entry["frames"] and not python_frames(entry) for entry in alone)
    assert len({entry["os_thread_id"] for entry in entries}) == len(inner_tids(training.pid))


def test_tensors(training):
    """Tensors and modules among the locals."""
    frames = [frame for entry in backtrace(training.pid, "--locals") for frame in entry["frames"]]
    step = next(frame for frame in frames if frame["name"] == "step")
    local = {local["name"]: local for local in step["locals"]}
    assert local["values"]["arg"] and "(4, 8)" in local["values"]["repr"] and "float32" in local["values"]["repr"]
    assert "(4,)" in local["labels"]["repr"] and "int64" in local["labels"]["repr"]
    assert not local["loss"]["arg"] and "Tensor" in local["loss"]["type"]
    assert re.search(r"^torch.Tensor\(shape=\(\), dtype=float32, device=cpu\) = \d+\.\d+$", local["loss"]["repr"])
    # 8 * 16 + 16 and 16 * 3 + 3 of the layers inside.
    assert local["net"]["repr"] == "Net (195 parameters, 1 modules, training)"
    assert local["optimizer"]["repr"] == "SGD lr=0.1 (1 groups, 4 tensors)"


def test_worker(training):
    """The worker process waits for its next index, and is listed below its parent."""
    workers = [pid for pid in children(training.pid)
               if any(frame["name"] == "_worker_loop" for entry in backtrace(pid) for frame in entry["frames"])]
    assert len(workers) == 1
    listed = probing("list", "--tree").stdout
    assert str(training.pid) in listed and str(workers[0]) in listed


def test_stopped_little(training):
    """--native stops no thread for longer than a moment, and leaves all as they were."""
    before = inner_tids(training.pid)
    for _ in range(5):
        backtrace(training.pid, "--native")
    training.settle(only=True)
    assert inner_tids(training.pid) == before
    with open("/proc/{}/status".format(training.pid)) as status:
        assert "TracerPid:\t0\n" in status.read()
