# Rows of the client's tree of variables.
values = probe.part("values")
nodes = probe.part("nodes")


class View(object):
    """How values are shown in one answer."""

    def __init__(self, session, handle, given=None):
        self.session = session
        self.handle = handle
        format_ = (given or {}).get("format") or {}
        self.hexadecimal = bool(format_.get("hex"))
        self.room = session.options.max_string

    def shown(self, value, expression=None, room=None):
        """The fields that evaluate and variables have in common."""
        row = {"value": values.text(value, room or self.room, self.hexadecimal), "type": values.type_name(value),
               "variablesReference": 0}
        if values.has_children(value):
            node = nodes.ObjectNode(self.session, self.handle, value, expression)
            row["variablesReference"] = self.session.handles.node(node)
            if node.total:  # clients read in pages then, and by name only when they know how many
                row["indexedVariables"] = node.total
                row["namedVariables"] = node.named()
        reference = probe.part("memory").reference(self.session, value)
        if reference:
            row["memoryReference"] = reference
        if type(value) is str:
            row["presentationHint"] = {"attributes": ["rawString"]}
        return row

    def row(self, child):
        if isinstance(child.kind, nodes.Node):
            found = {"value": "", "variablesReference": self.session.handles.node(child.kind),
                     "namedVariables": child.kind.named(), "presentationHint": {"kind": "virtual", "attributes": ["readOnly"]}}
        elif child.make is not None:
            lazy = nodes.LazyNode(self.session, self.handle, child)
            found = {"value": "...", "variablesReference": self.session.handles.node(lazy), "namedVariables": 1,
                     "presentationHint": {"kind": child.kind or "virtual", "lazy": True, "attributes": ["hasSideEffects"]}}
        else:
            found = self.shown(child.value, child.expression)
            if child.kind or child.attributes:
                hint = found.setdefault("presentationHint", {})
                hint["kind"] = child.kind or "data"
                if child.attributes:
                    hint["attributes"] = list(child.attributes)
        found["name"] = child.name
        if child.expression:
            found["evaluateName"] = child.expression
        return found


def numbered(rows):
    """A name that comes again confuses clients."""
    seen = {}
    for row in rows:
        name = row["name"]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            row["name"] = "{} ({})".format(name, seen[name])
    return rows


def variables(session, given):
    node = session.handles.node_of(given.get("variablesReference"))
    if not isinstance(node, nodes.Node):
        raise probe.Failed("{} has no variables".format(given["variablesReference"]), "NOT_FOUND")
    node.renew()
    view = View(session, node.handle, given)
    children = node.children(max(given.get("start") or 0, 0), max(given.get("count") or 0, 0), given.get("filter"))
    return {"variables": numbered([view.row(child) for child in children[:nodes.PAGE_MAX]])}


def set_variable(session, given):
    node = session.handles.node_of(given.get("variablesReference"))
    if not isinstance(node, nodes.Node):
        raise probe.Failed("{} has no variables".format(given["variablesReference"]), "NOT_FOUND")
    node.renew()
    child = node.find(given.get("name") or "")
    if node.handle is None:
        raise probe.Failed("there is no frame to evaluate in")
    value = probe.part("evaluate").value_of(session, node.handle, given.get("value") or "")
    try:
        node.assign(child, value)
    except probe.Failed:
        raise
    except Exception as error:
        raise probe.Failed(probe.caught(error))
    return View(session, node.handle, given).shown(value, child.expression)
