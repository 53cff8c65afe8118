# What a value is shown as: bounded text, its type, and what its children are made of.  Attributes are read as they are stored:
# no property and no __getattr__ of the program runs, but for repr() of objects that nothing better is known of.
import _collections
import _thread
import itertools
import sys
import types

SIMPLE = (type(None), bool, int, float, complex, str, bytes)
BRIEF = (bool, float, type(None))  # and small ints: nothing of their text is left out
BRIEF_BITS = 128
NAME_MAX = 100
KEY_MAX = 200
STORED = (types.MemberDescriptorType, types.GetSetDescriptorType)
CALLABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, classmethod, staticmethod,
            type(list.append), type(list.__add__), type(dict.fromkeys))
SEQUENCES = (list, tuple, _collections.deque, range)


def provider(value):
    """What knows more of such values (arrays, modules, optimizers), or None."""
    if "torch" in sys.modules or "numpy" in sys.modules:
        return probe.part("arrays").provider(value)
    return None



# Their repr runs no code of the program, whatever they hold.
PLAIN = SIMPLE + (bytearray, range, type, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


class Limits(object):
    """Of the time that a value's own repr may take."""

    def __init__(self):
        self.quiet = {}  # ident -> why no repr of the program's runs on this thread now

    def repr(self, value):
        if type(value) in PLAIN:
            return repr(value)
        why = self.quiet.get(_thread.get_ident())
        if why is not None:
            return "<{} object at {:#x}; {}>".format(type_name(value), id(value), why)
        text = probe.engine.repr(value, probe.repr_timeout)
        return self.late(value) if text is None else text

    def late(self, value):
        return "<{} object at {:#x}; its repr takes longer than {:g} s>".format(type_name(value), id(value), probe.repr_timeout)


limits = Limits()


class Text(probe.agent.part("show").Shower):
    def __init__(self, room, hexadecimal=False):
        super(Text, self).__init__(room)
        self.hexadecimal = hexadecimal

    def own(self, value):
        if self.hexadecimal and type(value) is int:
            return hex(value)
        known = provider(value)
        if known is not None:
            try:
                return known.text(value)
            except Exception as error:
                return "<{}: {}>".format(type_name(value), probe.caught(error))
        return super(Text, self).own(value)

    def repr(self, value):
        return limits.repr(value)

    def reason(self, error):
        return probe.caught(error)

    def base(self, value, kind):
        if provider(value) is not None:
            return None
        return super(Text, self).base(value, kind)


def text(value, room=1024, hexadecimal=False):
    kind = type(value)
    if hexadecimal and kind is int:
        return hex(value)
    if kind in BRIEF or kind is int and value.bit_length() < BRIEF_BITS:
        return repr(value)
    shower = Text(room, hexadecimal)
    shower.value(value)
    return "".join(shower.parts)


def type_name(value):
    return probe.agent.name_of(value)


def is_simple(key, depth=0):
    if type(key) in (str, bytes):
        return len(key) <= KEY_MAX
    return type(key) in SIMPLE or type(key) is tuple and depth < 3 and all(is_simple(one, depth + 1) for one in key)


def joined(expression, name):
    return "{}.{}".format(expression, name) if expression and name.isidentifier() else None


def indexed(expression, key):
    return "{}[{!r}]".format(expression, key) if expression and is_simple(key) else None


class Child(object):
    """One row: a value, or lazily a function that makes it."""

    __slots__ = ("name", "value", "expression", "kind", "key", "lazy", "make", "attributes")

    def __init__(self, name, value=None, expression=None, kind=None, key=None, make=None, attributes=()):
        self.name = name
        self.value = value
        self.expression = expression
        self.kind = kind
        self.key = key
        self.make = make
        self.attributes = attributes


def space_of(value):
    """The object's own dict, as it is stored, or an empty one."""
    try:
        if isinstance(value, type):
            return dict(type.__dict__["__dict__"].__get__(value))
        space = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return dict(space) if isinstance(space, dict) else {}


def mro(kind):
    return type.__dict__["__mro__"].__get__(kind)


def items_count(value):
    """How many children can be asked for by position."""
    for kind in (dict, set, frozenset) + SEQUENCES:
        if isinstance(value, kind):
            return kind.__len__(value)
    known = provider(value)
    return known.count(value) if known is not None else 0


def items(value, expression, start, count):
    known = provider(value)
    if known is not None:
        return known.items(value, expression, start, count)
    stop = start + count
    if isinstance(value, dict):
        found = list(itertools.islice(dict.items(value), start, stop))
        return [Child(text(key, NAME_MAX), one, indexed(expression, key), key=(key,)) for key, one in found]
    if isinstance(value, (set, frozenset)):
        base = set if isinstance(value, set) else frozenset
        return [Child(str(start + n), one) for n, one in enumerate(itertools.islice(base.__iter__(value), start, stop))]
    base = next(kind for kind in SEQUENCES if isinstance(value, kind))
    if base is _collections.deque:
        found = list(itertools.islice(base.__iter__(value), start, stop))
    else:
        found = base.__getitem__(value, slice(start, stop))
    return [Child(str(start + n), one, indexed(expression, start + n), key=(start + n,)) for n, one in enumerate(found)]


def has_children(value):
    if type(value) in SIMPLE or value is NotImplemented or value is Ellipsis:
        return False
    if type(value) in SEQUENCES or type(value) in (dict, set, frozenset):
        return bool(items_count(value))
    return True


# ---- attributes ----


def class_attributes(value):
    """{name: what the classes have}, the nearest first."""
    found = {}
    if isinstance(value, type):
        bases = mro(value)[1:]
    else:
        bases = mro(type(value))
    for base in bases:
        if base is object:
            continue
        for name, one in type.__dict__["__dict__"].__get__(base).items():
            found.setdefault(name, one)
    return found


def attributes(value, expression):
    """(rows of its own, {group: rows})"""
    own = [Child(name, one, joined(expression, name), key=name) for name, one in space_of(value).items() if type(name) is str]
    known = set(child.name for child in own)
    special, functions, variables = [], [], []
    for child in list(own):
        if child.name.startswith("__") and child.name.endswith("__"):
            special.append(child)
        elif isinstance(value, (type, types.ModuleType)) and isinstance(child.value, CALLABLE):
            functions.append(child)
        else:
            continue
        own.remove(child)
    for name, one in class_attributes(value).items():
        if name in known or type(name) is not str:
            continue
        row = from_class(value, name, one, joined(expression, name))
        if row is None:
            continue
        if name.startswith("__") and name.endswith("__"):
            special.append(row)
        elif isinstance(one, CALLABLE):
            functions.append(row)
        elif row.kind == "class":
            variables.append(row)
        else:
            own.append(row)
    order = lambda child: child.name  # noqa: E731
    if not isinstance(value, types.ModuleType):
        own.sort(key=lambda child: child.name.startswith("_"))
    return own, {"special variables": sorted(special, key=order), "function variables": sorted(functions, key=order),
                 "class variables": sorted(variables, key=order)}


def from_class(value, name, one, expression):
    if type(one) in STORED and not isinstance(value, type):
        try:
            return Child(name, one.__get__(value, type(value)), expression, key=name)
        except Exception:
            return None
    if (isinstance(one, property) or type(one).__name__ == "cached_property") and not isinstance(value, type):
        return Child(name, None, expression, "property", name, make=lambda: getattr(value, name))
    return Child(name, one, expression, "method" if isinstance(one, CALLABLE) else "class", name)
