"""probing debug: hand the process over to a debugger of Python's."""

import subprocess
from typing import Dict, List

import gdb

from probing_gdb import library, session, text
from probing_gdb.command import Command
from probing_gdb.library import ProbingError


class Debug(Command):
    """Hand the process to Probing's debug adapter, for VS Code and other editors.

    Usage: probing debug [OPTIONS]

    gdb detaches, and `probing PID debug --listen` serves until Ctrl-C.  OPTIONS are those of that command, such as
    --pause; `shell probing help debug` lists them.  Afterwards `attach PID` comes back.  A core is served as it is,
    and gdb keeps it."""

    names = ("probing debug",)
    words = 1 << 10

    def split(self, line: str):  # type: ignore
        return gdb.string_to_argv(line), {}

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        if {"-h", "--help"} & set(arguments):
            subprocess.call([library.program(), "help", "debug"], stdin=subprocess.DEVNULL)
            return
        target = session.target()
        pid, core = target.pid, target.core
        command = [library.program()] + (["-p", str(pid), "debug"] if pid else ["debug", "--core", core or ""])
        session.close()
        if pid:
            gdb.execute("detach")
        text.say("probing: {}".format(" ".join(command[1:] + ["--listen"] + arguments)))
        gdb.flush()
        try:
            served = subprocess.Popen(command + ["--listen"] + arguments, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise ProbingError("{} cannot be run: {}".format(command[0], error.strerror))
        try:
            status = served.wait()
        except KeyboardInterrupt:  # it got the same signal
            status = served.wait()
        if pid:
            text.say("gdb is detached; `attach {}` comes back".format(pid))
        if status not in (0, 130, -2):
            raise ProbingError("it ended with status {}".format(status))


COMMAND = Debug
