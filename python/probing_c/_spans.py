"""Spans, events, steps and metrics: rows of python.spans, python.events, python.steps and python.training_logs."""

import functools
import itertools
import os
import threading
import time

from probing_c import _native
from probing_c._tables import Column, Table, _detached, misfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

SPANS = Table("spans", [
    Column("time", "time", "s", "when it began"),
    Column("duration", "real", "s", "how long it took"),
    Column("name", "text", "", "as the program calls it"),
    Column("span_id", "integer", "", "number within the process"),
    Column("parent_id", "integer", "", "the span around it"),
    Column("os_thread_id", "integer", "id", "the kernel's number of the thread"),
    Column("step", "integer", "", "of probing.step"),
    Column("error", "text", "", "class of the exception that ended it"),
    Column("attributes", "text", "", "JSON"),
])
EVENTS = Table("events", [
    Column("time", "time", "s", "when it was"),
    Column("name", "text", "", "as the program calls it"),
    Column("span_id", "integer", "", "the span around it"),
    Column("os_thread_id", "integer", "id", "the kernel's number of the thread"),
    Column("step", "integer", "", "of probing.step"),
    Column("attributes", "text", "", "JSON"),
])
STEPS = Table("steps", [
    Column("time", "time", "s", "when it began"),
    Column("step", "integer", "", "its number"),
    Column("epoch", "real", "", "as the program said"),
    Column("previous_duration", "real", "s", "of the step before it"),
])

COLUMNS_OF_LOG = 48  # that the first call may add
NUMBERS_OF_LOG = ("epoch", "step", "loss")  # the columns after `time`

_ids = itertools.count(1)
_outermost = itertools.count()  # spans outside of steps
_step = None  # type: Optional[int]
_epoch = None  # type: Optional[float]
_step_began = None  # type: Optional[float]
_logs = None  # type: Optional[Table]
_extra = []  # type: List[str]
_lock = threading.Lock()
_encode = None  # type: Any

try:
    from contextvars import ContextVar

    _current = ContextVar("probing_span", default=None)  # type: Any
except ImportError:  # CPython 3.6

    class _PerThread(threading.local):
        value = None

        def get(self):
            # type: () -> Any
            return self.value

        def set(self, value):
            # type: (Any) -> None
            self.value = value

    _current = _PerThread()

if hasattr(threading, "get_native_id"):
    _thread_id = threading.get_native_id
else:  # CPython 3.6, 3.7

    class _ThreadId(threading.local):
        pid = id = 0

    _own = _ThreadId()

    def _thread_id():
        # type: () -> int
        if _own.pid != os.getpid():
            # The link names the calling thread: PID/task/TID (proc(5)).
            _own.pid, _own.id = os.getpid(), int(os.readlink("/proc/thread-self").rpartition("/")[2])
        return _own.id


def _chosen(number):
    # type: (int) -> bool
    """Whether the part that probing.sample_rate says includes this one of evenly chosen ones: at 0.25 every fourth."""
    rate = _native.sample_rate()
    return rate >= 1 or int((number + 1) * rate) > int(number * rate)


def _json(attributes):
    # type: (Dict[str, Any]) -> Optional[str]
    global _encode
    if not attributes:
        return None
    if _encode is None:
        import json

        _encode = json.JSONEncoder(default=str).encode  # json.dumps makes an encoder for each call
    try:
        return _encode(attributes)
    except Exception:  # whatever an object's own __str__ raises
        return _encode({name: type(value).__name__ for name, value in attributes.items()})


class span(object):
    """A part of the program: `with span("forward", batch=3):` or `@span("load")`; a row of python.spans when it ends.

    Works on functions, coroutines and generators.  An exception passes through; its class is in the row.  The setting
    probing.sample_rate chooses steps, and all spans of a chosen step; outside of steps it chooses outermost spans.
    """

    __slots__ = ("name", "attributes", "id", "kept", "_parent", "_began", "_clock")

    def __init__(self, name, **attributes):
        # type: (str, **Any) -> None
        self.name = name
        self.attributes = attributes
        self.id = 0
        self.kept = False
        self._began = None  # type: Optional[float]

    def set(self, **attributes):
        # type: (**Any) -> None
        """More attributes, known while it runs."""
        self.attributes.update(attributes)

    def __enter__(self):
        # type: () -> span
        if _native.look() is None:
            return self
        self._parent = parent = _current.get()
        if parent is not None:
            self.kept = parent.kept
        else:
            self.kept = _chosen(_step if _step is not None else next(_outermost))
        self.id = next(_ids)
        _current.set(self)
        self._began = time.time()
        self._clock = time.perf_counter()
        return self

    def __exit__(self, kind, value, trace):
        # type: (Any, Any, Any) -> None
        if self._began is None:
            return
        duration = time.perf_counter() - self._clock
        _current.set(self._parent)
        began, self._began = self._began, None
        if self.kept:
            SPANS.write([
                began, duration, self.name, self.id, self._parent.id if self._parent is not None else None,
                _thread_id(), _step, kind.__name__ if kind is not None else None, _json(self.attributes),
            ])

    def __call__(self, function):
        # type: (Any) -> Any
        import inspect

        name, attributes = self.name, self.attributes
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def around_coroutine(*args, **kwargs):
                # type: (*Any, **Any) -> Any
                with span(name, **attributes):
                    return await function(*args, **kwargs)

            return around_coroutine
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def around_generator(*args, **kwargs):
                # type: (*Any, **Any) -> Any
                with span(name, **attributes):
                    return (yield from function(*args, **kwargs))

            return around_generator

        @functools.wraps(function)
        def around(*args, **kwargs):
            # type: (*Any, **Any) -> Any
            with span(name, **attributes):
                return function(*args, **kwargs)

        return around


def event(name, **attributes):
    # type: (str, **Any) -> None
    if _native.look() is None:
        return
    inside = _current.get()
    if inside is not None and not inside.kept:
        return
    EVENTS.write([time.time(), name, inside.id if inside is not None else None, _thread_id(), _step, _json(attributes)])


def step(number=None, epoch=None):
    # type: (Optional[int], Optional[float]) -> int
    global _step, _epoch, _step_began
    with _lock:
        _step = int(number) if number is not None else 0 if _step is None else _step + 1
        if epoch is not None:
            _epoch = epoch
        before, _step_began = _step_began, time.perf_counter()
        mine, clock = _step, _step_began
    if _native.look() is not None and _chosen(mine):
        STEPS.write([time.time(), mine, _epoch, clock - before if before is not None else None])
    return mine


def _column_name(metric):
    # type: (str) -> str
    """A column's name for any metric's: "train/acc" gives train_acc."""
    name = "".join(letter if letter.isalnum() and letter < "\x7f" else "_" for letter in metric)[:60]
    return name if name.isidentifier() else "m_" + name


def _log_table(metrics):
    # type: (Dict[str, Any]) -> Table
    """python.training_logs; the first call's metrics get columns of their own."""
    global _logs
    with _lock:
        if _logs is None:
            kind = "real" if isinstance(metrics.get("epoch"), float) else "integer"
            columns = [
                Column("time", "time", "s", "when it was logged"),
                Column("epoch", kind, "", "as logged, else of probing.step"),
                Column("step", "integer", "", "as logged, else of probing.step"),
                Column("loss", "real", "", "as logged"),
            ]
            taken = {column.name for column in columns} | {"other"}
            for metric in sorted(set(metrics) - taken):
                name = _column_name(metric)
                if name not in taken and len(_extra) < COLUMNS_OF_LOG:
                    taken.add(name)
                    _extra.append(metric)
                    columns.append(Column(name, "text" if isinstance(metrics[metric], str) else "real", "", "as logged"))
            columns.append(Column("other", "text", "", "JSON: metrics that the first call did not have"))
            _logs = Table("training_logs", columns)
    return _logs


def _check(metrics):
    # type: (Dict[str, Any]) -> None
    """TypeError for what is neither a number nor text, whether or not a probe is there."""
    for name, value in metrics.items():
        if type(value) in (float, int) or value is None or isinstance(value, str) and name not in NUMBERS_OF_LOG:
            continue
        wrong = misfit("real", value)
        if wrong:
            takes = "a number" if name in NUMBERS_OF_LOG else "a number or text"
            raise TypeError("probing.log: {} takes {}, not {}".format(name, takes, wrong))


def _fits(kind, value):
    # type: (str, Any) -> bool
    """Whether a column, whose type the first call decided, has room for a later value."""
    if kind == "text" or value is None:
        return True
    return not isinstance(value, str) and (kind != "integer" or value == value // 1)


def _plain(value):
    # type: (Any) -> Any
    """A metric as a number or text, also of a tensor; None where its own conversion fails, for the program must go on."""
    if value is None or isinstance(value, (int, float, str)):
        return value
    try:
        return float(_detached(value))
    except Exception:
        return None


def log(**metrics):
    # type: (**Any) -> bool
    _check(metrics)
    if _native.look() is None:
        return False
    plain = {name: _plain(value) for name, value in metrics.items()}
    made = _logs or _log_table(plain)
    plain.setdefault("epoch", _epoch)
    plain.setdefault("step", _step)
    row = [time.time()]  # type: List[Any]
    for name, column in zip(list(NUMBERS_OF_LOG) + _extra, made.columns[1:]):
        value = plain.pop(name, None)
        if not _fits(column.type, value):
            plain[name], value = value, None  # in `other`
        row.append(value)
    row.append(_json(plain))
    return made.write(row)
