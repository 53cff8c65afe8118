"""The start-up hook: probing_c.pth calls `run` in every Python process that has PROBING or PROBE in its environment, or that a
debugged process has started (PROBING_DEBUG_CHILDREN).

It must not disturb any program: whatever goes wrong is a line in the log (probing_c/_log.py), nothing is raised, and nothing printed
but that another project of this name is in the way (probing_c/_other.py).
Nor may it cost a process that is not meant: this file stands beside the package and needs nothing that a Python at its start
has not loaded; the rules come when they are asked, the package where a probe starts.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

AT_SECURE = 23  # getauxval(3)
_ran = False


def _is_shut():
    # type: () -> bool
    """Whether the environment must not lead this process: -I and -E say so, and rights that its caller does not have."""
    if sys.flags.ignore_environment or os.geteuid() != os.getuid() or os.getegid() != os.getgid():
        return True
    try:
        with open("/proc/self/auxv", "rb", 0) as vector:
            words = vector.read(4096)
    except PermissionError:  # such a process hides it
        return True
    except OSError:  # a root without /proc
        return False
    pairs = range(0, len(words) - 15, 16)
    return any(int.from_bytes(words[at:at + 8], sys.byteorder) == AT_SECURE and any(words[at + 8:at + 16]) for at in pairs)


def _words_of(pattern):
    # type: (str) -> Optional[List[str]]
    """What must stand somewhere for a pattern to match: "." stands for any letter; None: that is for re to know."""
    words = pattern.strip("^$").replace("\\.", ".").replace("[.]", ".").replace(".*", ".").split(".")
    plain = all(word.replace("_", "a").replace("-", "a").replace("/", "a").isalnum() for word in words if word)
    return words if plain else None


def _is_for_others(value):
    # type: (str) -> bool
    """Whether the command line shows it without the rules: a script's name or a plain pattern that it has not in it."""
    if value in ("", "0"):
        return True
    if value.startswith("regex:"):
        wanted = [_words_of(pattern) for pattern in value[6:].split("|")]
    elif value.endswith(".py") and "/" not in value and ":" not in value:
        wanted = [[value[:-3]]]  # of a module, too
    else:
        return False
    line = getattr(sys, "orig_argv", None)
    if line is None:  # before CPython 3.10
        with open("/proc/self/cmdline", "rb") as text_of_it:
            line = [os.fsdecode(text_of_it.read())]
    text = "\0".join(line) + "\0" + (sys.executable or "") + ".py"
    return all(words is not None and any(word not in text for word in words) for words in wanted)


def _complain(text):
    # type: (str) -> None
    try:
        from probing_c import _log

        _log.write(text)
    except KeyboardInterrupt:
        raise
    except BaseException:  # sys.exit in a file that is not ours any more
        pass


def _start(how):
    # type: (str) -> None
    try:
        from probing_c import _native

        _native.start(how)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _complain("{}: no probe: {}".format(how, str(error) or type(error).__name__))


def _collect():
    # type: () -> None
    """PROBING_STORE=on: the collector, in the background and no child of this process; where one runs, it ends at once."""
    if os.environ.get("PROBING_STORE", "").strip().lower() not in ("on", "1", "true", "yes"):
        return
    try:
        import subprocess

        from probing_c import _tool

        line = '"$0" collect --while-used </dev/null >/dev/null 2>&1 &'
        subprocess.call(["/bin/sh", "-c", line, _tool.path()], env=_tool._environment(), start_new_session=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _complain("PROBING_STORE: no collector: {}".format(str(error) or type(error).__name__))


def _other_is_here():
    # type: () -> bool
    """Both projects start by this variable: two probes in one process are worse than none, and the user must know."""
    from probing_c import _other

    return _other.warned("PROBING")


def _start_in_forks(how):
    # type: (str) -> None
    """os.fork leaves the child without the probe's threads; it gets its own."""
    from probing_c import _native  # noqa: F401  its own hook comes first

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
        _complain("the script {} of PROBING ended with {}: {}".format(path, type(error).__name__, error))


def _apply(value):
    # type: (str) -> None
    import _probing_rules as rules

    decision = rules.decide(value, rules.current())
    if not decision.keep:
        for name in ("PROBING", "PROBE"):
            os.environ.pop(name, None)
    if decision.complaint:
        _complain(decision.complaint)
    how = "PROBING=" + value
    if (decision.forked or decision.start) and _other_is_here():
        return
    if decision.forked:
        _start_in_forks(how)
    if decision.start:
        _start(how)
        _collect()
        if decision.init:
            _run_script(decision.init)


def run():
    # type: () -> None
    global _ran
    value = os.environ.get("PROBING", os.environ.get("PROBE"))
    debugger = os.environ.get("PROBING_DEBUG_CHILDREN")
    if _ran or (value is None and debugger is None) or _is_shut():
        return
    _ran = True
    try:
        if value is not None and not _is_for_others(value.strip()):
            _apply(value)
        if debugger is not None:
            import _probing_birth

            _probing_birth.run(debugger)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        _complain("start-up: {}: {}".format(type(error).__name__, error))
