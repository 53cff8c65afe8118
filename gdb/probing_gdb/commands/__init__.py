"""The commands, one file each: COMMAND is its class."""

import importlib
import pkgutil

import gdb

from probing_gdb import command, text


class Probing(gdb.Command):
    """Look into the Python program behind this process or core.

    Everything is read from memory; only `probing eval` runs code in the program.  The commands that begin with py-
    are here, too, without that: `probing backtrace` is py-backtrace."""

    def __init__(self) -> None:
        gdb.Command.__init__(self, "probing", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)

    def invoke(self, line: str, from_tty: bool) -> None:
        self.dont_repeat()
        if line.strip():
            raise gdb.GdbError("there is no `probing {}`: `help probing` lists the commands".format(text.safe(line.split()[0])))
        gdb.execute("help probing")


def prefix() -> None:
    Probing()


def register() -> None:
    for module in pkgutil.iter_modules(__path__):
        command.add(importlib.import_module(__name__ + "." + module.name).COMMAND())
