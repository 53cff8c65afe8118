"""probing query: SQL over the program."""

from typing import Dict, List

from probing_gdb import sql
from probing_gdb.command import Command

CELL = 80  # columns of one cell; -long does not cut


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
        sql.show(statement, 0 if "-long" in options else CELL)


COMMAND = Query
