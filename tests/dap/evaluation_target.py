"""Runs inside the interpreter under test (3.6 to 3.11): frame evaluation by the module evaluation.c, one function of
this file a case.  Arguments: the module, a case.  Prints "passed", or what went wrong."""

import ctypes
import gc
import inspect
import itertools
import os
import sys
import threading
import time
import traceback
import weakref

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


def until(condition, seconds=20):
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
        self.join(20)
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


# ---- cases ----

def case_planted():
    line = line_of(leaf, "leaf")
    plant(leaf, line)
    with Events() as events:
        assert outer(1000) == 500500
    assert events == [(LINE, "leaf", line, None, 1)] * 1000, events[:3]
    assert sys.gettrace() is None
    plant(leaf)
    with Events() as events:
        outer(10)
    assert not events


def case_confined():
    """Neither the callees of a frame with a line nor its callers are traced."""
    line = line_of(outer, "end")
    plant(outer, line)
    module.evaluation_clear()
    with Events() as events:
        outer(50)
        outer(0)
    assert events == [(LINE, "outer", line, None, 1)] * 2, events
    seen = []

    def callee():
        seen.append(module.evaluation_traced())

    def caller():
        callee()
        seen.append(module.evaluation_traced())

    plant(caller, caller.__code__.co_firstlineno + 2)
    caller()
    assert seen == [0, 1], seen
    assert module.evaluation_traced() == 0


def case_running_frame():
    for body in hot, sleeping, one_line:
        thread = Thread(body)
        thread.start()
        until(lambda: thread.count > 5)
        line = line_of(body, body.__name__)
        with Events() as events:
            plant(body, line)
            until(lambda: len(events) > 20)
            plant(body)
            count = thread.count
            until(lambda: thread.count > count + 5)  # one may have been told of at that moment
            seen = len(events)
            until(lambda: thread.count > count + 25)
            assert len(events) == seen
        assert set(events) == {(LINE, body.__name__, line, None, 1)}
        assert module.evaluation_traced() == 0
        thread.end()


def case_suspended_frame():
    """The frame waits in calls while it gets its line; a hot callee that was in it already ends first."""
    def waits(thread):
        middle(thread)
        thread.count = -1  # after

    def middle(thread):
        hot(thread)

    thread = Thread(waits)
    thread.start()
    until(lambda: thread.count > 5)
    line = line_of(waits, "after")
    with Events() as events:
        plant(waits, line)
        count = thread.count
        until(lambda: thread.count > count + 100)
        assert not events
        thread.end()
    assert events == [(LINE, "waits", line, None, 1)]


def case_callee_under_hook():
    """As before, but all callees are born under the hook, and not traced."""
    def waits(thread):
        hot(thread)
        thread.count = -1  # after

    plant(leaf, line_of(leaf, "leaf"))
    thread = Thread(waits)
    thread.start()
    until(lambda: thread.count > 5)
    line = line_of(waits, "after")
    with Events() as events:
        plant(waits, line)
        assert module.evaluation_traced() == 0
        thread.end()
    assert events == [(LINE, "waits", line, None, 1)]


def case_generator():
    running = numbers(100)
    next(running)
    line = line_of(numbers, "resumed")
    with Events() as events:
        plant(numbers, line)
        for i in range(10):
            next(running)
        running.close()
        list(numbers(3))
    assert events == [(LINE, "numbers", line, None, 1)] * 13, events


def case_coroutine():
    import asyncio

    async def inner(x):
        await asyncio.sleep(0)
        return x + 1  # inner

    async def main():
        return sum([await inner(i) for i in range(10)])

    line = line_of(inner, "inner")
    plant(inner, line)
    with Events() as events:
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(main()) == 55
        loop.close()
    assert events == [(LINE, "inner", line, None, 1)] * 10, events


def case_new_threads():
    line = line_of(leaf, "leaf")
    plant(leaf, line)
    with Events() as events:
        threads = [threading.Thread(target=outer, args=(10,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        native = ctypes.CFUNCTYPE(None)(lambda: leaf(1))
        module.evaluation_native(ctypes.cast(native, ctypes.c_void_p))
        until(lambda: len(events) > 100)
        module.evaluation_native_stop()
    assert set(events) == {(LINE, "leaf", line, None, 1)}


def case_new_code():
    source = "def fresh():\n  return 1\nfresh()\nfresh()\n"
    module.evaluation_new_code(1)
    with Events() as events:
        for i in range(50):
            exec(compile(source, "fresh.py", "exec"), {})
        list(numbers(3))
        list(numbers(3))
    assert [row[1] for row in events.of(CALL) if row[1] == "fresh"] == ["fresh"] * 50
    assert [row[1] for row in events.of(CALL) if row[1] == "numbers"] == ["numbers"]
    assert not [row for row in events if row[0] != CALL or not row[4]]
    module.evaluation_new_code(0)
    with Events() as events:
        exec(compile(source, "fresh.py", "exec"), {})
    assert not events
    module.evaluation_new_code(1)
    with Events() as events:
        outer(3)
    assert [row[1] for row in events if row[1] in ("outer", "leaf")] == ["outer", "leaf"]


def case_planted_when_new():
    """Who is told of new code plants its lines, and the very call stops there."""
    line = line_of(leaf, "leaf")

    def then(event, frame, _):
        if event == CALL and frame.f_code is leaf.__code__:
            plant(leaf, line)

    module.evaluation_new_code(1)
    with Events(then) as events:
        leaf(1)
    assert [row for row in events if row[1] == "leaf"] == [
        (CALL, "leaf", leaf.__code__.co_firstlineno, None, 1), (LINE, "leaf", line, None, 1)], events


def case_exceptions():
    depths = []

    def then(event, frame, _):
        depths.append(len(traceback.extract_tb(sys.exc_info()[2] or events[-1][3].__traceback__)))

    module.evaluation_exceptions(RAISE | UNWIND)
    with Events(then) as events:
        try:
            failing(7)
        except KeyError as error:
            caught = error
        for i in numbers(3):
            pass
        for i in iter([1, 2]):
            pass
    mine = [(event, name, value) for event, name, _, value, _ in events if name in ("failing", "raising", "numbers")]
    assert mine == [(RAISE, "raising", caught), (UNWIND, "raising", caught), (RAISE, "failing", caught),
                    (UNWIND, "failing", caught)], events
    assert {row[0] for row in events} == {RAISE, UNWIND}
    assert depths == [1, 1, 2, 2, 3], depths
    assert [row[2] for row in events if row[1] == "raising"] == [line_of(raising, "raise")] * 2
    module.evaluation_exceptions(0)
    with Events() as events:
        try:
            failing(7)
        except KeyError:
            pass
    assert not events and module.evaluation_traced() == 0


def case_exceptions_of_running_frames():
    """Frames that ran before: what leaves them is told with its value, what they catch is not kept, and nobody else is
    slowed by a thread that waits in one."""
    alive, wait = [], threading.Event()

    class Mine(Exception):
        def __init__(self):
            Exception.__init__(self)
            alive.append(weakref.ref(self))

    def body():
        wait.wait(20)
        for i in range(10):
            try:
                raise Mine
            except Mine:
                pass
            assert alive[-1]() is None, i
        try:
            raising(1)
        finally:
            wait.clear()

    def caller():
        running.append(1)
        body()

    def outermost():
        try:
            caller()
        except KeyError:
            running.append(2)

    running = []
    thread = threading.Thread(target=outermost)
    thread.start()
    until(lambda: running)
    possible = module.evaluation_possible()
    with Events() as events:
        module.evaluation_exceptions(UNWIND)
        assert module.evaluation_possible() == possible
        outer(100)
        assert not events and module.evaluation_possible() == possible
        wait.set()
        thread.join()
    assert running == [1, 2], events
    mine = [(event, name, type(value)) for event, name, _, value, _ in events]
    assert mine == [(UNWIND, name, KeyError) for name in ("raising", "body", "caller")], events
    module.evaluation_exceptions(0)
    assert module.evaluation_traced() == 0 and module.evaluation_possible() == possible


def case_step():
    with Events() as events:
        module.evaluation_step(outer.__code__, LINE | CALL | RETURN | UNWIND)
        outer(1)
        module.evaluation_step(outer.__code__, 0)
        outer(1)
    first = outer.__code__.co_firstlineno
    assert [(event, name, line - first) for event, name, line, _, _ in events if name == "outer"] == [
        (LINE, "outer", 1), (LINE, "outer", 2), (LINE, "outer", 3), (LINE, "outer", 2), (LINE, "outer", 4),
        (RETURN, "outer", 4)] or events.of(RETURN)[0][3] == 1
    assert [row[:2] for row in events.of(CALL)] in ([(CALL, "leaf")], [(CALL, "outer"), (CALL, "leaf")]), events
    assert events.of(RETURN)[0][3] == 1
    with Events() as events:
        module.evaluation_step(failing.__code__, UNWIND)
        try:
            failing(3)
        except KeyError as error:
            caught = error
    assert [row[:2] + row[3:] for row in events] == [(UNWIND, "failing", caught, 0)], events


def case_step_out_by_exception():
    """A step that follows an exception out of frames which ran before the hook came, to where it is caught; what is wanted
    is changed by Python code, as the debugger's."""
    def raises(thread):
        thread.count += 1
        time.sleep(0.005)
        raise KeyError(thread.count)  # raises

    def between(thread):
        while True:
            raises(thread)

    def catches(thread):
        while not thread.stop:
            try:
                between(thread)
            except IndexError:
                pass
            except KeyError:
                pass  # caught

    def then(event, frame, line):
        if frame.f_code is raises.__code__ and event == LINE:
            plant(raises)
            step(raises.__code__)
        elif event == UNWIND:
            step(frame.f_back.f_code)
        elif frame.f_code is catches.__code__:
            for code in stepped:
                module.evaluation_step(code, 0)
            del stepped[:]

    def step(code):
        stepped.append(code)
        module.evaluation_step(code, LINE | RETURN | UNWIND)

    stepped, thread = [], Thread(catches)
    thread.start()
    line = catches.__code__.co_firstlineno + 4
    for i in range(5):
        until(lambda: thread.count > 3 * i)
        with Events(then) as events:
            plant(raises, line_of(raises, "raises"))
            until(lambda: events.of(UNWIND) and not stepped)
        assert [row[:3] for row in events[1:]] == [
            (UNWIND, "raises", line_of(raises, "raises")), (UNWIND, "between", between.__code__.co_firstlineno + 2),
            (LINE, "catches", line)], events
    thread.end()


def one_line(thread):
    while not thread.stop: thread.count += 1  # one_line


def generating(thread):
    sum(1 for _ in itertools.takewhile(lambda _: not thread.stop, counting(thread)))


def counting(thread):
    while True:
        thread.count += 1
        yield thread.count


def mapping(thread):
    def one(_):
        thread.count += 1
        if thread.stop:
            raise StopIteration

    list(map(one, itertools.repeat(0)))


def catching(thread):
    while not thread.stop:
        try:
            raise KeyError
        except KeyError:
            thread.count += 1


def case_gate():
    threads = [Thread(body) for body in (hot, hot, one_line, sleeping, generating, mapping, catching)]
    for thread in threads:
        thread.start()
    calls = []
    native = ctypes.CFUNCTYPE(None)(lambda: calls.append(1) or time.sleep(0.001))
    module.evaluation_native(ctypes.cast(native, ctypes.c_void_p))
    module.evaluation_inside(1)
    for i in range(6):
        until(lambda: all(thread.count for thread in threads) and calls)
        module.evaluation_gate(1)
        until(lambda: module.evaluation_parked() == len(threads) + 1)
        counts = [thread.count for thread in threads] + [len(calls)]
        time.sleep(0.05)
        assert counts == [thread.count for thread in threads] + [len(calls)]
        module.evaluation_gate(0)
        until(lambda: all(thread.count > before for thread, before in zip(threads, counts)) and len(calls) > counts[-1])
    until(lambda: module.evaluation_parked() == 0)
    assert module.evaluation_traced() == 0
    for thread in threads:
        thread.end()
    module.evaluation_native_stop()


def case_born_at_gate():
    import _thread
    ran = []

    def body():
        ran.append(1)

    module.evaluation_inside(1)
    module.evaluation_gate(1)
    _thread.start_new_thread(body, ())
    until(lambda: module.evaluation_parked() == 1)
    assert not ran
    module.evaluation_gate(0)
    until(lambda: ran)


def case_programs_trace_function():
    """The program's own trace function hears what it heard before, and sys.gettrace() knows only it."""
    heard = []

    def tracer(frame, event, _):
        if frame.f_code in (leaf.__code__, outer.__code__):
            heard.append((frame.f_code.co_name, event))
            return tracer

    def listened(work):
        del heard[:]
        sys.settrace(tracer)
        try:
            work()
            assert sys.gettrace() is tracer
        finally:
            sys.settrace(None)
        return list(heard)

    expected = listened(lambda: outer(5))
    line = line_of(leaf, "leaf")
    with Events() as events:
        plant(leaf, line)
        assert listened(lambda: outer(5)) == expected, (heard, expected)
        assert events == [(LINE, "leaf", line, None, 1)] * 5

        def set_inside():
            sys.settrace(tracer)
            outer(1)  # inside
            sys.settrace(None)

        plant(set_inside, line_of(set_inside, "inside"))
        del heard[:], events[:]
        set_inside()
        assert ("outer", "call") in heard and ("leaf", "line") in heard, heard
        assert sys.gettrace() is None
    sys.settrace(tracer)
    with Events() as events:
        module.evaluation_exceptions(RAISE)
        module.evaluation_end()
        del heard[:]
        outer(5)
        sys.settrace(None)
    assert heard == expected and not events, (heard, expected)
    assert module.evaluation_traced() == 0


def case_programs_profile_function():
    heard = []
    line = line_of(leaf, "leaf")
    with Events() as events:
        plant(leaf, line)
        sys.setprofile(lambda frame, event, _: heard.append((frame.f_code.co_name, event)))
        outer(3)
        sys.setprofile(None)
    assert heard.count(("leaf", "call")) == heard.count(("leaf", "return")) == 3
    assert heard.count(("outer", "return")) == 1
    assert events == [(LINE, "leaf", line, None, 1)] * 3


def case_interrupted():
    """An exception that a stop leaves behind is the program's."""
    def then(event, frame, _):
        raise KeyboardInterrupt("out")

    for event in LINE, CALL, RETURN:
        with Events(then):
            if event == LINE:
                plant(leaf, line_of(leaf, "leaf"))
            else:
                plant(leaf)
                module.evaluation_step(leaf.__code__, event)
                module.evaluation_step(outer.__code__, event)
            try:
                outer(3)
                raise AssertionError("went on")
            except KeyboardInterrupt as error:
                assert error.args == ("out",)
    module.evaluation_step(leaf.__code__, 0)
    module.evaluation_step(outer.__code__, 0)
    module.evaluation_exceptions(UNWIND)
    with Events(lambda event, frame, _: [][1]):  # noqa: PLE0643
        try:
            raising(1)
            raise AssertionError("went on")
        except IndexError:
            pass


def case_goto():
    def body():
        x = 1
        x = 2  # skipped
        return x  # target

    def then(event, frame, line):
        frame.f_trace = lambda *_: None
        frame.f_lineno = line_of(body, "target")
        frame.f_trace = None

    plant(body, line_of(body, "skipped"))
    with Events(then) as events:
        assert body() == 1
    assert len(events) == 1


def case_other_evaluator():
    line = line_of(leaf, "leaf")
    slot = module.evaluation_slot()
    with Events() as events:
        # it lies beneath
        module.evaluation_foreign(1)
        calls = module.evaluation_foreign_calls()
        plant(leaf, line)
        outer(10)
        assert module.evaluation_foreign_calls() > calls and len(events) == 10
        # its end takes ours out: back at the first event, so not at once
        module.evaluation_foreign(0)
        outer(1)
        del events[:]
        outer(10)
        assert len(events) == 10, len(events)
        # it comes above ours, and goes
        module.evaluation_foreign(1)
        calls = module.evaluation_foreign_calls()
        outer(10)
        assert module.evaluation_foreign_calls() > calls and len(events) == 20
        module.evaluation_foreign(0)
        outer(10)
        assert len(events) == 30
        plant(leaf)
        assert module.evaluation_slot() == slot
        # each has the other as the one before
        module.evaluation_foreign(1)
        plant(leaf, line)
        module.evaluation_foreign(1)
        outer(10)
        assert len(events) == 40
        # ours goes while it lies above, and comes again
        plant(leaf)
        outer(10)
        plant(leaf, line)
        outer(10)
        assert len(events) == 50
        module.evaluation_foreign(0)
        outer(10)
        plant(leaf)
        outer(10)


def case_given_back():
    state = module.evaluation_slot(), module.evaluation_traced(), module.evaluation_possible()
    threads = [Thread(body) for body in (hot, sleeping, one_line)]
    for thread in threads:
        thread.start()
    module.evaluation_inside(1)
    for i in range(100):
        assert module.evaluation_begin() is None
        plant(hot, line_of(hot, "hot"))
        plant(sleeping, line_of(sleeping, "sleeping"))
        module.evaluation_step(one_line.__code__, LINE | CALL)
        module.evaluation_new_code(1)
        module.evaluation_exceptions(RAISE)
        time.sleep(0.001)
        module.evaluation_gate(i & 1)
        time.sleep(0.001)
        module.evaluation_gate(0)
        module.evaluation_end()
        assert module.evaluation_slot() == state[0]
        assert module.evaluation_traced() == state[1]
    for thread in threads:
        thread.end()
    # threads that ended while they were traced
    module.evaluation_begin()
    module.evaluation_exceptions(RAISE)
    many = [threading.Thread(target=outer, args=(5,)) for i in range(50)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    module.evaluation_end()
    assert (module.evaluation_slot(), module.evaluation_traced(), module.evaluation_possible()) == state


def descending(thread, depth=30):
    if depth:
        for _ in iter([1]):
            return descending(thread, depth - 1)
    thread.wait.wait(20)
    return (yield_from(thread), thread.count)


def yield_from(thread):
    for one in numbers(3):
        thread.count += one
    return thread.count


def own_tracer(thread):
    def tracer(frame, event, _):
        thread.count += 1
        return tracer

    sys.settrace(tracer)
    while not thread.stop:
        outer(2)
        time.sleep(0.001)
    assert sys.gettrace() is tracer
    sys.settrace(None)


def case_fields_given_back():
    """Every field of every thread, of each kind of thread, as before: while they wait, and again after they ran on."""
    standing = Thread(descending)
    standing.wait = threading.Event()
    threads = [Thread(body) for body in (hot, sleeping, one_line, own_tracer)] + [standing]
    for thread in threads:
        thread.start()
    native = ctypes.CFUNCTYPE(None)(lambda: time.sleep(0.001))
    module.evaluation_native(ctypes.cast(native, ctypes.c_void_p))
    until(lambda: all(thread.count for thread in threads if thread is not standing))
    suspended = numbers(10)
    next(suspended)
    module.evaluation_inside(1)

    def fields():
        """Which states of threads there are: the native thread is another one each time, and now and then none."""
        told = module.evaluation_fields().decode().splitlines()
        return told[0], {tuple(line.split(":")[1].split()[:4]) for line in told[1:]}

    def quiet():
        """Of the innermost calls: as they end, it is handed to the outer ones.  A thread that is being made has none yet."""
        told = [line.split(":")[1].split() for line in module.evaluation_fields().decode().splitlines()[1:]]
        return {words[4] for words in told if len(words) > 4}

    threads[3].end()
    without = fields()
    until(lambda: quiet() == {"0"})
    for i in range(50):
        assert module.evaluation_begin() is None
        for body in hot, sleeping, descending, numbers, yield_from:
            lines = {line for line in range(body.__code__.co_firstlineno + 1, body.__code__.co_firstlineno + 4)}
            plant(body, *lines)
        module.evaluation_step(one_line.__code__, LINE | CALL | RETURN)
        module.evaluation_exceptions((RAISE, UNWIND, RAISE | UNWIND, 0)[i % 4])
        module.evaluation_new_code(1)
        next(suspended) if i < 5 else None
        time.sleep(0.001)
        module.evaluation_gate(i & 1)
        time.sleep(0.001)
        module.evaluation_gate(0)
        module.evaluation_end()
        assert quiet() == {"0"}, module.evaluation_fields().decode()
        until(lambda: fields()[0] == without[0])
    until(lambda: fields() == without)
    standing.wait.set()
    standing.join()
    assert standing.failure is None
    for thread in threads[:3]:
        thread.end()
    module.evaluation_native_stop()
    assert module.evaluation_fields().decode().splitlines()[0] == without[0]
    assert quiet() == {"0"}


def case_programs_trace_function_stays():
    """Set, replaced and dropped by the program while ours is there, under events and after the end: it is heard, never
    freed while it is used, and freed when the program drops it."""
    line = line_of(leaf, "leaf")

    class Tracer(object):
        def __init__(self):
            self.heard = 0

        def __call__(self, frame, event, _):
            self.heard += frame.f_code is leaf.__code__
            return self

    with Events() as events:
        plant(leaf, line)
        for i in range(200):
            tracer = Tracer()
            gone = weakref.ref(tracer)
            sys.settrace(tracer)
            del tracer
            outer(2)
            assert gone().heard == 8, gone().heard  # call, two lines, return
            if i % 3 == 0:
                module.evaluation_exceptions(RAISE | UNWIND if i % 2 else 0)
            if i % 5 == 0:
                module.evaluation_end()
                outer(1)
                assert module.evaluation_begin() is None
                plant(leaf, line)
            gc.collect()
            assert sys.gettrace() is gone()
            sys.settrace(None)
            assert gone() is None
        module.evaluation_exceptions(0)
        plant(leaf)
    assert module.evaluation_traced() == 0
    assert len(events) >= 400


def case_forked():
    slot = module.evaluation_slot()
    line = line_of(leaf, "leaf")
    plant(leaf, line)
    module.evaluation_exceptions(RAISE | UNWIND)
    with Events() as events:
        child = os.fork()
        if not child:
            module.evaluation_forked()
            del events[:]
            outer(3)
            right = not events and module.evaluation_slot() == slot and module.evaluation_traced() == 0
            module.evaluation_begin()
            plant(leaf, line)
            outer(3)
            os._exit(0 if right and len(events) == 3 else 1)
        assert os.waitpid(child, 0)[1] == 0
        outer(3)
    assert len(events) == 3


def case_code_that_goes():
    for i in range(300):
        space = {}
        exec(compile("def gone():\n  x = 1\n  return x\n", "gone.py", "exec"), space)
        plant(space["gone"], 2)
        with Events() as events:
            space["gone"]()
        assert events == [(LINE, "gone", 2, None, 1)]
        del space
        gc.collect()


def case_recursion():
    def deeper(n):
        return deeper(n + 1)  # deeper

    plant(leaf, line_of(leaf, "leaf"))
    try:
        deeper(0)
        raise AssertionError("no end")
    except RecursionError:
        pass
    plant(deeper, line_of(deeper, "deeper"))
    with Events() as events:
        try:
            deeper(0)
            raise AssertionError("no end")
        except RecursionError:
            pass
    assert len(events) > 500


def case_inside():
    """What a parked thread or a job runs itself is not told, and the thread is traced as before afterwards."""
    line = line_of(leaf, "leaf")
    events = []

    def happened(event, frame, code, line, value, planted):
        events.append(line)
        outer(2)

    plant(leaf, line)
    plant(outer, line_of(outer, "call"), line_of(outer, "end"))
    module.evaluation_callback(happened)
    outer(2)
    module.evaluation_callback(None)
    assert events == [line_of(outer, "call"), line] * 2 + [line_of(outer, "end")], events


def main():
    why = module.evaluation_begin()
    if why:
        print("unusable:", why.decode())
        return
    globals()["case_" + sys.argv[2]]()
    module.evaluation_end()
    print("passed")


if __name__ == "__main__":
    main()
