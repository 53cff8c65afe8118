"""py-print: one object, by its name, a path from it, or its address."""

from typing import Dict, List

from probing_gdb import expression, session, text
from probing_gdb.command import Command

PARTS = 200  # that -parts lists


class Print(Command):
    """Print a Python object.

    Usage: py-print [-parts] EXPRESSION

    EXPRESSION is a name and what leads on from it, such as model.blocks[0].weight, looked up in the selected Python
    frame, its module and builtins; or the address of an object, as a number or an expression of gdb's that begins
    with $.  Nothing runs in the program: properties and __getattr__ are not called.
      -parts  its elements and attributes, too"""

    names = ("py-print", "probing print")
    options = ("-parts",)
    words = -1
    needs = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        target = session.target()
        addr = expression.address(arguments[0])
        inside = "-parts" in options
        whole, parts = target.parts(addr, indexed=inside, named=inside, count=PARTS if inside else 0)
        text.say("{} at {:#x} = {}".format(text.safe(whole.type or "object"), addr, text.safe(whole.repr)))
        for part in parts:
            text.say("  {} = {}".format(text.safe(part.access or part.name), text.safe(part.repr)))
        if inside and whole.indexed > PARTS:
            text.say("  … {} more elements".format(whole.indexed - PARTS))

    def complete(self, token: str) -> List[str]:
        return expression.completions(token)


COMMAND = Print
