"""Exceptions of the types whose str() is their own, each raised while the one before is being handled."""

import json
import os
import sys


class Missing(KeyError):
    """A class of one's own that says what its base does."""


def number(text):
    return int(text)


FAULTS = [
    lambda: open("/nonexistent/file"),
    lambda: os.rename("/nonexistent/a", "/nonexistent/b"),
    lambda: os.stat(b"/nonexistent/bytes"),
    lambda: {}["key"],
    lambda: {}[(1, "two")],
    lambda: {}[0],
    lambda: number("x"),
    lambda: [][1],
    lambda: compile("a b", "/folder/name.py", "exec"),
    lambda: __import__("nosuchmodule"),
]
RAISED = [Missing("mine"), KeyError("two", 2), KeyError(), OSError("alone"), OSError(2, "two"), OSError(2, "three", None),
          ValueError("a", 2), ValueError(5), RuntimeError(), SyntaxError(), SyntaxError("only a text")]
if hasattr(__builtins__, "ExceptionGroup"):
    RAISED += [ExceptionGroup("many", [ValueError(1), TypeError(2)]), BaseExceptionGroup("one", [KeyboardInterrupt()])]  # noqa: F821


def throw(error):
    raise error


def down(faults, told):
    if not faults:
        print(json.dumps({"told": told}))
        print("ready")
        sys.stdout.flush()
        sys.stdin.readline()
        return
    try:
        faults[0]()
    except BaseException as error:
        down(faults[1:], [{"type": type(error).__name__, "message": str(error)}] + told)


down(FAULTS + [lambda error=error: throw(error) for error in RAISED], [])
