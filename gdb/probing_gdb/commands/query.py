"""probing query: SQL over the program."""

from typing import Any, Dict, List

from probing_gdb import sql, text
from probing_gdb.command import Command

CELL = 80  # columns of one cell; -long does not cut
ROWS_MEASURED = 200  # the widths of a table follow its first rows


class Table:
    """Rows as they come: the first ones together, so that their columns fit, the others each at once."""

    def __init__(self, cell: int) -> None:
        self.cell = cell
        self.head = []  # type: List[str]
        self.held = []  # type: List[List[str]]
        self.widths = []  # type: List[int]
        self.count = 0

    def _text(self, value: Any) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bytes):
            value = "x'" + value.hex() + "'"
        return text.cut(text.safe(str(value)), self.cell) if self.cell else text.safe(str(value))

    def take(self, names: List[str], row: Any) -> None:
        if row is None:
            self.end()
            self.head = [text.safe(name) for name in names]
            self.widths = []
            self.count = 0
            return
        self.count += 1
        cells = [self._text(value) for value in row]
        if self.widths:
            self._say(cells)
        else:
            self.held.append(cells)
            if len(self.held) == ROWS_MEASURED:
                self._flush()

    def _say(self, cells: List[str]) -> None:
        text.say("  ".join(cell.ljust(width) for cell, width in zip(cells, self.widths)).rstrip())

    def _flush(self) -> None:
        self.widths = [max(len(cells[i]) for cells in [self.head] + self.held) for i in range(len(self.head))]
        for cells in [self.head] + self.held:
            self._say(cells)
        self.held = []

    def end(self) -> None:
        if not self.head:
            return
        if not self.widths:
            self._flush()
        text.say("({} row{})".format(self.count, "" if self.count == 1 else "s"))


def show(statement: str, long: bool = False) -> None:
    table = Table(0 if long else CELL)
    sql.query(statement, table.take)
    table.end()


class Query(Command):
    """Ask the program in SQL.

    Usage: probing query [-long] SQL

    The statement may stand in quotes.  `probing tables` lists the tables; -long does not cut long values.
    Example: probing query SELECT thread_name, func, lineno FROM python.backtrace WHERE depth = 0"""

    names = ("probing query",)
    options = ("-long",)
    words = -1
    needs = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        statement = arguments[0]
        if len(statement) > 1 and statement[0] == statement[-1] == '"' and '"' not in statement[1:-1]:
            statement = statement[1:-1]
        show(statement, "-long" in options)


COMMAND = Query
