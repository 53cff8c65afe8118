"""py-down: the Python frame that the selected one called."""

from typing import Dict, List

from probing_gdb.command import Command
from probing_gdb.commands.up import move


class Down(Command):
    """Select the Python frame that the selected one called.

    Usage: py-down [N]

    N frames further in, 1 by default.  gdb's own frame goes along: the one that runs the Python frame."""

    names = ("py-down", "probing down")
    words = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        if arguments and not arguments[0].isdigit():
            raise self.usage()
        move(arguments, -1)


COMMAND = Down
