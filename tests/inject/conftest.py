"""The interpreters that the injection tests run on."""

import os

from support import pythons

# PROBING_INJECT_LONG=1: all on every interpreter.  Without it what goes into the details of evaluations, which depend on the
# version, runs on one of each version, the first (3.11: without libpython), and on the newest with its JIT switched on.
LONG = bool(os.environ.get("PROBING_INJECT_LONG"))
OF_EACH_VERSION = {"test_eval"}


def chosen(module):
    found = pythons.found()
    if LONG or module not in OF_EACH_VERSION:
        return found
    first = {}
    for python in found:
        if not python.container and "jit" not in python.how:
            first.setdefault(python.minor, python)
    return list(first.values()) + [python for python in found if "jit" in python.how][-1:]


def pytest_generate_tests(metafunc):
    pythons.parametrize(metafunc, lambda: chosen(metafunc.module.__name__))
