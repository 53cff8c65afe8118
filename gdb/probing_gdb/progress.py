"""One line that says how far long work is, on a terminal, after a second; cleared at the end."""

import sys
import time
from typing import Optional

import gdb

FIRST = 1.0  # seconds before the line comes
EVERY = 0.2


class Progress:
    def __init__(self, form: str) -> None:
        self.form = form
        self.next = None  # type: Optional[float]
        self.shown = 0

    def at(self, number: int) -> None:
        now = time.monotonic()
        if self.next is None:
            self.next = now + FIRST
        if now >= self.next and sys.__stderr__ is not None and sys.__stderr__.isatty():
            self.next = now + EVERY
            line = "probing: " + self.form.format(number) + " … (Ctrl-C stops)"
            gdb.write("\r" + line, gdb.STDERR)
            gdb.flush(gdb.STDERR)
            self.shown = max(self.shown, len(line))

    def end(self) -> None:
        if self.shown:
            gdb.write("\r" + " " * self.shown + "\r", gdb.STDERR)
            gdb.flush(gdb.STDERR)
        self.next = None
        self.shown = 0
