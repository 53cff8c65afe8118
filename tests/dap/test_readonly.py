"""The look back end: a live process without the probe, its core and its snapshot, on every CPython found."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from support import pythons
from support import target as targets
from support.torch_python import torch_python

CALL = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "dap", "readonly_call")


class Look:
    """A back end, asked by its methods."""

    def __init__(self, spec):
        self.child = subprocess.Popen([CALL, str(spec)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.events = []

    def answer(self, method, **arguments):
        self.child.stdin.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        assert line, "the back end ended while it was asked {}".format(method)
        told = json.loads(line)
        self.events += told["events"]
        return told

    def ask(self, method, **arguments):
        told = self.answer(method, **arguments)
        assert "result" in told, told
        return told["result"]

    def refused(self, method, **arguments):
        told = self.answer(method, **arguments)
        assert "error" in told, told
        return told["error"]

    def end(self):
        self.child.stdin.close()
        status = self.child.wait(targets.DEADLINE)
        self.child.stdout.close()
        return status

    # ---- what most tests want ----

    def thread(self, name):
        return next(one for one in self.ask("threads")["threads"] if one["name"].startswith(name))

    def frames(self, thread, **more):
        return self.ask("stack", threadId=thread["id"], **more)["stackFrames"]

    def frame(self, thread, name):
        return next(one for one in self.frames(thread) if one["name"] == name)

    def scope(self, frame, name):
        return next(one for one in self.ask("scopes", frameId=frame["id"])["scopes"] if one["name"] == name)

    def variables(self, reference, **more):
        rows = self.ask("variables", variablesReference=reference, **more)["variables"]
        names = [row["name"] for row in rows]
        assert len(set(names)) == len(names), "a name twice"
        return {row["name"]: row for row in rows}


@pytest.fixture
def look():
    opened = []

    def begin(spec):
        opened.append(Look(spec))
        return opened[-1]

    yield begin
    for one in opened:
        assert one.end() == 0


KINDS = ["look", "core", "snapshot"]


@pytest.fixture(params=KINDS)
def stopped(request, python, start, look, tmp_path):
    """A back end on tests/targets/looked_at.py with a picture, and the process."""
    process = start(python, "looked_at.py").settle()
    if request.param == "look":
        one = look(process.pid)
        one.ask("pause", threadId=process.pid)
        return one, process
    path = str(tmp_path / request.param)
    if request.param == "snapshot":
        targets.probing("-t", process.pid, "snapshot", path, "--locals", "--native")
        return look(path), process
    if not shutil.which("gcore"):
        pytest.skip("no gcore here (package gdb)")
    if python.root:
        pytest.skip("a core of another root's process wants --sysroot, which readonly_call has not")
    subprocess.run(["gcore", "-o", path, str(process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return look("{}.{}".format(path, process.pid)), process


def stand_of(one):
    main = one.thread("MainThread")
    return main, one.frame(main, "stand")


def test_threads_and_frames(stopped):
    one, process = stopped
    main, stand = stand_of(one)
    assert main["id"] == process.pid and stand["own"] is True
    assert os.path.basename(stand["path"]) == "looked_at.py" and stand["line"] > 0
    names = [row["name"] for row in one.frames(main) if row["own"]]
    assert names == ["stand", "main", "<module>"]
    sleeper = one.thread("sleeper")
    assert one.frames(sleeper)[0]["own"] is False or one.frames(sleeper)[0]["name"] == "sleeper"


def test_native_frames_are_subtle(stopped):
    one, _ = stopped
    frames = one.frames(one.thread("sleeper"))
    native = [row for row in frames if "instructionPointerReference" in row]
    assert native, frames
    assert all(row["presentationHint"] == "subtle" and not row["own"] for row in native)
    # The call from Python stands above the frame that made it.
    assert [row["name"] for row in frames].index("sleeper") > frames.index(native[0])
    assert re.search("sleep|select", one.thread("sleeper")["native"])
    for row in native:
        assert one.ask("scopes", frameId=row["id"])["scopes"] == []


def test_stack_comes_in_pages(stopped):
    one, _ = stopped
    main = one.thread("MainThread")
    whole = one.ask("stack", threadId=main["id"])
    count = whole["totalFrames"]
    assert count == len(whole["stackFrames"]) > 2
    pages = []
    for start in range(0, count, 2):
        page = one.ask("stack", threadId=main["id"], startFrame=start, levels=2)
        assert page["totalFrames"] == count and len(page["stackFrames"]) <= 2
        pages += [row["name"] for row in page["stackFrames"]]
    assert pages == [row["name"] for row in whole["stackFrames"]]
    assert one.ask("stack", threadId=main["id"], startFrame=count + 5)["stackFrames"] == []


def test_locals(stopped):
    one, _ = stopped
    rows = one.variables(one.scope(stand_of(one)[1], "Locals")["variablesReference"])
    told = {name: row["value"] for name, row in rows.items()}
    assert told["argument"] == "'wait'" and told["text"] == "'unicode \N{SNOWMAN}'" and told["empty"] == "[]"
    assert told["mapping"] == "{'key': 'value', 7: [1, 2, 3], (1, 2): 'pair', b'b': None}"
    assert rows["hidden"]["type"] == "int" and rows["hidden"]["variablesReference"] == 0
    assert rows["empty"]["variablesReference"] == 0
    assert rows["numbers"]["indexedVariables"] == 500 and rows["mapping"]["indexedVariables"] == 4
    assert rows["model"]["type"] == "__main__.Model" and rows["model"]["namedVariables"] == 3
    assert rows["model"]["evaluateName"] == "model"
    assert rows["model"]["presentationHint"]["attributes"] == ["readOnly"]
    hexadecimal = one.variables(one.scope(stand_of(one)[1], "Locals")["variablesReference"], format={"hex": True})
    assert hexadecimal["hidden"]["value"] == "-0xff"


def unfold(one, frame, *names):
    """The rows inside names[-1] inside ... inside a local."""
    rows = one.variables(one.scope(frame, "Locals")["variablesReference"])
    for name in names:
        rows = one.variables(rows[name]["variablesReference"])
    return rows


def test_parts(stopped):
    one, _ = stopped
    _, frame = stand_of(one)
    model = unfold(one, frame, "model")
    assert set(model) == {"name", "layers", "child"} and model["name"]["value"] == "'tiny'"
    assert model["layers"]["evaluateName"] == "model.layers"
    inner = unfold(one, frame, "model", "layers", "1")
    assert inner["0"]["value"] == "3" and inner["0"]["evaluateName"] == "model.layers[1][0]"
    assert {name: row["value"] for name, row in unfold(one, frame, "model", "child").items()} == {"left": "'l'", "right": "'r'"}
    mapping = unfold(one, frame, "mapping")
    assert mapping["'key'"]["evaluateName"] == "mapping['key']" and "evaluateName" not in mapping["(1, 2)"]
    assert mapping["7"]["value"] == "[1, 2, 3]"
    if one.ask("attach")["mechanism"] != "snapshot":  # which holds what the text of a local needs, and no more
        counted = unfold(one, frame, "counted")
        assert counted["'one'"]["value"] == "1" and counted["note"]["value"] == "'an attribute'"
    assert {row["value"] for row in unfold(one, frame, "several").values()} == {"1", "2", "3"}
    assert [row["value"] for row in unfold(one, frame, "recent").values()] == ["5", "6", "7"]
    assert [row["value"] for row in unfold(one, frame, "pair").values()] == ["'a'", "'b'"]


def test_parts_come_in_pages(stopped):
    one, _ = stopped
    rows = one.variables(one.scope(stand_of(one)[1], "Locals")["variablesReference"])
    reference = rows["numbers"]["variablesReference"]
    page = one.variables(reference, filter="indexed", start=490, count=100)
    assert [row["value"] for row in page.values()] == [str(n) for n in range(490, 500)]
    assert list(page)[0] == "490" and page["490"]["evaluateName"] == "numbers[490]"
    assert one.variables(reference, filter="indexed", start=5000, count=10) == {}
    assert one.variables(reference, filter="named") == {}
    deque = one.variables(rows["recent"]["variablesReference"], filter="indexed", start=1, count=1)
    assert [row["value"] for row in deque.values()] == ["6"]
    mapping = one.variables(rows["mapping"]["variablesReference"], filter="indexed", start=1, count=2)
    assert list(mapping) == ["7", "(1, 2)"]


@pytest.mark.parametrize("expression,result", [
    ("argument", "'wait'"),
    (" model.name ", "'tiny'"),
    ("model.layers[1][0]", "3"),
    ("numbers[499]", "499"),
    ("numbers[-1]", "499"),
    ("mapping['key']", "'value'"),
    ('mapping["key"]', "'value'"),
    ("mapping[7][2]", "3"),
    ("model.child.left", "'l'"),
])
def test_evaluate(stopped, expression, result):
    one, _ = stopped
    frame = stand_of(one)[1]
    assert one.ask("evaluate", expression=expression, frameId=frame["id"], context="hover")["result"] == result


def test_evaluate_refuses_what_would_run(stopped):
    one, _ = stopped
    frame = stand_of(one)[1]
    for expression in ["len(numbers)", "1 + 1", "numbers[", "model.", "[1]", "", "model.layers[0] + 1"]:
        assert one.refused("evaluate", expression=expression, frameId=frame["id"])["code"] == "unsupported", expression
    for expression in ["nothing", "model.nothing", "numbers[1000]", "mapping['no']", "argument.upper"]:
        assert one.refused("evaluate", expression=expression, frameId=frame["id"])["code"] == "not found", expression


def test_globals(stopped):
    one, _ = stopped
    if one.ask("attach")["mechanism"] == "snapshot":
        pytest.skip("a snapshot holds what its locals need, and no more")
    frame = stand_of(one)[1]
    rows = one.variables(one.scope(frame, "Globals")["variablesReference"])
    assert rows["GLOBAL"]["value"] == "{'answer': 42}" and rows["Model"]["type"] == "type"
    assert "__name__" not in rows
    assert one.ask("evaluate", expression="GLOBAL['answer']", frameId=frame["id"])["result"] == "42"


def test_exception(stopped, python):
    one, process = stopped
    if one.ask("attach")["mechanism"] == "snapshot":
        pytest.skip("a snapshot holds what its locals need, and no more")
    if python.minor < (3, 7):
        pytest.skip("3.6 keeps what is handled in the thread state's own fields, which are not read")
    told = one.ask("exception_info", threadId=process.pid)
    assert told["exceptionId"] == "ValueError" and told["description"] == "('outer', 2)"
    details = told["details"]
    assert details["typeName"] == "ValueError" and re.search(r'looked_at.py", line \d+, in stand', details["stackTrace"])
    inner = details["innerException"][0]
    assert inner["fullTypeName"] == "KeyError" and inner["message"] == "'inner'"
    assert one.refused("exception_info", threadId=one.thread("sleeper")["id"])["code"] == "not found"


def test_sources_and_modules(stopped, python):
    one, _ = stopped
    if one.ask("attach")["mechanism"] == "snapshot":
        pytest.skip("a snapshot holds what its locals need, and no more")
    modules = one.ask("modules", startModule=0, moduleCount=0)
    assert {"sys", "threading", "__main__"} <= {row["name"] for row in modules["modules"]}
    assert modules["totalModules"] == len(modules["modules"])
    assert len(one.ask("modules", startModule=1, moduleCount=2)["modules"]) == 2
    assert any(row["path"].endswith("threading.py") for row in one.ask("loaded_sources")["sources"])
    if not python.root:
        path = stand_of(one)[1]["path"]
        assert "def stand" in one.ask("source", path=path)["content"]
    assert one.refused("source", path="/no/such/file.py")["code"] == "not found"
    assert one.refused("source", path="/proc/self/mem/x")["code"] == "not found"


def test_what_it_has(stopped):
    one, _ = stopped
    live = one.ask("attach")["mechanism"] == "look"
    for method in ["next", "set_variable", "set_breakpoints", "write_memory", ""]:
        told = one.answer(method)
        assert told["error"]["code"] == "unsupported" and not told["has"]
    for method in ["pause", "continue"]:
        assert one.answer(method)["has"] is live


def test_wrong_arguments(stopped):
    one, process = stopped
    main, frame = stand_of(one)
    for method, arguments in [("stack", {}), ("stack", {"threadId": "x"}), ("stack", {"threadId": 1 << 60}),
                              ("scopes", {}), ("scopes", {"frameId": -1}), ("scopes", {"frameId": 1 << 40}),
                              ("variables", {}), ("variables", {"variablesReference": frame["id"]}),
                              ("variables", {"variablesReference": 0}), ("exception_info", {"threadId": None}),
                              ("evaluate", {"frameId": frame["id"]}), ("evaluate", {"expression": "x"}), ("source", {})]:
        one.refused(method, **arguments)
    assert len(one.frames(main, startFrame=-3, levels=-2)) > 2
    reference = one.scope(frame, "Locals")["variablesReference"]
    assert one.variables(reference, start=-1, count=-5, filter="neither", format=[])
    os.kill(process.pid, 0)


def test_a_live_target_goes_on(any_python, start, look):
    process = start(any_python, "busy.py")
    one = look(process.pid)
    begun = one.ask("attach")
    assert begun["mechanism"] == "look" and "stopped" not in begun
    main = one.ask("threads")["threads"][0]
    assert one.refused("stack", threadId=main["id"])["code"] == "unsupported"
    one.ask("pause", threadId=main["id"])
    assert [event["event"] for event in one.events] == ["stopped"]
    body = one.events[0]["body"]
    assert body["reason"] == "pause" and body["allThreadsStopped"] and body["threadId"] == main["id"]
    old = one.frames(main)[-1]
    one.ask("scopes", frameId=old["id"])
    one.ask("continue", threadId=main["id"])
    assert one.refused("scopes", frameId=old["id"])["code"] == "not found"
    one.ask("pause", threadId=main["id"])
    new = one.frames(main)[-1]
    assert new["id"] != old["id"] and one.refused("scopes", frameId=old["id"])["code"] == "not found"
    with open("/proc/{}/status".format(process.pid)) as status:
        assert "TracerPid:\t0\n" in status.read()


def test_core_of_a_crash(any_python, folders, look, tmp_path):
    """A core that the kernel wrote, where it writes them beside the process."""
    with open("/proc/sys/kernel/core_pattern") as pattern:
        if pattern.read().strip() not in ("core", "core.%p"):
            pytest.skip("cores go elsewhere here")
    import resource

    def unlimited():
        targets.die_with_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY and os.geteuid() != 0:
        pytest.skip("no cores may be written here")
    _, inner = folders(any_python)
    child = subprocess.Popen(any_python.command(os.path.join(inner, "looked_at.py"), "abort"), cwd=str(tmp_path),
                             preexec_fn=unlimited, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert child.wait(targets.DEADLINE) == -6
    written = [name for name in os.listdir(str(tmp_path)) if name.startswith("core")]
    assert written, "no core was written"
    one = look(tmp_path / written[0])
    stop = one.ask("attach")["stopped"]
    assert stop["reason"] == "exception" and "signal 6" in stop["description"] and stop["threadId"] == child.pid
    frame = one.frame(one.thread("MainThread"), "stand")
    assert one.ask("evaluate", expression="model.name", frameId=frame["id"])["result"] == "'tiny'"
    assert "Abort" in one.thread("MainThread")["name"]
    if sys.version_info >= (3, 7):
        assert one.ask("exception_info", threadId=child.pid)["exceptionId"] in ("ValueError", "signal 6")


def test_tensor_unfolds(start, look):
    """A tensor shows its facts by name, and rows of its elements by number."""
    if not torch_python():
        pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
    python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
    process = start(python, "torch_train.py").settle(only=True)
    one = look(process.pid)
    one.ask("pause", threadId=process.pid)
    frame = next(row for thread in one.ask("threads")["threads"] for row in one.frames(thread) if row["name"] == "step")
    local = one.variables(one.scope(frame, "Locals")["variablesReference"])
    values, loss = local["values"], local["loss"]
    assert values["value"] == "Tensor float32 [4, 8] cpu" and values["indexedVariables"] == 4
    named = one.variables(values["variablesReference"], filter="named")
    assert {name: named[name]["value"] for name in ("shape", "stride", "dtype", "requires_grad", "layout")} == {
        "shape": "(4, 8)", "stride": "(8, 1)", "dtype": "float32", "requires_grad": "False", "layout": "strided"}
    rows = one.variables(values["variablesReference"], filter="indexed", start=1, count=2)
    assert sorted(rows) == ["1", "2"]
    for row in rows.values():
        numbers = json.loads(row["value"])
        assert len(numbers) == 8 and len(set(numbers)) == 1 and numbers[0] == int(numbers[0])
    assert re.match(r"Tensor float32 \[\] cpu = [0-9.]+$", loss["value"]), loss
