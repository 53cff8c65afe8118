"""Arrays of numpy and tensors of torch as the library reads them against what numpy and torch say: tensor_dump on
tests/targets/tensors.py.  PROBING_NUMPY_PYTHONS: more interpreters with numpy, a ":" between them."""

import ast
import json
import math
import os
import shutil
import subprocess

import pytest

from support import pythons
from support.target import DEADLINE, probing, query
from support.torch_python import torch_python

DUMP = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "live", "tensor_dump")


def dump(target, lines):
    """What the library tells of each "ADDRESS SUBSCRIPT"."""
    done = subprocess.run([DUMP, str(target)], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=DEADLINE, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def with_numpy():
    found = [python for python in pythons.found() if python.root is None]
    for path in os.environ.get("PROBING_NUMPY_PYTHONS", "").split(os.pathsep):
        told = path and pythons.ask([path])
        if told:
            found.append(pythons.Python([], path, told[0], "numpy"))
    if torch_python():
        found.append(pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch"))
    return [python for python in found if subprocess.run(
        python.command("-c", "import numpy"), stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL).returncode == 0]


def near(got, expected):
    if isinstance(expected, str) or expected is None or got is None or isinstance(got, str):
        return got == expected
    return math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-12)


def differences(truth, told):
    """Every fact that differs."""
    for key, expected in truth.items():
        if key in ("name", "address", "subscript", "statistics", "elements") or expected is None:
            continue
        if told.get(key) != expected:
            yield truth["name"], key, told.get(key), expected
    if "elements" in truth:
        if told["elements"] != truth["elements"]:
            yield truth["name"], "elements", str(told["elements"])[:200], str(truth["elements"])[:200]
        for key, expected in truth["statistics"].items():
            got = told["statistics"].get(key)
            same = got == expected if isinstance(expected, list) else near(
                got, expected if not isinstance(expected, float) or math.isfinite(expected) else
                None if math.isnan(expected) else "inf" if expected > 0 else "-inf")
            if not same:
                yield truth["name"], key, got, expected


def check(target, where):
    told = dump(where, ["{} {}".format(truth["address"], truth["subscript"]) for truth in target.truth])
    assert len(told) == len(target.truth)
    found = [difference for truth, one in zip(target.truth, told)
             for difference in ([(truth["name"], one["error"])] if "error" in one else differences(truth, one))]
    assert not found, found
    return {truth["name"]: one for truth, one in zip(target.truth, told)}


def test_numpy(start):
    found = with_numpy()
    if not found:
        pytest.skip("no interpreter has numpy")
    for python in found:
        target = start(python, "tensors.py", "numpy").settle(only=True)
        told = check(target, target.pid)
        for name in ("records", "texts", "objects", "dates"):
            assert "not decoded" in told[name]["unreadable"] and isinstance(told[name]["elements"], str)
        assert ast.literal_eval(told["float64_part"]["text"]) == told["float64_part"]["elements"]
        assert told["float64_view"]["storage"] == told["float64"]["data"]


@pytest.fixture(scope="module")
def training():
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    from support.target import TARGETS, Target

    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    with Target(python, "tensors.py", ["torch"], folder=TARGETS) as target:
        yield target.settle(only=True)


def test_torch(training):
    told = check(training, training.pid)
    assert told["meta"]["unreadable"] == "it is on meta"
    assert "has been freed" in told["freed"]["unreadable"]
    for name in ("sparse", "sparse_csr", "sparse_csc", "sparse_bsr", "quantized"):
        assert "not decoded" in told[name]["unreadable"] and isinstance(told[name]["elements"], str), name
    assert told["shared_view"]["storage"] == told["shared"]["storage"]
    assert ast.literal_eval(told["shared"]["text"]) == [[float(6 * row + column) for column in range(6)] for row in range(4)]


def test_torch_table(training):
    """torch.tensors has each of them, with the same facts and statistics."""
    rows = {row["address"]: row for row in query(training.pid, "SELECT * FROM torch.tensors(1)")}
    for truth in training.truth:
        row = rows[truth["address"]]
        assert row["shape"] == str(truth["shape"]) and row["dtype"] == truth["dtype"], truth
        assert row["requires_grad"] == truth["requires_grad"] and row["is_leaf"] == truth["is_leaf"], truth
        assert row["layout"] == truth["layout"] and row["device"] == truth["device"], truth
        for key, expected in truth.get("statistics", {}).items():
            if key in row and isinstance(expected, float) and math.isfinite(expected):
                assert near(row[key], expected), (truth["name"], key)
    assert len(rows) >= len({truth["address"] for truth in training.truth})
    plain = query(training.pid, "SELECT count(*) AS n, count(norm) AS norms FROM torch.tensors")[0]
    assert plain["n"] == len(rows) and plain["norms"] == 0


def test_core(training, tmp_path):
    """The same tensors of a core, values and statistics included."""
    if not shutil.which("gcore"):
        pytest.skip("no gcore here (package gdb)")
    path = str(tmp_path / "core")
    subprocess.run(["gcore", "-o", path, str(training.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path += ".{}".format(training.pid)
    check(training, path)
    columns = "address, type, shape, dtype, layout, version, storage_bytes, nan, mean, std, norm, error"
    sql = "SELECT {} FROM torch.tensors(1) ORDER BY address".format(columns)
    assert query(path, sql) == query(training.pid, sql)
    os.unlink(path)


def test_snapshot(training, tmp_path):
    """A snapshot holds what its locals touched, and says that it has no list of objects."""
    path = str(tmp_path / "snapshot")
    probing("-t", training.pid, "snapshot", "--locals", path)
    done = probing("-t", path, "query", "SELECT * FROM torch.tensors", check=False)
    assert done.returncode == 6 and not done.stdout and "without the collector's objects" in done.stderr, done


def test_no_tensor(training):
    """What is none is refused, with the reason."""
    list_at, = query(training.pid, "SELECT type_address FROM python.objects WHERE type = 'list'")
    told = dump(training.pid, [str(list_at["type_address"]), "16", "8", "12345678901"])
    assert "neither a tensor nor an array" in told[0]["error"]
    assert all("error" in one for one in told[1:])
