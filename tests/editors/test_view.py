"""media/view.py of the VS Code extension: what it says of arrays of every kind, and of what is none."""

import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.environ.get("SRCDIR", os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "live"))

import pythons  # noqa: E402
from torch_python import torch_python  # noqa: E402

PROGRAM = os.path.join(SRCDIR, "editors", "vscode", "media", "view.py")
ASK = """
import sys
names = {}
exec(open(sys.argv[1]).read(), names)
exec(sys.argv[2])
print(names["view"](value, %r, %r, %r, %r, %r))
"""


def view(python, setup, index=(), row=0, column=0, rows=3, columns=4):
    code = ASK % (list(index), row, column, rows, columns)
    done = subprocess.run([python, "-c", code, PROGRAM, setup], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode())


@pytest.fixture(scope="module")
def torch():
    python = torch_python()
    if python is None:
        pytest.skip("no Python with torch")
    return python


def test_batch(torch):
    made = "import torch; value = torch.arange(24.).reshape(2, 3, 4).requires_grad_()"
    got = view(torch, made, index=[1], row=1, column=2, rows=5)
    assert (got["dtype"], got["shape"], got["grad"], got["elements"]) == ("float32", [2, 3, 4], True, 24)
    assert (got["rows"], got["columns"]) == (3, 4)
    assert got["table"] == [["18", "19"], ["22", "23"]]
    assert got["picture"]["cells"] == "".join("%02x" % int(i * 254 / 11) for i in range(12))
    numbers = got["statistics"]
    assert (numbers["sampled"], numbers["low"], numbers["high"], numbers["mean"]) == (24, 0, 23, 11.5)
    assert sum(numbers["bins"]) == 24


def test_not_finite(torch):
    got = view(torch, "import torch; value = torch.tensor([1., float('nan'), float('inf'), -float('inf')])")
    assert got["table"] == [["1"], ["nan"], ["inf"]]
    assert (got["statistics"]["nan"], got["statistics"]["infinite"]) == (1, 2)
    assert got["picture"]["cells"] == "00ffffff"


@pytest.mark.parametrize("made, table", [
    ("torch.tensor(3)", [["3"]]),
    ("torch.zeros(0, 4)", []),
    ("torch.ones(2, 2, dtype=torch.bfloat16)", [["1", "1"], ["1", "1"]]),
    ("torch.ones(1, 1, dtype=torch.complex64)", [["1+0j"]]),
    ("torch.tensor([True, False])", [["True"], ["False"]]),
    ("torch.eye(2).to_sparse()", [["1", "0"], ["0", "1"]]),
    ("torch.quantize_per_tensor(torch.ones(1, 2), 0.5, 0, torch.qint8)", [["1", "1"]]),
    ("torch.eye(2).t()[::1]", [["1", "0"], ["0", "1"]]),
    ("torch.ones(2).numpy()", [["1"], ["1"]]),
    ("torch.ones(2).numpy()[0]", [["1"]]),
    ("__import__('numpy').array(['a\"b', 'c' * 99])", [["a?b"], ["c" * 32]]),
])
def test_kinds(torch, made, table):
    assert view(torch, "import torch; value = " + made)["table"] == table


def test_large_ones_are_sampled(torch):
    got = view(torch, "import torch; value = torch.arange(3000 * 1000).reshape(3000, 1000)", row=2999)
    assert got["table"] == [["2999000", "2999001", "2999002", "2999003"]]
    assert got["statistics"]["sampled"] <= 65536 < got["elements"]
    assert got["picture"]["rows"] <= 128 and len(got["picture"]["cells"]) == 2 * got["picture"]["rows"] * got["picture"]["columns"]


def test_what_is_no_array(torch):
    code = "try:\n names['view']([1], [], 0, 0, 1, 1)\nexcept TypeError as error:\n print('told:', error)"
    done = subprocess.run([torch, "-c", "names = {}\nexec(open(%r).read(), names)\n%s" % (PROGRAM, code)],
                          stdout=subprocess.PIPE, timeout=60)
    assert done.stdout.decode() == "told: list is neither a tensor nor an array\n"


FAKE = """
class Array:
    shape, dtype = (2, 2), "int"
    rows = [[1, 2], [3, 4]]
    def tolist(self): return self.rows
    def __getitem__(self, part): return self
value = Array()
"""


def test_every_python():
    found = [python for python in pythons.found() if python.root is None]
    assert found
    for python in found:
        assert view(python.command()[0], FAKE)["table"] == [["1", "2"], ["3", "4"]]
