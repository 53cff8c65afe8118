"""The start-up hook: probing.pth calls `run` in every Python process that has PROBING or PROBE in its environment.

It must not disturb any program: whatever goes wrong is a line in the log (_log.py), nothing is printed, nothing raised.
"""

import os

from probing import _log, _rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

_ran = False


def _start(how):
    # type: (str) -> None
    try:
        from probing import _native

        _native.start(how)
    except Exception as error:
        _log.write("{}: no probe: {}".format(how, error))


def _start_in_forks(how):
    # type: (str) -> None
    """os.fork leaves the child without the probe's threads; it gets its own."""
    from probing import _native  # noqa: F401  its own hook comes first

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _start(how))
        return
    # CPython 3.6 has only multiprocessing's own list.
    from multiprocessing import util

    util.register_after_fork(_start, lambda start: start(how))


def _run_script(path):
    # type: (str) -> None
    """The SCRIPT of init:SCRIPT+MODE, before the program."""
    try:
        with open(path, "rb") as script:  # runpy wants sys.argv, which 3.6 and 3.7 do not have yet
            exec(compile(script.read(), path, "exec"), {"__name__": "__probing_init__", "__file__": path})
    except BaseException as error:  # sys.exit in it must not end the program, either
        _log.write("the script {} of PROBING ended with {}: {}".format(path, type(error).__name__, error))


def _apply(value):
    # type: (str) -> None
    program = _rules.current()
    decision = _rules.decide(value, program)
    if not decision.keep:
        for name in ("PROBING", "PROBE"):
            os.environ.pop(name, None)
    if decision.complaint:
        _log.write(decision.complaint)
    how = "PROBING=" + value
    if decision.forked:
        _start_in_forks(how)
    if decision.start:
        _start(how)
        if decision.init:
            _run_script(decision.init)


def run():
    # type: () -> None
    global _ran
    name = _rules.wanted(os.environ)
    if _ran or name is None or os.geteuid() != os.getuid():
        return
    _ran = True
    try:
        _apply(os.environ[name])
    except Exception as error:
        _log.write("start-up: {}: {}".format(type(error).__name__, error))
