"""debugged_torch.py as a test sees it, and what tests of it do again and again."""

import os
import time

from debuggee import marks, resume, set_lines
from support import pythons
from support.target import DEADLINE
from support.torch_python import torch_python

NAME = "debugged_torch.py"


class Job:
    """debugged_torch.py, with what debuggee.py's steps ask of a program."""

    def __init__(self, start, folders, *arguments, **options):
        python = pythons.Python([], torch_python(), (3, 0, 0), "torch")
        folder = os.path.realpath(folders(python)[1])
        self.target = start(python, NAME, *arguments, folder=folder, **options)
        self.pid = self.target.pid
        self.path = os.path.join(folder, NAME)

    def source(self, name=NAME):
        return {"path": self.path, "name": name}

    def line(self, mark, name=NAME):
        return marks(NAME)[mark]

    def say(self, command):
        self.target.child.stdin.write(command.encode() + b"\n")
        self.target.child.stdin.flush()

    def until(self, wanted, seconds=DEADLINE):
        """Lines of its output up to the one that is wanted, which must come."""
        lines, until = [], time.monotonic() + seconds
        while not lines or lines[-1] != wanted:
            lines.append(self.target.line(max(0.1, until - time.monotonic())))
            assert lines[-1] is not None, "the job ended: {}".format(lines)
        return lines

    def run(self, command):
        self.say(command)
        return self.until("done " + command)


def finish(session, program, thread, command="step"):
    set_lines(session, program, name=NAME)
    resume(session, thread)
    program.until("done " + command)
