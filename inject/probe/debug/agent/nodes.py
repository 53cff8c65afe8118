# What has children in the client's tree: scopes, objects, groups of attributes, and rows whose value is made when it is asked for.
import types

values = probe.part("values")
names = probe.part("names")
PAGE_MAX = 10000  # rows of one answer
UNSORTED_MAX = 20  # names that are shown as they were bound
HINTS = {"property": "property", "method": "method", "class": "class"}


class Node(object):
    """Rows by name; a subclass may have more by position."""

    rows = ()

    def __init__(self, session, handle, rows=()):
        self.session = session
        self.handle = handle  # the frame to evaluate in, or None
        self.rows = rows

    def renew(self):
        """The rows as they are now: a client reads the same reference again when something was set."""

    def named(self):
        return len(self.rows)

    def count(self):
        return 0

    def items(self, start, count):
        return []

    def children(self, start, count, kind):
        """Those by position come first, as start counts them."""
        if kind == "named":
            return list(self.rows)[start:start + count if count else None]
        total = self.count()
        room = min(count or PAGE_MAX, PAGE_MAX)
        found = self.items(start, min(room, total - start)) if start < total else []
        if kind != "indexed" and not count:
            found = found + list(self.rows)
        return found

    def find(self, name):
        for child in self.rows:
            if child.name == name:
                return child
        raise probe.Failed("there is no {}".format(name), "NOT_FOUND")

    def assign(self, child, value):
        raise probe.Failed("{} cannot be set".format(child.name), "UNSUPPORTED")


class LazyNode(Node):
    """Exactly one row, of a value that is made now."""

    def __init__(self, session, handle, child):
        Node.__init__(self, session, handle)
        self.child = child

    def named(self):
        return 1

    def children(self, start, count, kind):
        child = self.child
        try:
            value = child.make()
        except Exception as error:
            return [values.Child("", Raised(error), child.expression)]
        return [values.Child("", value, child.expression)]


class Raised(object):
    """Stands for a value that could not be read."""

    def __init__(self, error):
        self.text = "<{}>".format(probe.caught(error))

    def __repr__(self):
        return self.text


def by_name(order, first=0):
    """Few names as they came; of many, people look for one by alphabet: those of underscores last, the first ones stay."""
    if len(order) <= UNSORTED_MAX:
        return order
    return order[:first] + sorted(order[first:], key=lambda name: (name.startswith("_"), name.startswith("__"), name))


def arguments_of(code):
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


class LocalsNode(Node):
    def __init__(self, session, handle):
        Node.__init__(self, session, handle)
        self.renew()

    def renew(self):
        frame = self.handle.frame
        if frame.f_locals is frame.f_globals:
            self.rows = split(self.session, self.handle, dict(frame.f_globals))
            return
        local = dict(frame.f_locals)
        order = [name for name in names.own_names(frame.f_code) if name in local]
        first = sum(name in local for name in frame.f_code.co_varnames[:arguments_of(frame.f_code)])
        order += [name for name in local if name not in order and type(name) is str]
        order = by_name(order, first)
        self.rows = [values.Child(name, local[name], name if name.isidentifier() else None, key=name)
                     for name in order]

    def assign(self, child, value):
        if names.assign(self.handle.frame, {child.key: value}):
            raise probe.Failed("{} cannot be set".format(child.name), "UNSUPPORTED")


class GlobalsNode(Node):
    def __init__(self, session, handle):
        Node.__init__(self, session, handle)
        self.renew()

    def renew(self):
        self.rows = split(self.session, self.handle, dict(self.handle.frame.f_globals))

    def assign(self, child, value):
        self.handle.frame.f_globals[child.key] = value


class ResultNode(Node):
    """What functions that a step ran over or out of returned, and the exception that stopped the thread."""

    def __init__(self, session, handle, stop):
        Node.__init__(self, session, handle)
        if stop is None or handle.frame is not stop.frame and stop.mode is None:
            return
        rows = []
        if handle.frame is stop.frame:
            rows += [values.Child("(return) " + name, value) for name, value in stop.returned]
        if stop.after and stop.after[0]:
            rows.append(values.Child("(return) " + stop.after[0], stop.after[1]))
        if stop.exception is not None:
            rows.append(values.Child("(exception)", stop.exception))
        self.rows = rows


def split(session, handle, space):
    """A module's names: its data, and groups of the rest."""
    groups = {"special variables": [], "function variables": [], "class variables": [], "modules": []}
    own = []
    for name in by_name([name for name in space if type(name) is str]):
        value = space[name]
        child = values.Child(name, value, name if name.isidentifier() else None, key=name)
        if name.startswith("__") and name.endswith("__"):
            groups["special variables"].append(child)
        elif isinstance(value, types.ModuleType):
            groups["modules"].append(child)
        elif isinstance(value, type):
            groups["class variables"].append(child)
        elif isinstance(value, values.CALLABLE):
            groups["function variables"].append(child)
        else:
            own.append(child)
    return own + grouped(session, handle, groups, GroupNode)


def grouped(session, handle, groups, kind, value=None):
    found = []
    for name, rows in groups.items():
        if rows:
            group = values.Child(name, None)
            group.kind = kind(session, handle, rows, value)
            found.append(group)
    return found


class GroupNode(Node):
    """Some of a module's or an object's attributes."""

    def __init__(self, session, handle, rows, value=None):
        Node.__init__(self, session, handle, rows)
        self.value = value

    def assign(self, child, value):
        if self.value is None:
            self.handle.frame.f_globals[child.key] = value
        else:
            setattr(self.value, child.key, value)


class ObjectNode(Node):
    """Its rows by name are made when they are asked for: most objects of a page are never opened."""

    def __init__(self, session, handle, value, expression):
        self.session = session
        self.handle = handle
        self.value = value
        self.expression = expression
        self.total = values.items_count(value)
        self.made = None

    def renew(self):
        self.made = None
        self.total = values.items_count(self.value)

    @property
    def rows(self):
        if self.made is None:
            value, known = self.value, values.provider(self.value)
            if known is not None:
                own, groups = known.named(value, self.expression)
            elif self.total and not values.space_of(value):
                own, groups = [], {}  # a container without attributes of its own
            else:
                own, groups = values.attributes(value, self.expression)
            self.made = own + grouped(self.session, self.handle, groups, GroupNode, value)
        return self.made

    def count(self):
        return self.total

    def items(self, start, count):
        return values.items(self.value, self.expression, start, count)

    def find(self, name):
        for child in self.rows:
            if child.name == name:
                return child
        if not self.total or name.isdigit() and not isinstance(self.value, dict) and int(name) >= self.total:
            found = []
        elif name.isdigit() and not isinstance(self.value, dict):
            found = self.items(int(name), 1)
        else:
            found = [child for child in self.items(0, self.total) if child.name == name]
        if not found:
            raise probe.Failed("there is no {}".format(name), "NOT_FOUND")
        return found[0]

    def assign(self, child, value):
        if type(child.key) is tuple:
            self.value[child.key[0]] = value
        elif child.key is not None:
            setattr(self.value, child.key, value)
        else:
            Node.assign(self, child, value)
