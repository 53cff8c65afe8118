"""python.objects: the collector's lists against what gc and sys.getsizeof() say inside, on every CPython found."""

import os
import shutil
import subprocess

import pytest

from support import pythons
from support.target import probing, query
from support.torch_python import torch_python

COUNTS = {"__main__.Plain": 1234, "__main__.Slotted": 777, "__main__.Listed": 100, "__main__.Mapped": 120,
          "__main__.Sized": 50, "__main__.Chosen": 50}


def rows_of(target):
    rows = query(target, "SELECT type, sum(count) AS count, sum(bytes) AS bytes FROM python.objects GROUP BY type")
    return {row["type"]: row for row in rows}


def compare(rows, truth):
    for name, (count, size) in truth["types"].items():
        assert (rows[name]["count"], rows[name]["bytes"]) == (count, size), name
    assert set(truth["types"]) >= set(COUNTS)
    # The interpreter's own list was made meanwhile, and is one object more.
    whole = sum(row["count"] for row in rows.values())
    assert abs(whole - truth["objects"]) < 50 + truth["objects"] // 100


def free_threaded(python):
    return python.how in ("sharedt", "statict")


@pytest.mark.parametrize("how", ["plain", "freeze"])
def test_objects(start, python, how):
    target = start(python, "objects.py", how).settle()
    if free_threaded(python):
        done = probing("-t", target.pid, "query", "SELECT * FROM python.objects", check=False)
        assert done.returncode == 6 and "free-threaded" in done.stderr
        return
    rows = rows_of(target.pid)
    compare(rows, target.truth[0])
    assert {"function", "dict", "type", "module", "list", "tuple"} <= set(rows)
    young = query(target.pid, "SELECT young, count FROM python.objects WHERE type = '__main__.Slotted'")[0]
    assert 0 <= young["young"] <= young["count"]


def test_patched_release(start, python):
    """What moved the lists in 3.13.18 is in Debian's 3.13.5, too: its release does not say where they are."""
    if python.minor != (3, 13) or free_threaded(python):
        pytest.skip("only 3.13 with lists")
    target = start(python, "objects.py", "release").settle()
    compare(rows_of(target.pid), target.truth[0])


def test_core(start, python, tmp_path):
    """The same of a core."""
    if python.root:
        pytest.skip("Debian's gcore writes zeros for parts of these processes")
    if not shutil.which("gcore"):
        pytest.skip("no gcore here (package gdb)")
    if free_threaded(python):
        pytest.skip("keeps no lists")
    target = start(python, "objects.py").settle()
    path = str(tmp_path / "core")
    subprocess.run(["gcore", "-o", path, str(target.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path += ".{}".format(target.pid)
    compare(rows_of(path), target.truth[0])
    sql = "SELECT * FROM python.objects ORDER BY type_address"
    assert query(path, sql) == query(target.pid, sql)
    os.unlink(path)


def test_changing(start, python):
    """Lists that change all the while: what does not change is found each time, or it is said that objects may be missing."""
    if free_threaded(python):
        pytest.skip("keeps no lists")
    target = start(python, "objects.py", "churn")
    for _ in range(10):
        done = probing("-t", target.pid, "query", "-f", "csv", "SELECT type, count FROM python.objects", check=False)
        assert done.returncode == 0, done.stderr
        told = dict(line.rsplit(",", 1) for line in done.stdout.splitlines()[1:])
        if done.stderr:
            assert "may be missing" in done.stderr
            continue
        for name, count in COUNTS.items():
            if name != "__main__.Plain":
                assert int(told[name]) == count, name
        assert int(told["__main__.Plain"]) >= COUNTS["__main__.Plain"]


def test_ring(start, python):
    """Lists that lead from object to object for ever: what was met is told, and that more may be missing."""
    if free_threaded(python) or python.minor < (3, 8):
        pytest.skip("keeps no lists with links of two words")
    target = start(python, "objects.py", "ring")
    done = probing("-t", target.pid, "query", "-f", "csv", "SELECT type, count FROM python.objects", check=False)
    assert done.returncode == 0 and "may be missing" in done.stderr


def test_snapshot(start, any_python, tmp_path):
    """A snapshot says that it has them not."""
    target = start(any_python, "objects.py").settle()
    path = str(tmp_path / "snapshot")
    probing("-t", target.pid, "snapshot", "--locals", path)
    done = probing("-t", path, "query", "SELECT * FROM python.objects", check=False)
    assert done.returncode == 6 and not done.stdout and "without the collector's objects" in done.stderr


# ---- torch modules ----

@pytest.fixture(scope="module")
def model():
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    from support.target import TARGETS, Target

    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    with Target(python, "torch_modules.py", folder=TARGETS) as target:
        yield target.settle(only=True)


def test_modules(model):
    rows = {row["name"]: row for row in query(model.pid, """
        SELECT m.* FROM torch.modules m JOIN torch.modules r ON r.address = m.root WHERE r.type = '__main__.Net'""")}
    truth = {one["name"]: one for one in model.truth if one["what"] == "module"}
    assert set(rows) == set(truth)
    for name, one in truth.items():
        row = rows[name]
        for key in ("address", "type", "training", "children", "parameters", "parameters_total", "trainable_total",
                    "bytes_total", "dtype"):
            assert row[key] == one[key], (name, key)
        assert row["depth"] == (name.count(".") + 1 if name else 0)
        assert row["parent"] == (truth[name.rpartition(".")[0]]["address"] if name else None)


def test_parameters(model):
    net = next(one["address"] for one in model.truth if one["what"] == "module" and not one["name"])
    rows = {row["name"]: row for row in query(model.pid, "SELECT * FROM torch.parameters(1) WHERE root = {}".format(net))}
    truth = {one["name"]: one for one in model.truth if one["what"] == "parameter"}
    assert set(rows) == set(truth)
    for name, one in truth.items():
        row = rows[name]
        for key in ("address", "kind", "shape", "dtype", "requires_grad", "has_grad", "nan", "zero"):
            assert row[key] == one[key], (name, key)
        for key in ("min", "max", "mean", "std", "norm", "grad_norm"):
            same = row[key] is one[key] if one[key] is None else row[key] == pytest.approx(one[key], rel=1e-6, abs=1e-12)
            assert same, (name, key, row[key], one[key])
    plain = query(model.pid, "SELECT count(*) AS n, count(mean) AS means FROM torch.parameters WHERE root = {}".format(net))[0]
    assert plain == {"n": len(truth), "means": 0}


def test_one_moment(model):
    """Tables of objects in one statement show one reading."""
    row, = query(model.pid, """
        SELECT (SELECT count(*) FROM torch.modules) AS modules,
               (SELECT count(DISTINCT module) FROM torch.parameters WHERE module NOT IN (SELECT address FROM torch.modules)) AS stray,
               (SELECT count(*) FROM torch.parameters p LEFT JOIN torch.tensors t ON t.address = p.address
                WHERE t.address IS NULL) AS without""")
    assert row["modules"] > 5 and row["stray"] == 0 and row["without"] == 0


def test_sizes_of_what_is_freed_meanwhile(start, any_python):
    """A dict's table may be other bytes by the time it is read: terabytes, taken for a size."""
    newer = [python for python in pythons.found() if python.minor >= (3, 11) and not python.container]
    target = start(newer[0] if newer else any_python, "torn_dicts.py")  # from 3.11 on the number is a logarithm
    for _ in range(100):
        done = probing("-t", target.pid, "query", "-f", "csv", "SELECT max(bytes), type, count FROM python.objects", check=False)
        assert done.returncode == 0
        assert int(done.stdout.splitlines()[1].split(",")[0]) < 1 << 30, (done.stdout, newer)
