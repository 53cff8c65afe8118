"""The library's results, copied into Python objects, so that its own memory is freed at once."""

from typing import Any, List, Optional

from probing_gdb import library

PYTHON, NATIVE, BROKEN = range(3)  # enum prb_frame_kind
GIL_NONE, GIL_WAITING, GIL_HOLDING = range(3)  # enum prb_gil_state


class Variable:
    """A local variable."""

    def __init__(self, raw: Any) -> None:
        self.name = library.text(raw.name) or "?"
        self.repr = library.text(raw.repr)
        self.type = library.text(raw.type)
        self.addr = raw.addr  # type: int
        self.arg = raw.arg  # type: bool


class Frame:
    """A row of a stack: Python, native, or the words of a walk that broke."""

    def __init__(self, raw: Any) -> None:
        self.kind = raw.kind  # type: int
        self.name = library.text(raw.name) or "?"
        self.qualname = library.text(raw.qualname) or self.name
        self.filename = library.text(raw.filename)
        self.short_filename = library.text(raw.short_filename) or self.filename
        self.module = library.text(raw.module)
        self.line = raw.line  # type: int
        self.first_line = raw.first_line  # type: int
        self.addr = raw.addr  # type: int
        self.code = raw.code  # type: int
        self.is_entry = raw.is_entry  # type: bool
        self.guessed = raw.guessed  # type: bool
        self.globals = raw.globals  # type: int
        self.locals = [Variable(raw.locals[i]) for i in range(raw.local_count)]


class Thread:
    """A thread and its rows, innermost first."""

    def __init__(self, raw: Any) -> None:
        self.interpreter = raw.interpreter  # type: int
        self.thread_id = raw.thread_id  # type: int
        self.tid = raw.os_thread_id  # type: int
        self.name = library.text(raw.name)
        self.comm = library.text(raw.comm)
        self.gil = raw.gil  # type: int
        self.gc = raw.gc  # type: bool
        self.unstable = raw.unstable  # type: bool
        self.has_python = raw.has_python  # type: bool
        self.raised = raw.raised  # type: bool
        self.frames = [Frame(raw.frames[i]) for i in range(raw.frame_count)]

    def python(self) -> List[Frame]:
        return [frame for frame in self.frames if frame.kind == PYTHON]


class Stacks:
    def __init__(self, raw: Any) -> None:
        self.threads = [Thread(raw.threads[i]) for i in range(raw.thread_count)]
        self.warning = library.text(raw.warning)

    def by_tid(self, tid: int) -> Optional[Thread]:
        """The thread of the kernel's number; in several interpreters, the one where it runs Python now."""
        found = [thread for thread in self.threads if thread.tid == tid]
        return max(found, key=lambda thread: len(thread.python())) if found else None


class Part:
    """A part of an object, or an object as a whole."""

    def __init__(self, raw: Any) -> None:
        self.name = library.text(raw.name)
        self.access = library.text(raw.access)
        self.repr = library.text(raw.repr) or ""
        self.type = library.text(raw.type)
        self.addr = raw.addr  # type: int
        self.indexed = raw.indexed  # type: int
        self.named = raw.named  # type: int
