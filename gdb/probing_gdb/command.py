"""What all commands share: options, completion, and errors that are one line and leave gdb's session as it was.

To add a command: a file commands/NAME.py with a class COMMAND derived from Command, the file in GDB_COMMANDS
(gdb/local.mk), its line in gdb/README.md, and a test in tests/gdb.
"""

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

import gdb

from probing_gdb.library import ProbingError


class Command:
    """names: as gdb shall know it, one of them beginning with "probing ".  The docstring is gdb's help text."""

    names = ()  # type: Tuple[str, ...]
    kind = gdb.COMMAND_STACK
    options = ()  # type: Tuple[str, ...]
    words = 0  # arguments at the most; -1: the rest of the line is one
    needs = 0  # arguments at the least
    completes = None  # type: Optional[int]  # gdb's own kind of completion, in place of complete()

    def run(self, arguments: List[str], options: Dict[str, bool], from_tty: bool) -> None:
        raise NotImplementedError

    def complete(self, token: str) -> Sequence[str]:
        """What could stand in place of the last word."""
        return ()

    def usage(self) -> ProbingError:
        lines = [line.strip() for line in (self.__doc__ or "").splitlines()]
        return ProbingError(next((line for line in lines if line.startswith("Usage:")), "wrong arguments"))

    def split(self, line: str) -> Tuple[List[str], Dict[str, bool]]:
        """Arguments and options of a command line."""
        given = {}  # type: Dict[str, bool]
        if self.words < 0:
            while True:
                word = line.split(None, 1)[:1]
                if not word or word[0] not in self.options:
                    break
                given[word[0]] = True
                line = line.strip()[len(word[0]):]
            arguments = [line.strip()] if line.strip() else []
            if self.options and re.match(r"-[a-z]", line.strip()):
                raise self.usage()
        else:
            arguments = []
            for word_ in gdb.string_to_argv(line):
                matching = [option for option in self.options if word_.startswith("-") and option.startswith(word_)]
                if word_ in self.options or len(matching) == 1:
                    given[word_ if word_ in self.options else matching[0]] = True
                elif matching or (word_.startswith("-") and not word_[1:].isdigit()):
                    raise self.usage()
                else:
                    arguments.append(word_)
        if len(arguments) < self.needs or 0 <= self.words < len(arguments):
            raise self.usage()
        return arguments, given


def message(error: ProbingError) -> str:
    return error.text + (" ({})".format(error.remedy) if error.remedy else "")


def guarded(function: Any, *arguments: Any) -> Any:
    """Call it; what goes wrong is gdb's kind of error, one line, never a traceback."""
    try:
        return function(*arguments)
    except ProbingError as error:
        raise gdb.GdbError(message(error))
    except (gdb.GdbError, KeyboardInterrupt):
        raise
    except gdb.error as error:
        raise gdb.GdbError(str(error))
    except Exception as error:
        raise gdb.GdbError("probing: our mistake: {}: {}".format(type(error).__name__, error))


class _Bound(gdb.Command):
    """A command under one of its names."""

    def __init__(self, name: str, command: Command) -> None:
        self.__doc__ = command.__doc__
        self.command = command
        if command.completes is None:
            gdb.Command.__init__(self, name, command.kind)
        else:
            gdb.Command.__init__(self, name, command.kind, command.completes)

    def invoke(self, line: str, from_tty: bool) -> None:
        guarded(self._invoke, line, from_tty)

    def _invoke(self, line: str, from_tty: bool) -> None:
        self.dont_repeat()
        arguments, options = self.command.split(line)
        self.command.run(arguments, options, from_tty)


class _Completing(_Bound):
    """One whose arguments our own code completes."""

    def complete(self, line: str, word: Optional[str]) -> Any:
        if word is None:
            return None
        try:
            token = line.split(" ")[-1]
            found = self.command.options if token.startswith("-") else self.command.complete(token)
            return [one[len(token) - len(word):] for one in found if one.startswith(token)]
        except Exception:  # a completion that fails is not an error
            return []


def add(command: Command) -> None:
    for name in command.names:
        (_Completing if command.completes is None else _Bound)(name, command)
