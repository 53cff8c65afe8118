"""The interpreters and targets of the live tests, each with every gdb."""

import os
import sys

import pytest

LIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live")
sys.path.append(LIVE)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import gdbs  # noqa: E402
import live_fixtures  # noqa: E402
import pythons  # noqa: E402
from live_fixtures import any_python, folders, pytest_report_header, start  # noqa: E402, F401

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
    live_fixtures.pytest_generate_tests(metafunc)
    if "gdb" in metafunc.fixturenames:
        found = gdbs.found()
        metafunc.parametrize("gdb", found or [None], ids=[gdb.id for gdb in found] or ["no-gdb"], scope="session")


@pytest.fixture(autouse=True)
def _needs_gdb(request):
    if "gdb" in request.fixturenames and request.getfixturevalue("gdb") is None:
        pytest.skip("no gdb from 12 on, with Python and ctypes")
