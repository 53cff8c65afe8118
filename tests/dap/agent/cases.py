"""Cases of the debugger's in-target Python, run by any CPython from 3.6 on: cases.py [NAME...]"""

import os
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fake  # noqa: E402
import program  # noqa: E402

PATH = os.path.realpath(program.__file__)
with open(PATH) as _file:
    LINES = _file.read().splitlines()


def line(mark):
    return next(n for n, text in enumerate(LINES, 1) if text.endswith("# " + mark))


def breaks(engine, *marks, **more):
    given = [dict(more, line=line(mark)) for mark in marks]
    return engine.call("set_breakpoints", path=PATH, breakpoints=given)["breakpoints"]


def begin(function, *arguments, **more):
    """An engine whose thread stands at a mark."""
    engine = fake.Engine()
    engine.call("attach", justMyCode=True)
    answer = breaks(engine, more.pop("mark"), **more)
    assert answer[0]["verified"], answer
    engine.thread = engine.start(function, *arguments)
    return engine


def finish(engine):
    breaks(engine)
    engine.go()
    engine.thread.join(60)
    assert not engine.thread.is_alive()
    engine.agent["close"]()


def refused(function, *arguments, **more):
    try:
        function(*arguments, **more)
    except Exception as error:
        assert hasattr(error, "code"), repr(error)
        return str(error)
    raise AssertionError("it was not refused")


def at(engine, mark):
    body = engine.stopped()
    top = engine.top()
    assert (top["line"], top["path"]) == (line(mark), PATH), (top, mark, body)
    return body


def case_breakpoint():
    engine = begin(program.caller, 3, mark="LOOP")
    body = at(engine, "LOOP")
    assert body["reason"] == "breakpoint" and body["allThreadsStopped"] and len(body["hitBreakpointIds"]) == 1
    frames = engine.frames()
    assert [one["name"] for one in frames[:2]] == ["outer", "caller"], frames
    assert frames[1]["line"] == line("CALLER") and frames[0]["own"]
    names = [one["name"] for one in engine.variables(engine.scope())]
    assert names == ["n", "value", "i"], names
    assert engine.evaluate("i + n")["result"] == "3"
    threads = engine.call("threads")["threads"]
    assert any(one["id"] == engine.number and one["parked"] and one["reason"] == "breakpoint" for one in threads), threads
    engine.go()
    at(engine, "LOOP")
    assert engine.evaluate("i")["result"] == "1"
    finish(engine)


def case_conditions():
    engine = begin(program.caller, 10, mark="LOOP", condition="i == 4 and any(i > k for k in [3])")
    at(engine, "LOOP")
    assert engine.evaluate("i")["result"] == "4"
    breaks(engine, "LOOP", hitCondition="%3")
    engine.go()
    at(engine, "LOOP")
    assert engine.evaluate("i")["result"] == "7"
    breaks(engine, "AFTER", logMessage="i is {i} {{x}} {nothing}")
    engine.go()
    engine.thread.join(60)
    texts = [one["body"]["output"] for one in engine.events if one["event"] == "output"]
    assert texts[0].startswith("i is 7 {x} <NameError"), texts
    assert len(texts) == 3, texts


def case_condition_raises():
    engine = begin(program.caller, 2, mark="LOOP", condition="i / 0")
    body = at(engine, "LOOP")
    assert "ZeroDivisionError" in body["text"], body
    answer = breaks(engine, "LOOP", condition="i ==")
    assert not answer[0]["verified"] and "SyntaxError" in answer[0]["message"], answer
    answer = breaks(engine, "LOOP", hitCondition="often")
    assert not answer[0]["verified"], answer
    finish(engine)


def case_steps():
    engine = begin(program.caller, 2, mark="OUTER")
    at(engine, "OUTER")
    breaks(engine)
    for method, mark in (("next", None), ("next", "LOOP"), ("step_in", "INNER"), ("step_out", "LOOP"), ("next", "AFTER"),
                         ("step_out", "CALLER"), ("next", "CALLER_END")):
        engine.call(method, threadId=engine.number)
        if mark is None:
            engine.stopped()
            continue
        body = at(engine, mark)
        assert body["reason"] == "step", body
        if method == "step_out" and mark == "LOOP":
            rows = engine.variables(engine.scope("Result"))
            assert (rows[0]["name"], rows[0]["value"]) == ("(return) inner", "0"), rows
    finish(engine)


def case_results():
    """Of what a step ran over, as long as the thread stands there."""
    engine = begin(program.caller, 2, mark="CALLER")
    at(engine, "CALLER")
    breaks(engine)
    engine.call("next", threadId=engine.number)
    at(engine, "CALLER_END")
    rows = engine.variables(engine.scope("Result"))
    assert [(one["name"], one["value"]) for one in rows] == [("(return) outer", "1")], rows
    finish(engine)


def case_step_targets():
    engine = begin(program.nested, 1, mark="NESTED_END")
    at(engine, "NESTED_END")
    targets = engine.call("step_in_targets", frameId=engine.top()["id"])["targets"]
    assert [one["label"] for one in targets] == ["inner(...)", "thing.grow(...)"], targets
    breaks(engine)
    engine.call("step_in", threadId=engine.number, targetId=targets[1]["id"])
    at(engine, "GROW")
    finish(engine)


def case_generator():
    engine = begin(program.generate, 2, mark="YIELD")
    at(engine, "YIELD")
    breaks(engine)
    engine.call("next", threadId=engine.number)
    engine.stopped()
    assert engine.top()["name"] == "generate", engine.top()
    finish(engine)


def case_function_breakpoints():
    engine = fake.Engine()
    answer = engine.call("set_function_breakpoints", breakpoints=[{"name": "Thing.grow"}, {"name": "grow"}])["breakpoints"]
    assert [one["verified"] for one in answer] == [True, False], answer
    engine.thread = engine.start(program.nested, 1)
    assert at(engine, "GROW")["reason"] == "function breakpoint"
    engine.call("set_function_breakpoints", breakpoints=[])
    finish(engine)


def case_new_code():
    """Code that comes later binds when it is called, and says so."""
    engine = fake.Engine()
    path = os.path.join(os.path.dirname(PATH), "later.py")
    answer = engine.call("set_breakpoints", path=path, breakpoints=[{"line": 2}])["breakpoints"]
    assert not answer[0]["verified"] and answer[0]["message"], answer
    space = {}
    exec(compile("def later():\n    x = 1\n    return x\n", path, "exec"), space)
    engine.thread = engine.start(space["later"])
    body = engine.wait("breakpoint")
    assert body["breakpoint"]["verified"] and body["breakpoint"]["id"] == answer[0]["id"], body
    engine.stopped()
    assert engine.top()["line"] == 2
    engine.call("set_breakpoints", path=path, breakpoints=[])
    finish(engine)


def case_variables():
    engine = begin(program.containers, mark="CONTAINERS")
    at(engine, "CONTAINERS")
    rows = {one["name"]: one for one in engine.variables(engine.scope())}
    big = rows["big"]
    assert big["indexedVariables"] == 1000000 and len(big["value"]) < 2000 and big["type"] == "list", big["value"]
    page = engine.variables(big["variablesReference"], start=999990, count=10, filter="indexed")
    assert [one["value"] for one in page] == [str(n) for n in range(999990, 1000000)], page
    assert page[0]["evaluateName"] == "big[999990]", page[0]
    table = {one["name"]: one for one in engine.variables(rows["table"]["variablesReference"])}
    assert sorted(table) == ["'a'", "(1, 'x')", "2"], table
    assert table["(1, 'x')"]["evaluateName"] == "table[(1, 'x')]"
    thing = engine.variables(rows["thing"]["variablesReference"])
    named = {one["name"]: one for one in thing}
    assert named["size"]["value"] == "3" and named["size"]["evaluateName"] == "thing.size"
    assert named["double"]["presentationHint"]["lazy"], named["double"]
    lazy = engine.variables(named["double"]["variablesReference"])
    assert [one["value"] for one in lazy] == ["6"], lazy
    assert "class variables" in named and "function variables" in named, named
    assert engine.variables(big["variablesReference"], start=15, count=1, format={"hex": True})[0]["value"] == "0xf"
    finish(engine)
    assert "earlier stop" in refused(engine.call, "variables", variablesReference=big["variablesReference"])


def case_set():
    engine = begin(program.containers, mark="CONTAINERS")
    at(engine, "CONTAINERS")
    scope = engine.scope()
    rows = {one["name"]: one for one in engine.variables(scope)}
    assert engine.call("set_variable", engine.ident, variablesReference=scope, name="text", value="'new' + str(1)")["value"] == "'new1'"
    assert engine.evaluate("text")["result"] == "'new1'"
    again = {one["name"]: one["value"] for one in engine.variables(scope)}
    assert again["text"] == "'new1'", "the same reference again"
    engine.call("set_variable", engine.ident, variablesReference=rows["thing"]["variablesReference"], name="size", value="7")
    engine.call("set_variable", engine.ident, variablesReference=rows["table"]["variablesReference"], name="'a'", value="8")
    engine.call("set_expression", engine.ident, frameId=engine.top()["id"], expression="big[0]", value="9")
    assert engine.evaluate("(thing.size, table['a'], big[0])")["result"] == "(7, 8, 9)"
    assert "cannot" in refused(engine.call, "set_variable", engine.ident, variablesReference=rows["some"]["variablesReference"],
                               name="0", value="1")
    finish(engine)


def case_evaluate():
    engine = begin(program.caller, 2, mark="OUTER_END")
    at(engine, "OUTER_END")
    assert engine.evaluate("value = 40\nnew = 2", "repl")["result"] == ""
    assert engine.evaluate("value + new", "repl")["result"] == "42"
    assert engine.evaluate("value")["result"] == "40"
    assert engine.evaluate("print('said')", "repl")["result"] == ""
    assert engine.wait("output")["output"].startswith("said")
    assert "NameError" in refused(engine.evaluate, "nothing")
    assert "hover" in refused(engine.evaluate, "caller(1)", "hover")
    assert engine.evaluate("[value for _ in range(2)]")["result"] == "[40, 40]"
    assert engine.evaluate("255", format={"hex": True})["result"] == "0xff"
    assert engine.evaluate("'a' * 5000", "clipboard")["result"] == "a" * 5000
    found = engine.call("completions", engine.ident, frameId=engine.top()["id"], text="val", column=4)["targets"]
    assert [one["label"] for one in found] == ["value", "ValueError"] and found[0]["start"] == 1 and found[0]["length"] == 3, found
    finish(engine)


def case_await():
    engine = begin(program.caller, 2, mark="OUTER_END")
    at(engine, "OUTER_END")
    engine.evaluate("import asyncio\nasync def twice(x):\n    await asyncio.sleep(0.001)\n    return 2 * x", "repl")
    assert engine.evaluate("await twice(21)", "repl")["result"] == "42"
    finish(engine)


def case_exceptions():
    engine = fake.Engine()
    engine.call("set_exception_breakpoints", filters=["raised"])
    engine.thread = engine.start(program.catches)
    body = at(engine, "RAISE")
    assert body["reason"] == "exception" and "ValueError" in body["text"], body
    found = engine.call("exception_info", threadId=engine.number)
    assert found["exceptionId"] == "ValueError" and found["breakMode"] == "always", found
    assert "RAISE" in found["details"]["stackTrace"], found
    engine.go()
    engine.thread.join(60)
    assert not [one for one in engine.events if one["event"] == "stopped"], engine.events
    engine.call("set_exception_breakpoints", filterOptions=[{"filterId": "raised", "condition": "KeyError"}])
    engine.start(program.catches).join(60)
    assert not [one for one in engine.events if one["event"] == "stopped"], engine.events


def case_uncaught():
    for name in ("uncaught", "userUnhandled"):
        engine = fake.Engine()
        engine.call("set_exception_breakpoints", filters=[name])
        engine.thread = engine.start(program.catches)
        engine.thread.join(60)
        engine.thread = engine.start(program.fails, 2)
        body = engine.stopped()
        assert body["reason"] == "exception", body
        names = [one["name"] for one in engine.frames()]
        assert names[:3] == ["fails", "fails", "fails"] and engine.top()["line"] == line("RAISE"), names
        assert engine.evaluate("n")["result"] == "0"
        found = engine.call("exception_info", threadId=engine.number)
        assert found["breakMode"] in ("unhandled", "userUnhandled") and "fails" in found["details"]["stackTrace"], found
        engine.call("set_exception_breakpoints", filters=[])
        finish(engine)


def case_goto():
    if hasattr(sys, "monitoring"):
        return  # only from a hook that CPython knows
    engine = begin(program.jumps, mark="JUMP_FROM")
    at(engine, "JUMP_FROM")
    targets = engine.call("goto_targets", path=PATH, line=line("JUMP_TO"))["targets"]
    engine.call("goto", engine.ident, threadId=engine.number, targetId=targets[0]["id"])
    at(engine, "JUMP_TO")
    assert "a" not in [one["name"] for one in engine.variables(engine.scope())]
    finish(engine)


def case_pause():
    engine = fake.Engine()
    state = {}
    engine.thread = engine.start(program.spins, state)
    engine.call("pause", threadId=engine.number)
    body = engine.stopped()
    assert body["reason"] == "pause", body
    while engine.ident not in engine.waiting:
        pass
    count = state.get("count", 0)
    assert engine.frames()[0]["name"] == "spins"
    assert state.get("count", 0) == count
    state["end"] = True
    engine.go()
    engine.thread.join(60)
    assert "notStopped" in refused(engine.call, "next", threadId=engine.number)


def case_sources():
    engine = begin(program.caller, 2, mark="OUTER")
    at(engine, "OUTER")
    assert "def caller(n):" in engine.call("source", path=PATH)["content"]
    assert any(one["name"] == "program" and one["path"] == PATH for one in engine.call("modules")["modules"])
    assert any(one["path"] == PATH for one in engine.call("loaded_sources")["sources"])
    found = engine.call("breakpoint_locations", path=PATH, line=line("OUTER"), endLine=line("AFTER"))["breakpoints"]
    assert [one["line"] for one in found] == list(range(line("OUTER"), line("AFTER") + 1)), found
    rows = engine.call("disassemble", frameId=engine.top()["id"], instructionOffset=-1, instructionCount=4)["instructions"]
    assert len(rows) == 4 and all(one["address"].startswith("0x") for one in rows), rows
    again = engine.call("disassemble", memoryReference=rows[1]["address"], instructionCount=2)["instructions"]
    assert again[0]["address"] == rows[1]["address"], again
    finish(engine)


def case_memory():
    engine = begin(program.containers, mark="CONTAINERS")
    at(engine, "CONTAINERS")
    rows = {one["name"]: one for one in engine.variables(engine.scope())}
    found = engine.call("read_memory", memoryReference=rows["frozen"]["memoryReference"], offset=2, count=100)
    assert found["data"] == "Y2RlZg==" and found["unreadableBytes"] == 96, found
    found = engine.call("write_memory", memoryReference=rows["blob"]["memoryReference"], offset=1, data="QUI=")
    assert found["bytesWritten"] == 2 and engine.evaluate("bytes(blob)")["result"] == "b'0AB3456789'"
    assert "cannot be changed" in refused(engine.call, "write_memory", memoryReference=rows["frozen"]["memoryReference"], data="QUI=")
    assert "no object" in refused(engine.call, "read_memory", memoryReference="0x1000", count=1)
    finish(engine)


def case_data():
    engine = fake.Engine()
    thing = program.Thing(1)
    breaks(engine, "CHANGE")
    engine.thread = engine.start(program.changes, thing)
    at(engine, "CHANGE")
    rows = {one["name"]: one for one in engine.variables(engine.scope())}
    found = engine.call("data_breakpoint_info", variablesReference=rows["thing"]["variablesReference"], name="size")
    local = engine.call("data_breakpoint_info", frameId=engine.top()["id"], name="other")
    assert found["dataId"] and local["dataId"] and found["accessTypes"] == ["write"], (found, local)
    lazy = engine.call("data_breakpoint_info", variablesReference=rows["thing"]["variablesReference"], name="double")
    assert lazy["dataId"] is None, lazy
    breaks(engine)
    answer = engine.call("set_data_breakpoints", breakpoints=[{"dataId": found["dataId"]}])["breakpoints"]
    assert answer[0]["verified"], answer
    engine.go()
    body = at(engine, "CHANGED")
    assert body["reason"] == "data breakpoint" and body["text"] == "thing.size: 1 -> 5", body
    engine.call("set_data_breakpoints", breakpoints=[])
    assert not any(lines for _, lines in engine.planted.values())
    finish(engine)


def case_output():
    engine = fake.Engine()
    before = sys.stdout
    engine.call("output", on=True)
    print("to both")
    assert engine.wait("output")["output"] == "to both\n"
    engine.call("output", on=False)
    assert sys.stdout is before


def case_time_outs():
    assert fake.Engine().call("time_outs")["timeouts"] == []


def case_numpy():
    try:
        import numpy  # noqa: F401
    except ImportError:
        return
    engine = begin(program.caller, 2, mark="OUTER_END")
    at(engine, "OUTER_END")
    engine.evaluate("import numpy; a = numpy.arange(12, dtype='float32').reshape(3, 4); a[0, 0] = numpy.nan", "repl")
    found = engine.evaluate("a")
    assert found["result"] == "ndarray float32 [3, 4]" and found["indexedVariables"] == 3 and found["memoryReference"], found
    rows = {one["name"]: one for one in engine.variables(found["variablesReference"])}
    assert rows["shape"]["value"] == "(3, 4)" and rows["0"]["value"] == "ndarray float32 [4]", rows
    assert engine.variables(rows["NaN count"]["variablesReference"])[0]["value"] == "1"
    assert engine.variables(rows["first values"]["variablesReference"])[0]["value"].startswith("[nan, 1.0")
    data = engine.call("read_memory", memoryReference=found["memoryReference"], offset=4, count=4)["data"]
    assert data == "AACAPw==", data
    finish(engine)


def case_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        return
    engine = begin(program.caller, 2, mark="OUTER_END")
    at(engine, "OUTER_END")
    engine.evaluate("""
import torch
t = torch.ones(8, 128, 768, requires_grad=True)
m = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
o = torch.optim.AdamW(m.parameters(), lr=0.5)
m(torch.ones(1, 4)).sum().backward()
o.step()
c = [t, {"x": t}]
b = torch.zeros(3, dtype=torch.bfloat16)
""", "repl")
    found = engine.evaluate("t")
    assert found["result"] == "Tensor float32 [8, 128, 768] cpu grad" and found["memoryReference"], found
    rows = {one["name"]: one for one in engine.variables(found["variablesReference"])}
    for name, value in (("shape", "(8, 128, 768)"), ("stride", "(98304, 768, 1)"), ("grad", "None"), ("0", "Tensor float32 [128, 768] cpu grad")):
        assert rows[name]["value"] == value, rows[name]
    for name, value in (("min", "1.0"), ("max", "1.0"), ("mean", "1.0"), ("std", "0.0"), ("NaN count", "0"), ("Inf count", "0")):
        assert rows[name]["presentationHint"]["lazy"], rows[name]
        lazy = engine.variables(rows[name]["variablesReference"])
        assert [one["value"] for one in lazy] == [value], (name, lazy)
    assert engine.evaluate("c")["result"] == "[Tensor float32 [8, 128, 768] cpu grad, {'x': Tensor float32 [8, 128, 768] cpu grad}]"
    assert engine.evaluate("t[0, 0, :5]")["result"] == "Tensor float32 [5] cpu grad"
    found = engine.evaluate("m")
    assert found["result"] == "Sequential (15 parameters, 2 modules, training)", found
    rows = {one["name"]: one for one in engine.variables(found["variablesReference"])}
    inner = {one["name"]: one for one in engine.variables(rows["0"]["variablesReference"])}
    assert inner["weight"]["value"] == "Parameter float32 [3, 4] cpu grad", inner
    assert engine.evaluate(inner["weight"]["evaluateName"])["result"] == inner["weight"]["value"]
    found = engine.evaluate("o")
    assert found["result"] == "AdamW lr=0.5 (1 groups, 2 tensors)", found
    rows = {one["name"]: one for one in engine.variables(found["variablesReference"])}
    state = engine.variables(rows["state"]["variablesReference"])
    assert state[0]["name"] == "0.0 [3, 4]" and engine.evaluate(state[0]["evaluateName"])["type"] == "dict", state
    found = engine.evaluate("b")
    rows = {one["name"]: one for one in engine.variables(found["variablesReference"])}
    assert engine.variables(rows["mean"]["variablesReference"])[0]["value"] == "0.0"
    finish(engine)


def case_hostile():
    engine = fake.Engine()
    for data in (b"", b"{}", b"[]", b"{", b"nul", b'{"a":' * 1000, b'"\\ud800', b"\xff", b'{"x":1}}', b"1e999"):
        for method in sorted(engine.agent["probe"].methods) + ["nothing"]:
            try:
                engine.agent["call"](method, data)
            except Exception as error:
                assert hasattr(error, "code"), (method, data, repr(error))
        if engine.armed:
            engine.resume(0)
            engine.agent["session"].stopped = False
    for value in (None, -1, 1 << 70, "x", [], {}):
        for method in sorted(engine.agent["probe"].methods):
            given = {name: value for name in ("threadId", "frameId", "variablesReference", "line", "path", "breakpoints", "filters",
                                              "start", "count", "expression", "value", "name", "targetId", "memoryReference")}
            refused_or_not(engine, method, given)


def refused_or_not(engine, method, given):
    try:
        engine.call(method, **given)
    except Exception as error:
        assert hasattr(error, "code"), (method, given, repr(error))
    if engine.armed:
        engine.resume(0)
        engine.agent["session"].stopped = False


CASES = {name[len("case_"):]: function for name, function in sorted(globals().items()) if name.startswith("case_")}


def main(wanted):
    failed = []
    for name in wanted or CASES:
        try:
            CASES[name]()
        except BaseException:
            failed.append(name)
            traceback.print_exc()
    print("failed:", " ".join(failed) if failed else "none")
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # threads that are parked stay so


if __name__ == "__main__":
    main(sys.argv[1:])
