"""Made from the public headers by mirror.py; do not edit."""

import ctypes as c


class Error(c.Structure):
    _fields_ = [
        ("code", c.c_int),
        ("sys", c.c_int),
        ("addr", c.c_uint64),
        ("text", c.c_char * 360),
        ("remedy", c.c_char * 360),
    ]


class TargetOptions(c.Structure):
    _fields_ = [
        ("exe", c.c_char_p),
        ("sysroot", c.c_char_p),
    ]


READ = c.CFUNCTYPE(c.c_size_t, c.c_void_p, c.c_uint64, c.c_void_p, c.c_size_t)
REGISTERS = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.c_size_t, c.POINTER(c.c_uint64))


class Debugger(c.Structure):
    _fields_ = [
        ("pid", c.c_int),
        ("core", c.c_char_p),
        ("context", c.c_void_p),
        ("read", READ),
        ("registers", REGISTERS),
    ]


class TargetInfo(c.Structure):
    _fields_ = [
        ("kind", c.c_int),
        ("pid", c.c_int),
        ("command", c.c_char_p),
        ("executable", c.c_char_p),
        ("python", c.c_char_p),
        ("layout", c.c_char_p),
        ("time", c.c_double),
        ("signal", c.c_int),
        ("signalled", c.c_int),
    ]


class Local(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("repr", c.c_char_p),
        ("type", c.c_char_p),
        ("addr", c.c_uint64),
        ("arg", c.c_bool),
    ]


class Frame(c.Structure):
    _fields_ = [
        ("kind", c.c_int),
        ("name", c.c_char_p),
        ("qualname", c.c_char_p),
        ("filename", c.c_char_p),
        ("short_filename", c.c_char_p),
        ("module", c.c_char_p),
        ("line", c.c_int),
        ("column", c.c_int),
        ("end_line", c.c_int),
        ("end_column", c.c_int),
        ("first_line", c.c_int),
        ("addr", c.c_uint64),
        ("code", c.c_uint64),
        ("in_module", c.c_uint64),
        ("instruction", c.c_int),
        ("is_entry", c.c_bool),
        ("is_shim_entry", c.c_bool),
        ("guessed", c.c_bool),
        ("globals", c.c_uint64),
        ("locals", c.POINTER(Local)),
        ("local_count", c.c_size_t),
    ]


class Thread(c.Structure):
    _fields_ = [
        ("interpreter", c.c_int64),
        ("thread_id", c.c_uint64),
        ("os_thread_id", c.c_int),
        ("name", c.c_char_p),
        ("comm", c.c_char_p),
        ("os_state", c.c_char),
        ("active", c.c_bool),
        ("gil", c.c_int),
        ("gc", c.c_bool),
        ("unstable", c.c_bool),
        ("has_python", c.c_bool),
        ("raised", c.c_bool),
        ("frames", c.POINTER(Frame)),
        ("frame_count", c.c_size_t),
    ]


class Stacks(c.Structure):
    _fields_ = [
        ("time", c.c_double),
        ("target", TargetInfo),
        ("threads", c.POINTER(Thread)),
        ("thread_count", c.c_size_t),
        ("tries", c.c_uint64),
        ("rejected", c.c_uint64),
        ("longest_stop", c.c_double),
        ("warning", c.c_char_p),
    ]


class StackOptions(c.Structure):
    _fields_ = [
        ("native", c.c_bool),
        ("locals", c.c_bool),
        ("all_interpreters", c.c_bool),
        ("stop", c.c_bool),
        ("untouched", c.c_bool),
        ("only_thread", c.c_uint64),
        ("source_lines", c.c_bool),
        ("python_only", c.c_bool),
        ("hide_secrets", c.c_bool),
        ("repr_limit", c.c_size_t),
    ]


class Part(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("access", c.c_char_p),
        ("repr", c.c_char_p),
        ("type", c.c_char_p),
        ("addr", c.c_uint64),
        ("indexed", c.c_uint64),
        ("named", c.c_uint64),
    ]


class Parts(c.Structure):
    _fields_ = [
        ("whole", Part),
        ("items", c.POINTER(Part)),
        ("count", c.c_size_t),
    ]


class PartsOptions(c.Structure):
    _fields_ = [
        ("indexed", c.c_bool),
        ("named", c.c_bool),
        ("start", c.c_uint64),
        ("count", c.c_uint64),
        ("repr_limit", c.c_size_t),
        ("only", c.c_char_p),
    ]


class Tensor(c.Structure):
    _fields_ = [
        ("object", c.c_uint64),
        ("torch", c.c_bool),
        ("dims", c.c_uint),
        ("shape", c.c_int64 * 64),
        ("stride", c.c_int64 * 64),
        ("numel", c.c_int64),
        ("item_size", c.c_uint),
        ("dtype", c.c_char * 64),
        ("device", c.c_char * 32),
        ("layout", c.c_char * 32),
        ("data", c.c_uint64),
        ("storage", c.c_uint64),
        ("storage_size", c.c_int64),
        ("storage_offset", c.c_int64),
        ("contiguous", c.c_bool),
        ("requires_grad", c.c_bool),
        ("is_leaf", c.c_bool),
        ("conjugated", c.c_bool),
        ("negated", c.c_bool),
        ("version", c.c_int64),
        ("implementation", c.c_uint64),
        ("grad", c.c_uint64),
        ("unreadable", c.c_char * 96),
    ]


class StatisticsOptions(c.Structure):
    _fields_ = [
        ("bins", c.c_uint),
        ("low", c.c_double),
        ("high", c.c_double),
    ]


class Statistics(c.Structure):
    _fields_ = [
        ("count", c.c_int64),
        ("nan", c.c_int64),
        ("inf", c.c_int64),
        ("zero", c.c_int64),
        ("min", c.c_double),
        ("max", c.c_double),
        ("mean", c.c_double),
        ("std", c.c_double),
        ("norm", c.c_double),
        ("mean_imag", c.c_double),
        ("bins", c.c_uint),
        ("low", c.c_double),
        ("high", c.c_double),
        ("histogram", c.c_int64 * 256),
    ]


class SnapshotOptions(c.Structure):
    _fields_ = [
        ("native", c.c_bool),
        ("locals", c.c_bool),
        ("stop", c.c_bool),
    ]


class Value(c.Structure):
    _fields_ = [
        ("type", c.c_int),
        ("integer", c.c_int64),
        ("real", c.c_double),
        ("text", c.c_void_p),
        ("length", c.c_size_t),
    ]


WRITE = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_void_p, c.c_size_t)


class RowOptions(c.Structure):
    _fields_ = [
        ("write", WRITE),
        ("context", c.c_void_p),
        ("terminal", c.c_bool),
        ("color", c.c_bool),
        ("turn", c.c_bool),
        ("columns", c.c_uint),
        ("cell", c.c_uint),
        ("measured", c.c_size_t),
        ("null", c.c_char_p),
    ]
