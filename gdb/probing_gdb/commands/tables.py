"""probing tables: what `probing query` can ask."""

from typing import Dict, List

from probing_gdb import sql
from probing_gdb.command import Command
from probing_gdb.library import ProbingError


class Tables(Command):
    """List the tables that `probing query` asks, or the columns of one.

    Usage: probing tables [TABLE]"""

    names = ("probing tables",)
    words = 1

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        if arguments and not arguments[0].replace("_", "").replace(".", "").isalnum():
            raise ProbingError("{} is not the name of a table".format(arguments[0]), "`probing tables` lists them")
        sql.show("DESCRIBE " + arguments[0] if arguments else "SHOW TABLES", 0)

    def complete(self, token: str) -> List[str]:
        found = []  # type: List[str]
        sql.query("SELECT table_schema || '.' || table_name FROM information_schema.tables",
                  lambda names, row: found.append(row[0]) if row else None)
        return found


COMMAND = Tables
