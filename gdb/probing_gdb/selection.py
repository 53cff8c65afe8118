"""The Python frame that commands are about, and how gdb's frames and the merged stack of libprobing belong together.

A stack of libprobing leaves the interpreter's own machinery out; its native rows bear the program counters that gdb's
frames have, so what gdb shows between two of them is what runs the Python rows between them: each evaluator's frame as
many rows as one call of it has.
"""

import contextlib
from typing import Any, Iterable, Iterator, List, Optional, Tuple

import gdb

from probing_gdb import model, session
from probing_gdb.library import ProbingError

EVALUATORS = ("_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx", "_TAIL_CALL_")


def is_evaluator(frame: Any) -> bool:
    name = frame.name()
    return bool(name) and name.startswith(EVALUATORS) and frame.type() != gdb.INLINE_FRAME


def _interpreter() -> Optional[str]:
    """The file whose functions are the interpreter's machinery; None: the program itself, or not known."""
    for name in EVALUATORS[:2]:
        addr = session.function_at(name)
        if addr is not None:
            return gdb.solib_name(addr)
    return None


class Piece:
    """A frame of gdb with the Python rows that it runs (innermost first); glue: it is the interpreter's machinery."""

    def __init__(self, frame: Optional[Any], rows: List[model.Frame], glue: bool) -> None:
        self.frame = frame
        self.rows = rows
        self.glue = glue


def _next_native(rows: List[model.Frame], start: int, pc: int) -> Optional[int]:
    """The row of a frame: where the two unwinders disagree, one further out may be it."""
    return next((i for i in range(start, len(rows)) if rows[i].kind == model.NATIVE and rows[i].code == pc), None)


def _of_one_call(rows: List[model.Frame]) -> int:
    """How many of the rows one call of the evaluator runs: up to its entry, before the next native one."""
    for i, row in enumerate(rows):
        if row.kind != model.PYTHON:
            return i
        if row.is_entry:
            return i + 1
    return len(rows)


def _given(hidden: List[Any], rows: List[model.Frame]) -> Iterator[Piece]:
    """Frames of the interpreter in which no evaluator was recognized (it has no symbols): the first one gets the rows."""
    pending = [row for row in rows if row.kind == model.PYTHON]
    if pending and not hidden:
        yield Piece(None, pending, False)
    for i, frame in enumerate(hidden):
        yield Piece(frame, [] if i else pending, True)
    hidden.clear()


def align(frames: Iterable[Any], rows: List[model.Frame]) -> Iterator[Piece]:
    """Each frame of gdb, with its rows; every Python row comes exactly once."""
    rows = [row for row in rows if row.kind != model.BROKEN]
    interpreter = _interpreter()
    hidden = []  # type: List[Any]
    at = 0
    for frame in frames:
        found = _next_native(rows, at, frame.pc())
        if found is not None and frame.type() == gdb.INLINE_FRAME:
            yield from _given(hidden, [])
            yield Piece(frame, [], False)
        elif found is not None:
            yield from _given(hidden, rows[at:found])
            at = found + 1
            yield Piece(frame, [], False)
        elif is_evaluator(frame):
            yield from _given(hidden, [])
            count = _of_one_call(rows[at:])
            yield Piece(frame, rows[at:at + count], True)
            at += count
        elif gdb.solib_name(frame.pc()) == interpreter:
            hidden.append(frame)
        else:  # where the unwinders disagree, a frame of another file is nothing to hide
            yield from _given(hidden, [])
            yield Piece(frame, [], False)
    yield from _given(hidden, rows[at:])


def walk(frame: Optional[Any]) -> Iterator[Any]:
    """gdb's frames from one outwards, as far as gdb can unwind."""
    while frame is not None:
        yield frame
        try:
            frame = frame.older()
        except gdb.error:
            return


class _Choice:
    """What py-up and py-down chose, as long as gdb's own selection is unchanged."""

    def __init__(self) -> None:
        self.tid = 0
        self.index = 0
        self.level = 0

    def forget(self) -> None:
        self.tid = 0


_choice = _Choice()


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """The choice outlives what is run in between and leaves the stack as it was, such as a call of gdb's."""
    before = dict(vars(_choice))
    try:
        yield
    finally:
        vars(_choice).update(before)


def thread() -> model.Thread:
    """gdb's selected thread, which must run Python."""
    tid = session.thread_id()
    found = session.target().stacks(native=True, thread=tid).by_tid(tid)
    if found is None or not found.python():
        raise ProbingError("thread {} runs no Python".format(tid), "py-threads shows those that do")
    return found


def _level() -> int:
    try:
        return int(gdb.selected_frame().level())
    except gdb.error:
        return 0


def _index_of_level(one: model.Thread, level: int) -> int:
    """The Python row that gdb's frame runs, or the first one further out; the outermost where there is none."""
    count = 0
    for piece in align(walk(gdb.newest_frame()), one.frames):
        if piece.frame is not None and piece.frame.level() >= level and (piece.rows or not piece.glue):
            break
        count += len(piece.rows)
    return min(count, len(one.python()) - 1)


def current() -> Tuple[model.Thread, int]:
    """The thread, and which of its Python rows is meant."""
    one = thread()
    level = _level()
    if _choice.tid == one.tid and _choice.level == level:
        return one, min(_choice.index, len(one.python()) - 1)
    return one, _index_of_level(one, level) if level else 0


def frame(one: Optional[Tuple[model.Thread, int]] = None, limit: int = 0) -> model.Frame:
    """The Python row that is meant, with its locals."""
    selected, index = one or current()
    found = session.target().stacks(native=False, local=True, thread=selected.tid, limit=limit).by_tid(selected.tid)
    rows = found.python() if found is not None else []
    if index >= len(rows):
        raise ProbingError("the Python frame is not there any more")
    return rows[index]


def _gdb_frame_of(one: model.Thread, index: int) -> Optional[Any]:
    count = 0
    for piece in align(walk(gdb.newest_frame()), one.frames):
        count += len(piece.rows)
        if count > index:
            return piece.frame
    return None


def move(step: int) -> model.Frame:
    """Choose the Python row that is step further out, or the last one that way."""
    one, index = current()
    rows = one.python()
    if step < 0 and index == 0:
        raise ProbingError("this is the innermost Python frame")
    if step > 0 and index == len(rows) - 1:
        raise ProbingError("this is the outermost Python frame")
    return _select(one, max(0, min(index + step, len(rows) - 1)))


def choose(index: int) -> model.Frame:
    """Choose the Python row of a number, as py-bt counts them."""
    one, _ = current()
    count = len(one.python())
    if index >= count:
        raise ProbingError("there is no Python frame {}".format(index), "this thread has {}, from 0 on".format(count))
    return _select(one, index)


def _select(one: model.Thread, index: int) -> model.Frame:
    """That row, and gdb's frame that runs it, where gdb finds it."""
    _choice.index = index
    _choice.tid = one.tid
    try:
        found = _gdb_frame_of(one, _choice.index)
        if found is not None:
            found.select()
    except gdb.error:
        pass
    _choice.level = _level()
    return one.python()[index]


session.when_closed(_choice.forget)
