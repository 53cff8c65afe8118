"""media/view.py of the VS Code extension: what it says of arrays of every kind, and of what is none."""

import json
import os
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.environ.get("SRCDIR", os.path.join(HERE, "..", ".."))

from support import pythons
from support.torch_python import torch_python

PROGRAM = os.path.join(SRCDIR, "editors", "vscode", "media", "view.py")
# Answers lines of JSON: the code that makes `value`, then the other arguments of view().
SERVE = """
import json, sys
functions = {}
exec(open(sys.argv[1]).read(), functions)
for line in sys.stdin:
    asked, names = json.loads(line), {}
    exec(asked.pop(0), names)
    try:
        answer = functions["view"](names["value"], *asked)
    except TypeError as error:
        answer = json.dumps({"error": str(error)})
    print(answer, flush=True)
"""


class Viewer:
    """A Python that runs view(): one for all questions, as torch takes its time to load."""

    def __init__(self, python):
        self.child = subprocess.Popen([python, "-c", SERVE, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def view(self, made, index=(), row=0, column=0, rows=3, columns=4):
        self.child.stdin.write(json.dumps([made, list(index), row, column, rows, columns]).encode() + b"\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline().decode())

    def close(self):
        self.child.stdin.close()
        self.child.stdout.close()
        assert self.child.wait(60) == 0


@pytest.fixture(scope="module")
def torch():
    python = torch_python()
    if python is None:
        pytest.skip("no Python with torch")
    one = Viewer(python)
    one.view("import torch; value = torch.tensor(0)")
    yield one
    one.close()


def test_batch(torch):
    made = "import torch; value = torch.arange(24.).reshape(2, 3, 4).requires_grad_()"
    got = torch.view(made, index=[1], row=1, column=2, rows=5)
    assert (got["dtype"], got["shape"], got["grad"], got["elements"]) == ("float32", [2, 3, 4], True, 24)
    assert (got["rows"], got["columns"], got["row"], got["column"]) == (3, 4, 1, 2)
    assert got["table"] == [["18", "19"], ["22", "23"]]
    assert got["picture"]["cells"] == "".join("%02x" % int(i * 254 / 11) for i in range(12))
    numbers = got["statistics"]
    assert (numbers["sampled"], numbers["low"], numbers["high"], numbers["mean"]) == (24, 0, 23, 11.5)
    assert sum(numbers["bins"]) == 24


def test_not_finite(torch):
    got = torch.view("import torch; value = torch.tensor([1., float('nan'), float('inf'), -float('inf')])")
    assert got["table"] == [["1"], ["nan"], ["inf"]]
    assert (got["statistics"]["nan"], got["statistics"]["infinite"]) == (1, 2)
    assert got["picture"]["cells"] == "00ffffff"


@pytest.mark.parametrize("made, table", [
    ("torch.tensor(3)", [["3"]]),
    ("torch.zeros(0, 4)", []),
    ("torch.zeros(0, 3, 4)", []),
    ("torch.zeros(3, 0)", []),
    ("torch.zeros(0)", []),
    ("torch.zeros(2, 0, 4).numpy()", []),
    ("torch.ones(2, 2, dtype=torch.bfloat16)", [["1", "1"], ["1", "1"]]),
    ("torch.ones(1, 1, dtype=torch.complex64)", [["1+0j"]]),
    ("torch.tensor([True, False])", [["True"], ["False"]]),
    ("torch.eye(2).to_sparse()", [["1", "0"], ["0", "1"]]),
    ("torch.quantize_per_tensor(torch.ones(1, 2), 0.5, 0, torch.qint8)", [["1", "1"]]),
    ("torch.eye(2).t()[::1]", [["1", "0"], ["0", "1"]]),
    ("torch.nn.Parameter(torch.ones(1, 1))", [["1"]]),
    ("torch.ones(2).numpy()", [["1"], ["1"]]),
    ("torch.ones(2).numpy()[0]", [["1"]]),
    ("__import__('numpy').array(['a\"b', 'c' * 99])", [["a?b"], ["c" * 32]]),
])
def test_kinds(torch, made, table):
    got = torch.view("import torch; value = " + made)
    assert got["table"] == table
    assert (got["elements"] == 0) == (table == [])


def test_what_has_become_smaller(torch):
    """Between two stops: the nearest place that is there."""
    got = torch.view("import torch; value = torch.arange(8).reshape(2, 2, 2)", index=[7], row=24, column=1)
    assert (got["row"], got["column"], got["table"]) == (0, 1, [["5"], ["7"]])
    got = torch.view("import torch; value = torch.arange(8).reshape(2, 2, 1, 2)", index=[1], column=9)
    assert got["table"] == [["4", "5"]]


def test_large_ones_are_sampled(torch):
    got = torch.view("import torch; value = torch.arange(3000 * 1000).reshape(3000, 1000)", row=2999)
    assert got["table"] == [["2999000", "2999001", "2999002", "2999003"]]
    assert got["statistics"]["sampled"] <= 65536 < got["elements"]
    assert got["picture"]["rows"] <= 128 and len(got["picture"]["cells"]) == 2 * got["picture"]["rows"] * got["picture"]["columns"]


@pytest.mark.parametrize("made, said", [
    ("[1]", "list is neither a tensor nor an array"),
    ("__import__('torch').empty(1, device='meta')", "a tensor on the device meta has no values"),
])
def test_what_is_no_array(torch, made, said):
    assert torch.view("value = " + made) == {"error": said}


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
        one = Viewer(python.command()[0])
        assert one.view(FAKE)["table"] == [["1", "2"], ["3", "4"]]
        one.close()
