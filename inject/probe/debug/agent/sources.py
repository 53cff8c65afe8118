# Texts of code that is in no file of the target's, modules, and all files that have code.
import os
import sys

codes = probe.part("codes")
TEXT_MAX = 4 << 20
MODULES_MAX = 20000
PARSED_MAX = 1 << 20
# By number; what outlives a stop is a name of a file, never an object.
names = {}
numbers = {}


def reference(session, code):
    """A number for code without a file."""
    name = code.co_filename
    if name not in numbers:
        numbers[name] = len(numbers) + 1
        names[numbers[name]] = name
    return numbers[name]


def name_of(session, number):
    if number not in names:
        raise probe.Failed("there is no source {}".format(number), "NOT_FOUND")
    return names[number]


def cached_text(name):
    """What linecache knows of a name ("<ipython-input-1-...>"), without reading files."""
    linecache = sys.modules.get("linecache")
    entry = linecache.cache.get(name) if linecache is not None else None
    if entry is not None and len(entry) == 1:
        linecache.checkcache(name)
        return "".join(linecache.getlines(name)) or None
    return "".join(entry[2]) if entry is not None else None


def loaded_text(name):
    """By the loader of the module that it belongs to (archives)."""
    for _, module, file in codes.modules():
        loader = module.__dict__.get("__loader__")
        if file == name and hasattr(loader, "get_source"):
            try:
                return loader.get_source(module.__name__)
            except Exception:
                return None
    return None


def file_text(name):
    import tokenize

    try:
        with tokenize.open(name) as file:
            return file.read(TEXT_MAX)
    except (OSError, SyntaxError, ValueError):
        return None


def text_of(name):
    found = cached_text(name)
    if found is None and not name.startswith("<"):
        found = file_text(name)
    return loaded_text(name) if found is None else found


def spans(name, last=[None, ()]):  # noqa: B006
    """[(first line, last line)] of the statements of a file that take several lines, and of the heads of compound ones; none
    before CPython 3.8, which does not know where a statement ends."""
    import ast

    text = text_of(name)
    if text is None or len(text) > PARSED_MAX:
        return ()
    if last[0] == (name, hash(text)):
        return last[1]
    try:
        tree = ast.parse(text, name)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found, rows = [], text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not hasattr(node, "end_lineno") or is_text(node):
            continue
        end = node.end_lineno
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue  # the first line of what it defines is better
        if getattr(node, "body", None):
            end = min(one.lineno for one in [node.body[0]] + getattr(node.body[0], "decorator_list", [])) - 1
            while end > node.lineno and rows[end - 1].lstrip()[:1] in ("", "#"):
                end -= 1
        if end > node.lineno:
            found.append((node.lineno, end))
    last[:] = (name, hash(text)), found
    return found


def is_text(node):
    """Whether a statement is only a string, which has no code."""
    import ast

    value = getattr(node, "value", None) if isinstance(node, ast.Expr) else None
    return isinstance(getattr(value, "value", None), str)


def statement(name, line):
    """The first line of the innermost statement that a line lies in; the line itself where that is not known."""
    return max([first for first, end in spans(name) if first <= line <= end] or [line])


def source(session, given):
    """The text by sourceReference or path; byte code when there is none."""
    number = given.get("sourceReference") or (given.get("source") or {}).get("sourceReference")
    name = name_of(session, number) if number else given.get("path") or (given.get("source") or {}).get("path") or ""
    text = text_of(name)
    if text is None:
        known = [code for code in codes.live() if code.co_filename == name]
        if not known:
            raise probe.Failed("there is no text of {}".format(name), "NOT_FOUND")
        text = probe.part("bytecode").listing(known)
        return {"content": text, "mimeType": "text/plain"}
    return {"content": text[:TEXT_MAX], "mimeType": "text/x-python"}


def modules(session, given):
    start = max(given.get("startModule") or 0, 0)
    every = [(name, module) for name, module in list(sys.modules.items()) if isinstance(module, type(sys))]
    count = given.get("moduleCount") or MODULES_MAX
    found = []
    for name, module in every[start:start + count]:
        one = {"id": name, "name": name}
        file = module.__dict__.get("__file__")
        if type(file) is str:
            one["path"] = codes.mine.path(file) or file
            one["isUserCode"] = codes.mine.own(file)
        version = module.__dict__.get("__version__")
        if type(version) is str:
            one["version"] = version[:100]
        found.append(one)
    return {"modules": found, "totalModules": len(every)}


def loaded_sources(session, given):
    paths = set(codes.mine.path(file) for _, _, file in codes.modules())
    paths.update(codes.mine.path(code.co_filename) for code in codes.live())
    return {"sources": [{"name": os.path.basename(path), "path": path} for path in sorted(paths) if path.endswith(".py")]}


def compiled(path):
    """{id: code} of a file that has not been loaded."""
    text = file_text(path)
    found = {}
    if text is not None and len(text) <= PARSED_MAX:
        try:
            codes.tree(compile(text, path, "exec", 0, True), found)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return found
