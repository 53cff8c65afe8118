"""Functions of CPython's C interface, called in the program by gdb: the only place of the plugin that runs anything there.

A call is made on the thread that holds the GIL, or on one that waits in the kernel when nobody does; never where that
thread stands in something that the call may need for itself: the allocator, the loader, the garbage collector.  All
others stand still, unless one of them wants the GIL: who is asked for it gives it, and waits until it was taken
(FORCE_SWITCHING, Python/ceval_gil.c: drop_gil).
"""

import ast
import re
from typing import Any, List

import gdb

from probing_gdb import model, session, text
from probing_gdb.command import guarded
from probing_gdb.library import ProbingError

EVAL_INPUT = 258  # Py_eval_input, Include/compile.h
RESULT_CHARACTERS = 1 << 20
BUSY = re.compile(r"^(_?_?(libc_)?(malloc|free|calloc|realloc|memalign|posix_memalign|aligned_alloc)$|_int_(malloc|free|realloc|memalign)|"
                  r"sysmalloc|malloc_consolidate|arena_get|tcache_|_dl_|dl_|__?lll_lock|_?PyObject_(Malloc|Free|Calloc|Realloc)|"
                  r"_PyObject_|pymalloc_|gc_collect|_?PyGC_|take_gil|drop_gil|operator (new|delete)|je_|mi_|tc_)")

# Where a thread may hold the GIL's own lock.
LOCKING = re.compile(r"^(take_gil|drop_gil|_?PyEval_(AcquireThread|ReleaseThread|RestoreThread|SaveThread)|__?lll_lock|_?_?pthread_)")
LOCKING_DEPTH = 4


def _busy(one: model.Thread) -> str:
    """What the thread does that a call may need; "" for none.  Above the first Python frame, others are of no matter."""
    for frame in one.frames:
        if frame.kind == model.NATIVE and BUSY.match(frame.name):
            return frame.name
        if frame.kind == model.PYTHON:
            break
    return ""


def choose(selected: int) -> model.Thread:
    """The thread to run on: the GIL's holder; when there is none the selected one, else any that is fit."""
    threads = [one for one in session.target().stacks(native=True).threads if one.has_python and one.tid and one.interpreter == 0]
    holders = [one for one in threads if one.gil == model.GIL_HOLDING]
    fit = [one for one in holders or threads if one.gil != model.GIL_WAITING]
    fit.sort(key=lambda one: one.tid != selected)
    for one in fit:
        if any(frame.kind == model.NATIVE for frame in one.frames) and not _busy(one):
            return one
    if holders:
        raise ProbingError("thread {} holds the GIL inside {}, where running code could wait for itself for ever".format(
            holders[0].tid, text.safe(_busy(holders[0])) or "something unknown"), "let it go on a little, and try again")
    raise ProbingError("no thread is fit to run code now", "let it go on a little, and try again")


def _call(kind: str, name: str, *arguments: str) -> Any:
    return gdb.parse_and_eval("(({} (*)()){})({})".format(kind, name, ", ".join(arguments)))


def _gil_is_wanted() -> bool:
    """Whether a thread waits for the GIL, or is about to."""
    return any(one.gil == model.GIL_WAITING or any(frame.kind == model.NATIVE and frame.name == "take_gil" for frame in one.frames)
               for one in session.target().stacks(native=True).threads)


def _settings() -> Any:
    """Only the chosen thread runs if that can end well, and a call that does not end is shown as one."""
    return session.settings({"scheduler-locking": "off" if _gil_is_wanted() else "on", "unwindonsignal": "off", "language": "c"})


def c_string(value: str) -> str:
    """A string constant of C."""
    return '"' + "".join("\\{:03o}".format(byte) if byte < 32 or byte > 126 or byte in b'"\\' else chr(byte)
                         for byte in value.encode("utf-8", "surrogateescape")) + '"'


class _Call:
    """The GIL, taken for a call on a thread, until the call is over; a call that is left half way keeps it."""

    def __init__(self, one: model.Thread) -> None:
        self.thread = one
        self.frame = gdb.newest_frame()
        self.state = int(_call("int", "PyGILState_Ensure"))

    def is_over(self) -> bool:
        """Whether the thread stands where it stood before."""
        return bool(self.frame.is_valid() and gdb.newest_frame() == self.frame)

    def interrupt(self) -> None:
        """After Ctrl-C: let the code end by a KeyboardInterrupt of its own; a second Ctrl-C leaves it where it is."""
        now = session.target().stacks(native=True, thread=self.thread.tid).by_tid(self.thread.tid)
        if now is None or any(frame.kind == model.NATIVE and LOCKING.match(frame.name) for frame in now.frames[:LOCKING_DEPTH]):
            return
        state = int(_call("int", "PyGILState_Ensure"))
        _call("int", "PyThreadState_SetAsyncExc", "{}ul".format(self.thread.thread_id), "*(void **)&PyExc_KeyboardInterrupt")
        _call("void", "PyGILState_Release", str(state))
        text.note("the code gets a KeyboardInterrupt; Ctrl-C again leaves it where it is")
        gdb.flush()
        gdb.execute("continue", to_string=True)

    def end(self, failed: bool = True) -> None:
        if failed:  # else an exception that is set is the program's own
            _call("void", "PyErr_Clear")
        _call("void", "PyGILState_Release", str(self.state))


_left = []  # type: List[_Call]  # those that stand half way


def _settle() -> None:
    """Ends the calls whose code came to its end while the program went on."""
    present = [thread.ptid[1] for thread in gdb.selected_inferior().threads()]
    for one in list(_left):
        if one.thread.tid not in present:
            _left.remove(one)
            continue
        with session.selected_thread(one.thread.tid), _settings():
            if one.is_over():
                _left.remove(one)
                one.end()
                text.note("the code that was left half way in thread {} has ended".format(one.thread.tid))


def _stopped(_event: Any) -> None:
    """A function must not be called while gdb reports a stop."""
    if _left:
        gdb.post_event(lambda: guarded(_settle))


def connect() -> None:
    gdb.events.stop.connect(_stopped)


def _broke_off(call: _Call, error: BaseException) -> BaseException:
    """What to raise when the call did not come back to us."""
    if call.is_over():
        call.end()
        return error
    if "SIGINT" in gdb.execute("info program", to_string=True):
        call.interrupt()
    if call.is_over():
        call.end()
        return ProbingError("the code was stopped")
    _left.append(call)
    return ProbingError("the code stands half way in thread {}".format(call.thread.tid),
                        "`continue` lets it come to its end; do not detach before")


def evaluate(expression: str, one: model.Thread) -> str:
    """The string that an expression of Python gives, evaluated in __main__ on that thread."""
    with session.selected_thread(one.tid), _settings():
        call = _Call(one)
        try:
            names = int(_call("void *", "PyModule_GetDict", "((void * (*)())PyImport_AddModule)(\"__main__\")"))
            result = int(_call("void *", "PyRun_String", c_string(expression), str(EVAL_INPUT), hex(names), hex(names)))
        except (gdb.error, KeyboardInterrupt) as error:
            raise _broke_off(call, error)
        try:
            if not result:
                raise ProbingError("the program's Python refused to run it")
            return _string_at(result)
        finally:
            if result:
                _call("void", "Py_DecRef", hex(result))
            call.end(failed=not result)


def _string_at(addr: int) -> str:
    part = session.target().parts(addr, limit=RESULT_CHARACTERS)[0]
    whole = part.repr.rstrip("…")
    try:
        return str(ast.literal_eval(whole))
    except (ValueError, SyntaxError):
        return part.repr
