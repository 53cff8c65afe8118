"""Tables that this process writes: rows packed as inject/probe/start.h says, into rings that SQL reads as python.NAME."""

import struct
import time

from probing_c import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

COLUMNS_MAX = 63  # these bounds are lib/ring/ring.h's
NAME_MAX = 63
INTEGER_END = 1 << 63  # integers are of 64 bits
NUMBERS = frozenset((int, float, bool))  # these go into a row as they are
TAKES = {"integer": "an integer of 64 bits", "real": "a number", "boolean": "true or false", "time": "a time or seconds since the epoch"}
# SQL has these of its own in the schema python (`probing tables`), or this package writes them.
RESERVED = frozenset((
    "backtrace", "comm_collective", "exception", "interpreters", "locals", "memory", "modules", "objects", "objects_diff", "stack_samples", "tasks", "threads",
    "torch_names", "torch_nccl_flight_record", "torch_nccl_pg_status", "torch_phases", "torch_step_timing", "torch_trace", "torch_trace_events",
    "events", "spans", "steps", "training_logs", "variables",
))
# names a column's type may have: ours
TYPES = {
    "int": "integer", "integer": "integer",
    "float": "real", "real": "real",
    "str": "text", "text": "text",
    "bool": "boolean", "boolean": "boolean",
    "datetime": "time", "time": "time",
}


def _type_name(wanted):
    # type: (Any) -> str
    """The ring's type for a class, its name, or Optional of one; anything else is kept as its text."""
    args = getattr(wanted, "__args__", None) or ()
    if type(None) in args:
        wanted = next((one for one in args if one is not type(None)), wanted)
    name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", "")
    name = name.split("|")[0].strip()
    if "Optional[" in name:
        name = name.partition("Optional[")[2].rstrip("] ")
    return TYPES.get(name.rpartition(".")[2], "text")


def _is_name(text):
    # type: (str) -> bool
    return text.isidentifier() and len(text) <= NAME_MAX and all(letter < "\x7f" for letter in text)


class Column(object):
    """One column: name, type (int, float, str, bool, datetime or the names of them), unit and what it means."""

    __slots__ = ("name", "type", "unit", "doc")

    def __init__(self, name, type, unit="", doc=""):
        # type: (str, Any, str, str) -> None
        if not _is_name(name):
            raise ValueError("{!r} is not a name for a column".format(name))
        self.name, self.type, self.unit, self.doc = name, _type_name(type), unit, doc

    def line(self):
        # type: () -> str
        words = (self.name, self.type, self.unit.replace(":", " "), self.doc)
        return ":".join(" ".join(word.split()) for word in words)


def _detached(value):
    # type: (Any) -> Any
    """A tensor without its gradient: PyTorch warns when one that has it becomes a number."""
    return value.detach() if getattr(value, "requires_grad", False) is True else value


def elements(value):
    # type: (Any) -> int
    """How many an array or tensor has, by its shape: reading its values would wait for a GPU.  Anything else: 1."""
    shape = getattr(value, "shape", None)
    count = 1
    try:
        for size in shape or ():
            count *= size
    except Exception:  # not a shape
        return 1
    return count


def misfit(kind, value):
    # type: (str, Any) -> Optional[str]
    """What is wrong with a value for a column of numbers or times, told without converting it; None: nothing is.

    Checked without a probe, too: a program must not begin to fail when one is loaded.
    """
    if isinstance(value, (str, bytes)):
        return "text"
    if kind == "time" and hasattr(value, "timestamp"):
        return None
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        return "an object that is not a number"
    count = elements(value)
    return None if count == 1 else "{} values (log one: x.mean(), x.norm())".format(count)


def _number(kind, value):
    # type: (str, Any) -> Any
    """A value as its column has it; None where the object's own conversion fails."""
    try:
        value = _detached(value)
        if kind == "integer":
            value = int(value)
            return value if -INTEGER_END <= value < INTEGER_END else None
        if kind == "boolean":
            return int(bool(value))
        if kind == "time" and hasattr(value, "timestamp"):
            value = value.timestamp()
        return float(value)
    except Exception:  # whatever an object's own conversion raises
        return None


def _bytes(value):
    # type: (Any) -> bytes
    try:
        data = (value if type(value) is str else str(value)).encode("utf-8", "replace")
    except Exception:  # of its own __str__
        data = "<{} whose str() failed>".format(type(value).__name__).encode("utf-8", "replace")
    if len(data) > _native.TEXT_MAX:
        data = data[:_native.TEXT_MAX].decode("utf-8", "ignore").encode("utf-8")
    return data


class Table(object):
    """A table of this process.  Rows are kept while a probe runs here and dropped, at next to no cost, while none does.

    >>> losses = probing.table("losses", {"epoch": int, "loss": float})
    >>> losses.append(epoch=1, loss=0.25)      # or losses(1, 0.25)

    SQL: SELECT * FROM python.losses.  A column `time` (s since the epoch) comes first unless there is one already.
    """

    def __init__(self, name, columns):
        # type: (str, Sequence[Column]) -> None
        if not isinstance(name, str):
            raise TypeError("the name of a table is text, not {}".format(type(name).__name__))
        self.name = name[len("python."):] if name.startswith("python.") else name
        if not _is_name(self.name):
            raise ValueError("{!r} is not a name for a table".format(name))
        self._stamped = all(column.name != "time" for column in columns)
        self._names = [column.name for column in columns]
        stamp = [Column("time", "time", "s", "when the row was written")] if self._stamped else []
        self.columns = stamp + list(columns)
        if not self._names or len(self.columns) > COLUMNS_MAX or len({column.name.lower() for column in columns}) < len(columns):
            raise ValueError("a table has 1 to {} columns and time, each with a name of its own".format(COLUMNS_MAX - 1))
        self._kinds = [column.type for column in self.columns]
        self._texts = [at for at, kind in enumerate(self._kinds) if kind == "text"]
        self._numbers = [(at, kind == "integer") for at, kind in enumerate(self._kinds) if kind != "text"]  # and whether whole
        self._booleans = [at for at, kind in enumerate(self._kinds) if kind == "boolean"]
        letters = ("d" if kind in ("real", "time") else "q" for kind in self._kinds)
        self._struct = struct.Struct("<Q" + "".join(letters))
        self._handle = None  # type: Optional[int]
        self._row = None  # type: Any
        self._generation = -1
        self._look_again = 0.0
        self.error = ""  # why the table could not be made

    def __repr__(self):
        # type: () -> str
        return "<probing.Table python.{} ({})>".format(self.name, ", ".join(column.name for column in self.columns))

    def _open(self):
        # type: () -> bool
        """Have the ring made; False: no probe, or it cannot be made (said in the log once)."""
        found = _native.look()
        if self._generation == _native.generation and (self._handle is not None or time.time() < self._look_again):
            return self._handle is not None
        if found is None:
            return False
        from ctypes import create_string_buffer

        self._generation, self._row = _native.generation, found.row
        why = create_string_buffer(512)
        lines = "\n".join(column.line() for column in self.columns) + "\n"
        self._handle = found.table(self.name.encode(), lines.encode("utf-8"), why, len(why)) or None
        if self._handle is None:
            self._look_again = time.time() + _native.LOOK_AGAIN
        error = "" if self._handle else why.value.decode("utf-8", "replace")
        if error != self.error:
            from probing_c import _log

            self.error = error
            _log.write("table python.{}: {}".format(self.name, error or "made"))
        return self._handle is not None

    def _refused(self):
        # type: () -> None
        """A row was dropped: the ring has no room, or it ended with a probe that was detached; look again in a while."""
        now = time.time()
        if now >= self._look_again:
            self._look_again = now + _native.LOOK_AGAIN
            self._generation = -1

    def _packed(self, row):
        # type: (List[Any]) -> bytes
        """A row whose values fit their columns."""
        values, nulls, texts = list(row), 0, b""
        for at, _ in self._numbers:
            if values[at] is None:
                nulls |= 1 << at
                values[at] = 0
            elif type(values[at]) not in NUMBERS:
                values[at] = _detached(values[at])
        for at in self._texts:
            if values[at] is None:
                nulls |= 1 << at
                values[at] = 0
            else:
                data = _bytes(values[at])
                texts += data
                values[at] = len(data)
        for at in self._booleans:
            values[at] = 1 if values[at] else 0
        return self._struct.pack(nulls, *values) + texts

    def _fitted(self, row):
        # type: (List[Any]) -> List[Any]
        return [value if value is None or kind == "text" else _number(kind, value) for kind, value in zip(self._kinds, row)]

    def write(self, row):
        # type: (List[Any]) -> bool
        """One row: a value for each of `columns`, in that order.  True: it is in the ring."""
        if self._handle is None or self._generation != _native.generation or not _native.same_process():
            if not self._open():
                return False
        try:
            packed = self._packed(row)
        except Exception:  # struct.error, or whatever an object's own conversion raises: NULL, for the program must go on
            packed = self._packed(self._fitted(row))
        if self._row(self._handle, packed, len(packed)) == 0:
            return True
        self._refused()
        return False

    def _checked(self, row):
        # type: (List[Any]) -> List[Any]
        """The row with its time, when each value fits its column."""
        stamped = [time.time()] + row if self._stamped else row
        for at, whole in self._numbers:
            value = stamped[at]
            if value is None or type(value) in NUMBERS and not whole:
                continue
            where = "table {}: {} takes {}, not ".format(self.name, self.columns[at].name, TAKES[self._kinds[at]])
            wrong = misfit(self._kinds[at], value)
            if wrong:
                raise TypeError(where + wrong)
            if whole and isinstance(value, (int, float)) and (value != value // 1 or not -INTEGER_END <= value < INTEGER_END):
                raise ValueError(where + repr(value))
        return stamped

    def append(self, *values, **named):
        # type: (*Any, **Any) -> bool
        """One row: values in the columns' order, by name, or one object that has them as attributes (or keys).

        None is NULL, and so is what is not named.  TypeError: too few or too many values, or one that does not fit its column;
        ValueError: a number that is no integer of 64 bits, for a column of integers.  True: the row is kept.
        """
        taken = None
        if len(values) == 1 and not named and type(values[0]) not in NUMBERS:
            taken = self._taken(values[0])
        row = list(values) if taken is None else taken
        missing = self._names[len(row):]
        if len(row) > len(self._names) or row and missing and not named.keys() >= set(missing):
            raise TypeError("table {} has {} columns ({}), not {}".format(
                self.name, len(self._names), ", ".join(self._names), len(row) + len(named)))
        row += [named.pop(name, None) for name in missing]
        if named:
            raise TypeError("table {} has no column {}".format(self.name, ", ".join(sorted(named))))
        return self.write(self._checked(row))

    __call__ = append

    def _taken(self, record):
        # type: (Any) -> Optional[List[Any]]
        """A row out of a record (a dataclass, a named tuple, a dict), or None."""
        if isinstance(record, dict):
            unknown = set(record) - set(self._names)
            if unknown:
                raise TypeError("table {} has no column {}".format(self.name, ", ".join(sorted(map(str, unknown)))))
            return [record.get(name) for name in self._names]
        if hasattr(record, "__dataclass_fields__") or hasattr(record, "_fields"):
            return [getattr(record, name, None) for name in self._names]
        return None

    def append_many(self, rows):
        # type: (Iterable[Any]) -> int
        """Rows (sequences, dicts or records); how many were kept."""
        return sum(self.append(*row) if isinstance(row, (list, tuple)) and not hasattr(row, "_fields") else self.append(row) for row in rows)


_tables = {}  # type: Dict[str, Table]


def _registered(name, columns):
    # type: (str, List[Column]) -> Table
    """The table of that name, which has one schema for as long as the process lives."""
    made = Table(name, columns)
    key = made.name.lower()
    if key in RESERVED:
        raise ValueError("python.{} is a table of Probing's own: choose another name".format(made.name))
    known = _tables.setdefault(key, made)
    if [column.line() for column in known.columns] != [column.line() for column in made.columns]:
        raise ValueError("table python.{} has other columns already ({}): choose another name".format(
            known.name, ", ".join(column.name for column in known.columns)))
    return known


def table(name, columns=None):
    # type: (Any, Any) -> Table
    if isinstance(name, type) and columns is None:
        name, columns = name.__name__.lower(), name
    fields = getattr(columns, "__dataclass_fields__", None)
    if fields is not None:
        made = [Column(field.name, field.type, field.metadata.get("unit", ""), field.metadata.get("doc", "")) for field in fields.values()]
    elif isinstance(columns, dict):
        made = [Column(key, kind) for key, kind in columns.items()]
    elif isinstance(columns, (list, tuple)):
        made = [one if isinstance(one, Column) else Column(*one) for one in columns]
    elif hasattr(columns, "__annotations__"):
        made = [Column(key, kind) for key, kind in columns.__annotations__.items()]
    else:
        raise TypeError("the columns of a table: a dataclass, {name: type}, or a list of (name, type[, unit, doc])")
    return _registered(name, made)
