# Data breakpoints: an attribute, an item or a variable that changes.  CPython has no event for that, so every line of the user's
# own code asks: slow where that code is hot, and the client is warned.  What is compared is identity, then equality of plain
# values, then the version that torch counts for a tensor that is changed in place.
codes = probe.part("codes")
threads = probe.part("threads")
values = probe.part("values")
WATCHED_MAX = 64
PLAIN = (int, float, complex, str, bytes, bool, type(None), tuple, frozenset)
GONE = object()


class Watched(object):
    """Where a value is kept: kind "attribute", "item", "local" or "global" of an owner."""

    def __init__(self, kind, owner, key, name):
        self.kind = kind
        self.owner = owner
        self.key = key
        self.name = name

    def now(self):
        try:
            if self.kind == "attribute":
                space = values.space_of(self.owner)
                return space[self.key] if self.key in space else object.__getattribute__(self.owner, self.key)
            if self.kind == "local":
                return self.local()
            return self.owner[self.key]
        except Exception as error:
            probe.engine.keep_pending(error)
            return GONE

    def local(self):
        found = self.owner.f_locals.get(self.key, GONE)
        probe.part("names").release(self.owner)
        return found


def version(value):
    """Of a tensor's content, or the size of a container."""
    try:
        if values.provider(value) is not None and hasattr(type(value), "_version"):
            return value._version
        if type(value) in (list, dict, set):
            return len(value)
    except Exception as error:
        probe.engine.keep_pending(error)
    return None


class DataBreakpoint(object):
    def __init__(self, number, watched, rule):
        self.number = number
        self.watched = watched
        self.rule = rule
        self.value = watched.now()
        self.version = version(self.value)

    def changed(self):
        """(what it was, what it is) or None."""
        now = self.watched.now()
        before, state = self.value, version(now)
        if now is before and state == self.version:
            return None
        same = now is before
        self.value, old_state, self.version = now, self.version, state
        if not same and type(now) in PLAIN and type(before) is type(now):
            try:
                if now == before:
                    return None
            except Exception as error:
                probe.engine.keep_pending(error)
        if same:
            return "version {}".format(old_state), "version {}".format(state)
        return shown(before), shown(now)


def shown(value):
    return "nothing" if value is GONE else values.text(value, 100)


class Watches(object):
    def __init__(self, session, breakpoints):
        self.session = session
        self.breakpoints = breakpoints
        self.planted = {}

    def begin(self):
        for code in codes.live():
            self.new_code(code)
        probe.engine.watch_new_code(True)

    def new_code(self, code):
        if id(code) in self.planted or not codes.mine.own(code.co_filename):
            return
        known = {}
        codes.tree(code, known)
        for key, one in known.items():
            if key not in self.planted:
                self.planted[key] = one
                self.session.breakpoints.extra[key] = one, codes.lines_of(one)
        self.session.breakpoints.replant(list(known.values()))

    def changed(self, frame):
        """The stop that a change makes, or None."""
        hits, texts = [], []
        for one in self.breakpoints:
            if one.watched.kind == "local" and frame is not one.watched.owner:
                continue
            found = one.changed()
            if found is not None and one.rule.met(frame)[0]:
                hits.append(one.number)
                texts.append("{}: {} -> {}".format(one.watched.name, *found))
        if not hits:
            return None
        text = "; ".join(texts)
        return probe.part("session").Stop("data breakpoint", frame, hit=hits, text=text, description=text)

    def end(self):
        self.breakpoints = []
        codes_ = list(self.planted.values())
        for key in self.planted:
            self.session.breakpoints.extra.pop(key, None)
        self.planted = {}
        self.session.breakpoints.replant(codes_)


def where(session, given):
    """(what to watch, its name), or (None, why not)"""
    name = given.get("name") or ""
    nodes = probe.part("nodes")
    if given.get("variablesReference"):
        node = session.handles.node_of(given["variablesReference"])
        child = node.find(name)
        if isinstance(node, nodes.LocalsNode) and node.handle.frame.f_locals is not node.handle.frame.f_globals:
            return Watched("local", node.handle.frame, name, name), name
        if isinstance(node, (nodes.LocalsNode, nodes.GlobalsNode)):
            return Watched("item", node.handle.frame.f_globals, name, name), name
        return of_object(getattr(node, "value", None), child)
    return of_expression(session, given, name)


def of_object(owner, child):
    if child.key is None or owner is None or child.make is not None:
        return None, "{} is computed".format(child.name)
    name = child.expression or child.name
    if type(child.key) is tuple:
        return (Watched("item", owner, child.key[0], name), name) if hasattr(type(owner), "__setitem__") else (
            None, "a {} does not change".format(values.type_name(owner)))
    return Watched("attribute", owner, child.key, name), name


def of_expression(session, given, name):
    import ast

    handle = probe.part("evaluate").handle_of(session, given.get("frameId"))
    try:
        node = ast.parse(name.strip(), mode="eval").body
    except SyntaxError:
        return None, "no expression"
    if isinstance(node, ast.Name) and handle is not None:
        frame = handle.frame
        if frame.f_locals is not frame.f_globals and node.id in frame.f_locals:
            return Watched("local", frame, node.id, name), name
        return Watched("item", frame.f_globals, node.id, name), name
    inner = compile(ast.Expression(node.value), "<data>", "eval") if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    if inner is None or handle is None:
        return None, "only a name, an attribute or an item can change"
    owner = probe.part("names").evaluated(inner, handle.frame)
    if isinstance(node, ast.Attribute):
        return Watched("attribute", owner, node.attr, name), name
    key = node.slice.value if type(node.slice).__name__ == "Index" else node.slice
    return Watched("item", owner, eval(compile(ast.Expression(key), "<data>", "eval"), probe.part("names").merged(handle.frame)), name), name  # noqa: E501


def data_breakpoint_info(session, given):
    try:
        watched, text = where(session, given)
    except probe.Failed:
        raise
    except Exception as error:
        watched, text = None, probe.caught(error)
    if watched is None:
        return {"dataId": None, "description": text}
    table = session.__dict__.setdefault("watchable", {})
    if len(table) > 1000:
        table.clear()
    identity = "{}:{}:{!r}".format(watched.kind, id(watched.owner), watched.key)[:500]
    table[identity] = watched
    return {"dataId": identity, "description": "{} (every line of your code is slower while it is watched)".format(text),
            "accessTypes": ["write"], "canPersist": False}


def set_data_breakpoints(session, given):
    if session.data is not None:
        session.data.end()
        session.data = None
    made, answers = [], []
    table = session.__dict__.get("watchable", {})
    for one in (given.get("breakpoints") or [])[:WATCHED_MAX]:
        watched = table.get(one.get("dataId"))
        rule = probe.part("conditions").Rule(one)
        if watched is None or rule.wrong or one.get("accessType") not in (None, "write"):
            answers.append({"verified": False, "message": rule.wrong or "not known any more, or not for writing"})
            continue
        number = session.breakpoints.counter()
        made.append(DataBreakpoint(number, watched, rule))
        answers.append({"id": number, "verified": True, "message": "watched at every line of your own code: slow"})
    if made:
        session.data = Watches(session, made)
        session.data.begin()
    else:
        table.clear()
    session.breakpoints.watch()
    return {"breakpoints": answers}
