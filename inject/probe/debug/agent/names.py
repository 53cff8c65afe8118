# The names of a frame: evaluated in, and assigned to.
import sys

HELD = 3  # references to such a dict: the frame's, release()'s, and the one that getrefcount() has


def evaluated(code, frame, more=None):
    """The value of an expression's code object where a frame stands; more: further names."""
    local = frame.f_locals
    space = frame.f_globals
    if local is space and not more:
        return eval(code, space)
    # What is nested in the expression (a generator, a lambda) finds only globals.
    if more or nests(code):
        space = dict(space)
        space.update(local)
        space.update(more or {})
        return eval(code, space)
    return eval(code, space, local)


def nests(code):
    return any(hasattr(one, "co_code") for one in code.co_consts)


def judged(code, plain, frame, more):
    """evaluated() and release() of what comes by often; plain: nothing is nested in it."""
    if more or not plain:
        try:
            return evaluated(code, frame, more)
        finally:
            release(frame)
    local, own = frame.f_locals, frame.f_code
    try:
        return eval(code, frame.f_globals, local)
    finally:
        if own.co_flags & 1 and frame.f_trace is None and frame.f_lineno != own.co_firstlineno and (
                type(local) is dict and local is not frame.f_globals and sys.getrefcount(local) <= HELD):
            local.clear()


def merged(frame):
    """A copy of all names."""
    space = dict(frame.f_globals)
    if frame.f_locals is not frame.f_globals:
        space.update(frame.f_locals)
    return space


def release(frame):
    """Up to CPython 3.12 a frame keeps the dict that f_locals made, and what the variables were stays alive in it: empty it,
    unless the program has it, too.  A tracer of the program's that is just called for the frame would have CPython write the
    dict back into it (call_trampoline() in Python/sysmodule.c): then it stays."""
    code = frame.f_code
    if not code.co_flags & 1 or frame.f_trace is not None or frame.f_lineno == code.co_firstlineno:  # CO_OPTIMIZED
        return
    local = frame.f_locals
    if type(local) is dict and local is not frame.f_globals and sys.getrefcount(local) <= HELD:
        local.clear()


def own_names(code):
    return code.co_varnames + code.co_cellvars + code.co_freevars


def assign(frame, values):
    """Set names of a frame: its own, else its module's; the names that are neither's."""
    code = frame.f_code
    if frame.f_locals is frame.f_globals:
        frame.f_globals.update(values)
        return []
    fast = set(own_names(code))
    left = []
    local = frame.f_locals
    if not code.co_flags & 1:  # CO_OPTIMIZED: a class's body
        for name, value in values.items():
            local[name] = value
        return []
    for name, value in values.items():
        if name in fast:
            try:
                local[name] = value
            except Exception:
                left.append(name)
        elif name in frame.f_globals:
            frame.f_globals[name] = value
        else:
            left.append(name)
    if type(local) is dict:
        probe.engine.save_locals(frame)
    return left


def store(frame, before, space):
    """Put what code assigned in a copy of the names (before, then space) where it belongs; what is left is returned."""
    missing = object()
    changed = {name: value for name, value in space.items()
               if name != "__builtins__" and before.get(name, missing) is not value}
    left = assign(frame, changed) if changed else []
    return {name: changed[name] for name in left}


def is_yield(frame):
    """Whether a frame whose return is reported is only suspended."""
    opcode = sys.modules.get("opcode")
    if opcode is None:
        import opcode
    at = frame.f_lasti
    if not frame.f_code.co_flags & 0x2A0 or at < 0:  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
        return False
    name = opcode.opname[frame.f_code.co_code[at]]
    return name in ("YIELD_VALUE", "YIELD_FROM", "SEND", "RESUME", "LOAD_CONST", "GET_AWAITABLE")
