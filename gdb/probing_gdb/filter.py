"""The frame filter: in `bt`, and for clients of `gdb -i=dap`, Python's frames stand where the interpreter runs them.

`bt -no-filters` shows gdb's own frames; `disable frame-filter global probing` does until it is enabled again.
"""

import sys
from typing import Any, Dict, Iterator, Optional

import gdb
from gdb.FrameDecorator import FrameDecorator

from probing_gdb import model, selection, session, text, values

VALUE_CHARACTERS = 60  # of an argument in a line of `bt`


class Name(str):
    """A name that gdb's commands take as text and its debug adapter as a symbol."""

    @property
    def print_name(self) -> str:
        return str(self)


class Variable:
    """What gdb asks of an argument or local of a frame."""

    def __init__(self, variable: model.Variable, limit: int) -> None:
        self.variable = variable
        self.limit = limit

    def symbol(self) -> Name:
        return Name(text.safe(self.variable.name))

    def value(self) -> Any:
        value = values.scalar(self.variable)
        shown = text.safe(self.variable.repr) or "(unset)"
        return value if value is not None else text.cut(shown, self.limit) if self.limit else shown


class PythonFrame(FrameDecorator):
    """A frame of Python's, on the native one that runs it."""

    def __init__(self, base: Any, row: model.Frame, thread: model.Thread, index: int) -> None:
        FrameDecorator.__init__(self, base)
        self.row = row
        self.thread = thread
        self.index = index

    def function(self) -> str:
        return text.safe(self.row.qualname)

    def filename(self) -> Optional[str]:
        return text.safe(self.row.filename) or None

    def line(self) -> Optional[int]:
        return self.row.line or None

    def address(self) -> Optional[int]:
        """None: `bt` shows no program counter.  gdb's debug adapter needs one."""
        return FrameDecorator.address(self) if "gdb.dap" in sys.modules else None

    def _variables(self, arguments: bool, limit: int) -> Optional[Iterator[Variable]]:
        try:
            found = selection.frame((self.thread, self.index)).locals
        except Exception:  # a stack without values is one, too
            return None
        wanted = [Variable(one, limit) for one in found if one.arg == arguments and one.addr]
        return iter(wanted) if wanted else None

    def frame_args(self) -> Optional[Iterator[Variable]]:
        return self._variables(True, VALUE_CHARACTERS)

    def frame_locals(self) -> Optional[Iterator[Variable]]:
        return self._variables(False, 0)


def has_python() -> bool:
    """Whether an interpreter is mapped, by what gdb knows of symbols: cheap, in programs without one."""
    return any(session.function_at(name) is not None for name in selection.EVALUATORS[:2])


def _merged(decorators: Iterator[Any]) -> Iterator[Any]:
    """gdb's frames without the interpreter's machinery, Python's in their places."""
    tid = session.thread_id()
    thread = session.target().stacks(native=True, thread=tid).by_tid(tid)
    rows = thread.frames if thread is not None else []
    of_level = {}  # type: Dict[int, Any]
    last = None
    index = 0

    def frames() -> Iterator[Any]:
        for decorator in decorators:
            frame = decorator.inferior_frame()
            of_level[frame.level()] = decorator
            yield frame

    for piece in selection.align(frames(), rows) if rows else ():
        base = piece.frame if piece.frame is not None else last
        for row in piece.rows:
            if base is not None and thread is not None:
                yield PythonFrame(base, row, thread, index)
            index += 1
        if piece.frame is not None:
            last = piece.frame
            if not piece.glue:
                yield of_level[piece.frame.level()]
    if not rows:
        yield from decorators


class Filter:
    """gdb's side of it."""

    def __init__(self) -> None:
        self.name = "probing"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, decorators: Iterator[Any]) -> Iterator[Any]:
        """gdb's frames, when anything of ours fails as they are."""
        try:
            merged = _merged(decorators) if has_python() else None
            first = next(merged, None) if merged is not None else None
        except Exception:
            return decorators
        return decorators if merged is None else _guarded(first, merged, decorators)


def _guarded(first: Any, merged: Iterator[Any], decorators: Iterator[Any]) -> Iterator[Any]:
    if first is not None:
        yield first
    try:
        yield from merged
    except Exception:
        yield from decorators


def register() -> None:
    Filter()
