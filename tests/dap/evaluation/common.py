"""What the cases share: the module evaluation.c, the events that it reports, threads, and functions to watch."""

import ctypes
import inspect
import sys
import threading
import time
import traceback

LINE, CALL, RESUME, JUMP, RETURN, RAISE, UNWIND = (1 << i for i in range(7))

module = ctypes.PyDLL(sys.argv[1])
module.evaluation_begin.restype = module.evaluation_fields.restype = ctypes.c_char_p
module.evaluation_slot.restype = ctypes.c_void_p
module.evaluation_callback.argtypes = [ctypes.py_object]
module.evaluation_step.argtypes = [ctypes.py_object, ctypes.c_uint]
module.evaluation_plant.argtypes = [ctypes.py_object, ctypes.POINTER(ctypes.c_int), ctypes.c_size_t]
module.evaluation_native.argtypes = [ctypes.c_void_p]


def plant(code, *lines):
    code = getattr(code, "__code__", code)
    assert module.evaluation_plant(code, (ctypes.c_int * len(lines))(*lines), len(lines)) == 1


def line_of(function, marker):
    """The line of a function that ends with a comment "# marker"."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [first + i for i, text in enumerate(lines) if text.rstrip().endswith("# " + marker)]
    return found


class Events(list):
    """What happened, (event, function's name, line, value, planted)."""

    def __init__(self, then=None):
        list.__init__(self)
        self.then = then

    def __enter__(self):
        module.evaluation_callback(self.happened)
        return self

    def __exit__(self, *exception):
        module.evaluation_callback(None)

    def happened(self, event, frame, code, line, value, planted):
        assert frame.f_code is code
        self.append((event, code.co_name, line, value, planted))
        if self.then:
            self.then(event, frame, line)

    def of(self, event):
        return [row for row in self if row[0] == event]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.001)


class Thread(threading.Thread):
    """One that counts in .count until .stop, by the function body(self)."""

    def __init__(self, body):
        threading.Thread.__init__(self, daemon=True)
        self.body, self.count, self.stop, self.failure = body, 0, False, None

    def run(self):
        try:
            self.body(self)
        except BaseException:
            self.failure = traceback.format_exc()

    def end(self):
        self.stop = True
        self.join(60)
        assert not self.is_alive()
        assert self.failure is None, self.failure


# ---- what the program does ----

def leaf(x):
    y = x + 1  # leaf
    return y


def outer(n):
    total = 0
    for i in range(n):
        total += leaf(i)  # call
    return total  # end


def numbers(n):
    for i in range(n):
        yield i  # yield
        i += 1  # resumed


def failing(x):
    try:
        return raising(x)
    finally:
        x += 1


def raising(x):
    raise KeyError(x)  # raise


def hot(thread):
    n = 0
    while not thread.stop:
        n += 1
        thread.count += 1  # hot


def sleeping(thread):
    while not thread.stop:
        time.sleep(0.002)
        thread.count += 1  # sleeping


def one_line(thread):
    while not thread.stop: thread.count += 1  # one_line
