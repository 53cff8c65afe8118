"""Pretty-printers for pointers to Python objects, numpy arrays and torch tensors, where their types are known to gdb."""

import ctypes as c
import re
import sys
from typing import Any, Optional

import gdb

from probing_gdb import library, session, structs, text

OBJECTS = re.compile(r"^(_object|_?PyArrayObject(_fields)?|tagPyArrayObject(_fields)?|THPVariable|_?Py[A-Z]\w*Object|_typeobject)$")

TENSORS = re.compile(r"^(const )?(at::Tensor(Base)?|torch::Tensor|c10::intrusive_ptr<c10::TensorImpl\b.*)$")


class ObjectPrinter:
    def __init__(self, addr: int) -> None:
        self.addr = addr

    def to_string(self) -> str:
        if not self.addr:
            return "NULL"
        try:
            whole = session.target().parts(self.addr)[0]
            return "{} at {:#x}".format(text.safe(whole.repr), self.addr)
        except Exception:  # no object there, or not any more
            return "{:#x}".format(self.addr)


class TensorPrinter:
    """Of at::Tensor, at::TensorBase and c10::intrusive_ptr<c10::TensorImpl>: pointers to a TensorImpl in a struct."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def to_string(self) -> str:
        try:
            target = session.target()
            address = int(self.value.address) if self.value.address is not None else 0
            impl = int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), sys.byteorder)
            tensor = structs.Tensor()
            target.call("prb_tensor_take_native", target.handle, impl, c.byref(tensor))
        except Exception:  # not begun, undefined or gone
            return "(undefined tensor)"
        return "Tensor(shape={}, dtype={}, device={}{}) at {:#x}".format(
            text.tuple_of([tensor.shape[i] for i in range(tensor.dims)]), text.safe(library.text(tensor.dtype)),
            text.safe(library.text(tensor.device)), ", requires_grad" if tensor.requires_grad else "", impl)


def look_up(value: Any) -> Optional[Any]:
    """gdb asks this of each value that it prints."""
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_REF:
        kind = kind.target().strip_typedefs()
        value = value.referenced_value() if TENSORS.match(kind.name or "") else value
    if kind.code == gdb.TYPE_CODE_STRUCT and TENSORS.match(kind.name or ""):
        return TensorPrinter(value)
    if kind.code != gdb.TYPE_CODE_PTR:
        return None
    target = kind.target().unqualified().strip_typedefs()
    if target.code != gdb.TYPE_CODE_STRUCT or not OBJECTS.match(target.tag or target.name or ""):
        return None
    return ObjectPrinter(int(value))


look_up.__name__ = "probing"


def register() -> None:
    gdb.pretty_printers[:] = [one for one in gdb.pretty_printers if getattr(one, "__name__", "") != "probing"] + [look_up]
