"""A program on a terminal of its own: keys go in, and what a person would see comes out.

The terminal is the VT100 that terminfo describes, as far as ncurses uses it (ECMA-48: CUP, CUU, CUD, CUF, CUB, ED, EL, SGR;
DECSTBM, IND, RI).
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

WRITE = ("1", "64")  # the number of write(2) on x86-64 and AArch64
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()][0-9A-B]|\x1b([=>78MDE])")


class Screen:
    def __init__(self, command, columns=80, lines=24, deadline=120):
        self.columns, self.lines, self.deadline = columns, lines, deadline
        self.clear()
        self.text = ""  # what has come and was not drawn yet
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        environment = dict(os.environ, TERM="vt100", LC_ALL="C.UTF-8")
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        self.child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment,
                                      start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if (columns, lines) != (self.columns, self.lines):
            self.columns, self.lines = columns, lines
            self.clear()
            os.kill(self.child.pid, signal.SIGWINCH)

    def clear(self):
        self.rows = [[" "] * self.columns for _ in range(self.lines)]
        self.row = self.column = 0
        self.top, self.bottom = 0, self.lines - 1  # what scrolls

    def press(self, keys):
        os.write(self.master, keys.encode())

    # ---- what the program writes ----

    def down(self):
        if self.row == self.bottom:
            self.rows.insert(self.bottom + 1, [" "] * self.columns)
            del self.rows[self.top]
        else:
            self.row = min(self.lines - 1, self.row + 1)

    def up(self):
        if self.row == self.top:
            del self.rows[self.bottom]
            self.rows.insert(self.top, [" "] * self.columns)
        else:
            self.row = max(0, self.row - 1)

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.down()
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character == "\t":
            self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
        elif character >= " ":
            if self.column >= self.columns:
                self.column = 0
                self.row = min(self.lines - 1, self.row + 1)
            self.rows[self.row][self.column] = character
            self.column += 1

    def control(self, numbers, letter):
        values = [int(number) for number in numbers.strip("?").split(";") if number]
        first = values[0] if values else 1
        if letter == "H":
            self.row = min(self.lines, first) - 1
            self.column = min(self.columns, values[1] if len(values) > 1 else 1) - 1
        elif letter == "r":
            self.top = first - 1
            self.bottom = min(self.lines, values[1] if len(values) > 1 else self.lines) - 1
            self.row = self.column = 0
        elif letter in "ABCD":
            count = max(1, first)
            self.row = min(self.lines - 1, max(0, self.row + {"A": -count, "B": count}.get(letter, 0)))
            self.column = min(self.columns - 1, max(0, self.column + {"C": count, "D": -count}.get(letter, 0)))
        elif letter == "J":
            if values and values[0] == 2:
                self.rows = [[" "] * self.columns for _ in range(self.lines)]
            else:
                self.rows[self.row][self.column:] = [" "] * (self.columns - self.column)
                for row in range(self.row + 1, self.lines):
                    self.rows[row] = [" "] * self.columns
        elif letter == "K":
            if values and values[0] == 1:
                self.rows[self.row][:self.column + 1] = [" "] * (self.column + 1)
            else:
                self.rows[self.row][self.column:] = [" "] * (self.columns - self.column)

    def draw(self):
        at = 0
        while at < len(self.text):
            if self.text[at] == "\x1b":
                match = SEQUENCE.match(self.text, at)
                if not match:
                    break  # the rest of it comes later
                if match.group(2):
                    self.control(match.group(1), match.group(2))
                elif match.group(3) == "M":
                    self.up()
                elif match.group(3) == "D":
                    self.down()
                at = match.end()
            else:
                self.put(self.text[at])
                at += 1
        self.text = self.text[at:]

    def read(self, seconds):
        """False: the program has ended."""
        if select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                return False
            self.text += self.decoder.decode(data)
            self.draw()
        return True

    def shown(self):
        return ["".join(row).rstrip() for row in self.rows]

    def busy(self):
        """Whether it computes or writes, or waits for a processor: a picture may be half on its way."""
        try:
            with open("/proc/{}/syscall".format(self.child.pid)) as told:
                return told.read().split()[0] in ("running",) + WRITE
        except (OSError, IndexError):
            return False  # it has ended, or nothing can be told

    def whole(self):
        """Read what is on its way: a picture comes in pieces, the last one before the program waits.  True, also when it has
        ended since."""
        end = time.monotonic() + self.deadline
        while time.monotonic() < end:
            busy = self.busy()
            if select.select([self.master], [], [], 0.02 if busy else 0.05)[0]:
                if not self.read(0):
                    break
            elif not busy:
                break
        return True

    def until(self, seen):
        """Wait until seen(lines) is true of a whole picture; the lines."""
        end = time.monotonic() + self.deadline
        while not (seen(self.shown()) and self.whole() and seen(self.shown())):
            assert time.monotonic() < end, "\n".join(self.shown())
            assert self.read(0.2), "the program ended:\n" + "\n".join(self.shown())
        return self.shown()

    def until_text(self, text):
        return self.until(lambda lines: any(text in line for line in lines))

    def end(self):
        """Wait for its end; the status."""
        until = time.monotonic() + self.deadline
        while self.read(0.2):
            assert time.monotonic() < until
        return self.child.wait(self.deadline)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.master)
