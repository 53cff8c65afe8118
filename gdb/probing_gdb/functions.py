"""Convenience functions: Python's variables in gdb's expressions, such as conditions of breakpoints."""

import inspect
from typing import Any

import gdb

from probing_gdb import expression, selection, session, text, values
from probing_gdb.command import guarded
from probing_gdb.library import ProbingError


def _string(value: Any) -> str:
    try:
        return str(value.string()) if isinstance(value, gdb.Value) else str(value)
    except gdb.error:
        raise ProbingError("a name or path is meant, as a string in double quotes")


def _part(source: Any) -> Any:
    addr = expression.address(_string(source))
    return session.target().parts(addr)[0]


class _Function(gdb.Function):
    def __init__(self, name: str) -> None:
        self.__doc__ = inspect.cleandoc(self.__doc__ or "")  # gdb shows it as it is
        gdb.Function.__init__(self, name)

    def invoke(self, *arguments: Any) -> Any:
        guarded(session.renew)
        return guarded(self._called, *arguments)

    def _called(self, *arguments: Any) -> Any:
        try:
            inspect.signature(self.value).bind(*arguments)
        except TypeError:
            raise ProbingError(next(line for line in (self.__doc__ or "").splitlines() if line.startswith("Usage:")))
        return self.value(*arguments)

    def value(self, *arguments: Any) -> Any:
        raise NotImplementedError


class PyLocal(_Function):
    """The value of a Python variable of the selected frame, or of a path from it.

    Usage: $py_local("NAME" or "EXPRESSION")

    int, float, bool and str are numbers and strings of gdb's; of others the object's address, as PyObject * where its
    type is known.  Example: break cfunction if $py_local("step") > 100"""

    def value(self, source: Any) -> Any:
        return values.of(_part(source))


class PyRepr(_Function):
    """What repr() of a Python object would give, as a string.

    Usage: $py_repr("EXPRESSION")"""

    def value(self, source: Any) -> Any:
        return text.safe(_part(source).repr)


class PyAddress(_Function):
    """The address of a Python object.

    Usage: $py_address("EXPRESSION")"""

    def value(self, source: Any) -> Any:
        return values.pointer(expression.address(_string(source)))


class PyFunction(_Function):
    """The qualified name of the function that the selected Python frame runs.

    Usage: $py_function()
    Example: break write if $_streq($py_function(), "train_step")"""

    def value(self) -> Any:
        one, index = selection.current()
        return text.safe(one.python()[index].qualname)


class PyLine(_Function):
    """The line where the selected Python frame stands; 0: unknown.

    Usage: $py_line()"""

    def value(self) -> Any:
        one, index = selection.current()
        return one.python()[index].line


FUNCTIONS = {"py_local": PyLocal, "py_repr": PyRepr, "py_address": PyAddress, "py_function": PyFunction, "py_line": PyLine}


def register() -> None:
    for name, function in FUNCTIONS.items():
        function(name)
