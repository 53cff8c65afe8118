"""NAME, and paths from it: `model.blocks[0].weight`, `batch['x'][-1]`.  Followed in memory; nothing is called.

A name is looked up as Python does: the frame's variables, the module's, then builtins.  An attribute is one of the
object itself, or of a torch module its parameter, buffer or submodule, or one of its class.
"""

import ast
from typing import Any, List, Optional, Tuple

import gdb

from probing_gdb import model, selection, session, text
from probing_gdb.library import ProbingError

REGISTRIES = ("_parameters", "_buffers", "_modules")  # torch.nn.Module.__getattr__ looks into these


def _part(addr: int, access: str) -> Optional[model.Part]:
    """One part by its access, such as ".name" or "['key']"."""
    attribute = access.startswith(".")
    found = session.target().parts(addr, indexed=not attribute, named=attribute, only=access)[1]
    return found[0] if found and found[0].addr else None


def _global(frame: model.Frame, name: str) -> Optional[model.Part]:
    """A name of the frame's module, or a builtin."""
    access = "[{!r}]".format(name)
    found = _part(frame.globals, access) if frame.globals else None
    if found is None and frame.globals:
        builtins = _part(frame.globals, "['__builtins__']")
        if builtins is not None:
            found = _part(builtins.addr, access if builtins.type == "dict" else "." + name)
    return found


def _name(name: str) -> int:
    frame = selection.frame()
    for variable in frame.locals:
        if variable.name == name and variable.addr:
            return variable.addr
    try:
        found = _global(frame, name)
    except ProbingError:  # a dump has few dicts
        raise ProbingError("there is no {} in {}, and its module cannot be read here".format(name, frame.qualname),
                           "py-locals lists the variables")
    if found is None:
        raise ProbingError("there is no {} in {}, and none in its module".format(name, frame.qualname),
                           "py-locals lists the variables")
    return found.addr


def _attribute(addr: int, name: str) -> int:
    found = _part(addr, "." + name)
    for registry in REGISTRIES if found is None else ():
        holder = _part(addr, "." + registry)
        found = _part(holder.addr, "[{!r}]".format(name)) if holder is not None else None
        if found is not None:
            break
    if found is None:
        whole = session.target().parts(addr)[0]
        raise ProbingError("{} has no attribute {} that can be read without running code".format(text.safe(whole.type or "it"), name))
    return found.addr


def _registered(addr: int, key: Any) -> Optional[int]:
    """What a torch container has at key: its registries have names, numbers as text in order."""
    target = session.target()
    for registry in REGISTRIES:
        holder = _part(addr, "." + registry)
        if holder is None or "dict" not in (holder.type or "").lower():
            continue
        if isinstance(key, int) and not isinstance(key, bool) and key < 0:
            key += target.parts(holder.addr)[0].indexed
        found = _part(holder.addr, "[{!r}]".format(str(key)))
        if found is not None:
            return found.addr
    return None


def _registered_count(addr: int) -> int:
    """How many a torch container's registries have."""
    holders = [_part(addr, "." + registry) for registry in REGISTRIES]
    return sum(session.target().parts(holder.addr)[0].indexed for holder in holders
               if holder is not None and "dict" in (holder.type or "").lower())


def _item(addr: int, key: Any) -> int:
    target = session.target()
    whole = target.parts(addr)[0]
    registered = None if whole.indexed else _registered(addr, key)
    if registered is not None:
        return registered
    if isinstance(key, int) and not isinstance(key, bool) and "dict" not in (whole.type or "").lower():
        index = key + whole.indexed if key < 0 else key
        if not 0 <= index < whole.indexed:
            raise ProbingError("{} has {} elements: there is none at {}".format(
                text.safe(whole.type), whole.indexed or _registered_count(addr), key))
        found = target.parts(addr, indexed=True, start=index, count=1)[1]
        part = found[0] if found and found[0].addr else None
    else:
        part = _part(addr, "[{!r}]".format(key))
    if part is None:
        raise ProbingError("{} has nothing at [{!r}] that can be read".format(text.safe(whole.type), key),
                           "py-tensor shows the elements of tensors and arrays" if whole.indexed else "")
    return part.addr


def _literal(node: Any) -> Any:
    node = getattr(node, "value", node) if type(node).__name__ == "Index" else node  # up to Python 3.8
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ProbingError("a subscript here is a number, a string or another literal; nothing is evaluated")


def _address(node: Any) -> int:
    if isinstance(node, ast.Name):
        return _name(node.id)
    if isinstance(node, ast.Attribute):
        return _attribute(_address(node.value), node.attr)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return _item(_address(node.value), _literal(node.slice))
    raise ProbingError("a name and what leads on from it is meant, such as model.blocks[0].weight; nothing is evaluated",
                       "`probing eval` runs code")


def _number(source: str) -> Optional[int]:
    """An address as such, or an expression of gdb's, which begins with $ or a bracket."""
    try:
        return int(source, 0)
    except ValueError:
        pass
    if not source.startswith(("$", "(")):
        return None
    try:
        return int(gdb.parse_and_eval(source)) & 0xFFFFFFFFFFFFFFFF
    except gdb.error as error:
        raise ProbingError("{} is not an address: {}".format(text.safe(source), str(error).rstrip(".")))


def address(source: str) -> int:
    """Where the object is that the words mean."""
    number = _number(source)
    if number is not None:
        return number
    try:
        return _address(ast.parse(source.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        raise ProbingError("{} is not a Python expression".format(text.safe(source)))
    except (RecursionError, MemoryError):
        raise ProbingError("the expression is too deep")


def split(source: str) -> Tuple[str, str]:
    """What stands before the last dot or nothing, and the beginning of a name behind it."""
    holder, dot, rest = source.rpartition(".")
    return holder + dot, rest


def completions(token: str) -> List[str]:
    """What the last name of a path could be."""
    before, _ = split(token)
    target = session.target()
    if not before:
        frame = selection.frame()
        known = [variable.name for variable in frame.locals]
        module = target.parts(frame.globals, indexed=True, limit=1)[1] if frame.globals else []
        return known + [(part.name or "").strip("'") for part in module]
    addr = address(before[:-1])
    found = target.parts(addr, named=True)[1]
    names = [part.name for part in found if part.access]
    for registry in REGISTRIES:
        holder = next((part for part in found if part.name == registry and part.addr), None)
        if holder is not None:
            names += [(part.name or "").strip("'") for part in target.parts(holder.addr, indexed=True)[1]]
    return [before + (name or "") for name in names]
