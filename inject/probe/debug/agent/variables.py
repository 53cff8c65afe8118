# Rows of the client's tree of variables.
import _thread
import time

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


TOO_LONG = "the values before it took too long"
SLOW_MAX = 3  # so many times the limit of one repr may all of an answer take


class Page(object):
    """The rows of one answer.  Where they take too long, the session asks for the same again, and the rest comes without repr."""

    def __init__(self, session, given):
        self.session = session
        self.given = given
        self.key = tuple(given.get(name) for name in ("variablesReference", "start", "count", "filter"))
        self.node = session.handles.node_of(given.get("variablesReference"))
        if not isinstance(self.node, nodes.Node):
            raise probe.Failed("{} has no variables".format(given["variablesReference"]), "NOT_FOUND")

    def children(self):
        self.node.renew()
        given = self.given
        found = self.node.children(max(given.get("start") or 0, 0), max(given.get("count") or 0, 0), given.get("filter"))
        return found[:nodes.PAGE_MAX]

    def rows(self):
        """On the thread that the values belong to."""
        rows = self.session.handles.begun[self.key] = []
        until = time.time() + SLOW_MAX * probe.repr_timeout if probe.repr_timeout else None
        view = View(self.session, self.node.handle, self.given)
        try:
            for child in self.children():
                if until is not None and time.time() > until:
                    values.limits.quiet[_thread.get_ident()] = TOO_LONG
                rows.append(view.row(child))
        finally:
            values.limits.quiet.pop(_thread.get_ident(), None)
        self.session.handles.begun.pop(self.key, None)
        return rows

    def rest(self, why):
        """What is there already, and the others without any code of the program."""
        begun = self.session.handles.begun.pop(self.key, None)
        rows = list(begun or ())
        view = View(self.session, self.node.handle, self.given)
        values.limits.quiet[_thread.get_ident()] = why
        try:
            for number, child in enumerate(self.children()[len(rows):]):
                row = view.row(child)
                if begun is not None and number == 0 and child.make is None:
                    row["value"] = values.limits.late(child.value)
                rows.append(row)
        finally:
            values.limits.quiet.pop(_thread.get_ident(), None)
        return rows


def variables(session, given):
    page = Page(session, given)
    if probe.calls.busy(page.node.handle):
        rows = page.rest("its thread is busy")
    elif page.key in session.handles.begun:  # the answer before was interrupted
        rows = page.rest(TOO_LONG)
    else:
        rows = page.rows()
    return {"variables": numbered(rows)}


def set_variable(session, given):
    node = session.handles.node_of(given.get("variablesReference"))
    if not isinstance(node, nodes.Node):
        raise probe.Failed("{} has no variables".format(given["variablesReference"]), "NOT_FOUND")
    probe.part("evaluate").refuse_busy(node.handle)
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
