"""probing snapshot: a file of what decoding reads, to be looked at later or elsewhere."""

import ctypes as c
import os
from typing import Dict, List

import gdb

from probing_gdb import session, structs, text
from probing_gdb.command import Command


class Snapshot(Command):
    """Write what Probing reads of the program to a file, an ELF core of some megabytes at the most.

    Usage: probing snapshot [-python] FILE

    The stacks, native ones, too, and what the locals' values need.  `probing FILE backtrace`, `probing FILE query …`
    and gdb (core FILE) read it, here or elsewhere.
      -python  without registers and native stacks"""

    names = ("probing snapshot",)
    options = ("-python",)
    words = 1
    needs = 1
    completes = gdb.COMPLETE_FILENAME

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        path = os.path.expanduser(arguments[0])
        target = session.target()
        wanted = structs.SnapshotOptions(native="-python" not in options, locals=True)
        size, moved = c.c_uint64(), c.c_size_t()
        target.call("prb_snapshot_write", target.handle, os.fsencode(path), c.byref(wanted), c.byref(size), c.byref(moved))
        text.say("{}: {:,} bytes".format(text.safe(path), size.value))
        if moved.value:
            text.note("{} threads went on while they were copied".format(moved.value))


COMMAND = Snapshot
