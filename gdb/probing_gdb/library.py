"""libprobing through ctypes: the structs and functions of probing.h that the plugin uses, and where the library lies.

The structs repeat the header field by field; tests/gdb/test_header.py compares them with what the compiler says.
"""

import ctypes as c
import importlib
import os
from typing import Any, List, Optional

MUST_BE = 0  # the soversion that the structs are of


class ProbingError(Exception):
    """What libprobing, or one of our own commands, could not do: one sentence, and what helps."""

    def __init__(self, text: str, remedy: str = "") -> None:
        Exception.__init__(self, text)
        self.text = text
        self.remedy = remedy


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("sys", c.c_int), ("addr", c.c_uint64), ("text", c.c_char * 360), ("remedy", c.c_char * 360)]


READ = c.CFUNCTYPE(c.c_size_t, c.c_void_p, c.c_uint64, c.c_void_p, c.c_size_t)
REGISTERS = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.c_size_t, c.POINTER(c.c_uint64))


class Debugger(c.Structure):
    _fields_ = [("pid", c.c_int), ("core", c.c_char_p), ("context", c.c_void_p), ("read", READ), ("registers", REGISTERS)]


class TargetOptions(c.Structure):
    _fields_ = [("exe", c.c_char_p), ("sysroot", c.c_char_p)]


class TargetInfo(c.Structure):
    _fields_ = [("kind", c.c_int), ("pid", c.c_int), ("command", c.c_char_p), ("executable", c.c_char_p),
                ("python", c.c_char_p), ("layout", c.c_char_p), ("time", c.c_double), ("signal", c.c_int),
                ("signalled", c.c_int)]


class Local(c.Structure):
    _fields_ = [("name", c.c_char_p), ("repr", c.c_char_p), ("type", c.c_char_p), ("addr", c.c_uint64), ("arg", c.c_bool)]


class Frame(c.Structure):
    _fields_ = [("kind", c.c_int), ("name", c.c_char_p), ("qualname", c.c_char_p), ("filename", c.c_char_p),
                ("short_filename", c.c_char_p), ("module", c.c_char_p), ("line", c.c_int), ("column", c.c_int),
                ("end_line", c.c_int), ("end_column", c.c_int), ("first_line", c.c_int), ("addr", c.c_uint64),
                ("code", c.c_uint64), ("instruction", c.c_int), ("is_entry", c.c_bool), ("is_shim_entry", c.c_bool),
                ("guessed", c.c_bool), ("globals", c.c_uint64), ("locals", c.POINTER(Local)), ("local_count", c.c_size_t)]


class Thread(c.Structure):
    _fields_ = [("interpreter", c.c_int64), ("thread_id", c.c_uint64), ("os_thread_id", c.c_int), ("name", c.c_char_p),
                ("comm", c.c_char_p), ("os_state", c.c_char), ("active", c.c_bool), ("gil", c.c_int), ("gc", c.c_bool),
                ("unstable", c.c_bool), ("has_python", c.c_bool), ("raised", c.c_bool), ("frames", c.POINTER(Frame)),
                ("frame_count", c.c_size_t)]


class Stacks(c.Structure):
    _fields_ = [("time", c.c_double), ("target", TargetInfo), ("threads", c.POINTER(Thread)), ("thread_count", c.c_size_t),
                ("tries", c.c_uint64), ("rejected", c.c_uint64), ("longest_stop", c.c_double), ("warning", c.c_char_p)]


class StackOptions(c.Structure):
    _fields_ = [("native", c.c_bool), ("locals", c.c_bool), ("all_interpreters", c.c_bool), ("stop", c.c_bool),
                ("untouched", c.c_bool), ("only_thread", c.c_uint64), ("source_lines", c.c_bool), ("repr_limit", c.c_size_t)]


class Part(c.Structure):
    _fields_ = [("name", c.c_char_p), ("access", c.c_char_p), ("repr", c.c_char_p), ("type", c.c_char_p),
                ("addr", c.c_uint64), ("indexed", c.c_uint64), ("named", c.c_uint64)]


class Parts(c.Structure):
    _fields_ = [("whole", Part), ("items", c.POINTER(Part)), ("count", c.c_size_t)]


class PartsOptions(c.Structure):
    _fields_ = [("indexed", c.c_bool), ("named", c.c_bool), ("start", c.c_uint64), ("count", c.c_uint64),
                ("repr_limit", c.c_size_t), ("only", c.c_char_p)]


class Tensor(c.Structure):
    _fields_ = [("object", c.c_uint64), ("torch", c.c_bool), ("dims", c.c_uint), ("shape", c.c_int64 * 64),
                ("stride", c.c_int64 * 64), ("numel", c.c_int64), ("item_size", c.c_uint), ("dtype", c.c_char * 64),
                ("device", c.c_char * 32), ("layout", c.c_char * 32), ("data", c.c_uint64), ("storage", c.c_uint64),
                ("storage_size", c.c_int64), ("storage_offset", c.c_int64), ("contiguous", c.c_bool),
                ("requires_grad", c.c_bool), ("is_leaf", c.c_bool), ("conjugated", c.c_bool), ("negated", c.c_bool),
                ("version", c.c_int64), ("implementation", c.c_uint64), ("grad", c.c_uint64), ("unreadable", c.c_char * 96)]


class Statistics(c.Structure):
    _fields_ = [("count", c.c_int64), ("nan", c.c_int64), ("inf", c.c_int64), ("zero", c.c_int64), ("min", c.c_double),
                ("max", c.c_double), ("mean", c.c_double), ("std", c.c_double), ("norm", c.c_double), ("mean_imag", c.c_double),
                ("bins", c.c_uint), ("low", c.c_double), ("high", c.c_double), ("histogram", c.c_int64 * 256)]


class StatisticsOptions(c.Structure):
    _fields_ = [("bins", c.c_uint), ("low", c.c_double), ("high", c.c_double)]


class SnapshotOptions(c.Structure):
    _fields_ = [("native", c.c_bool), ("locals", c.c_bool), ("stop", c.c_bool)]


class Value(c.Structure):
    _fields_ = [("type", c.c_int), ("integer", c.c_int64), ("real", c.c_double), ("text", c.c_void_p), ("length", c.c_size_t)]


WRITE = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.c_size_t)


class RowOptions(c.Structure):
    _fields_ = [("write", WRITE), ("context", c.c_void_p), ("terminal", c.c_bool), ("color", c.c_bool), ("columns", c.c_uint),
                ("cell", c.c_uint), ("measured", c.c_size_t), ("null", c.c_char_p)]


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
    """Of the tree this is part of, or as installed; PROBING_BUILDDIR is a build folder elsewhere."""
    build = os.environ.get("PROBING_BUILDDIR")
    tree = os.path.dirname(os.path.dirname(_HERE))
    found = [os.path.join(build, ".libs", name)] if build else _installed(name)
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
        name = "libprobing.so.{}".format(MUST_BE)
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
