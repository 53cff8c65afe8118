"""Lines of the program's source: its file as the program sees it, in a container or moved by `set substitute-path`."""

import os
from typing import List, Optional

import gdb

from probing_gdb import model, session, text

BYTES_MAX = 8 << 20


def _substituted(name: str) -> str:
    """By gdb's own rules: lines "  `FROM' -> `TO'."."""
    for line in gdb.execute("show substitute-path", to_string=True).splitlines():
        before, arrow, after = line.strip().partition("' -> `")
        if arrow and name.startswith(before.lstrip("`")):
            return after.rstrip("'.") + name[len(before.lstrip("`")):]
    return name


def _candidates(name: str) -> List[str]:
    pid = session.target().pid
    found = [_substituted(name)]
    if pid and os.path.isabs(name):
        found.insert(0, "/proc/{}/root{}".format(pid, name))
    elif pid:
        found.insert(0, "/proc/{}/cwd/{}".format(pid, name))
    return found


def lines(frame: model.Frame) -> Optional[List[str]]:
    """The lines of a frame's file; None when it is not to be had."""
    for path in _candidates(frame.filename or ""):
        try:
            if os.path.isfile(path) and os.path.getsize(path) <= BYTES_MAX:
                with open(path, encoding="utf-8", errors="replace") as file:
                    return file.read().splitlines()
        except OSError:
            continue
    return None


def line(number: int, all_lines: List[str], current: int) -> str:
    return "{} {:>4}  {}".format(">" if number == current else " ", number, text.safe(all_lines[number - 1].expandtabs()))


def show_line(frame: model.Frame) -> None:
    """The line where a frame stands, when its file is there."""
    found = lines(frame)
    if found and 0 < frame.line <= len(found):
        text.say(line(frame.line, found, frame.line))
