"""backtrace --json: its schema, and the meaning of py-spy's keys beside py-spy itself."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from support.compare import kernel_name
from support.target import SRCDIR, backtrace

PYSPY = os.environ.get("PROBING_PYSPY") or shutil.which("py-spy") or os.path.join(os.path.dirname(sys.executable), "py-spy")
SCHEMA = os.path.join(SRCDIR, "lib", "format", "backtrace.schema.json")


@pytest.fixture(scope="module")
def valid():
    jsonschema = pytest.importorskip("jsonschema")
    with open(SCHEMA) as text:
        schema = json.load(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).validate


OPTIONS = [[], ["--locals"], ["--native"], ["--native", "--locals"], ["--all-interpreters"]]


def test_schema(start, python, valid):
    target = start(python, "threads.py").settle()
    for options in OPTIONS:
        entries = backtrace(target.pid, *options)
        valid(entries)
        assert "{}.{}".format(*python.minor) in entries[0]["layout"]
        assert all("layout" not in entry for entry in entries[1:])


def test_schema_refuses(valid):
    """The schema is one that can fail."""
    import jsonschema

    with pytest.raises(jsonschema.ValidationError):
        valid([{"pid": 1}])


# Keys that mean the same in both, per thread and per frame.
THREAD_KEYS = ["pid", "thread_id", "thread_name", "os_thread_id", "owns_gil", "active"]
FRAME_KEYS = ["filename", "short_filename", "module", "line"]


@pytest.mark.parametrize("program", ["threads.py", "callbacks.py"])
def test_pyspy(start, python, program):
    """Whatever py-spy says of a quiet target, we say too."""
    if not os.access(PYSPY, os.X_OK):
        pytest.skip("needs py-spy")
    if python.container:
        pytest.skip("py-spy gives the ids of the inner pid namespace")
    target = start(python, program).settle()
    done = subprocess.run([PYSPY, "dump", "--json", "--pid", str(target.pid)], capture_output=True, timeout=60)
    if done.returncode:
        pytest.skip("py-spy cannot read this interpreter")
    target.settle()  # py-spy stopped it: its threads run until they wait again
    ours = {entry["os_thread_id"]: entry for entry in backtrace(target.pid)}
    theirs = json.loads(done.stdout)
    assert {entry["os_thread_id"] for entry in theirs} == set(ours)
    for entry in theirs:
        mine = ours[entry["os_thread_id"]]
        assert set(entry) <= set(mine)
        # Where it has no name we say the kernel's.
        told = dict(entry, thread_name=entry["thread_name"] or kernel_name(target.pid, entry["os_thread_id"]))
        assert {key: mine[key] for key in THREAD_KEYS} == {key: told[key] for key in THREAD_KEYS}
        assert len(mine["frames"]) == len(entry["frames"])
        for frame, told in zip(mine["frames"], entry["frames"]):
            assert set(told) <= set(frame)
            # py-spy looks for packages' files in our root folder, wherever the target's is.
            keys = [key for key in FRAME_KEYS if key != "short_filename" or not python.root]
            assert {key: frame[key] for key in keys} == {key: told[key] for key in keys}
            assert told["name"] in (frame["name"], frame["qualname"])
            # From 3.12 on py-spy tells where a call of the evaluator begins by the shim alone.
            assert (frame["is_entry"] or frame["is_shim_entry"]) == (told["is_entry"] or told["is_shim_entry"])
