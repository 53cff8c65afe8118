"""Python objects as gdb's values: numbers, truth and text as such, so that conditions of breakpoints can compare them."""

import ast
from typing import Any

import gdb

from probing_gdb import model

SCALARS = ("int", "float", "bool", "str")


def scalar(part: Any) -> Any:
    """The value of an int, float, bool or str that fits, else None."""
    if part.type not in SCALARS or not part.repr:
        return None
    try:
        value = ast.literal_eval(part.repr)
    except (ValueError, SyntaxError):  # cut, inf or nan
        try:
            return float(part.repr) if part.type == "float" else None
        except ValueError:
            return None
    return None if isinstance(value, int) and not -2**63 <= value < 2**63 else value


def pointer(addr: int) -> Any:
    """PyObject * where the debug symbols of Python are there, else void *."""
    for name in ("PyObject", "void"):
        try:
            return gdb.Value(addr).cast(gdb.lookup_type(name).pointer())
        except gdb.error:
            continue
    return gdb.Value(addr)


def of(part: model.Part) -> Any:
    value = scalar(part)
    return pointer(part.addr) if value is None else value
