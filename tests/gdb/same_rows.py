"""The rows of one stopped process as each way to look at it tells them: itself, gdb, gdb's core, the kernel's, a snapshot."""

import glob
import json
import os
import re
import signal

from support import pythons
from support.target import DEADLINE, query

# What the statement must tell alike, however the process is looked at.
EVERYWHERE = {
    "stacks": "SELECT {} FROM python.backtrace(1)".format(", ".join(
        "pid interpreter thread_id os_thread_id thread_name depth frame_type func qualname file module lineno column end_line "
        "end_column first_line ip is_entry guessed locals gil_state unstable error".split())),
    "locals": "SELECT * FROM python.locals",
    "threads": "SELECT pid, interpreter, thread_id, os_thread_id, thread_name, gil_state, gc, frames, func, file, lineno FROM python.threads",
    "interpreters": "SELECT * FROM python.interpreters",
    "exceptions": "SELECT * FROM python.exception",
}
# A snapshot leaves these out.
WHOLE_MEMORY = {
    "modules": "SELECT * FROM python.modules",
    "objects": "SELECT * FROM python.objects ORDER BY type, count",
}
STATEMENTS = dict(EVERYWHERE, **WHOLE_MEMORY)

# Runs inside gdb.
IN_GDB = ("python import json; from probing_gdb import sql; told = {{name: [] for name in {0!r}}}; "
          "[sql.query(statement, lambda names, row: told[name].append(dict(zip(names, row))) if row else None) "
          "for name, statement in {0!r}.items()]; print(json.dumps(told))").format(STATEMENTS)


def of(target, statements=STATEMENTS):
    """The rows as `probing` tells them."""
    return {name: query(target, statement) for name, statement in statements.items()}


def kernel_dumps_here():
    with open("/proc/sys/kernel/core_pattern") as pattern:
        return bool(re.match(r"core(\.%p)?\n$", pattern.read()))


def dumping(python, folder):
    """The interpreter, so started that the kernel writes its core into folder."""
    return pythons.Python(["env", "-C", str(folder), "prlimit", "--core=unlimited"], python.executable, python.version, python.how,
                          python.root, python.variables)


def dies(target, folder):
    """The core that the kernel writes of it; None: it writes them elsewhere."""
    os.kill(target.pid, signal.SIGSEGV)
    target.child.wait(DEADLINE)
    found = glob.glob(os.path.join(str(folder), "core*"))
    return found[0] if found else None


def of_gdb(text):
    """The rows that IN_GDB wrote."""
    return json.loads(text)
