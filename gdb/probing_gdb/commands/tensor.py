"""py-tensor: a torch tensor or numpy array: what it is, its elements, their statistics."""

import ctypes as c
from typing import Any, Dict, List, Optional, Tuple

from probing_gdb import expression, library, session, structs, text
from probing_gdb.command import Command
from probing_gdb.library import ProbingError

SHOWN = 100  # elements
BINS = 32
BARS = "▁▂▃▄▅▆▇█"


def _split(source: str) -> Tuple[str, Optional[str]]:
    """The expression, and the last subscript behind it: `x[0, :3]`, which may stand apart."""
    if not source.endswith("]"):
        return source, None
    depth = 0
    for i in range(len(source) - 1, -1, -1):
        depth += (source[i] == "]") - (source[i] == "[")
        if depth == 0:
            return source[:i].strip(), source[i + 1:-1]
    raise ProbingError("a [ is missing")


def _is_one(target: session.Target, addr: int) -> bool:
    try:
        target.call("prb_tensor_take", target.handle, addr, c.byref(structs.Tensor()))
        return True
    except ProbingError:
        return False


def _find(target: session.Target, source: str) -> Tuple[int, Optional[str]]:
    """Where the tensor is, and the subscript of a part of it; that of a list or module leads to the tensor."""
    before, subscript = _split(source)
    if subscript is not None and before:
        addr = expression.address(before)
        if _is_one(target, addr):
            return addr, subscript
    return expression.address(source), None


def _words(tensor: Any) -> List[str]:
    dims = range(tensor.dims)
    item = tensor.item_size or 1
    lines = ["  shape {}, dtype {}{}{}".format(
        text.tuple_of([tensor.shape[i] for i in dims]), text.safe(library.text(tensor.dtype)),
        ", device " + text.safe(library.text(tensor.device)) if tensor.device else "",
        ", layout " + text.safe(library.text(tensor.layout)) if tensor.layout not in (b"", b"strided") else "")]
    flags = [word for word, given in (("requires_grad", tensor.requires_grad), ("leaf", tensor.torch and tensor.is_leaf),
                                      ("contiguous", tensor.contiguous), ("conjugated", tensor.conjugated),
                                      ("negated", tensor.negated)) if given]
    if tensor.version >= 0:
        flags.append("version {}".format(tensor.version))
    lines.append("  {} of {}, stride {}{}".format(
        text.count(tensor.numel, "element"), text.count(tensor.item_size, "byte"), text.tuple_of([tensor.stride[i] // item for i in dims]), "".join(", " + word for word in flags)))
    if tensor.data:
        size = " of {:,} bytes".format(tensor.storage_size) if tensor.storage_size >= 0 else ""
        lines.append("  data at {:#x}{}".format(tensor.data, ", in the storage at {:#x}{}".format(tensor.storage, size)
                                                if tensor.storage else ""))
    return lines


def _bound(value: float) -> str:
    """The smallest or largest element: token numbers and times to the last digit."""
    return "{:.15g}".format(value) if value.is_integer() else "{:g}".format(value)


def _statistics(target: session.Target, tensor: Any) -> List[str]:
    found = structs.Statistics()
    target.call("prb_tensor_statistics", target.handle, c.byref(tensor), c.byref(structs.StatisticsOptions(bins=BINS)), c.byref(found))
    lines = ["  {:,} NaN, {:,} Inf, {:,} zero; min {}, max {}, mean {:g}, std {:g}, L2 norm {:g}".format(
        found.nan, found.inf, found.zero, _bound(found.min), _bound(found.max), found.mean, found.std, found.norm)]
    most = max(found.histogram[i] for i in range(found.bins)) if found.bins else 0
    if most:
        bars = "".join(BARS[(len(BARS) - 1) * found.histogram[i] // most] if found.histogram[i] else " " for i in range(found.bins))
        lines.append("  {:g} {} {:g}".format(found.low, bars, found.high))
    return lines


def _elements(target: session.Target, tensor: Any) -> str:
    return text.safe(library.owned_text(target.call("prb_tensor_text", target.handle, c.byref(tensor), SHOWN)))


class Tensor(Command):
    """Show a torch tensor or a numpy array.

    Usage: py-tensor [-stats] EXPRESSION [SUBSCRIPT]

    EXPRESSION as of py-print, or an address.  SUBSCRIPT is a part of it as in Python, such as [0, :3, ...]; numbers and
    slices only.  Shape, element type, device and the first elements, read from memory: no code runs.  Elements on a
    GPU are not read.
      -stats  how many are NaN, infinite, zero; smallest, largest, mean, deviation, norm, histogram of all elements"""

    names = ("py-tensor", "probing tensor")
    options = ("-stats",)
    words = -1
    needs = 1

    def split(self, line: str) -> Tuple[List[str], Dict[str, bool]]:
        arguments, options = Command.split(self, line)
        if arguments and arguments[0].endswith("-stats"):
            arguments, options = [arguments[0][:-len("-stats")].strip()], {"-stats": True}
        if not arguments or not arguments[0]:
            raise self.usage()
        return arguments, options

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        target = session.target()
        addr, subscript = _find(target, arguments[0])
        tensor = structs.Tensor()
        target.call("prb_tensor_take", target.handle, addr, c.byref(tensor))
        if subscript is not None:
            part = structs.Tensor()
            target.call("prb_tensor_slice", c.byref(tensor), subscript.encode(), c.byref(part))
            tensor = part
        text.say("{} at {:#x}".format(text.safe(target.parts(addr)[0].type or "object"), addr))
        for line in _words(tensor):
            text.say(line)
        if tensor.unreadable:
            text.say("  its elements cannot be read: " + text.safe(library.text(tensor.unreadable)))
            return
        text.say("  " + _elements(target, tensor))
        for line in _statistics(target, tensor) if "-stats" in options else ():
            text.say(line)

    def complete(self, token: str) -> List[str]:
        return expression.completions(token)


COMMAND = Tensor
