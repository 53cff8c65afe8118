"""Fixtures of all tests: an interpreter, and target programs that run under one.

pytest puts this folder on sys.path, so a test imports what tests share by `from support import ...`, and what only the
tests of its own folder share by its name.
"""

import faulthandler
import os
import shutil
import signal
import sys
import tempfile

import pytest

pytest.register_assert_rewrite("support")

from support import pythons, waits  # noqa: E402
from support import target as target_module  # noqa: E402

waits.bound()

LIMIT = float(os.environ.get("PROBING_TEST_LIMIT", 0))
"""Seconds that each of a test's setup, call and teardown may take; 0 for no limit."""


HOMES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def own_homes(config):
    """Nothing of this user's is used, as the bus in ~/.config/probing, and nothing is left there."""
    before = {name: os.environ.get(name) for name in HOMES}
    folder = tempfile.mkdtemp(prefix="probing-home-")

    def restore():
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(restore)
    for name in HOMES:
        os.environ[name] = os.path.join(folder, name)
        os.mkdir(os.environ[name], 0o700)


def pytest_configure(config):
    own_homes(config)
    # When the time for the file is over: where all threads are, on the real standard error.
    faulthandler.register(signal.SIGTERM, file=os.dup(sys.__stderr__.fileno()), chain=True)


def bounded():
    """Fail what goes on for longer than LIMIT, in the thread that runs it."""
    def late(number, frame):
        pytest.fail("took longer than {:.0f} s".format(LIMIT))

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    yield from bounded()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    yield from bounded()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    yield from bounded()


def pytest_report_header(config):
    root = pythons.newer_root()
    return ["interpreters: " + (", ".join(python.id for python in pythons.found()) or "none"),
            "newer interpreters: " + (root or "none (tests/newer-pythons.sh DIR makes a root with them, "
                                              "PROBING_NEWER_ROOT=DIR names it)")]


@pytest.fixture(scope="session")
def any_python():
    """One interpreter, for what does not depend on its version; of this root where there is one."""
    found = [python for python in pythons.found() if not python.container]
    if not found:
        pytest.skip("no interpreter to look at")
    middle = len(found) // 2
    return next((python for python in found[middle::-1] + found[middle:] if not python.root), found[middle])


@pytest.fixture(scope="session")
def folders():
    """Where the target programs lie, by root folder: ({root: folder on this side}, {root: as the target sees it})."""
    made = {}

    def of(python):
        if python.root is None:
            return target_module.TARGETS, target_module.TARGETS
        if python.root not in made:
            inner = "/tmp/probing-tests-{}".format(os.getpid())
            made[python.root] = (target_module.copy_targets(python.root + inner), inner)
        return made[python.root]

    yield of
    for outside, _ in made.values():
        shutil.rmtree(outside, ignore_errors=True)


@pytest.fixture
def start(folders):
    """start(python, program, *args): a target that is ready; ended with the test."""
    started = []

    def begin(python, program, *args, **options):
        outside, inner = folders(python)
        target = target_module.Target(python, program, args, folder=options.pop("folder", inner), **options)
        started.append(target)
        return target

    yield begin
    for target in started:
        target.end()
