"""The interpreters that the gdb tests run on, each with every gdb."""

import os

import pytest

from support import gdbs, pythons

# PROBING_GDB_LONG=1: each gdb on each interpreter.  Without it every interpreter meets one of the gdbs, in turn.
LONG = bool(os.environ.get("PROBING_GDB_LONG"))


def pairs():
    found = gdbs.found() or [None]
    chosen = [python for python in pythons.found() if not python.container and "jit" not in python.how]
    return [(python, found[i % len(found)]) for i, python in enumerate(chosen)]


def pytest_generate_tests(metafunc):
    if {"python", "gdb"} <= set(metafunc.fixturenames) and not LONG:
        chosen = pairs()
        metafunc.parametrize(("python", "gdb"), chosen, scope="session",
                             ids=["{}-{}".format(python.id, gdb.id if gdb else "no-gdb") for python, gdb in chosen])
        return
    pythons.parametrize(metafunc)
    if "gdb" in metafunc.fixturenames:
        found = gdbs.found()
        metafunc.parametrize("gdb", found or [None], ids=[gdb.id for gdb in found] or ["no-gdb"], scope="session")


@pytest.fixture(autouse=True)
def _needs_gdb(request):
    if "gdb" in request.fixturenames and request.getfixturevalue("gdb") is None:
        pytest.skip("no gdb from 12 on, with Python and ctypes")
