"""Processes, threads and frames as text."""

import re
import time
from typing import Any, Optional

import gdb

from probing_gdb import library, model, text

REPR_CHARACTERS = 200  # of one value in a list of locals
REPEATS = 3  # equal frames in a row that are shown; deep recursion folds
KINDS = ("Process", "Core of process", "Snapshot of process", "Process")  # enum prb_target_kind


def process(info: Any) -> str:
    taken = time.strftime(", taken %Y-%m-%d %H:%M:%S", time.localtime(info.time)) if info.time else ""
    command = text.cut(text.safe(library.text(info.command)), 160)
    return "{} {}{}: {}\nPython {} ({})".format(KINDS[info.kind], info.pid, taken, command, library.text(info.python),
                                                text.safe(library.text(info.executable)))


def gil(one: model.Thread) -> str:
    return ("", "waits for the GIL", "holds the GIL")[one.gil]


def thread(one: model.Thread, selected: bool) -> str:
    words = ["{} Thread {}".format("*" if selected else " ", one.tid or hex(one.thread_id))]
    name = one.name or one.comm
    if name:
        words.append('"{}"'.format(text.safe(name)))
    states = [gil(one), "collects garbage" if one.gc else "", "" if one.has_python else "without Python",
              "interpreter {}".format(one.interpreter) if one.interpreter > 0 else "", "unstable" if one.unstable else "",
              "where the exception was raised" if one.raised else ""]
    states_text = ", ".join(state for state in states if state)
    return " ".join(words) + (", " + states_text if states_text else "")


def native_name(one: model.Frame, innermost: bool) -> str:
    """gdb's name of a function that has none for libprobing: gdb reads symbols that lie in a file of their own, or packed."""
    if not one.name.startswith("0x"):
        return one.name
    symbol = gdb.execute("info symbol {:#x}".format(one.code - (not innermost)), to_string=True)
    found = re.match(r"(.+?)(?: \+ \d+)? in section ", symbol)
    return found.group(1) if found else one.name


def place(frame: model.Frame, long: bool = False) -> str:
    name = frame.filename if long else frame.short_filename
    if frame.kind == model.NATIVE:
        name = text.base_name(frame.filename or frame.module)
    if not name:
        return ""
    return " ({}{})".format(text.safe(name), ":{}".format(frame.line) if frame.line > 0 else "")


def frame(one: model.Frame, number: Optional[int] = None, innermost: bool = True) -> str:
    if one.kind == model.BROKEN:
        return "      … the walk ended here: " + text.safe(one.name)
    label = "#{:<3}".format(number) if number is not None else "    "
    name = native_name(one, innermost) if one.kind == model.NATIVE else one.qualname
    return "  {} {}{}{}".format(label, text.cut(text.safe(name), text.NAME_COLUMNS), place(one),
                                " [guessed]" if one.guessed else "")


def _same(a: model.Frame, b: model.Frame) -> bool:
    return (a.kind, a.line, a.qualname, a.filename) == (b.kind, b.line, b.qualname, b.filename) and not a.locals


def frames(one: model.Thread, count: int = 0) -> None:
    """All frames of a thread, or the count innermost ones; Python's are numbered, as py-up and py-down count them."""
    number = 0
    repeated = 0
    for i, row in enumerate(one.frames):
        if count and i == count:
            text.say("       (more frames follow)")
            break
        python = row.kind == model.PYTHON
        repeated = repeated + 1 if i and _same(one.frames[i - 1], row) else 0
        following = one.frames[i + 1] if i + 1 < len(one.frames) else None
        if repeated < REPEATS:
            text.say(frame(row, number if python else None, i == 0))
            for variable in row.locals:
                text.say("          {} = {}".format(text.safe(variable.name), text.safe(variable.repr) or "(unset)"))
        elif following is None or not _same(row, following):
            text.say("      … the same frame {} times more".format(repeated - REPEATS + 1))
        number += python
    if not one.frames:
        text.say("      (no frames)")
