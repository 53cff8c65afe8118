"""rules: which files count as user code, by path or module, in place of what justMyCode says."""

import pytest

from client import Failed
from debuggee import resume, stack, stopped, top

PROGRAM = """import sys
sys.path.insert(0, {folder!r})
import rules_made.inner as inner
def call():
    return inner.work()
call()  # the call
raise RuntimeError("at the end")
"""
MODULE = "def work():\n    return 1\n"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "lib" / "rules_made").mkdir(parents=True)
    (tmp_path / "lib" / "rules_made" / "__init__.py").write_text("")
    (tmp_path / "lib" / "rules_made" / "inner.py").write_text(MODULE)
    path = tmp_path / "rules_program.py"
    path.write_text(PROGRAM.format(folder=str(tmp_path / "lib")))
    return path


def stepped_in(launch, python, program, **settings):
    """The name of the function that a step into the line of call() ends in."""
    session, _ = launch(python, lambda one: one.request("setBreakpoints", {
        "source": {"path": str(program)}, "breakpoints": [{"line": 5}]}), program=str(program), **settings)
    body = stopped(session, "breakpoint")
    session.request("stepIn", {"threadId": body["threadId"]})
    body = stopped(session, "step")
    frames = stack(session, body["threadId"])
    own = not any(frame.get("presentationHint") == "subtle" for frame in frames if frame["name"].endswith("work"))
    name = frames[0]["name"].split(".")[-1]
    resume(session, body["threadId"])
    session.event("terminated")
    return name, own


@pytest.mark.parametrize("rules, name", [
    ([], "work"),
    ([{"module": "rules_made", "include": False}], "<module>"),
    ([{"module": "rules_mad", "include": False}], "work"),
    ([{"path": "**/rules_made/*.py", "include": False}], "<module>"),
    ([{"path": "**/rules_made/?.py", "include": False}], "work"),
    ([{"path": "LIB", "include": False}], "<module>"),
    ([{"path": "LIB", "include": False}, {"path": "LIB/rules_made/inner.py", "include": True}], "work")])
@pytest.mark.parametrize("just", [True, False])
def test_steps(launch, python, program, rules, name, just):
    """A step ends in no file that a rule excludes; the longest path decides."""
    if python.minor not in ((3, 8), (3, 13)):
        pytest.skip("the decision is the same")
    rules = [dict(one, path=one["path"].replace("LIB", str(program.parent / "lib"))) if "path" in one else one for one in rules]
    assert stepped_in(launch, python, program, rules=rules, justMyCode=just)[0] == name


def test_a_library_that_is_included(launch, any_python, tmp_path):
    """justMyCode steps over what lies in site-packages, unless a rule includes it."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "rules_library.py").write_text(MODULE)
    path = tmp_path / "uses.py"
    path.write_text(PROGRAM.format(folder=str(folder)).replace("rules_made.inner", "rules_library"))
    assert stepped_in(launch, any_python, path) == ("<module>", True)
    assert stepped_in(launch, any_python, path, rules=[{"module": "rules_library", "include": True}]) == ("work", True)


@pytest.mark.parametrize("exclude", [True, False])
def test_exceptions(launch, python, program, exclude):
    """An exception that leaves excluded files alone does not stop."""
    if python.minor not in ((3, 8), (3, 13)):
        pytest.skip("the decision is the same")
    rules = [{"path": "**/rules_program.py", "include": not exclude}]
    session, _ = launch(python, lambda one: one.request("setExceptionBreakpoints", {"filters": ["raised", "uncaught"]}),
                        program=str(program), rules=rules)
    for _ in range(0 if exclude else 2):
        body = stopped(session, "exception")
        assert top(session, body["threadId"])["line"] == 7
        resume(session, body["threadId"])
    session.event("terminated")
    assert len(session.seen("stopped")) == (0 if exclude else 2)


@pytest.mark.parametrize("rules", ["x", [1], [{"path": "x"}], [{"include": True}], [{"path": 1, "include": True}]])
def test_rules_that_cannot_be_read(client, debuggee, any_python, rules):
    with pytest.raises(Failed, match="rules must be an array"):
        client().attach(debuggee(any_python).pid, rules=rules)
