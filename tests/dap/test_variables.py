"""Looking and changing: stackTrace, scopes, variables, setVariable and setExpression, sources, memory, byte code, output."""

import base64

import pytest

from debuggee import (
    evaluate,
    go_on,
    local_variables,
    python_frames,
    resume,
    scope,
    set_lines,
    stack,
    stop_at,
    stopped,
    top,
    variables,
)

VALUES = {"integer": "42", "negative": "-7", "big": str(10 ** 40), "real": "2.5", "truth": "True", "nothing": "None",
          "some_tuple": "(1, (2, (3,)))", "short_list": "[1, 'two', [3]]", "raw": "b'\\x00\\x01bytes'",
          "some_set": "{1, 2, 3}", "cycle": "[[...]]"}
TYPES = {"integer": "int", "real": "float", "text": "str", "raw": "bytes", "point": "Point", "short_dict": "dict",
         "nothing": "NoneType", "function": "function", "kind": "type", "module": "module"}


# ---- stacks ----

def test_stack_trace(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "double", "steps")
    answer = session.request("stackTrace", {"threadId": body["threadId"]})
    frames = python_frames(answer["stackFrames"])
    assert [frame["name"].split(".")[-1] for frame in frames[:3]] == ["double", "steps", "main"]
    assert frames[0]["source"]["path"] == program.path and frames[1]["line"] == program.line("step_b")
    assert len({frame["id"] for frame in answer["stackFrames"]}) == len(answer["stackFrames"])
    assert answer["totalFrames"] == len(answer["stackFrames"])
    go_on(session, program, body["threadId"], "steps")


def test_stack_trace_in_pages(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "double", "steps")
    whole = session.request("stackTrace", {"threadId": body["threadId"], "startFrame": 0, "levels": 0})
    pages = []
    for start in range(len(whole["stackFrames"]) + 1):
        page = session.request("stackTrace", {"threadId": body["threadId"], "startFrame": start, "levels": 1})
        assert page["totalFrames"] == whole["totalFrames"]
        pages += [(frame["name"], frame["line"]) for frame in page["stackFrames"]]
    assert pages == [(frame["name"], frame["line"]) for frame in whole["stackFrames"]]
    go_on(session, program, body["threadId"], "steps")


def test_stack_trace_of_no_thread(attached, any_python):
    program, session = attached(any_python)
    body, _ = stop_at(session, program, "cold", "cold")
    session.refused("stackTrace", {"threadId": 1})
    go_on(session, program, body["threadId"], "cold")


# ---- scopes and variables ----

def test_scopes(at_values, python):
    program, session, frame, thread = at_values(python)
    scopes = {one["name"]: one for one in session.request("scopes", {"frameId": frame["id"]})["scopes"]}
    assert scopes["Locals"]["expensive"] is False and scopes["Globals"]["expensive"] is True
    names = {one["name"] for one in variables(session, scopes["Globals"]["variablesReference"])}
    assert "box" in names and "released" in names
    go_on(session, program, thread, "values")


def test_values_of_locals(at_values, python):
    program, session, frame, thread = at_values(python)
    told = local_variables(session, frame)
    assert {name: told[name]["value"] for name in VALUES} == VALUES
    assert {name: told[name]["type"] for name in TYPES} == TYPES
    assert all(one.get("evaluateName") for one in told.values())
    assert len(told["long_text"]["value"]) < 20000 < 100000
    assert "Point" in told["point"]["value"] and "Hostile" in told["hostile"]["value"]
    go_on(session, program, thread, "values")


def test_children(at_values, python):
    program, session, frame, thread = at_values(python)
    told = local_variables(session, frame)
    point = {one["name"]: one for one in variables(session, told["point"]["variablesReference"])}
    assert point["x"]["value"] == "3" and point["y"]["value"] == "4"
    short = [one for one in variables(session, told["short_list"]["variablesReference"], filter="indexed")]
    assert [one["value"] for one in short] == ["1", "'two'", "[3]"]
    one, = variables(session, short[2]["variablesReference"], filter="indexed")
    assert one["value"] == "3"
    assert evaluate(session, one["evaluateName"], frame)["result"] == "3"
    go_on(session, program, thread, "values")


def test_a_property_is_lazy(at_values, python):
    program, session, frame, thread = at_values(python)
    told = local_variables(session, frame)
    children = variables(session, told["point"]["variablesReference"])
    groups = [one for one in children if one["variablesReference"] and not (one.get("presentationHint") or {}).get("lazy")]
    for group in groups:
        children += variables(session, group["variablesReference"])
    total = next(one for one in children if one["name"] == "total")
    assert total["presentationHint"]["lazy"] and total["variablesReference"]
    value, = variables(session, total["variablesReference"])
    assert value["value"] == "7"
    go_on(session, program, thread, "values")


def test_a_long_list_in_pages(at_values, python):
    program, session, frame, thread = at_values(python)
    long_list = local_variables(session, frame)["long_list"]
    assert long_list["indexedVariables"] == 1000000 and len(long_list["value"]) < 10000
    page = variables(session, long_list["variablesReference"], filter="indexed", start=999900, count=100)
    assert [one["value"] for one in page] == [str(i) for i in range(999900, 1000000)]
    assert evaluate(session, page[-1]["evaluateName"], frame)["result"] == "999999"
    assert variables(session, long_list["variablesReference"], filter="indexed", start=1000000, count=100) == []
    go_on(session, program, thread, "values")


def test_a_big_dict_in_pages(at_values, python):
    program, session, frame, thread = at_values(python)
    big = local_variables(session, frame)["big_dict"]
    assert big["indexedVariables"] == 5000
    page = variables(session, big["variablesReference"], filter="indexed", start=4990, count=10)
    assert [one["value"].split(": ")[-1] for one in page] == [str(i * i) for i in range(4990, 5000)]
    go_on(session, program, thread, "values")


def test_names_are_never_twice(at_values, any_python):
    program, session, frame, thread = at_values(any_python)
    for one in local_variables(session, frame).values():
        if one["variablesReference"]:
            names = [child["name"] for child in variables(session, one["variablesReference"], start=0, count=100)]
            assert len(names) == len(set(names)), one
    go_on(session, program, thread, "values")


def test_hexadecimal(at_values, python):
    program, session, frame, thread = at_values(python)
    reference = scope(session, frame)["variablesReference"]
    told = {one["name"]: one["value"] for one in variables(session, reference, format={"hex": True})}
    assert told["integer"] == "0x2a" and told["negative"] == "-0x7"
    assert evaluate(session, "integer", frame, format={"hex": True})["result"] == "0x2a"
    told = evaluate(session, "[1, (254,), {16: True, 'x': -3}]", frame, format={"hex": True})["result"]
    assert told == "[0x1, (0xfe,), {0x10: True, 'x': -0x3}]"
    go_on(session, program, thread, "values")


@pytest.mark.parametrize("reference", [0, -1, 2 ** 31 - 1, 12345])
def test_a_reference_to_nothing(at_values, any_python, reference):
    program, session, frame, thread = at_values(any_python)
    session.refused("variables", {"variablesReference": reference}, check=False)
    go_on(session, program, thread, "values")


# ---- change ----

def test_set_variable(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "jump_third", "jumps")
    reference = scope(session, frame)["variablesReference"]
    answer = session.request("setVariable", {"variablesReference": reference, "name": "a", "value": "40 + 1"})
    assert answer["value"] == "41"
    set_lines(session, program, "jump_return")
    resume(session, body["threadId"])
    stopped(session)
    assert local_variables(session, top(session, body["threadId"]))["a"]["value"] == "42"
    go_on(session, program, body["threadId"], "jumps")


def test_set_variable_in_containers(at_values, python):
    program, session, frame, thread = at_values(python)
    told = local_variables(session, frame)
    for name, child, after in [("short_list", None, "short_list[0]"), ("point", "x", "point.x"), ("short_dict", None, "short_dict['a']")]:
        children = variables(session, told[name]["variablesReference"])
        wanted = child or next(one["name"] for one in children if one["value"] == "1")
        session.request("setVariable", {"variablesReference": told[name]["variablesReference"], "name": wanted, "value": "99"})
        assert evaluate(session, after, frame)["result"] == "99"
    session.refused("setVariable", {"variablesReference": told["some_tuple"]["variablesReference"], "name": "0", "value": "1"})
    session.refused("setVariable", {"variablesReference": told["point"]["variablesReference"], "name": "x", "value": "1 +"})
    for name in ("point", "short_list", "short_dict"):
        for child in ("no_such", "99"):
            wrong = {"variablesReference": told[name]["variablesReference"], "name": child, "value": "1"}
            assert child in session.refused("setVariable", wrong)
    go_on(session, program, thread, "values")


def test_set_expression(at_values, python):
    program, session, frame, thread = at_values(python)
    for expression in ("integer", "short_list[1]", "point.y", "short_dict[2]"):
        answer = session.request("setExpression", {"expression": expression, "value": "7 * 11", "frameId": frame["id"]})
        assert answer["value"] == "77"
        assert evaluate(session, expression, frame)["result"] == "77"
    session.refused("setExpression", {"expression": "1 + 1", "value": "3", "frameId": frame["id"]})
    go_on(session, program, thread, "values")


# ---- sources, modules, byte code ----

def test_source_of_code_without_a_file(attached, python):
    program, session = attached(python)
    body, _ = stop_at(session, program, "cold", "executed")
    made = next(frame for frame in stack(session, body["threadId"]) if (frame.get("source") or {}).get("name") == "<made>")
    answer = session.request("source", {"source": made["source"], "sourceReference": made["source"]["sourceReference"]})
    assert answer["content"] == "x = 1\ny = cold_body(x)\n" and made["line"] == 2
    go_on(session, program, body["threadId"], "executed")


def test_source_of_nothing(attached, any_python):
    _, session = attached(any_python)
    session.refused("source", {"sourceReference": 12345})


def test_modules(attached, python):
    program, session = attached(python)
    answer = session.request("modules", {"startModule": 0, "moduleCount": 1000})
    modules = {module["name"]: module for module in answer["modules"]}
    assert modules["__main__"]["path"] == program.path and "threading" in modules
    page = session.request("modules", {"startModule": 1, "moduleCount": 2})
    assert [module["id"] for module in page["modules"]] == [module["id"] for module in answer["modules"][1:3]]
    assert page["totalModules"] == answer["totalModules"] == len(answer["modules"])


def test_loaded_sources(attached, python):
    program, session = attached(python)
    assert program.path in {source.get("path") for source in session.request("loadedSources")["sources"]}


def test_disassemble(attached, python):
    program, session = attached(python)
    body, frame = stop_at(session, program, "cold", "cold")
    reference = frame["instructionPointerReference"] if "instructionPointerReference" in frame else None
    if not reference:
        reference = evaluate(session, "cold_body", frame)["memoryReference"]
    answer = session.request("disassemble", {"memoryReference": reference, "instructionCount": 10})
    instructions = answer["instructions"]
    assert len(instructions) == 10 and any("LOAD_" in one["instruction"] for one in instructions)
    assert any(one.get("line") for one in instructions)
    go_on(session, program, body["threadId"], "cold")


# ---- memory ----

@pytest.mark.parametrize("name, size", [("raw", 7), ("array", 1024), ("view", 1024)])
def test_read_memory(at_values, python, name, size):
    program, session, frame, thread = at_values(python)
    reference = local_variables(session, frame)[name]["memoryReference"]
    content = b"\x00\x01bytes" if name == "raw" else bytes(range(256)) * 4
    answer = session.request("readMemory", {"memoryReference": reference, "offset": 2, "count": 5})
    assert base64.b64decode(answer["data"]) == content[2:7] and not answer.get("unreadableBytes")
    answer = session.request("readMemory", {"memoryReference": reference, "offset": 0, "count": size + 10})
    assert base64.b64decode(answer["data"]) == content and answer["unreadableBytes"] == 10
    session.refused("readMemory", {"memoryReference": "0xdeadbeef0000", "count": 8})
    go_on(session, program, thread, "values")


def test_write_memory_only_when_allowed(at_values, python):
    program, session, frame, thread = at_values(python)
    reference = local_variables(session, frame)["array"]["memoryReference"]
    session.refused("writeMemory", {"memoryReference": reference, "data": base64.b64encode(b"\xff").decode()})
    assert evaluate(session, "array[0]", frame)["result"] == "0"
    go_on(session, program, thread, "values")


def test_write_memory(at_values, python):
    program, session, frame, thread = at_values(python, allowWriteMemory=True)
    told = local_variables(session, frame)
    session.request("writeMemory", {"memoryReference": told["array"]["memoryReference"], "offset": 1,
                                    "data": base64.b64encode(b"\xfe\xff").decode()})
    assert evaluate(session, "array[1:3]", frame)["result"] == "bytearray(b'\\xfe\\xff')"
    session.refused("writeMemory", {"memoryReference": told["raw"]["memoryReference"], "data": "AAAA"})
    go_on(session, program, thread, "values")


@pytest.mark.parametrize("data", ["!!", "AA", "A===", "AAA\n", "AA==AA=="])
def test_write_memory_of_no_base64(at_values, python, data):
    program, session, frame, thread = at_values(python, allowWriteMemory=True)
    reference = local_variables(session, frame)["array"]["memoryReference"]
    assert "base64" in session.refused("writeMemory", {"memoryReference": reference, "data": data})
    assert evaluate(session, "array[0]", frame)["result"] == "0"
    go_on(session, program, thread, "values")


def test_events_after_a_change(at_values, python):
    """invalidated and, for memory, memory."""
    program, session, frame, thread = at_values(python, allowWriteMemory=True)
    told = local_variables(session, frame)
    session.request("setVariable", {"variablesReference": scope(session, frame)["variablesReference"], "name": "integer",
                                    "value": "5"})
    assert "variables" in session.event("invalidated").get("areas", ["variables"])
    session.request("writeMemory", {"memoryReference": told["array"]["memoryReference"],
                                    "data": base64.b64encode(b"\x09").decode()})
    body = session.event("memory")
    assert body["memoryReference"] == told["array"]["memoryReference"] and body["count"] == 1
    go_on(session, program, thread, "values")


# ---- output ----

def test_output(attached, python):
    program, session = attached(python, redirectOutput=True)
    lines = program.run("prints")
    assert "to standard output \u20ac" in lines  # and it still goes where it went
    out = session.event("output", lambda body: "to standard output" in body["output"])
    assert out["category"] == "stdout" and "\u20ac" in out["output"]
    session.position = 0
    err = session.event("output", lambda body: "to standard error" in body["output"])
    assert err["category"] == "stderr"


def test_no_output_after_disconnect(attached, python):
    program, session = attached(python, redirectOutput=True)
    session.disconnect()
    session.wait_end()
    assert "to standard output \u20ac" in program.run("prints")


def test_failures_are_answers(at_values, any_python):
    """Wrong types and missing arguments: an error each, and the session goes on."""
    program, session, frame, thread = at_values(any_python)
    for command, arguments in [("variables", {}), ("variables", {"variablesReference": "x"}), ("scopes", {"frameId": None}),
                               ("evaluate", {"frameId": frame["id"]}), ("evaluate", {"expression": 5}), ("setBreakpoints", {}),
                               ("setBreakpoints", {"source": 5, "breakpoints": {}}), ("stackTrace", []), ("continue", "x"),
                               ("setVariable", {"variablesReference": 1}), ("readMemory", {"memoryReference": 5, "count": -1}),
                               ("completions", {"text": "x", "column": "y"}), ("setFunctionBreakpoints", {"breakpoints": [5]}),
                               ("setExceptionBreakpoints", {"filters": "x"}), ("goto", {}), ("disassemble", {}),
                               ("gotoTargets", {"source": {}, "line": {}}), ("cancel", []), ("source", {"sourceReference": []})]:
        answer = session.answer(session.send(command, arguments, check=False))
        assert not answer["success"], (command, arguments, answer)
    assert evaluate(session, "integer", frame)["result"] == "42"
    go_on(session, program, thread, "values")


MANY = """def many(zeta, alpha):
    _inner = __own = 0
    b20 = 1
    {}
    return b20                            # line 5
def few(zeta, alpha):
    late = early = 1
    return late                           # line 8
few(1, 2)
many(1, 2)
"""


def test_order_of_names(launch, any_python, tmp_path):
    """Few as they were bound; of many the arguments first, then by name, with underscores last."""
    path = tmp_path / "many.py"
    path.write_text(MANY.format("; ".join("b{} = 0".format(n) for n in range(39, 20, -1))))
    lines = [{"line": 5}, {"line": 8}]
    session, _ = launch(any_python, lambda one: one.request("setBreakpoints", {"source": {"path": str(path)}, "breakpoints": lines}),
                        program=str(path))

    def shown():
        thread = stopped(session, "breakpoint")["threadId"]
        return thread, list(local_variables(session, top(session, thread)))

    thread, few = shown()
    assert few == ["zeta", "alpha", "late", "early"]
    resume(session, thread)
    thread, many = shown()
    assert many == ["zeta", "alpha"] + ["b{}".format(n) for n in range(20, 40)] + ["_inner", "__own"]
    resume(session, thread)
    session.event("terminated")
