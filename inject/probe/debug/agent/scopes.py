# The scopes of a frame: what it returned or raised, locals, globals.

LOCALS, GLOBALS, RESULT = "Locals", "Globals", "Result"
EXPENSIVE = 200  # globals: VS Code shows an expensive scope folded


def scopes(session, given):
    handle = session.handles.frame_of(given.get("frameId"))
    nodes = probe.part("nodes")
    found = []
    stop = session.stops.get(handle.ident)
    result = nodes.ResultNode(session, handle, stop)
    if result.rows:
        found.append(answer(session, RESULT, result, "returnValue"))
    local = nodes.LocalsNode(session, handle)
    found.append(answer(session, LOCALS, local, "locals"))
    if handle.frame.f_locals is not handle.frame.f_globals:
        found.append(answer(session, GLOBALS, nodes.GlobalsNode(session, handle), "globals", True))
    return {"scopes": found}


def answer(session, name, node, hint, expensive=False):
    return {"name": name, "presentationHint": hint, "expensive": expensive, "variablesReference": session.handles.node(node),
            "namedVariables": node.named()}
