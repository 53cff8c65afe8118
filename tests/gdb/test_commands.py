"""The commands in batch mode on every CPython (conftest.py: with which gdb): live, and of the core that gdb's own gcore
makes of it; and the rows that it, the core, the kernel's core and a snapshot tell."""

import os
import re

import pytest

import same_rows
from support import gdbs

COMMANDS = {
    "bt": "py-bt",
    "all": "py-backtrace -all",
    "locals-bt": "py-bt -thread -locals -python",
    "two": "py-bt -thread -python 2",
    "locals": "py-locals",
    "threads": "py-threads",
    "gil": "py-gil",
    "plain": "bt",
    "full": "bt full",
    "raw": "bt -no-filters",
    "rust": "with language rust -- bt",
    "language": "show language",
    "list": "py-list",
    "function": "print $py_function()",
    "line": "print $py_line()",
    "truth": 'print $py_local("step") == 7',
    "up": "py-up",
    "level": "python print(gdb.selected_frame().name())",
    "up-locals": "py-locals",
    "step": 'print $py_local("step")',
    "number": 'print $py_local("model.settings[\'rate\']") * 2',
    "text": 'print $py_repr("model.layers[1].names[-1]")',
    "object": "py-print model.layers[0].names[1]",
    "deep": "py-print model.layers[1].width",
    "key": "py-print model.settings[3]",
    "global": "py-print LIMIT",
    "module": "py-print sys.byteorder",
    "builtin": "py-print len",
    "parts": "py-print -parts model.layers[0].names",
    "none": "py-print nothing_of_this_name",
    "attribute": "py-print model.nothing",
    "index": "py-print model.layers[9]",
    "call": "py-print model.method()",
    "garbage": "py-print 0x10",
    "unknown-option": "py-bt -nonsense",
    "unknown-too": "py-print -nonsense model",
    "no-argument": "print $py_local()",
    "void": "py-print $nothing",
    "deep-path": "py-print " + "a." * 5000 + "a",
    "character": "print $py_local('x')",
    "no-lines": "py-list 5,3",
    "no-command": "probing nonsense",
    "down": "py-down",
    "down-more": "py-down",
    "down-end": "py-down 100",
    "up-far": "py-up 100",
    "down-far": "py-down 100",
    "frame-2": "py-frame 2",
    "frame": "py-frame",
    "frame-far": "py-frame 99",
    "frame-0": "py-frame 0",
    "bt-full": "py-bt-full",
    "sql": "probing query SELECT func, lineno FROM python.backtrace WHERE func = 'inner'",
    "sql-quoted": 'probing query "SELECT count(*) AS n FROM python.threads"',
    "sql-wrong": "probing query SELEKT 1",
    "tables": "probing tables",
    "table": "probing tables python.backtrace",
    "complete-name": "complete py-print va",
    "complete-global": "complete py-print LI",
    "complete-attribute": "complete py-print MODEL.la",
    "complete-option": "complete py-bt -lo",
    "complete-table": "complete probing tables python.b",
    "help": "help py-print",
    "help-all": "help probing",
    "help-function": "help function py_local",
    "address": 'print (long)$py_address("MODEL") == (long)$py_address("MODEL")',
}
LIVE = {
    "rows": same_rows.IN_GDB,
    "gcore": "generate-core-file {core}",
    "snapshot": "probing snapshot {snapshot}",
    "eval": "probing eval LIMIT + 1",
    "eval-local": "probing eval step, text",
    "eval-rust": "with language rust -- probing eval LIMIT + 2",
    "eval-print": "probing eval print('printed'); x = 3; print(x)",
    "eval-raises": "probing eval 1 / 0",
    "eval-after": "py-bt -thread -python",
}


class Sessions:
    """What every command wrote, once for each interpreter, gdb and kind of target; and everybody's rows."""

    def __init__(self, start, folder):
        self.start = start
        self.folder = folder
        self.made = {}

    def of(self, python, gdb, kind):
        key = (python.id, gdb.id)
        if key not in self.made:
            folder = self.folder / "{}-{}".format(*key)
            folder.mkdir()
            target = self.start(python, "debugged_by_gdb.py", folder)
            try:
                self.made[key] = self._all(target.settle(), gdb, folder)
            finally:
                target.end()
        found = self.made[key][kind]
        if found is None:
            pytest.skip("gcore writes zeros for parts of a stack in another root: gdb shows them so, too")
        return found

    def _all(self, target, gdb, folder):
        files = {name: str(folder / name) for name in ("core", "snapshot")}
        # eval runs code, so it comes last: the core and the snapshot are of the stop before.
        commands = {name: command if name == "rows" else command.format(**files)
                    for name, command in list(COMMANDS.items()) + list(LIVE.items())}
        rows = {"process": same_rows.of(target.pid)}
        live = dict(zip(commands, gdb.batch(*commands.values(), before=gdbs.attach(target))))
        rows["gdb"] = same_rows.of_gdb(live["rows"])
        rows["snapshot"] = same_rows.of(files["snapshot"], same_rows.EVERYWHERE)
        dead = None
        if not target.python.root:
            commands = dict(COMMANDS, rows=same_rows.IN_GDB)
            executable = os.readlink("/proc/{}/exe".format(target.pid))
            dead = dict(zip(commands, gdb.batch(*commands.values(), before=[executable, files["core"]])))
            rows["gdb of a core"] = same_rows.of_gdb(dead["rows"])
            rows["core"] = same_rows.of(files["core"])
            os.remove(files["core"])
        # A stripped interpreter's own functions have no names.
        known = {"pid": target.pid, "sort": ["sort"] if target.python.how.startswith("shared") else []}
        later = self._by_the_kernel(target, folder)
        for told in filter(None, (live, dead)):
            told.update(known)
        return {"live": live, "core": dead, "rows": rows, "later": later}

    def _by_the_kernel(self, target, folder):
        """The rows of the process after gdb left it, and of the core of its end."""
        if target.python.root or not same_rows.kernel_dumps_here():
            return None
        rows = {"process": same_rows.of(target.settle().pid)}
        core = same_rows.dies(target, folder)
        rows["kernel's core"] = same_rows.of(core)
        os.remove(core)
        return rows


@pytest.fixture(scope="session")
def sessions(folders, tmp_path_factory):
    from support import target as live

    def begin(python, program, folder):
        outside, inner = folders(python)
        return live.Target(python if python.root else same_rows.dumping(python, folder), program, folder=os.path.abspath(inner))

    return Sessions(begin, tmp_path_factory.mktemp("gdb"))


@pytest.fixture(params=["live", "core"])
def told(request, sessions, python, gdb):
    return sessions.of(python, gdb, request.param)


STACK = ["inner", "called_back", r"middle\.<locals>\.<lambda>|<lambda>", "middle", "main", "<module>"]


def in_order(patterns, text):
    at = 0
    for pattern in patterns:
        match = re.compile(pattern).search(text, at)
        assert match, "no {} behind {!r} in\n{}".format(pattern, text[:at][-80:], text)
        at = match.end()


def test_backtrace(told):
    in_order([r"\* Thread {} \"MainThread\"".format(told["pid"])] + [r"#\d+ +(\S+\.)?({}) \(debugged_by_gdb".format(name) for name in STACK]
             + [r"Thread \d+ \"sleeper\"", "sleeping"], told["bt"])
    # Native frames stand among them: what waits for input, and sorted() between Python's frames.
    in_order(["read", "inner", "<lambda>"] + told["sort"] + ["middle"], told["bt"])
    assert "_PyEval_EvalFrameDefault" not in told["bt"]
    assert len(re.findall(r"#\d", told["two"])) == 2 and "more frames follow" in told["two"]
    in_order([r"#0 +inner", "step = 7", r"values = \[0, 1, 4, 9, 16\]", "big = {}".format(2 ** 80), "#1 ", "model = <"], told["locals-bt"])


def test_text_is_harmless(told):
    assert "\u202e" not in told["locals"] and "text = 'äöü\\u202e'" in told["locals"]


def test_plain_backtrace(told):
    """`bt` shows Python's frames in the place of the interpreter's."""
    in_order(["read", r"inner \(step=7, text=", r"called_back \(model=.*step=7"] + told["sort"] + ["middle", "main", "<module>"], told["plain"])
    assert "EvalFrame" not in told["plain"] and ("EvalFrame" in told["raw"] or not told["sort"])
    in_order(["inner", "values = ", "big = "], told["full"])
    # A frame of another language, such as an extension's, changes how gdb reads expressions.
    in_order(["inner", "called_back", "middle", "<module>"], told["rust"])
    assert "auto" in told["language"]


def test_selection(told):
    """py-up takes gdb's frame along, and py-down leads back."""
    assert '"inner"' in told["function"] and re.search(r"= 1\b|true", told["truth"])
    line = int(re.search(r"= (\d+)", told["line"]).group(1))
    assert re.search(r"> *{}  .*here it stands".format(line), told["list"])
    in_order(["#1 +called_back", "inner\\(step, label\\)"], told["up"])
    assert "EvalFrame" in told["level"] or not told["sort"]
    assert "label = " in told["up-locals"] and "values" not in told["up-locals"]
    assert re.search(r"#0 +inner", told["down"])
    assert "innermost" in told["down-more"] and "innermost" in told["down-end"]
    assert "<module>" in told["up-far"] and re.search(r"#0 +inner", told["down-far"])
    in_order([r"#2 +(middle|<lambda>)"], told["frame-2"])  # qualified names from 3.11 on
    assert told["frame"].strip().splitlines()[0] == told["frame-2"].strip().splitlines()[0]
    assert "there is no Python frame 99 (this thread has" in told["frame-far"] and re.search(r"#0 +inner", told["frame-0"])
    in_order(["inner", "values = ", "middle", "<module>"], told["bt-full"])


def test_print(told):
    assert told["step"].strip().endswith("= 7") and told["number"].strip().endswith("= 1")
    assert "'third'" in told["text"]
    for name, words in {"object": "= 'second'", "deep": "= 16", "key": "= 'three'", "global": "int at", "module": "'little'",
                        "builtin": "built-in function len"}.items():
        assert words in told[name], told[name]
    in_order(["list at", r"\[0\] = 'first'", r"\[2\] = 'third'"], told["parts"])


def test_errors_are_one_line(told):
    for name, words in {"none": "there is no nothing_of_this_name", "attribute": "no attribute nothing", "index": "2 elements",
                        "call": "nothing is evaluated", "garbage": "", "unknown-option": "Usage", "unknown-too": "Usage: py-print", "no-argument": "Usage: $py_local",
                        "void": "is not an address",
                        "deep-path": "too deep", "character": "in double quotes", "no-lines": "none from 5 to 3",
                        "no-command": "no `probing nonsense`"}.items():
        assert words in told[name] and len(told[name].strip().splitlines()) == 1, told[name]
    assert "syntax error" in told["sql-wrong"]
    assert not any("Traceback" in text for text in told.values() if isinstance(text, str))


def test_threads(told):
    in_order([r"Id +LWP +Name", r"\* +\d+ +{} +MainThread .*inner \(debugged_by_gdb".format(told["pid"]), "sleeper"], told["threads"])
    assert "Nobody holds the GIL" in told["gil"]


def test_query(told):
    assert re.search(r"^func +lineno\ninner +\d+\n\(1 row\)", told["sql"].strip())
    assert re.search(r"^n\n2\n\(1 row\)", told["sql-quoted"].strip())
    in_order(["python +backtrace", "system +process"], told["tables"])
    assert "lineno" in told["table"]


def test_completion_and_help(told):
    assert told["complete-name"].strip() == "py-print values" and told["complete-global"].strip() == "py-print LIMIT"
    assert "py-print MODEL.layers" in told["complete-attribute"]
    assert told["complete-option"].strip() == "py-bt -locals"
    assert "probing tables python.backtrace" in told["complete-table"]
    assert "Usage: py-print" in told["help"] and "\nUsage: $py_local" in told["help-function"]
    for name in ("backtrace", "query", "snapshot", "eval", "debug"):
        assert "probing " + name in told["help-all"]


def test_eval(sessions, python, gdb):
    told = sessions.of(python, gdb, "live")
    assert "running code in process {}".format(told["pid"]) in told["eval"] and told["eval"].strip().endswith("1001")
    assert told["eval-rust"].strip().endswith("1002")
    assert "(7, 'äöü\\u202e')" in told["eval-local"]
    assert told["eval-print"].strip().endswith("printed\n3")
    assert "ZeroDivisionError" in told["eval-raises"]
    in_order(STACK, told["eval-after"])


def test_same_rows(sessions, python, gdb):
    """Each way to look at the process told the same rows, value by value."""
    told = [sessions.of(python, gdb, "rows")]
    if not python.root and same_rows.kernel_dumps_here():
        told.append(sessions.of(python, gdb, "later"))
    assert len(told[0]) >= 3
    for rows in told:
        process = rows["process"]
        assert {row["func"] for row in process["stacks"]} >= {"inner", "sleeping"} and process["locals"] and process["objects"]
        for who in set(rows) - {"process"}:
            for name in rows[who]:
                assert rows[who][name] == process[name], (who, name)
