"""libprobing through ctypes: the functions that the plugin uses, and where the library is.  Their structs: structs.py."""

import ctypes as c
import importlib
import os
from typing import Any, List, Optional

from probing_gdb.structs import (
    Debugger,
    Error,
    Parts,
    PartsOptions,
    RowOptions,
    SnapshotOptions,
    StackOptions,
    Stacks,
    Statistics,
    StatisticsOptions,
    TargetInfo,
    TargetOptions,
    Tensor,
    Value,
)

SOVERSION = 0  # of the library that the structs are for


class ProbingError(Exception):
    """What libprobing, or one of our own commands, could not do: one sentence, and what helps."""

    def __init__(self, text: str, remedy: str = "") -> None:
        Exception.__init__(self, text)
        self.text = text
        self.remedy = remedy


WATCH = c.CFUNCTYPE(c.c_bool, c.c_void_p)
ROW = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_size_t, c.POINTER(c.c_char_p), c.POINTER(Value))

# name: (result, arguments); all that fail fill a struct prb_error, their last argument
_FUNCTIONS = {
    "prb_version": (c.c_char_p, []),
    "prb_target_open_debugger": (c.c_void_p, [c.POINTER(Debugger), c.POINTER(TargetOptions), c.POINTER(Error)]),
    "prb_target_close": (None, [c.c_void_p]),
    "prb_target_info": (c.POINTER(TargetInfo), [c.c_void_p]),
    "prb_stacks_take": (c.POINTER(Stacks), [c.c_void_p, c.POINTER(StackOptions), c.POINTER(Error)]),
    "prb_stacks_free": (None, [c.POINTER(Stacks)]),
    "prb_parts_take": (c.POINTER(Parts), [c.c_void_p, c.c_uint64, c.POINTER(PartsOptions), c.POINTER(Error)]),
    "prb_parts_free": (None, [c.POINTER(Parts)]),
    "prb_snapshot_write": (c.c_bool, [c.c_void_p, c.c_char_p, c.POINTER(SnapshotOptions), c.POINTER(c.c_uint64),
                                      c.POINTER(c.c_size_t), c.POINTER(Error)]),
    "prb_db_open": (c.c_void_p, [c.c_void_p, c.POINTER(Error)]),
    "prb_db_close": (None, [c.c_void_p]),
    "prb_db_query": (c.c_bool, [c.c_void_p, c.c_char_p, ROW, c.c_void_p, c.POINTER(Error)]),
    "prb_db_watch": (None, [c.c_void_p, WATCH, c.c_void_p]),
    "prb_db_warning": (c.c_char_p, [c.c_void_p]),
    "prb_text_safe": (c.c_void_p, [c.c_char_p, c.c_size_t, c.c_uint]),
    "prb_row_writer_new": (c.c_void_p, [c.c_char_p, c.POINTER(RowOptions), c.POINTER(Error)]),
    "prb_row_writer_free": (None, [c.c_void_p]),
    "prb_row_write": (c.c_bool, [c.c_void_p, c.c_size_t, c.POINTER(c.c_char_p), c.POINTER(Value)]),
    "prb_row_writer_end": (c.c_bool, [c.c_void_p, c.POINTER(Error)]),
    "prb_tensor_take": (c.c_bool, [c.c_void_p, c.c_uint64, c.POINTER(Tensor), c.POINTER(Error)]),
    "prb_tensor_take_native": (c.c_bool, [c.c_void_p, c.c_uint64, c.POINTER(Tensor), c.POINTER(Error)]),
    "prb_tensor_slice": (c.c_bool, [c.POINTER(Tensor), c.c_char_p, c.POINTER(Tensor), c.POINTER(Error)]),
    "prb_tensor_text": (c.c_void_p, [c.c_void_p, c.POINTER(Tensor), c.c_size_t, c.POINTER(Error)]),
    "prb_tensor_statistics": (c.c_bool, [c.c_void_p, c.POINTER(Tensor), c.POINTER(StatisticsOptions), c.POINTER(Statistics),
                                         c.POINTER(Error)]),
}  # type: Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def _installed(name: str) -> List[str]:
    """Where `make install` says that a file is."""
    try:
        installed = importlib.import_module("probing_gdb.installed")  # made by `make`
    except ImportError:
        return []
    return [os.path.join(installed.LIBRARIES if name.startswith("lib") else installed.PROGRAMS, name)]


def _candidates(name: str) -> List[str]:
    """Of the pip package or the tree this is part of, or as installed; PROBING_BUILDDIR is a build folder elsewhere."""
    build = os.environ.get("PROBING_BUILDDIR")
    tree = os.path.dirname(os.path.dirname(_HERE))
    found = [os.path.join(build, ".libs", name)] if build else [os.path.join(os.path.dirname(tree), "native", name)] + _installed(name)
    return found + [os.path.join(tree, folder, ".libs", name) for folder in (".", "build", "b")]


def program() -> str:
    """The `probing` command."""
    for path in _candidates("probing"):
        if os.access(path, os.X_OK):
            return path
    return "probing"


_loaded = None  # type: Optional[Any]


def load() -> Any:
    """The library, with its functions declared; loaded at the first use."""
    global _loaded
    if _loaded is None:
        name = "libprobing.so.{}".format(SOVERSION)
        path = next((path for path in _candidates(name) if os.path.exists(path)), name)
        try:
            library = c.CDLL(path)
            for function, (result, arguments) in _FUNCTIONS.items():
                getattr(library, function).restype = result
                getattr(library, function).argtypes = arguments
        except (OSError, AttributeError) as error:
            raise ProbingError("libprobing cannot be loaded: {}".format(error),
                               "install it, or name the folder it was built in: PROBING_BUILDDIR=DIR gdb …")
        _loaded = library
    return _loaded


def text(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.decode("utf-8", "replace")


def owned_text(string: Optional[int]) -> str:
    """A string that the library made for us, which ends here."""
    if not string:
        return ""
    libc = c.CDLL(None)
    libc.free.argtypes = [c.c_void_p]
    try:
        return c.string_at(string).decode("utf-8", "replace")
    finally:
        libc.free(string)


def failed(error: Error) -> ProbingError:
    return ProbingError(text(error.text) or "it failed, and did not say why", text(error.remedy) or "")
