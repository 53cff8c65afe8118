# Step-in targets: the calls of the line that a frame stands on, and which code each of them would begin.
import ast

codes = probe.part("codes")
values = probe.part("values")
TARGETS_MAX = 100
STATEMENT_LINES_MAX = 200


class Target(object):
    def __init__(self, name, known):
        self.name = name
        self.known = known  # ids of code objects, or empty when only the name is known

    def __call__(self, code):
        return id(code) in self.known if self.known else code.co_name == self.name


def statement(path, line):
    """The calls that begin in the statement around a line, in the order in which they are made."""
    text = probe.part("sources").text_of(path)
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError):
        return []
    best = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line and (best is None or node.lineno >= best.lineno):
            best = node
    return calls(best) if best is not None else []


def calls(node):
    """Inner ones first; bodies of compound statements and of functions are other statements."""
    found = []
    for field, value in ast.iter_fields(node):
        if field in ("body", "orelse", "finalbody", "handlers"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST) and not isinstance(one, (ast.Lambda, ast.stmt)):
                found += calls(one)
    if isinstance(node, ast.Call):
        found.append(node)
    return found


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return parts[::-1], False
    return [node.id] + parts[::-1], True


def callee(frame, names):
    """What a dotted name stands for, without running code of the program; None: not known."""
    try:
        return probe.agent.part("complete")._resolve(names, [frame.f_locals, frame.f_globals, vars(__import__("builtins"))])
    except Exception:
        return None


def codes_of(value, depth=0):
    """ids of the code objects that a call of a value may begin with."""
    if value is None or depth > 5:
        return set()
    if type(value) is codes.Function:
        found = {id(value.__code__)}
        wrapped = value.__dict__.get("__wrapped__")
        return found | codes_of(wrapped, depth + 1)
    if hasattr(type(value), "__func__") or type(value).__name__ == "method":
        return codes_of(value.__func__, depth + 1)
    if isinstance(value, type):
        every = values.class_attributes(value)
        every.update(values.space_of(value))
        return codes_of(every.get("__init__"), depth + 1) | codes_of(every.get("__new__"), depth + 1)
    every = values.class_attributes(value)
    # torch's modules do their work in forward, which a library's __call__ calls.
    return codes_of(every.get("forward"), depth + 1) or codes_of(every.get("__call__"), depth + 1)


def column(lines, node):
    """Where a node begins, in UTF-16 units from 1; ast counts bytes of UTF-8."""
    line = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
    before = line.encode("utf-8", "replace")[:node.col_offset].decode("utf-8", "replace")
    return len(before.encode("utf-16-le")) // 2 + 1


def step_in_targets(session, given):
    handle = session.handles.frame_of(given.get("frameId"))
    frame = handle.frame
    found = []
    path = codes.mine.path(frame.f_code.co_filename) or frame.f_code.co_filename
    lines = (probe.part("sources").text_of(path) or "").split("\n")
    for node in statement(path, frame.f_lineno)[:TARGETS_MAX]:
        names, whole = dotted(node.func)
        if not names:
            continue
        value = callee(frame, names) if whole else None
        target = Target(names[-1], codes_of(value))
        if value is not None and not target.known:
            continue  # a function in C
        one = {"id": session.handles.node(target), "label": ".".join(names) + "(...)", "line": node.lineno,
               "column": column(lines, node)}
        found.append(one)
    return {"targets": found}


def accepts(session, number):
    target = session.handles.node_of(number)
    if not isinstance(target, Target):
        raise probe.Failed("{} is not a step-in target".format(number))
    return target
