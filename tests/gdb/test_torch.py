"""Tensors and modules in gdb's commands, and what gdb itself prints of them; a core shows the same."""

import re
import shutil
import subprocess

import pytest

from support import gdbs, pythons
from support import target as live
from support.torch_python import torch_python

COMMANDS = {
    "locals": "py-locals",
    "module": "py-print net.blocks[1][0]",
    "last": "py-print net.blocks[-1][-1]",
    "key": "py-tensor net.named['norm'].weight",
    "list": "py-tensor net.scales[1]",
    "none": "py-print net.blocks[2]",
    "tensor": "py-tensor batch",
    "stats": "py-tensor -stats batch[1]",
    "times": "py-tensor -stats times",
    "slice": "py-tensor batch [1, ::2, 1:] -stats",
    "array": "py-tensor array [-1]",
    "wrong": "py-tensor batch [5]",
    "other": "py-tensor loss",
    "element": "py-print batch[0]",
    "loss": 'print $py_local("loss") * 2',
    "complete": "complete py-tensor net.blocks[0][0].w",
    "parameters": "probing query SELECT name, shape FROM torch.parameters WHERE name LIKE 'blocks.1.%'",
    "object": 'print (PyObject *)$py_address("batch")',
    "language": "set language c++",
    "cplusplus": "print *(at::Tensor *)((char *)$py_address(\"batch\") + {body})",
    "undefined": "print *(at::Tensor *)((char *)$py_address(\"batch\") + 8)",
}
TYPES = """
struct _object { long count; void *type; };
typedef _object PyObject;
namespace c10 { struct TensorImpl { int any; }; template <class T> struct intrusive_ptr { T *target_; }; }
namespace at { struct TensorBase { c10::intrusive_ptr<c10::TensorImpl> impl_; }; struct Tensor : TensorBase {}; }
at::Tensor tensor; PyObject object;
"""


@pytest.fixture(scope="module")
def torch_process(tmp_path_factory):
    if not torch_python():
        pytest.skip("needs PyTorch: PROBING_TORCH_PYTHON names an interpreter that has it")
    one = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    with live.Target(one, "torch_by_gdb.py") as target:
        yield target


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    """Debug information of the few C++ types, which torch's own packages lack."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "types.cc").write_text(TYPES)
    if not shutil.which("c++"):
        pytest.skip("needs a compiler of C++")
    subprocess.run(["c++", "-g", "-c", "-o", str(folder / "types.o"), str(folder / "types.cc")], check=True)
    return str(folder / "types.o")


def test_tensors(gdb, torch_process, types):
    version = subprocess.run([torch_python(), "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE,
                             check=True, encoding="utf-8").stdout
    body = 16 if tuple(int(word) for word in version.split(".")[:2]) >= (2, 10) else 24
    commands = ["add-symbol-file {} 0x10000".format(types)] + [command.replace("{body}", str(body)) for command in COMMANDS.values()]
    told = dict(zip(COMMANDS, gdb.batch(*commands, before=gdbs.attach(torch_process))[1:]))
    assert "loss = 4.5" in told["locals"] and "batch = torch.Tensor(shape=(2, 3, 4)" in told["locals"]
    assert "torch.nn.modules.linear.Linear at" in told["module"] and "ReLU at" in told["last"]
    assert "shape (4,), dtype float32, device cpu" in told["key"] and "requires_grad" in told["key"]
    assert "shape (5,)" in told["list"] and "[1.0, 1.0, 1.0, 1.0, 1.0]" in told["list"]
    assert "ModuleList has 2 elements: there is none at 2" in told["none"] and len(told["none"].strip().splitlines()) == 1
    assert "24 elements of 4 bytes, stride (12, 4, 1)" in told["tensor"] and "nan" in told["tensor"]
    assert "0 NaN, 0 Inf, 0 zero; min 12, max 23, mean 17.5" in told["stats"]
    assert "1 element of 8 bytes" in told["times"] and "min 1234567890123, max 1234567890123," in told["times"]
    assert "shape (2, 3)" in told["slice"] and "[[13.0, 14.0, 15.0], [21.0, 22.0, 23.0]]" in told["slice"]
    assert "numpy.ndarray at" in told["array"] and "shape (3, 4)" in told["array"] and "[12.0, 13.0, 14.0, 15.0]" in told["array"]
    assert "py-tensor shows the elements" in told["element"]
    for name in "wrong", "other", "element":
        assert len(told[name].strip().splitlines()) == 1 and "Traceback" not in told[name], told[name]
    assert told["loss"].strip().endswith("= 9")
    assert told["complete"].strip() == "py-tensor net.blocks[0][0].weight"
    assert re.search(r"blocks\.1\.0\.weight +\[4, 3\]", told["parameters"])
    assert "Tensor float32 [2, 3, 4] cpu at 0x" in told["object"]
    assert re.search(r"= Tensor\(shape=\(2, 3, 4\), dtype=float32, device=cpu\) at 0x", told["cplusplus"]), told["cplusplus"]
    assert "undefined tensor" in told["undefined"]
