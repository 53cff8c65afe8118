"""Probing's commands for gdb, over libprobing with gdb's own memory as the source.

  library    libprobing's functions and structs         session  the target of gdb's inferior
  model      what was read                              command  what all commands share, and how to add one
"""


def register() -> None:
    """Tell gdb of everything; again after an update of the files takes the newer ones."""
    from probing_gdb import commands, session

    commands.prefix()
    commands.register()
    session.connect()
