"""Pretty-printers for pointers to Python objects, numpy arrays and torch tensors, where their types are known to gdb."""

import re
from typing import Any, Optional

import gdb

from probing_gdb import session, text

OBJECTS = re.compile(r"^(_object|_?PyArrayObject(_fields)?|tagPyArrayObject(_fields)?|THPVariable|_?Py[A-Z]\w*Object|_typeobject)$")


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


def look_up(value: Any) -> Optional[ObjectPrinter]:
    """gdb asks this of each value that it prints."""
    kind = value.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_PTR:
        return None
    target = kind.target().unqualified().strip_typedefs()
    if target.code != gdb.TYPE_CODE_STRUCT or not OBJECTS.match(target.tag or target.name or ""):
        return None
    return ObjectPrinter(int(value))


look_up.__name__ = "probing"


def register() -> None:
    gdb.pretty_printers[:] = [one for one in gdb.pretty_printers if getattr(one, "__name__", "") != "probing"] + [look_up]
