"""What the interpreter itself says of its stacks: the truth that the tests compare with.

A target calls park() wherever a thread shall stand.  park() prints one line of JSON about the calling thread (its
ids, its name and its frames, innermost first, from the frame objects) and then blocks in read(2) on standard input,
without the GIL.  The main thread parks last, with the number of others it waits for, and prints "ready".
Works on every CPython from 3.6; keep it so.
"""

import json
import os
import sys
import threading

_print = threading.Lock()
_parked = threading.Semaphore(0)
_positions = {}
interpreter = 0  # a subinterpreter's copy of this module is told its own


def _position(code, lasti):
    """(line, column, end_line, end_column) of an instruction, or None before 3.11."""
    if not hasattr(code, "co_positions"):
        return None
    key = (code, lasti)
    if key not in _positions:
        line, end_line, column, end_column = list(code.co_positions())[lasti // 2]
        _positions[key] = (line, column, end_line, end_column)
    return _positions[key]


def describe(frame):
    """One frame as the tests want to see it."""
    code = frame.f_code
    told = {"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno}
    if hasattr(code, "co_qualname"):
        told["qualname"] = code.co_qualname
    position = _position(code, frame.f_lasti)
    if position is not None:
        told["line"], told["column"], told["end_line"], told["end_column"] = position
    return told


def chain(frame):
    frames = []
    while frame is not None:
        frames.append(describe(frame))
        frame = frame.f_back
    return frames


def _call_on(code, line):
    """The position of the call that is all of a line, as describe() would give it."""
    told = {"line": line}
    if hasattr(code, "co_positions"):
        spans = [p for p in code.co_positions() if p[0] == line and p[2] is not None]
        _, end_line, column, end_column = max(spans, key=lambda p: (p[1], p[3] - p[2]))
        told.update(column=column, end_line=end_line, end_column=end_column)
    return told


def native_id():
    if hasattr(threading, "get_native_id"):
        return threading.get_native_id()
    return int(os.path.basename(os.readlink("/proc/thread-self")))


def tell(frames, **more):
    """Print the truth about the calling thread."""
    line = {
        "thread_id": threading.get_ident(),
        "os_thread_id": native_id(),
        "interpreter": interpreter,
        "frames": frames,
    }
    line.update(more)
    if "thread_name" not in line:  # asking would enter an unknown thread into threading's books
        line["thread_name"] = threading.current_thread().name
    data = (json.dumps(line) + "\n").encode()
    with _print:
        while data:
            data = data[os.write(1, data):]


def wait(others):
    """Until that many threads have parked."""
    for _ in range(others):
        _parked.acquire()


def ready(others=0):
    """Every other thread has parked: say so."""
    wait(others)
    os.write(1, b"ready\n")


def next_line(frame, offset=1, **more):
    """Tell that the calling frame stands in the call that fills a line below, which it is about to do."""
    frames = chain(frame)
    frames[0].update(_call_on(frame.f_code, frame.f_lineno + offset))
    tell(frames, **more)


def _told(frame, others, more):
    next_line(frame, **more)
    if others is None:
        _parked.release()
    else:
        ready(others)


def park(others=None, **more):
    """Stand here.  others: in the main thread, how many threads park besides."""
    _told(sys._getframe(), others, more)
    os.read(0, 1)
