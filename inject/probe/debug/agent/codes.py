# Code objects: their files, lines and names, whether they are the user's own, and which of a file there are now.
# Found by the modules that come from the file and the frames that run; what is not found so is reported when it is called next.
# (A walk over all of the collector's objects would keep the GIL for tens of milliseconds in a process with torch.)
import os
import sys

Code = type((lambda: None).__code__)
Function = type(lambda: None)
Module = type(sys)
Cell = type((lambda x: lambda: x)(0).__closure__[0])
DEPTH_MAX = 12  # of functions in functions, classes in classes
NAMES_MAX = 50000  # cached file names
SITE = ("/site-packages/", "/dist-packages/")


def library_folders():
    """Of the interpreter's own modules."""
    found = {os.path.dirname(os.path.realpath(os.__file__)), os.path.dirname(os.__file__)}
    return tuple(sorted(folder + "/" for folder in found))


class Files(object):
    """Names of files as code objects have them: what they are."""

    def __init__(self):
        self.just_my_code = True
        self.rules = ()  # of the setting, as probe.part("rules").Rules
        self.ruled = {}
        self.paths = {}
        self.owned = {}
        self.library = library_folders()
        self.cwd = os.getcwd()

    def path(self, name):
        """The file itself, absolute and without links; "" when there is none."""
        found = self.paths.get(name)
        if found is None:
            found = ""
            if name and name[0] != "<":
                whole = os.path.realpath(name if name[0] == "/" else os.path.join(self.cwd, name))
                found = whole if name[0] == "/" or os.path.exists(whole) else ""
            if len(self.paths) < NAMES_MAX:
                self.paths[name] = found
        return found

    def key(self, name):
        """The key of breakpoints: the file, else the name itself ("<string>")."""
        return self.path(name) or name

    def own(self, name):
        """Whether it is user code, not a library."""
        found = self.owned.get(name)
        if found is None:
            found = not (name.startswith(probe.OWN) or name.startswith("<frozen"))
            whole = self.path(name)
            for one in (name, whole):
                if one.startswith(self.library) or any(site in one for site in SITE):
                    found = False
            rule = self.rule(name)
            found = found if rule is None else rule
            if len(self.owned) < NAMES_MAX:
                self.owned[name] = found
        return found

    def rule(self, name):
        """What the rules say of it: user code, a library, or None."""
        if not self.rules or name.startswith(probe.OWN):
            return None
        if name not in self.ruled:
            path = self.path(name)
            found = self.rules.include(path) if path else None
            if len(self.ruled) >= NAMES_MAX:
                return found
            self.ruled[name] = found
        return self.ruled[name]

    def configure(self, just_my_code, rules):
        if self.rules or rules:
            self.owned, self.ruled = {}, {}
        self.just_my_code, self.rules = just_my_code, rules

    def steps_into(self, code):
        name = code.co_filename
        if self.just_my_code:
            return self.own(name)
        if self.rule(name) is False:
            return False
        return not (name.startswith(probe.OWN) or name.startswith("<frozen importlib"))


mine = Files()


def qualified(code):
    return getattr(code, "co_qualname", None) or code.co_name


# ---- lines ----


def line_starts(code):
    """[(offset, line)] in the order of the code; line None where there is none."""
    if hasattr(code, "co_lines"):
        return [(start, line) for start, _, line in code.co_lines()]
    found = []
    line, offset = code.co_firstlineno, 0
    last = None
    table = code.co_lnotab
    for step, lines in zip(table[0::2], table[1::2]):  # Objects/lnotab_notes.txt
        if step:
            if line != last:
                found.append((offset, line))
                last = line
            offset += step
        line += lines - 256 if lines >= 128 else lines
    if line != last:
        found.append((offset, line))
    return found


def lines_of(code, cache={}):  # noqa: B006
    """The lines that a frame of it can stand on."""
    found = cache.get(id(code))
    if found is not None and found[0] is code:
        return found[1]
    starts = [(offset, line) for offset, line in line_starts(code) if line]
    lines = set(line for _, line in starts)
    # The line of `def` begins with instructions that no event reports, unless the body is on it.
    if code.co_name != "<module>" and code.co_firstlineno in lines and len(lines) > 1:
        if hasattr(code, "co_lines") and hasattr(code, "co_exceptiontable"):
            if max(offset for offset, line in starts if line == code.co_firstlineno) < 16:
                lines.discard(code.co_firstlineno)
    if len(cache) > 20000:
        cache.clear()
    cache[id(code)] = (code, frozenset(lines))
    return cache[id(code)][1]


def first_line(code):
    """(offset, line) where a call of it begins to do something."""
    lines = lines_of(code)
    for offset, line in line_starts(code):
        if line in lines:
            return offset, line
    return 0, code.co_firstlineno


def line_at(code, offset):
    found = code.co_firstlineno
    for start, line in line_starts(code):
        if start > offset:
            break
        found = line or found
    return found


def runs_compiled(code):
    """Whether torch.compile made other code of it, which is what runs: the cache entries of TorchDynamo at the code object."""
    module = sys.modules.get("torch._C._dynamo.eval_frame")
    try:
        return bool(module is not None and module._debug_get_cache_entry_list(code))
    except Exception:
        return False


# ---- which there are ----


def tree(code, into, depth=0):
    """The code and all that is nested in it, by id."""
    if id(code) in into or depth > DEPTH_MAX:
        return
    into[id(code)] = code
    for one in code.co_consts:
        if type(one) is Code:
            tree(one, into, depth + 1)


def inner_functions(value):
    """What stands behind a decorator, a method or a property."""
    if type(value) is Function:
        found = [value.__dict__.get("__wrapped__")]
        for cell in value.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:
                pass
        return found
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    kind = type(value)
    if kind.__module__ == "functools" and kind.__name__ in ("partial", "_lru_cache_wrapper", "cached_property"):
        return [part_of(value, name) for name in ("func", "__wrapped__")]
    return []


def part_of(value, name):
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def functions_in(space, module, found, seen, depth=0):
    """All functions that a namespace holds, in its classes too, with module: only classes of that module."""
    for value in list(space.values()):
        waiting = [value]
        while waiting and len(waiting) < 1000:
            value = waiting.pop()
            if id(value) in seen:
                continue
            if type(value) is Function:
                seen.add(id(value))
                found.append(value)
                waiting += inner_functions(value)
            elif isinstance(value, type):
                seen.add(id(value))
                if depth < DEPTH_MAX and type.__dict__["__dict__"].__get__(value).get("__module__") == module:
                    functions_in(dict(type.__dict__["__dict__"].__get__(value)), module, found, seen, depth + 1)
            else:
                waiting += inner_functions(value)


def module_functions(module):
    found = []
    space = getattr(module, "__dict__", None)
    if type(space) is dict:
        functions_in(space, space.get("__name__"), found, set())
    return found


def modules():
    """[(name, module, file)] of those with a Python file."""
    found = []
    for name, module in list(sys.modules.items()):
        space = module.__dict__ if isinstance(module, type(sys)) else {}
        file = dict.get(space, "__file__")
        if type(file) is str:
            found.append((name, module, file))
    return found


def modules_of(path):
    """[(name, module)] of those whose file it is.  A job with torch has 2,000 others."""
    found = []
    base = os.path.basename(path)
    for number, (name, module) in enumerate(list(sys.modules.items())):
        if number % 128 == 0:
            probe.engine.yield_gil()
        file = dict.get(module.__dict__, "__file__") if isinstance(module, Module) else None
        if type(file) is str and file.endswith(base) and mine.key(file) == path:
            found.append((name, module))
    return found


def live():
    """The code objects of all frames that run."""
    found = {}
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            found[id(frame.f_code)] = frame.f_code
            frame = frame.f_back
    return list(found.values())


def live_of_file(path):
    """Those of one file that frames run, and what is nested in them: {id: code}."""
    found = {}
    base = os.path.basename(path)
    probe.engine.yield_gil()
    for code in live():
        if code.co_filename.endswith(base) and mine.key(code.co_filename) == path:
            tree(code, found)
    return found


def of_file(path):
    """Those of one file that are known now: {id: code}."""
    found = live_of_file(path)
    found.update(of_modules(path))
    return found


def of_modules(path):
    found = {}
    for _, module in modules_of(path):
        probe.engine.yield_gil()
        for function in module_functions(module):
            if mine.key(function.__code__.co_filename) == path:
                tree(function.__code__, found)
    return found
