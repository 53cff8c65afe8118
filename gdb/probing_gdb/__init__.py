"""Probing's commands for gdb, over libprobing with gdb's own memory as the source.

  library     libprobing's functions and structs          session     the target of gdb's selected inferior
  model       what was read                               command     what all commands share, and how to add one
  selection   which Python frame is meant                 expression  names and paths from them
  filter, printers, functions: what gdb's own commands show of Python
"""


def register() -> None:
    """Tell gdb of everything; again, after an update of the files, takes the newer ones."""
    from probing_gdb import calls, commands, filter, functions, printers, session

    commands.prefix()
    commands.register()
    filter.register()
    functions.register()
    printers.register()
    session.connect()
    calls.connect()
