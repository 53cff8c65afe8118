"""A job whose NCCL is the stand-in of tests/comm/nccl_host.c: it loads the plugin that NCCL_PROFILER_PLUGIN names, as the version of
argument 1.  Each line of input is an expression over its functions (n) and the handles that are kept (h); it prints the result."""

import ctypes
import os
import sys


def main():
    n = ctypes.CDLL(os.environ["NCCL_HOST"])
    for name in ("coll", "p2p", "proxy", "step", "kernel", "net", "other"):
        getattr(n, "nccl_" + name).restype = ctypes.c_void_p
    n.nccl_speed.restype = ctypes.c_double
    u64, text, pointer, integer = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
    n.nccl_coll.argtypes = [integer, u64, text, u64, text, integer]
    n.nccl_p2p.argtypes = [integer, text, u64, text, integer]
    n.nccl_comm.argtypes = [integer, u64, integer, integer]
    n.nccl_proxy.argtypes = [integer, pointer, integer, integer, integer, integer]
    n.nccl_step.argtypes = [integer, pointer, integer]
    n.nccl_kernel.argtypes = [integer, pointer, integer, u64]
    n.nccl_net.argtypes = [integer, pointer, ctypes.c_int64, integer, u64, u64]
    n.nccl_other.argtypes = [integer, u64]
    n.nccl_state.argtypes = [pointer, integer, u64]
    n.nccl_stop.argtypes = [pointer]
    h = {}
    if os.environ.get("NCCL_PROFILER_PLUGIN"):
        assert n.nccl_load(os.environ["NCCL_PROFILER_PLUGIN"].encode(), int(sys.argv[1])) == 0
    print("ready", flush=True)
    for line in sys.stdin:
        print(repr(eval(line, {"n": n, "h": h})), flush=True)


main()
