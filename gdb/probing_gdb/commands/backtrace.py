"""py-backtrace: where all threads stand, Python's frames and native ones in one stack."""

from typing import Dict, List, Tuple

from probing_gdb import session, show, text
from probing_gdb.command import Command


class Backtrace(Command):
    """Show where the threads stand: Python's frames, and native ones among them.

    Usage: py-backtrace [-locals] [-python] [-thread] [-all] [COUNT]

    The innermost frame comes first.  Python's debug symbols are not needed, and nothing runs in the program.
      -locals  the values of local variables
      -python  Python's frames only
      -thread  gdb's selected thread only
      -all     threads without Python, too
    COUNT frames of each thread are shown, all by default."""

    names = ("py-backtrace", "py-bt", "probing backtrace", "probing bt")  # type: Tuple[str, ...]
    options = ("-locals", "-python", "-thread", "-all")  # type: Tuple[str, ...]
    words = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        if arguments and not arguments[0].isdigit():
            raise self.usage()
        target = session.target()
        tid = session.thread_id()
        stacks = target.stacks(native="-python" not in options, local="-locals" in options, limit=show.REPR_CHARACTERS)
        threads = [thread for thread in stacks.threads if thread.has_python or "-all" in options or thread.tid == tid]
        if "-thread" in options:
            threads = [thread for thread in threads if thread.tid == tid]
        for i, thread in enumerate(threads):
            text.say("" if i else show.process(target.info()) + "\n")
            text.say(show.thread(thread, thread.tid == tid))
            show.frames(thread, int(arguments[0]) if arguments else 0)
        if not threads:
            text.say("No thread runs Python now.")
        if stacks.warning:
            text.note(stacks.warning)


COMMAND = Backtrace
