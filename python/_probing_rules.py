"""Which processes PROBING (or the older PROBE) means: the value's forms, and what program this process runs.

Nothing here has an effect; the start-up hook (_probing_hook.py) acts on what `decide` answers.  At the time of the hook sys.argv
is absent (CPython 3.6, 3.7) or still holds "-m" instead of the module, so the command line is read as the kernel has it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

# The interpreter's own options that take a value, attached or as the next word (Python/getopt.c, initconfig.c).
VALUED = "WXQ"
VALUED_LONG = ("--check-hash-based-pycs",)
# Options that end the interpreter's part of the command line.
FINAL = {"m": "module", "c": "command"}

OFF = ("", "0", "false", "no", "off")
THIS = ("1", "followed", "true", "yes", "on")
NESTED = ("2", "nested")

# Programs that only start the ones that are meant; the variable passes through them untouched.
LAUNCHER_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.distributed.elastic.multiprocessing.subprocess_handler",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
    "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
    "horovod.runner.launch",
    "ray.scripts.scripts",
)
LAUNCHER_SCRIPTS = ("torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun", "ray")
# Helpers of the standard library that serve another process, by what is in their -c text.
TRACKERS = (
    "from multiprocessing.resource_tracker import",
    "from multiprocessing.semaphore_tracker import",
    "from multiprocessing.forkserver import",
)
FORKSERVER = TRACKERS[-1]


class Program(object):
    """What a Python process runs."""

    def __init__(self, kind, name, args):
        # type: (str, str, List[str]) -> None
        self.kind = kind  # "script", "module", "command", "other" (interactive, standard input, embedded)
        self.name = name  # path of the script, name of the module, text of the command, else the executable
        self.args = args  # the program's own

    @property
    def script(self):
        # type: () -> str
        """Base name of the script; of a module the last part of its name, as a file name."""
        if self.kind == "script":
            return os.path.basename(self.name.rstrip("/"))
        return self.name.rpartition(".")[2] + ".py" if self.kind == "module" else ""

    @property
    def launcher(self):
        # type: () -> bool
        if self.kind == "module":
            return self.name in LAUNCHER_MODULES
        if self.kind != "script":
            return False
        if self.script in LAUNCHER_SCRIPTS:
            return True
        path = self.name.replace(os.sep, ".")
        return any(path.endswith("." + module + ".py") for module in LAUNCHER_MODULES)

    @property
    def tracker(self):
        # type: () -> bool
        return self.kind == "command" and any(tracker in self.name[:200] for tracker in TRACKERS)

    @property
    def forkserver(self):
        # type: () -> bool
        return self.kind == "command" and FORKSERVER in self.name[:200]

    @property
    def ours(self):
        # type: () -> bool
        """The tool itself, started through Python."""
        return (self.kind == "module" and self.name == "probing") or (
            self.kind == "script" and self.script == "probing"
        )


def parse(line):
    # type: (List[str]) -> Program
    """The program of an interpreter's command line."""
    words = iter(line[1:])
    for word in words:
        if word.startswith("--"):
            if word in VALUED_LONG:
                next(words, None)
            continue
        if word == "-" or not word.startswith("-"):
            kind = "other" if word == "-" else "script"
            return Program(kind, word, list(words))
        for at, letter in enumerate(word[1:], 1):
            if letter in FINAL:
                name = word[at + 1:] or next(words, "")
                return Program(FINAL[letter], name.strip() if letter == "m" else name.lstrip(), list(words))
            if letter in VALUED:
                if at + 1 == len(word):
                    next(words, None)
                break
    return Program("other", line[0] if line else "", [])


def command_line():
    # type: () -> Optional[List[str]]
    """This process's words; None where Python is embedded in another program."""
    words = getattr(sys, "orig_argv", None)
    if words is not None:
        return list(words) if len(words) > 0 and words[0] else None
    with open("/proc/self/cmdline", "rb") as line:
        words = [os.fsdecode(word) for word in line.read().split(b"\0")[:-1]]
    return words if words and "python" in os.path.basename(words[0]).lower() else None


def current():
    # type: () -> Program
    words = command_line()
    return Program("other", sys.executable or "", []) if words is None else parse(words)


class Decision(object):
    """What the hook is to do."""

    def __init__(self):
        # type: () -> None
        self.start = False
        self.keep = True  # leave the variable to children
        self.forked = False  # start in forked children, too
        self.init = None  # type: Optional[str]
        self.complaint = None  # type: Optional[str]


def _matches(pattern, program):
    # type: (str, Program) -> bool
    import re

    words = [program.name, program.script] + program.args
    words.append(" ".join([program.name] + program.args))
    found = re.compile(pattern)
    return any(found.search(word) for word in words)


def _is_mode(value):
    # type: (str) -> bool
    word = value.strip().lower()
    return word in OFF + THIS + NESTED or word.startswith("regex:") or (word.endswith(".py") and "/" not in word)


def _split(text):
    # type: (str) -> tuple
    """SCRIPT and MODE of init:SCRIPT+MODE; both may have a "+" of their own."""
    at = text.find("+")
    while at >= 0:
        if _is_mode(text[at + 1:]):
            return text[:at], text[at + 1:]
        at = text.find("+", at + 1)
    return text, "1"


def decide(value, program):
    # type: (str, Program) -> Decision
    """What a value of the variable means for a program."""
    decision = Decision()
    value = value.strip()
    if value.startswith("init:"):
        decision.init, value = _split(value[len("init:"):])
    word = value.lower()
    if word in OFF:
        return decision
    if program.launcher or program.ours or program.tracker:
        decision.forked = program.forkserver and word in NESTED
        return decision
    if word in THIS:
        decision.start, decision.keep = True, False
    elif word in NESTED:
        decision.start = decision.forked = True
    elif word.startswith("regex:"):
        try:
            decision.start = _matches(value[len("regex:"):], program)
        except Exception as error:  # a pattern that does not compile
            decision.complaint = "the pattern of PROBING={!r} is wrong: {}".format(value, error)
    elif "/" in value:
        decision.complaint = "PROBING={!r} is none of 0, 1, 2, regex:PATTERN, the base name of a script".format(value)
    else:
        decision.start = value == program.script
    return decision
