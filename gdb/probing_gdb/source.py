"""Lines of the program's source: its file as the program sees it, in a container or moved by `set substitute-path`."""

import ctypes
import os
import stat
import struct
from typing import Iterator, List, Optional

import gdb

from probing_gdb import model, session, text

BYTES_MAX = 8 << 20
SYS_OPENAT2 = 437  # on every architecture
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10


def _substituted(name: str) -> str:
    """By gdb's own rules: lines "  `FROM' -> `TO'."."""
    for line in gdb.execute("show substitute-path", to_string=True).splitlines():
        before, arrow, after = line.strip().partition("' -> `")
        if arrow and name.startswith(before.lstrip("`")):
            return after.rstrip("'.") + name[len(before.lstrip("`")):]
    return name


def _path(pid: int, name: str) -> str:
    """A file's path as the process sees it."""
    if os.path.isabs(name):
        return name
    root, folder = (os.readlink("/proc/{}/{}".format(pid, link)) for link in ("root", "cwd"))
    if root != "/" and folder.startswith(root + "/"):
        folder = folder[len(root):]
    return os.path.join(folder, name)


def _below(pid: int, name: str) -> int:
    """Found below the root of the process, whatever links there are on the way; openat2(2)."""
    root = os.open("/proc/{}/root".format(pid), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
        fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_OPENAT2, root, os.fsencode(_path(pid, name)), how, ctypes.c_size_t(len(how)))
    finally:
        os.close(root)
    if fd < 0:
        raise OSError(ctypes.get_errno(), name)
    return int(fd)


def _found(name: str) -> Iterator[int]:
    """Descriptors of what may be the file, not yet open to be read."""
    pid = session.target().pid
    if pid:
        try:
            yield _below(pid, name)
        except OSError:
            pass
    try:
        yield os.open(_substituted(name), os.O_PATH | os.O_CLOEXEC)
    except OSError:
        pass


def _read(found: int) -> Optional[List[str]]:
    """A device or a pipe is not opened: that could do something, or wait for ever."""
    try:
        info = os.fstat(found)
        if stat.S_ISREG(info.st_mode) and info.st_size <= BYTES_MAX:
            fd = os.open("/proc/self/fd/{}".format(found), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, encoding="utf-8", errors="replace") as file:
                return file.read(BYTES_MAX).splitlines()
    except OSError:
        pass
    finally:
        os.close(found)
    return None


def lines(frame: model.Frame) -> Optional[List[str]]:
    """The lines of a frame's file; None when it cannot be read."""
    for found in _found(frame.filename or ""):
        read = _read(found)
        if read is not None:
            return read
    return None


def line(number: int, all_lines: List[str], current: int) -> str:
    return "{} {:>4}  {}".format(">" if number == current else " ", number, text.safe(all_lines[number - 1].expandtabs()))


def show_line(frame: model.Frame) -> None:
    """The line where a frame stands, when its file is there."""
    found = lines(frame)
    if found and 0 < frame.line <= len(found):
        text.say(line(frame.line, found, frame.line))
