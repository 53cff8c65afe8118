"""A program to debug.  Each line of input names a function that the main thread runs; "done NAME" is the answer.

A line that tests stop at has a mark, `# at NAME`.  Some threads run from the start, in frames that began long ago; the
page named by PRB_TEST_PAGE has a counter of each.
"""

import _thread
import contextlib
import ctypes
import functools
import linecache
import mmap
import os
import sys
import threading
import time

# Its threads compute without end: the shorter their turns, the sooner a test gets the GIL.
if "PRB_TEST_SWITCH" in os.environ:
    sys.setswitchinterval(float(os.environ["PRB_TEST_SWITCH"]))

LANES = {"hot": 0, "one_line": 1, "sleeper": 2, "calls": 3}


class Page(object):
    """Counters that the test sees."""

    def __init__(self):
        path = os.environ.get("PRB_TEST_PAGE")
        if path:
            with open(path, "r+b") as file:
                self.bytes = mmap.mmap(file.fileno(), 4096)
        else:
            self.bytes = mmap.mmap(-1, 4096)
        self.lanes = memoryview(self.bytes).cast("Q")


class Point(object):
    kind = "point"

    def __init__(self, x, y):
        self.x = x
        self.y = y

    @property
    def total(self):
        return self.x + self.y

    def moved(self, by):
        x = self.x + by                   # at method
        return Point(x, self.y)


class Hostile(object):
    def __repr__(self):
        raise RuntimeError("no repr for you")


class Slow(object):
    def __repr__(self):
        while slow["on"]:
            page.lanes[10] += 1
        return "slow"


class Stuck(object):
    over = False

    def __repr__(self):
        if not self.over:
            Stuck.over = True
            os.read(0, 100)  # a call of the kernel, which no exception ends
        return "no longer stuck"


class Stubborn(object):
    def waits(self):
        while slow["on"]:
            pass

    def __repr__(self):
        for _ in range(2):
            try:
                self.waits()  # from 3.13 on an exception comes at a loop's jump, which lies in no try statement
            except KeyboardInterrupt:
                pass
        return "in vain"


class Own(object):
    def __repr__(self):
        return "own"


page = Page()
slow = {"on": True}
box = Point(1, 2)
store = {"k": 0}
released = threading.Event()
begun = threading.Event()


# ---- threads that run from the start ----

def hot():
    lanes = page.lanes
    i = 0
    while True:
        i += 1                            # at hot
        lanes[0] = i


def one_line():
    lanes = page.lanes
    while True: lanes[1] += 1             # at one_line


def sleeper():
    while True:
        time.sleep(0.01)
        page.lanes[2] += 1                # at sleeper


def called(i):
    return i + 1


def calls():
    i = 0
    while True:
        i = called(i)
        page.lanes[3] = i


def suspended():
    for i in range(1000):
        begun.set()
        released.wait()
        released.clear()
        after = i                         # at suspended
        page.lanes[8] = after + 1


def numbers():
    for i in range(1 << 30):
        got = i                           # at generator
        yield got


class Step(object):
    def __await__(self):
        yield "step"


async def coroutine():
    i = 0
    while True:
        await Step()
        got = i                           # at coroutine
        i = got + 1


generator = numbers()
running_coroutine = coroutine()


# ---- commands ----

def cold_body(i):
    doubled = i * 2                       # at cold
    text = "i is {}".format(i)            # at cold_next
    return doubled, text                  # at cold_return


def judged_body(i, cell, own=None):
    def inner():
        return cell

    box.x = i
    seen = i                              # at judged
    later = inner()
    return seen, own, later


def forever():
    print("forever", flush=True)
    while True:
        pass


def judged():
    for i in range(3):
        judged_body(i, i * 10)


def cold():
    for i in range(3):
        cold_body(i)


def asks():
    before = 1
    breakpoint()                          # at call_of_breakpoint
    after = before + 1                    # at after_breakpoint
    return after


def asks_last():
    asked_in()
    return 1


def asked_in():
    breakpoint()                          # at last_breakpoint


def asks_saved(hook=getattr(sys, "breakpointhook", None)):
    sys.breakpointhook = before = lambda: print("asked", flush=True)
    breakpoint()
    assert sys.breakpointhook is before
    sys.breakpointhook = hook


def refused():
    try:
        breakpoint()
    except TypeError as error:
        print("math.ceil" if "ceil" in str(error) else error, flush=True)


def asks_in_child():
    pid = os.fork()
    if pid == 0:
        os.environ["PYTHONBREAKPOINT"] = "os.getpid"
        os._exit(breakpoint() == os.getpid())
    assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 1


def rests():
    """In a call of the kernel, until the next line of input."""
    waits = True
    print("resting", flush=True)
    os.read(0, 100)                       # at rests
    return waits


def release():
    page_before = page.lanes[8]
    released.set()
    while page.lanes[8] == page_before:
        time.sleep(0.001)


def generate():
    for _ in range(3):
        next(generator)


def coroutines():
    for _ in range(3):
        running_coroutine.send(None)


def native_body(i):
    seen = i                              # at native
    page.lanes[9] = seen + 1


def native():
    """A thread that Python did not make calls in, three times."""
    libc = ctypes.CDLL(None)
    made = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)

    def callback(_):
        for i in range(3):
            native_body(i)
        return None

    function = made(callback)
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, function, None)
    libc.pthread_join(thread, None)


def late():
    """A module that is imported only now."""
    sys.modules.pop("debugged_late", None)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import debugged_late

    for i in range(3):
        debugged_late.function(i)


def hide():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import debugged_hidden  # noqa: F401


def call_hidden():
    sys.modules["debugged_hidden"].call()


def new_thread():
    thread = threading.Thread(target=cold, name="late thread")
    thread.start()
    thread.join()


def double(x):
    y = x * 2                             # at double
    return y                              # at double_return


def add(a, b):
    return a + b                          # at add


def factorial(n):
    return n * factorial(n - 1) if n else 1


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Callable(object):
    def __call__(self, n):
        return n + 1


@functools.lru_cache(maxsize=None)
def cached(n):
    return n + 2


def results():
    call = Callable()
    a = factorial(3)                      # at result_a
    b = call(a) and cached(a)             # at result_b
    c = fibonacci(16)                     # at result_c
    return a + b + c                      # at result_d


async def tripled(n):
    await Step()
    return 3 * n


async def awaiting():
    a = await tripled(2)                  # at await_a
    b = await tripled(a) + double(a)      # at await_b
    return b                              # at await_c


def awaits():
    one = awaiting()
    with contextlib.suppress(StopIteration):
        while True:
            one.send(None)


def steps():
    a = 1                                 # at step_a
    b = double(a)                         # at step_b
    c = add(double(a), double(b))         # at step_c
    for k in range(2):                    # at step_for
        d = k                             # at step_body
    return a + b + c + d                  # at step_return


def jumps():
    a = 1                                 # at jump_first
    a += 1                                # at jump_second
    a += 1                                # at jump_third
    return a                              # at jump_return


def methods():
    return Point(1, 2).moved(3)


def values():
    integer = 42
    negative = -7
    big = 10 ** 40
    real = 2.5
    odd = [float("nan"), float("inf")]
    truth = True
    nothing = None
    text = "a \"text\" with \n and \u20ac and \ud800"
    long_text = "x" * 100000
    raw = b"\x00\x01bytes"
    array = bytearray(range(256)) * 4
    view = memoryview(array)
    short_list = [1, "two", [3]]
    long_list = list(range(1000000))
    short_dict = {"a": 1, 2: "b", (3, 4): None}
    big_dict = {i: i * i for i in range(5000)}
    some_set = {1, 2, 3}
    some_tuple = (1, (2, (3,)))
    cycle = []
    cycle.append(cycle)
    point = Point(3, 4)
    hostile = Hostile()
    function = double
    kind = Point
    module = os
    names = {"with space": 1, "": 2, "__len__": 3}
    return len(locals())                  # at values


def watched():
    for k in range(4):
        other = k
        box.x = k // 2                    # at watched
        other += 1
    for k in range(4):
        store["k"] = k // 2
        other += 1
    return other


def fails(text):
    raise ValueError(text)                # at raise


def caught():
    try:
        fails("caught one")
    except ValueError as error:
        return str(error)                 # at handler


def failing_thread():
    fails("not caught")


def uncaught():
    """An exception that goes through threading.Thread.run, which is no code of the user's."""
    thread = threading.Thread(target=failing_thread, name="failing")
    hook = getattr(threading, "excepthook", None)
    if hook:
        threading.excepthook = lambda *_: None
    else:
        sys.stderr = open(os.devnull, "w")
    thread.start()
    thread.join()


def raw_uncaught():
    """The same of a thread that threading does not know."""
    before = _thread._count()
    _thread.start_new_thread(fails, ("raw",))
    while _thread._count() > before:
        time.sleep(0.001)


def fatal():
    fails("fatal")


def prints():
    print("to standard output \u20ac", flush=True)
    print("to standard error", file=sys.stderr, flush=True)


MADE = "x = 1\ny = cold_body(x)\n"


def executed():
    linecache.cache["<made>"] = (len(MADE), None, MADE.splitlines(True), "<made>")
    exec(compile(MADE, "<made>", "exec"), dict(globals()))


def forks():
    pid = os.fork()
    if pid == 0:
        cold()
        os._exit(7)
    status = os.waitpid(pid, 0)[1]
    print("child {}".format(os.WEXITSTATUS(status)), flush=True)


def pace():
    """How many calls a tenth of a second of processor time has room for, the best of three."""
    best = 0
    for _ in range(3):
        began, until, count = time.process_time(), time.perf_counter() + 0.1, 0
        while time.perf_counter() < until:
            called(count)
            count += 1
        best = max(best, int(count * 0.1 / (time.process_time() - began)))
    print("pace {}".format(best), flush=True)


def slow_value():
    slow_one = Slow()
    return slow_one is None               # at slow


def stuck_value():
    a_first, b_stuck, c_last, d_number, stubborn = Own(), Stuck(), Own(), 7, Stubborn()
    e_list = [c_last, 8]
    return (a_first, b_stuck, c_last, d_number, e_list, stubborn) is None   # at stuck


def main():
    for name in sys.argv[1:]:
        thread = threading.Thread(target=globals()[name], name=name)
        thread.daemon = True
        thread.start()
        if name == "suspended":
            begun.wait()
    next(generator)
    running_coroutine.send(None)
    print("ready", flush=True)           # at main
    for line in iter(sys.stdin.readline, ""):
        name = line.strip()
        if name == "end":
            break
        globals()[name]()
        print("done {}".format(name), flush=True)


if __name__ == "__main__":
    main()
