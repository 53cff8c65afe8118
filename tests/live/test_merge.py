"""Hard cases of merged stacks: running threads, compiled loops, trampolines, depth; and what must not show."""

import os
import re

import pytest

from support.compare import python_frames, same, same_frames
from support.target import backtrace, inner_tids

# What never shows: it only carries calls from one Python function to another.
MACHINERY = re.compile(r"_?PyEval_Eval|_PyEval_Vector|_?PyObject_(Call|Vectorcall|FastCall|MakeTpCall)|_PyFunction_"
                       r"|_TAIL_CALL_|method_vectorcall|cfunction_|slot_tp_|Py_RunMain|Py_BytesMain|pymain_|PyRun_")


def natives(entry):
    return [frame["name"] for frame in entry["frames"] if frame["kind"] == "native"]


def check_whole(entry):
    """Every frame is of a kind, none is broken, and none is machinery."""
    assert not [frame["name"] for frame in entry["frames"] if frame["kind"] not in ("python", "native")]
    assert not [name for name in natives(entry) if MACHINERY.match(name)]


def between(entry, inner, outer):
    """Names of the native frames between two Python functions."""
    names = [(frame["kind"], frame["name"]) for frame in entry["frames"]]
    first = names.index(("python", inner))
    last = names.index(("python", outer), first)
    return [name for kind, name in names[first:last] if kind == "native"]


def test_callbacks(start, python):
    """C functions stand between the Python functions that they call and are called by."""
    target = start(python, "callbacks.py").settle()
    entry = backtrace(target.pid, "--native")[0]
    check_whole(entry)
    same_frames(python_frames(entry), target.truth[0]["frames"])
    assert entry["frames"][0]["kind"] == "native", "it waits in a system call"
    if python.how != "shared":
        return  # stripped: its own functions have no names
    joined = {pair: " ".join(between(entry, *pair)) for pair in
              [("bound", "key"), ("key", "main"), ("element", "bound"), ("attribute", "<lambda>")]}
    assert "partial" in joined["bound", "key"]
    assert "map_next" in joined["key", "main"]
    # builtin_sorted() itself is gone by then where list(map()) runs first: the list is made in it
    assert "list" in joined["key", "main"]
    assert re.search("xml|expat|Expat|doProlog|doContent|startElement|parse", joined["element", "bound"], re.I)


def test_outermost(start, python):
    """The C library's own start stands below the outermost Python frame, the interpreter's does not."""
    target = start(python, "recursion.py").settle()
    entry = backtrace(target.pid, "--native")[0]
    check_whole(entry)
    kinds = [frame["kind"] for frame in entry["frames"]]
    first = kinds.index("python")
    last = len(kinds) - 1 - kinds[::-1].index("python")
    assert kinds[first:last + 1] == ["python"] * (last + 1 - first), "nothing but Python calls in between"
    assert all("libc" in frame["module"] or "ld-" in frame["module"] or frame["name"] in ("_start", "main")
               for frame in entry["frames"][last + 1:])


def test_all_threads(start, python):
    """The Python frames are those that plain backtrace shows; the kernel's threads are all there."""
    target = start(python, "threads.py").settle()
    entries = backtrace(target.pid, "--native")
    same(target, entries)
    assert {entry["os_thread_id"] for entry in entries} == set(inner_tids(target.pid).values())
    for entry in entries:
        check_whole(entry)


def test_running(start, python):
    """A thread that computes is stopped for a moment, and its two stacks are of that moment."""
    target = start(python, "busy.py")
    expected = {"leaf": "middle", "middle": "outer", "outer": "run"}
    for _ in range(20):
        entry = next(entry for entry in backtrace(target.pid, "--native") if entry["thread_name"] == "busy")
        check_whole(entry)
        assert not entry["unstable"]
        names = [frame["name"] for frame in python_frames(entry)]
        start_at = 0 if names[0] in expected else 1
        for inner, outer in zip(names[start_at:], names[start_at + 1:]):
            assert expected.get(inner, outer) == outer, names
        last = max(i for i, frame in enumerate(entry["frames"]) if frame["kind"] == "python")
        assert all(frame["kind"] == "python" for frame in entry["frames"]
                   [min(i for i, frame in enumerate(entry["frames"]) if frame["kind"] == "python"):last + 1])


def test_compiled(start, python):
    """Loops that the JIT compiled (where there is one): its machine code has no unwind information."""
    target = start(python, "hot.py").settle()
    entry = backtrace(target.pid, "--native")[0]
    check_whole(entry)
    same_frames(python_frames(entry), target.truth[0]["frames"])


def test_trampolines(start, python):
    """3.12+ puts machine code of its own between Python functions, for perf: no unwind information, and not shown."""
    if python.minor < (3, 12):
        pytest.skip("has no trampolines")
    target = start(python, "callbacks.py", variables={"PYTHONPERFSUPPORT": "1"}).settle()
    try:
        entry = backtrace(target.pid, "--native")[0]
        check_whole(entry)
        same_frames(python_frames(entry), target.truth[0]["frames"])
        assert not [name for name in natives(entry) if name.startswith("0x") or "trampoline" in name] or python.root
    finally:
        for root in {"/", python.root or "/"}:
            for inner in inner_tids(target.pid):
                try:
                    os.unlink(os.path.join(root, "tmp", "perf-{}.map".format(inner)))
                except OSError:
                    pass


def test_deep(start, python):
    target = start(python, "deep.py").settle()
    entries = backtrace(target.pid, "--native")
    same(target, entries)
    for entry in entries:
        check_whole(entry)
