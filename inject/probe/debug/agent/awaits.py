# await in the debug console: the expression becomes a coroutine, and the event loop of the thread turns until it is done.
import ast
import sys

FILE = "<debug console>"
NAME = "__probing_await__"
TURNS_MAX = 1000000
COROUTINE = 0x80  # CO_COROUTINE of Include/code.h


def compiled(source):
    """Code that defines a coroutine function of an expression, or None when it is none."""
    text = "async def {}():\n return (\n{}\n)".format(NAME, source)
    try:
        tree = ast.parse(text, FILE)
    except SyntaxError:
        return None
    return compile(tree, FILE, "exec", 0, True)


def statements(source):
    """(code or None, code of the last expression or None) where await may stand outside of functions; CPython 3.8 has that."""
    flag = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
    tree = compile(source, FILE, "exec", ast.PyCF_ONLY_AST | flag, True)
    last = None
    if isinstance(tree.body[-1], ast.Expr):
        last = compile(ast.Expression(tree.body.pop().value), FILE, "eval", flag, True)
    return compile(tree, FILE, "exec", flag, True) if tree.body else None, last


def running_loop():
    events = sys.modules.get("asyncio.events")
    loop = events._get_running_loop() if events is not None else None
    return loop


def run(code, space):
    """What code gives, awaited where it is a coroutine."""
    found = eval(code, space)
    if code.co_flags & COROUTINE:
        return done(found)
    return done(space.pop(NAME)()) if NAME in space else found


def done(coroutine):
    loop = running_loop()
    if loop is None:
        return alone(coroutine)
    return turned(coroutine, loop)


def alone(coroutine):
    """No loop runs in this thread."""
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def turned(coroutine, loop):
    """Inside a callback of a loop that waits for us: the loop's other callbacks run meanwhile, as they would for an await."""
    tasks = sys.modules["asyncio.tasks"]
    current = tasks.current_task(loop) if hasattr(tasks, "current_task") else tasks.Task.current_task(loop)
    task = loop.create_task(coroutine)
    leave(tasks, loop, current)
    try:
        for _ in range(TURNS_MAX):
            if task.done():
                break
            loop._run_once()
        else:
            task.cancel()
            raise probe.Failed("it does not end", "TIMEOUT")
    except BaseException:
        task.cancel()
        raise
    finally:
        enter(tasks, loop, current)
    return task.result()


def leave(tasks, loop, current):
    if current is None:
        return
    if hasattr(tasks, "_leave_task"):
        tasks._leave_task(loop, current)
    else:
        tasks.Task._current_tasks.pop(loop, None)


def enter(tasks, loop, current):
    if current is None:
        return
    if hasattr(tasks, "_enter_task"):
        tasks._enter_task(loop, current)
    else:
        tasks.Task._current_tasks[loop] = current
