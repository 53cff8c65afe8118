"""py-frame: a Python frame by its number."""

from typing import Dict, List

from probing_gdb import selection, show, source, text
from probing_gdb.command import Command


class Frame(Command):
    """Select the Python frame of a number, as py-bt counts them; without one, show the selected frame.

    Usage: py-frame [N]

    gdb's own frame goes along: the one that runs the Python frame."""

    names = ("py-frame", "probing frame")
    words = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        if arguments and not arguments[0].isdigit():
            raise self.usage()
        frame = selection.choose(int(arguments[0])) if arguments else selection.frame()
        text.say(show.frame(frame, selection.current()[1]))
        source.show_line(frame)


COMMAND = Frame
