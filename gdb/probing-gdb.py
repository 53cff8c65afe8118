# Probing's commands for gdb: `source probing-gdb.py`, in a session or in ~/.gdbinit; gdb loads it by itself where
# `make install` put its auto-load scripts.  The package probing_gdb is beside this file.
import os
import sys

import gdb


def _load(folder: str) -> str:
    if sys.version_info < (3, 6):
        return "gdb's own Python is {}.{}, and 3.6 is needed".format(*sys.version_info[:2])
    sys.path.insert(0, folder)
    try:
        import probing_gdb

        probing_gdb.register()
    except Exception as error:  # gdb's session goes on without us
        return "{}: {}".format(type(error).__name__, error)
    finally:
        sys.path.remove(folder)
    return ""


# Not __file__: that is the outer script's when another Python script sources this one.
_trouble = _load(os.path.dirname(os.path.realpath(os.path.expanduser(_load.__code__.co_filename))))
if _trouble:
    gdb.write("probing: the commands are not there: {}\n".format(_trouble), gdb.STDERR)
del _trouble, _load
