"""py-list: source lines around the place where the selected Python frame stands."""

from typing import Dict, List

from probing_gdb import selection, source, text
from probing_gdb.command import Command
from probing_gdb.library import ProbingError

AROUND = 5


class ListSource(Command):
    """Show the source of the selected Python frame.

    Usage: py-list [START[,] [END]]

    The current line, which is marked, and five on either side; from START; or from START to END.  The file is read
    where the program sees it, else where gdb's substitute-path rules lead."""

    names = ("py-list", "probing list")
    words = 2

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        numbers = [word for word in ",".join(arguments).split(",") if word]
        if len(numbers) > 2 or not all(number.isdigit() for number in numbers):
            raise self.usage()
        one, index = selection.current()
        frame = one.python()[index]
        lines = source.lines(frame)
        if lines is None:
            raise ProbingError("{} cannot be read here".format(text.safe(frame.filename or "the source")),
                               "set substitute-path FROM TO says where it is")
        first = int(numbers[0]) if numbers else frame.line - AROUND
        last = int(numbers[1]) if len(numbers) > 1 else first + 2 * AROUND
        shown = range(max(first, 1), min(last, len(lines)) + 1)
        if not shown:
            raise ProbingError("{} has {} lines, and none from {} to {}".format(text.safe(frame.filename), len(lines), first, last))
        for number in shown:
            text.say(source.line(number, lines, frame.line))


COMMAND = ListSource
