"""py-up: the Python frame that called this one."""

from typing import Dict, List

from probing_gdb import selection, show, source, text
from probing_gdb.command import Command


def move(arguments: List[str], sign: int) -> None:
    frame = selection.move(sign * (int(arguments[0]) if arguments else 1))
    text.say(show.frame(frame, selection.current()[1]))
    source.show_line(frame)


class Up(Command):
    """Select the Python frame that called the selected one.

    Usage: py-up [N]

    N frames further out, 1 by default.  gdb's own frame goes along: the one that runs the Python frame."""

    names = ("py-up", "probing up")
    words = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        if arguments and not arguments[0].isdigit():
            raise self.usage()
        move(arguments, 1)


COMMAND = Up
