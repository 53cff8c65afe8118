# A thread's frame as the place where code runs.
import os
import sys

DEPTH_MAX = 1000


def thread_ident(thread):
    """A Python ident, of an ident or a native thread id."""
    frames = sys._current_frames()
    if thread in frames:
        return thread
    threading = sys.modules.get("threading")
    for ident, known in list(threading._active.items()) if threading else ():
        if getattr(known, "native_id", None) == thread:
            return ident
    if threading and thread == os.getpid():
        return threading.main_thread().ident
    raise probe.agent.Refused("NOT_FOUND", "no thread {} runs Python code".format(thread))


def thread_text(ident):
    """A thread as `backtrace` heads it: name (native id), as far as it is known."""
    threading = sys.modules.get("threading")
    known = threading._active.get(ident) if threading else None
    number = getattr(known, "native_id", None)
    if known is None:
        return "thread {}".format(ident)
    return "{} ({})".format(known.name, number) if number else known.name


def function_frame(ident, function):
    """The innermost frame of a function, by its name or qualified name."""
    frame = sys._current_frames().get(ident)
    while frame is not None:
        code = frame.f_code
        if function in (code.co_name, getattr(code, "co_qualname", None)):
            return frame
        frame = frame.f_back
    raise probe.agent.Refused("NOT_FOUND", "{} does not run a function {} now".format(thread_text(ident), function))


def thread_frame(thread, depth, function):
    ident = thread_ident(thread)
    if function is not None:
        return function_frame(ident, function)
    frames = []
    frame = sys._current_frames().get(ident)
    while frame is not None and len(frames) <= depth:
        frames.append(frame)
        frame = frame.f_back
    if len(frames) <= depth:
        raise probe.agent.Refused("NOT_FOUND", "{} has {}; --frame {} is beyond the outermost".format(
            thread_text(ident), "1 frame" if len(frames) == 1 else "{} frames".format(len(frames)), depth))
    return frames[depth]


def holder(name):
    """(thread, function) of the innermost frame that may have a variable of that name, or None.

    The program's own functions go before libraries', the main thread before others.
    """
    import _thread

    first = sys.modules["threading"].main_thread().ident if "threading" in sys.modules else 0
    threads = sys._current_frames()
    threads.pop(_thread.get_ident(), None)
    own = sys.modules["__main__"].__dict__
    found = None
    for ident in sorted(threads, key=lambda ident: ident != first):
        frame = threads[ident]
        for _ in range(DEPTH_MAX):
            if frame is None:
                break
            code = frame.f_code
            if name in code.co_varnames or name in code.co_cellvars:
                if frame.f_globals is own:
                    return ident, code.co_name
                found = found or (ident, code.co_name)
            frame = frame.f_back
    return found


def raised_in():
    """The module that raised what is handled now, or None."""
    trace = sys.exc_info()[2]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace and trace.tb_frame.f_globals.get("__name__")


def hint(error, file):
    """A line for a name that is not of __main__ but of a running function; "": there is none."""
    try:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        words = str(error).split("'")
        found = holder(words[1]) if trace.tb_frame.f_code.co_filename == file and len(words) > 2 else None
        if found is None:
            return ""
        thread = sys.modules["threading"]._active.get(found[0]) if "threading" in sys.modules else None
        return "note: a running function has {}: --thread {} --frame {}\n".format(
            words[1], thread.name if thread and not set(thread.name) & set(" '\"") else found[0], found[1])
    except Exception:
        return ""


class FrameNames(object):
    """A thread's frame as one namespace: a copy, so that what it does meanwhile and what the code does stay apart."""

    def __init__(self, frame):
        self.frame = frame
        self.whole = frame.f_locals is frame.f_globals
        if self.whole:
            self.names = frame.f_globals
        else:
            self.local = dict(frame.f_locals)
            self.names = dict(frame.f_globals)
            self.names.update(self.local)

    def store(self, declared_global):
        """Put assignments back where that can be; the names for which it could not."""
        if self.whole:
            return []
        for name in declared_global:
            if name in self.names:
                self.frame.f_globals[name] = self.names[name]
        code = self.frame.f_code
        own = set(code.co_varnames + code.co_cellvars + code.co_freevars) - set(declared_global)
        missing = object()
        changed = [name for name in own
                   if self.names.get(name, missing) is not self.local.get(name, missing)
                   and (name in self.local or self.names.get(name, missing)
                        is not self.frame.f_globals.get(name, missing))]
        proxy = self.frame.f_locals
        if type(proxy) is dict:
            return sorted(changed)
        left = []
        for name in changed:  # PEP 667: writes go to the frame itself
            try:
                proxy[name] = self.names[name]
            except Exception:
                left.append(name)
        return sorted(left)


def declared_global(source):
    """The names in global statements."""
    import ast

    tree = ast.parse(source)
    return [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]


def where(ident):
    """Where a helper thread stands, for the message that it does not end."""
    frame = sys._current_frames().get(ident)
    if frame is None:
        return b""
    text = "{}:{}, in {}".format(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    return text[:200].encode("utf-8", "backslashreplace")
