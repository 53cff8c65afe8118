# More than one expression, the interactive mode, and what is written when code raises.
import ast
import sys


def split(tree, file, mode):
    """Code objects of the statements and of the last expression, each or None."""
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = compile(ast.Expression(tree.body.pop().value), file, "eval", 0, True)
    return compile(tree, file, mode, 0, True) if tree.body else None, last


def compile_statements(text, file):
    return split(compile(text, file, "exec", ast.PyCF_ONLY_AST, True), file, "exec")


def compile_single(text, file):
    """None: more lines are needed."""
    import codeop

    if codeop.compile_command(text, file, "single") is None:
        return None
    # What codeop makes of comments and empty lines.
    kept = [line for line in text.split("\n") if line.strip() and line.strip()[0] != "#"]
    return split(compile(text if kept else "pass", file, "single", ast.PyCF_ONLY_AST, True), file, "single")


def dedent(text):
    import textwrap

    return textwrap.dedent(text)


def leave_out_ours(trace):
    """The innermost frames, where code called a stand-in of ours that raised.  Links can be changed from 3.7 on."""
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(probe.OWN) and sys.version_info >= (3, 7):
            trace.tb_next = None
        trace = trace.tb_next


def write_traceback(error, sources, alone=False):
    """As the interpreter prints it, without our own frames; the evaluations' lines are known meanwhile.  alone: no frames,
    of what was not even compiled."""
    import linecache
    import traceback

    trace = None if alone else sys.exc_info()[2]
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(probe.OWN):
        trace = trace.tb_next
    try:
        leave_out_ours(trace)
        for name, text in list(sources.items()):
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        return "".join(traceback.format_exception(type(error), error, trace))
    except Exception as other:
        reasons = probe.agent.plain(error), probe.agent.plain(other)
        return "{}\n(its traceback cannot be written: {})\n".format(*reasons)
    finally:
        for name in list(sources):
            linecache.cache.pop(name, None)


def cut(text, room):
    """At most room characters: the beginning and, worth more, the end."""
    if len(text) <= room:
        return text
    return "{}\n... ({} characters left out) ...\n{}".format(text[:room // 4], len(text) - room, text[-(room * 3 // 4):])
