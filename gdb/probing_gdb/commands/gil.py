"""py-gil: who holds the interpreter's lock, where, and who waits."""

from typing import Dict, List

from probing_gdb import model, session, show, text
from probing_gdb.command import Command


class Gil(Command):
    """Show who holds the GIL, where that thread stands, and who waits for it.

    Usage: py-gil"""

    names = ("py-gil", "probing gil")

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        tid = session.thread_id()
        threads = session.target().stacks(native=True).threads
        holders = [one for one in threads if one.gil == model.GIL_HOLDING]
        for one in holders:
            text.say(show.thread(one, one.tid == tid))
            show.frames(one)
        if not holders:
            text.say("Nobody holds the GIL.")
        waiting = [one for one in threads if one.gil == model.GIL_WAITING]
        if waiting:
            text.say("{} wait{} for it:".format(len(waiting), "" if len(waiting) > 1 else "s"))
        for one in waiting:
            python = one.python()
            at = ", at {}{}".format(text.safe(python[0].qualname), show.place(python[0])) if python else ""
            text.say('  Thread {} "{}"{}'.format(one.tid, text.safe(one.name or one.comm), at))


COMMAND = Gil
