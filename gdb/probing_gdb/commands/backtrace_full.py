"""py-bt-full: the selected thread's Python frames with their variables, by the name that CPython's own gdb commands have for it."""

from typing import Dict, List

from probing_gdb.commands.backtrace import Backtrace


class BacktraceFull(Backtrace):
    """Show the Python frames of gdb's selected thread, with the values of local variables.

    Usage: py-bt-full [COUNT]

    The same as py-bt -thread -python -locals [COUNT]."""

    names = ("py-bt-full", "probing bt-full")
    options = ()

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        super().run(arguments, {"-thread": True, "-python": True, "-locals": True}, from_tty)


COMMAND = BacktraceFull
