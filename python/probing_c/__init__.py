"""Probing, from inside the process that is looked at.

    import probing

    probing.init()                                     # or PROBING=1 in the environment: then nothing is needed
    with probing.span("forward", batch=3): ...         # python.spans
    probing.event("checkpoint", path=path)             # python.events
    probing.step()                                     # python.steps; spans, events and logs carry its number
    probing.log(epoch=1, loss=0.25)                    # training_logs
    losses = probing.table("losses", {"layer": str, "norm": float})
    losses.append("fc1", 0.5)                          # python.losses
    probing.debug(listen="127.0.0.1:9922")             # VS Code and others may attach
    probing.breakpoint()                               # stop here for them

Rows lie in shared memory: `probing PID query "SELECT ..."` reads them from outside, also after the process ended.  All of
it can stay in a program for ever: without a probe the calls do nothing.  `query` and `backtrace` need none.
"""

from probing_c import _other
from probing_c._config import Config
from probing_c._native import ProbeError
from probing_c._spans import event as _event
from probing_c._spans import log as _log_metrics
from probing_c._spans import span
from probing_c._spans import step as _step
from probing_c._tables import Column, Table
from probing_c._tables import table as _table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

__version__ = "0.1.0"
__all__ = [
    "Column", "ProbeError", "Table", "backtrace", "breakpoint", "config", "debug", "detach", "event", "init", "is_active", "log", "query", "span", "step", "table",
]

config = Config()


def init(listen: "Optional[str]" = None, allow: "Optional[str]" = None, **settings: "Any") -> "Optional[str]":
    """Start the probe in this process; once it runs, calling again is harmless.

    listen: "HOST:PORT", a port of loopback, or "RANDOM": a server for this process starts there, beside it, and ends a minute after
    it; ranks that name the same address share one.  Its address with the token is returned.  allow: what the token may do beside
    looking, "control" or "eval".  Where no server can start, a warning says why, and the program goes on.
    settings: sample_rate=0.1 and the like, see `config`.
    """
    from probing_c import _native

    _native.start("import")
    for name, value in settings.items():
        config[name] = value
    if listen is None:
        return None
    try:
        return _native.serve(listen, allow)
    except ProbeError as error:
        import warnings

        warnings.warn("probing.init: listen={!r}: {}".format(listen, error), stacklevel=2)
        return None


def load_ipython_extension(ipython: "Any") -> None:
    """`%load_ext probing` in a notebook: `%%probing PID` runs a cell in that process, `%probing_query PID SQL` asks its tables."""
    from probing_c import _notebook

    _notebook.load(ipython)


def is_active() -> bool:
    """Whether a probe runs in this process, however it got here."""
    from probing_c import _native

    try:
        return bool(_native.need())
    except ProbeError:
        return False


def detach() -> bool:
    """End the probe: its thread, its socket, its hooks.  True: there was one."""
    from probing_c import _native

    return _native.stop()


def query(sql: str, tuples: bool = False, timeout: "Optional[float]" = None) -> "List[Any]":
    """Rows of a statement about this process, as dicts (or tuples, in the columns' order); SQL as of `probing query`.

    The tool runs as a child and reads this process from outside.  timeout: s; ProbeError when it passes or the SQL is wrong.
    """
    from probing_c import _tool

    return _tool.query(sql, tuples, timeout)


def backtrace(native: bool = False, locals: bool = False, timeout: "Optional[float]" = None) -> "List[Dict[str, Any]]":
    """Every thread of this process and its frames, innermost first: what `probing PID backtrace --json` prints.

    Of the calling thread from the caller outwards.
    """
    from probing_c import _tool

    return _tool.backtrace(native, locals, timeout)


def debug(listen: str = "127.0.0.1:9922", token: "Optional[str]" = None, pause: bool = False) -> str:
    """Serve debuggers (VS Code and others, DAP) for this process, which runs on; returns where: the port is real when 0 was asked.

    listen: "HOST:PORT" or the path of a Unix socket.  token: that every client must show.  Without it this user's clients come in
    by loopback or a Unix socket; elsewhere a token is made, which stands behind the address: "HOST:PORT?token=TOKEN".
    pause: stop here, with all threads, until a client lets it go on.  Called again while it serves, it changes nothing.
    """
    from probing_c import _debug

    return _debug.serve(listen, token, pause)


def breakpoint(listen: str = "127.0.0.1:9922", token: "Optional[str]" = None) -> None:
    """Stop here, with all threads, for the debugger of `debug`; where there is none yet, serve on listen and wait for one.

    Never ends the program: when the server cannot start, a warning says why.
    """
    from probing_c import _debug

    try:
        _debug.stop_here(listen, token)
    except (OSError, ProbeError) as error:
        import warnings

        warnings.warn("probing.breakpoint: {}".format(error), stacklevel=2)


def event(name: str, **attributes: "Any") -> None:
    """Something that happened: a row of python.events, with the span and step that it was in."""
    _event(name, **attributes)


def step(number: "Optional[int]" = None, epoch: "Optional[float]" = None) -> int:
    """The next training step begins (from 0, or `number`); returns its number.

    A row of python.steps; later spans, events and logs have the number, and logs the epoch, unless they say another.
    """
    return _step(number, epoch)


def log(**metrics: "Any") -> bool:
    """Metrics of a step, such as log(epoch=1, loss=0.25, accuracy=0.9): a row of training_logs (python.training_logs).

    Columns: time, epoch, step, loss, the other metrics of the first call, and `other`, JSON with those that came later or do not
    fit the column that the first call made.  Numbers, texts (not for epoch, step and loss), and what float() takes: a tensor of one
    element is fetched.  TypeError: anything else, also while no probe runs.  True: the row is kept.
    """
    return _log_metrics(**metrics)


def table(name: "Any", columns: "Any" = None) -> Table:
    """A table of one's own, python.NAME in SQL.

    columns: {name: type}, a dataclass (its fields' metadata may have "unit" and "doc"), or a list of (name, type, unit, doc).
    Types: int, float, str, bool, datetime; anything else is kept as its text.  A dataclass alone names the table, too.
    Asked again with the same columns: the same table.  ValueError: other columns than it has, or a name that SQL has already.
    """
    return _table(name, columns)
