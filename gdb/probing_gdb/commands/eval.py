"""probing eval: run code in the program, by functions of its Python that gdb calls."""

from typing import Dict, List

from probing_gdb import calls, selection, session, text
from probing_gdb.command import Command
from probing_gdb.library import ProbingError

# Runs in the program, in names of its own.  CODE, THREAD and DEPTH stand before it; OUT is the answer.
RUNNER = '''
import sys, io, threading, traceback
frame = sys._current_frames().get(THREAD)
if threading.get_ident() == THREAD:
    while frame.f_code.co_filename == "<probing>" or frame.f_code.co_name != "<module>":
        frame = frame.f_back
    frame = frame.f_back
for step in range(DEPTH):
    frame = frame.f_back if frame is not None else None
names = dict(frame.f_globals) if frame is not None else {"__name__": "__main__"}
names.update(frame.f_locals if frame is not None else {})
before, sys.stdout = sys.stdout, io.StringIO()
try:
    try:
        value = eval(compile(CODE, "<probing eval>", "eval"), names)
        if value is not None:
            print(repr(value))
    except SyntaxError:
        exec(compile(CODE, "<probing eval>", "exec"), names)
except BaseException:
    print("".join(traceback.format_exception_only(*sys.exc_info()[:2])), end="")
finally:
    OUT, sys.stdout = sys.stdout.getvalue(), before
'''


class Eval(Command):
    """Run Python code in the program.

    Usage: probing eval CODE

    This RUNS CODE in the process: CODE, with copies of the selected Python frame's names, on the thread that holds the
    GIL or one that is parked, while all other threads stand.  The value or what is printed is shown.  Refused where
    that thread is in the allocator or the like.  Code that waits for another thread does not end: Ctrl-C then stops in
    the middle of it, and `continue` lets it finish."""

    names = ("probing eval",)
    words = -1
    needs = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        target = session.target()
        if target.core:
            raise ProbingError("a core runs no code")
        root = session.other_root(target.pid)
        if root is not None:
            raise ProbingError("gdb takes this machine's libraries for the program's, whose root folder is {}".format(text.safe(root)),
                               "gdb -iex 'set sysroot {0}' {0}/PROGRAM -p {1}".format(text.safe(root), target.pid))
        tid = session.thread_id()
        try:
            one, depth = selection.current()
        except ProbingError:
            one, depth = None, 0
        chosen = calls.choose(tid)
        text.say("running code in process {}, thread {}".format(target.pid, chosen.tid))
        source = "CODE, THREAD, DEPTH = {!a}, {}, {}".format(arguments[0], one.thread_id if one else 0, depth) + RUNNER
        expression = ("[__import__('builtins').exec(compile({!a}, '<probing>', 'exec'), names) or names['OUT'] "
                      "for names in [{{}}]][0]".format(source))
        with selection.kept():
            written = calls.evaluate(expression, chosen)
        for line in written.splitlines():
            text.say(text.safe(line))


COMMAND = Eval
