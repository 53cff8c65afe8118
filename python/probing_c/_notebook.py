"""Notebooks that look at another process: `%load_ext probing`, then `%%probing PID` and `%probing_query PID SQL`."""

import os
import shutil
import subprocess
import sys

from probing_c._native import FOLDER, ProbeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional


def tool():
    # type: () -> str
    """The packaged tool, else the one on PATH."""
    packaged = os.path.join(FOLDER, "probing")
    found = packaged if os.access(packaged, os.X_OK) else shutil.which("probing")
    if not found:
        raise ProbeError("the tool `probing` is neither in this package nor on PATH")
    return found


def evaluate(target, code, say):
    # type: (str, str, Callable[[str, str], None]) -> int
    """Run code in the target; say("stdout" or "stderr", text) as it comes.  The tool's status; an interrupt goes to the code."""
    import threading

    child = subprocess.Popen([tool(), "-t", target, "eval", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)

    def pass_on(pipe, name):
        # type: (Any, str) -> None
        for line in iter(pipe.readline, b""):
            lines.append((name, line.decode("utf-8", "replace")))
            come.set()

    lines = []  # type: List[Any]
    come = threading.Event()
    readers = [threading.Thread(target=pass_on, args=(pipe, name), daemon=True)
               for pipe, name in ((child.stdout, "stdout"), (child.stderr, "stderr"))]
    for reader in readers:
        reader.start()
    assert child.stdin
    try:
        child.stdin.write(code.encode("utf-8"))
        child.stdin.close()
    except BrokenPipeError:
        pass
    while any(reader.is_alive() for reader in readers) or lines:
        try:
            if not lines:
                come.wait(0.1)
            come.clear()
            while lines:
                say(*lines.pop(0))
        except KeyboardInterrupt:
            child.send_signal(2)
    return child.wait()


def rows(target, sql):
    # type: (str, str) -> List[Dict[str, Any]]
    import json

    done = subprocess.run([tool(), "-t", target, "query", "-f", "json", "--", sql], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise ProbeError(done.stderr.decode("utf-8", "replace").strip())
    told = json.loads(done.stdout.decode("utf-8", "replace") or "[]")
    return list(told)


class Table:
    """Rows where pandas is not installed: a list, shown as a table."""

    def __init__(self, told):
        # type: (List[Dict[str, Any]]) -> None
        self.rows = told

    def __len__(self):
        # type: () -> int
        return len(self.rows)

    def __iter__(self):
        # type: () -> Any
        return iter(self.rows)

    def __repr__(self):
        # type: () -> str
        names = list(self.rows[0]) if self.rows else []
        return "\n".join("\t".join(str(value) for value in line) for line in [names] + [list(row.values()) for row in self.rows])

    def _repr_html_(self):
        # type: () -> str
        from html import escape

        names = list(self.rows[0]) if self.rows else []
        head = "".join("<th>{}</th>".format(escape(str(name))) for name in names)
        body = "".join("<tr>{}</tr>".format("".join("<td>{}</td>".format(escape("" if value is None else str(value))) for value in row.values()))
                       for row in self.rows)
        return "<table><tr>{}</tr>{}</table>".format(head, body)


def frame(told):
    # type: (List[Dict[str, Any]]) -> Any
    """A pandas.DataFrame where pandas is installed, else a Table."""
    try:
        import pandas
    except ImportError:
        return Table(told)
    return pandas.DataFrame(told)


def _say(stream, text):
    # type: (str, str) -> None
    out = sys.stdout if stream == "stdout" else sys.stderr
    out.write(text)
    out.flush()


def load(ipython):
    # type: (Any) -> None
    """For %load_ext."""

    def cell(line, code):
        # type: (str, str) -> None
        """%%probing PID: run the cell in that process."""
        target = line.strip()
        if not target:
            raise ProbeError("%%probing needs a pid, or a part of a command line")
        evaluate(target, code, _say)

    def query(line):
        # type: (str) -> Any
        """%probing_query PID SQL: rows of that process's tables."""
        target, _, sql = line.strip().partition(" ")
        if not sql.strip():
            raise ProbeError("%probing_query needs a pid and SQL")
        return frame(rows(target, sql))

    ipython.register_magic_function(cell, "cell", "probing")
    ipython.register_magic_function(query, "line", "probing_query")
