"""SQL over the target: statements run by libprobing, rows as Python values."""

import ctypes as c
from typing import Any, Callable, List

from probing_gdb import library, progress, session, text

NULL, INTEGER, REAL, TEXT, BLOB = range(5)  # enum prb_type


def _value(cell: Any) -> Any:
    if cell.type == INTEGER:
        return cell.integer
    if cell.type == REAL:
        return cell.real
    if cell.type == NULL or not cell.text:
        return None if cell.type == NULL else ""
    data = c.string_at(cell.text, cell.length)
    return data.decode("utf-8", "replace") if cell.type == TEXT else data


def query(statement: str, each: Callable[[List[str], Any], None]) -> None:
    """each(names, None) when the columns are known, then each(names, values) for every row; a row may be the last
    because Ctrl-C was hit."""
    target = session.target()
    lib = library.load()
    error = library.Error()
    trouble = []  # type: List[BaseException]
    told = progress.Progress("{:,} rows")
    seen = [0]

    def take(_context: Any, columns: int, names: Any, row: Any) -> bool:
        try:
            head = [library.text(names[i]) or "" for i in range(columns)]
            each(head, [_value(row[i]) for i in range(columns)] if row else None)
            seen[0] += bool(row)
            told.at(seen[0])
            return not target.interrupted
        except BaseException as caught:  # nothing may pass through the library
            trouble.append(caught)
            return False

    def go_on(_context: Any) -> bool:
        """Nothing but a place where Ctrl-C arrives."""
        try:
            told.at(seen[0])
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
            good = lib.prb_db_query(db, statement.encode(), library.ROW(take), None, c.byref(error))
            warning = library.text(lib.prb_db_warning(db))
        finally:
            told.end()
            lib.prb_db_close(db)
    if trouble or target.interrupted:
        target.interrupted = False
        raise trouble[0] if trouble else KeyboardInterrupt()
    if not good:
        raise library.failed(error)
    if warning:
        text.note(warning)
