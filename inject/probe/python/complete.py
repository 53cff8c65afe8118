# Names that complete what is typed: of namespaces, keywords, and attributes of live objects.
# Objects are looked into as they are stored; properties do not run.
import re

COMPLETE_MAX = 2000
_WORD = re.compile(r"(?:[^\W\d]\w*\.)*(?:[^\W\d]\w*)?\Z")


class Unknown(Exception):
    """Only the program's own code would know."""


def _mro(kind):
    return type.__dict__["__mro__"].__get__(kind)


def _class_attribute(kind, name):
    for base in _mro(kind):
        space = type.__dict__["__dict__"].__get__(base)
        if name in space:
            return space[name]
    raise Unknown()


def _static(value, name):
    """value.name without running code of the program."""
    import types

    kind = type(value)
    try:
        found = _class_attribute(kind, name)
        if type(found) in (types.MemberDescriptorType, types.GetSetDescriptorType):
            return found.__get__(value, kind)
    except Unknown:
        found = Unknown
    except AttributeError:
        raise Unknown()
    if isinstance(found, property):
        raise Unknown()
    try:
        space = object.__getattribute__(value, "__dict__")
    except AttributeError:
        space = {}
    if isinstance(value, type):
        for base in _mro(value):
            inner = type.__dict__["__dict__"].__get__(base)
            if name in inner:
                return inner[name]
    if type(space) is dict and name in space:
        return space[name]
    if found is not Unknown:
        return found
    # torch's modules and the like keep their parts elsewhere, and give them by __getattr__.
    _class_attribute(kind, "__getattr__")
    return getattr(value, name)


def _attributes(value):
    names = set(name for name in dir(value) if type(name) is str)
    return names


def complete(text, spaces, fold=False):
    """Full dotted names that begin as the end of text does; spaces: dicts, the nearest first; fold: in any case, those of
    the same case first."""
    import builtins
    import keyword

    word = _WORD.search(text).group()
    path, _, start = word.rpartition(".")
    if not path:
        if not start and text.strip():
            return []
        names = set(keyword.kwlist)
        for space in list(spaces) + [vars(builtins)]:
            names.update(name for name in list(space) if type(name) is str)
    else:
        try:
            names = _attributes(_resolve(path.split("."), list(spaces) + [vars(builtins)]))
        except Unknown:
            return []
    hidden = start.startswith("_")
    if fold:
        lower = start.lower()
        fitting = [name for name in names if name.lower().startswith(lower) and (hidden or not name.startswith("_"))]
        fitting.sort(key=lambda name: (not name.startswith(start), name))
    else:
        fitting = sorted(name for name in names if name.startswith(start) and (hidden or not name.startswith("_")))
    return [path + "." + name if path else name for name in fitting[:COMPLETE_MAX]]


def kind(name, spaces):
    """What a name that complete() found stands for, in the words of the Debug Adapter Protocol."""
    import builtins
    import keyword
    import types

    path = name.split(".")
    if len(path) == 1 and keyword.iskeyword(name):
        return "keyword"
    try:
        of = type(_resolve(path, list(spaces) + [vars(builtins)]))
    except Unknown:
        return "property" if len(path) > 1 else "variable"
    callables = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, classmethod, staticmethod,
                 type(list.append), type(list.__add__), type(dict.__dict__["fromkeys"]))
    if issubclass(of, type):
        return "class"
    if issubclass(of, types.ModuleType):
        return "module"
    if issubclass(of, callables):
        return "function" if len(path) == 1 else "method"
    return "variable" if len(path) == 1 else "field"


def _resolve(names, spaces):
    for space in spaces:
        if names[0] in space:
            value = space[names[0]]
            break
    else:
        raise Unknown()
    for name in names[1:]:
        try:
            value = _static(value, name)
        except Unknown:
            raise
        except Exception:
            raise Unknown()
    return value
