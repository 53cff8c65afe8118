"""py-threads: the Python threads, one a line."""

from typing import Dict, List

import gdb

from probing_gdb import session, show, text
from probing_gdb.command import Command


class Threads(Command):
    """List the Python threads: gdb's number, the kernel's, name, what it has to do with the GIL, and where it stands.

    Usage: py-threads

    The selected one is marked; `thread N` selects by gdb's number."""

    names = ("py-threads", "probing threads")

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        tid = session.thread_id()
        numbers = {thread.ptid[1]: thread.num for thread in gdb.selected_inferior().threads()}
        rows = [["", "Id", "LWP", "Name", "GIL", "At"]]
        for one in session.target().stacks().threads:
            if not one.has_python:
                continue
            python = one.python()
            at = "{}{}".format(text.safe(python[0].qualname), show.place(python[0])) if python else "(no frames)"
            rows.append(["*" if one.tid == tid else "", str(numbers.get(one.tid, "")), str(one.tid or ""),
                         text.safe(one.name), "held" if one.gil == 2 else "waits" if one.gil == 1 else "", at])
        for line in text.columns(rows):
            text.say(line)


COMMAND = Threads
