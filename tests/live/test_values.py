"""Values as the reader shows them against what the interpreter itself says: object_dump on tests/targets/values.py."""

import ast
import json
import os
import subprocess
import sys

import pytest

from support import pythons
from support.target import DEADLINE

DUMP = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "live", "object_dump")
LIMIT = 4096
LITERAL_DEPTH = 90  # what every parser reads back


def dump(pid, *limits):
    done = subprocess.run([DUMP, str(pid), *map(str, limits)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=DEADLINE, stdin=subprocess.DEVNULL, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line for line in lines if "name" in line}


def differences(target, told):
    for truth in target.truth:
        line = told[truth["name"]]
        text = line.get("repr")
        if text is None:
            yield truth["name"], line
        elif "text" in truth and text != truth["text"]:
            yield truth["name"], text, truth["text"]
        elif "begins" in truth and not (text.startswith(truth["begins"]) and text.endswith("…")):
            yield truth["name"], text, truth["begins"]
        elif len(text) > LIMIT or "<unreadable>" in text:
            yield truth["name"], len(text), text


def check(target):
    told = dump(target.pid)
    assert list(differences(target, told)) == []
    assert set(told) >= {truth["name"] for truth in target.truth}
    for truth in target.truth:
        if truth["literal"] and truth["text"].count("[") < LITERAL_DEPTH:
            ast.literal_eval(told[truth["name"]]["repr"])
    return told


def test_values(start, python):
    target = start(python, "values.py").settle()
    told = check(target)
    assert told["with_dict"]["type"] == "__main__.WithDict"
    assert told["inner"]["type"] == "__main__.Outer.Inner"
    assert told["true"]["type"] == "bool"
    assert told["deque"]["type"] == "collections.deque"


def test_random_values(start, python):
    """A thousand nested values made by chance."""
    check(start(python, "random_values.py", 1, 1000).settle())


def test_limits(start, python):
    """However short, a text is a beginning of the whole and says that it was cut."""
    target = start(python, "values.py").settle()
    whole = dump(target.pid)
    for characters in (1, 2, 3, 7, 30, 300):
        for name, line in dump(target.pid, characters).items():
            text, full = line["repr"], whole[name]["repr"]
            assert len(text) <= characters
            assert text == full or text.endswith("…"), name
            if not full.startswith("0x") and not full.startswith("-0x") and name not in ("everything", "mutated"):
                assert full.startswith(text.rstrip("…").rstrip("'\"")) or name.startswith("str"), (name, text)
    shallow = dump(target.pid, 0, 2, 3)
    assert shallow["list"]["repr"] == "[1, 'two', 3.0, …]…"
    assert shallow["shared"]["repr"] == "[[1], [1], {'a': …}]…"
    assert shallow["dict_ints"]["repr"] == "{0: 0, 1: 1, 2: 2, …}…"
    assert shallow["tuple_one"]["repr"] == "(1,)"


def test_mutated(start, python):
    """A dict that another thread changes: whatever is shown, in time and within bounds."""
    target = start(python, "values.py", "mutate")
    for _ in range(20):
        line = dump(target.pid)["mutated"]
        assert len(line["repr"]) <= LIMIT


def modules_of(name):
    """Interpreters that have a package."""
    found = [python for python in pythons.found() if python.root is None and subprocess.run(
        python.command("-c", "import " + name), stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL).returncode == 0]
    for extra in filter(None, [os.environ.get("PROBING_TORCH_PYTHON"), sys.executable]):
        if subprocess.run([extra, "-c", "import " + name], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL).returncode:
            continue
        told = pythons.ask([extra])
        found.append(pythons.Python([], extra, told[0], "torch"))
    return found


@pytest.mark.parametrize("package", ["numpy", "torch"])
def test_arrays(start, package):
    found = modules_of(package)
    if not found:
        pytest.skip("no interpreter has " + package)
    for python in found:
        check(start(python, "values.py", package).settle())
