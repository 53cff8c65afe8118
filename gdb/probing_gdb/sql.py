"""SQL over the target: statements run by libprobing, rows as Python values or as a table."""

import ctypes as c
from typing import Any, Callable, List

from probing_gdb import library, progress, session, structs, text

NULL, INTEGER, REAL, TEXT, BLOB = range(5)  # enum prb_type
ROWS_MEASURED = 200  # the widths of a table follow its first rows


def _value(cell: Any) -> Any:
    if cell.type == INTEGER:
        return cell.integer
    if cell.type == REAL:
        return cell.real
    if cell.type == NULL or not cell.text:
        return None if cell.type == NULL else ""
    data = c.string_at(cell.text, cell.length)
    return data.decode("utf-8", "replace") if cell.type == TEXT else data


def _run(statement: str, take: Callable[[int, Any, Any], bool], trouble: List[BaseException]) -> None:
    """take(column count, names, row or NULL) for every row; a row may be the last because Ctrl-C was hit.  trouble: what
    was raised where it may not pass through the library."""
    target = session.target()
    lib = library.load()
    error = structs.Error()
    shown = progress.Progress("{:,} rows")
    seen = [0]

    def each(_context: Any, columns: int, names: Any, row: Any) -> bool:
        try:
            good = take(columns, names, row)
            seen[0] += bool(row)
            shown.at(seen[0])
            return good and not target.interrupted
        except BaseException as caught:
            trouble.append(caught)
            return False

    def go_on(_context: Any) -> bool:
        """Nothing but a place where Ctrl-C arrives."""
        try:
            shown.at(seen[0])
            return not target.interrupted
        except BaseException as caught:
            trouble.append(caught)
            return False

    watch = library.WATCH(go_on)
    with target.used():
        db = lib.prb_db_open(target.handle, c.byref(error))
        if not db:
            raise library.failed(error)
        try:
            target.interrupted = False
            lib.prb_db_watch(db, watch, None)
            good = lib.prb_db_query(db, statement.encode(), library.ROW(each), None, c.byref(error))
            warning = library.text(lib.prb_db_warning(db))
        finally:
            shown.end()
            lib.prb_db_close(db)
    if trouble or target.interrupted:
        target.interrupted = False
        raise trouble[0] if trouble else KeyboardInterrupt()
    if not good:
        raise library.failed(error)
    for line in warning.split("\n") if warning else ():
        text.note(line)


def query(statement: str, each: Callable[[List[str], Any], None]) -> None:
    """each(names, None) when the columns are known, then each(names, values) for every row."""
    def take(columns: int, names: Any, row: Any) -> bool:
        head = [library.text(names[i]) or "" for i in range(columns)]
        each(head, [_value(row[i]) for i in range(columns)] if row else None)
        return True

    _run(statement, take, [])


def show(statement: str, cell: int) -> None:
    """Print the rows as a table, a cell cut to so many columns (0: not)."""
    lib = library.load()
    error = structs.Error()
    trouble = []  # type: List[BaseException]

    def write(_context: Any, data: int, length: int) -> bool:
        try:
            text.write(c.string_at(data, length).decode("utf-8", "replace"))
            return True
        except BaseException as caught:  # nothing may pass through the library
            trouble.append(caught)
            return False

    options = structs.RowOptions(write=structs.WRITE(write), cell=cell, measured=ROWS_MEASURED, null=b"NULL")
    writer = lib.prb_row_writer_new(b"table", c.byref(options), c.byref(error))
    if not writer:
        raise library.failed(error)
    try:
        _run(statement, lambda columns, names, row: bool(lib.prb_row_write(writer, columns, names, row)), trouble)
        if not lib.prb_row_writer_end(writer, c.byref(error)):
            raise trouble[0] if trouble else library.failed(error)
    finally:
        lib.prb_row_writer_free(writer)
