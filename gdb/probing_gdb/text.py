"""The program's strings made fit for a terminal: no control characters, escape sequences or marks of direction."""

import os
from typing import Iterator, List, Optional

import gdb

from probing_gdb import library

NAME_COLUMNS = 120  # of a function; C++ templates run to thousands


def safe(value: Optional[str]) -> str:
    if not value:
        return ""
    if value.isprintable():
        return value
    data = value.encode("utf-8", "backslashreplace")
    return library.owned_text(library.load().prb_text_safe(data, len(data), 0))


def cut(value: str, columns: int) -> str:
    return value if len(value) <= columns else value[:columns - 1] + "…"


def count(number: int, word: str) -> str:
    return "{:,} {}{}".format(number, word, "" if number == 1 else "s")


def tuple_of(values: List[int]) -> str:
    return "({}{})".format(", ".join(str(value) for value in values), "," if len(values) == 1 else "")


def base_name(path: Optional[str]) -> str:
    return os.path.basename(path) if path else ""


def write(whole: str) -> None:
    gdb.write(whole)


def say(line: str = "") -> None:
    write(line + "\n")


def note(line: str) -> None:
    gdb.write("probing: note: {}\n".format(safe(line)), gdb.STDERR)


def columns(rows: List[List[str]]) -> Iterator[str]:
    """Lines of a table; the first row is its head."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)] if rows else []
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
