"""py-locals: the variables of the selected Python frame."""

from typing import Dict, List

from probing_gdb import selection, show, text
from probing_gdb.command import Command


class Locals(Command):
    """Show the variables of the selected Python frame.

    Usage: py-locals [-long] [NAME]

    Values are shown as repr() would show them, without running it; -long does not cut them.  NAME: only variables
    whose name begins so.  py-up and py-down select another frame."""

    names = ("py-locals", "probing locals")
    options = ("-long",)
    words = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        frame = selection.frame(limit=0 if "-long" in options else show.REPR_CHARACTERS)
        found = [one for one in frame.locals if not arguments or one.name.startswith(arguments[0])]
        for variable in found:
            text.say("{} = {}".format(text.safe(variable.name), text.safe(variable.repr) or "(unset)"))
        if not found:
            text.say("No variables in {}.".format(text.safe(frame.qualname)))

    def complete(self, token: str) -> List[str]:
        return [one.name for one in selection.frame().locals]


COMMAND = Locals
