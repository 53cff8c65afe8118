"""Lines that are reported, in new, running and suspended frames, generators and every kind of thread."""

import ctypes
import gc
import sys
import threading

from common import CALL, LINE, Events, Thread, hot, leaf, line_of, module, numbers, one_line, outer, plant, sleeping, until


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
            until(lambda: thread.count > count + 5)  # one may be under way at that moment
            seen = len(events)
            until(lambda: thread.count > count + 25)
            assert len(events) == seen
        assert set(events) == {(LINE, body.__name__, line, None, 1)}
        assert module.evaluation_traced() == 0
        thread.end()


def case_suspended_frame():
    """The frame waits in a call when its line is planted; the hot callee that it waits for ends first."""
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
    """The same, but all callees begin when the hook is there, and are not traced."""
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
    """The function that hears of new code plants a line in it, and the same call stops there."""
    line = line_of(leaf, "leaf")

    def then(event, frame, _):
        if event == CALL and frame.f_code is leaf.__code__:
            plant(leaf, line)

    module.evaluation_new_code(1)
    with Events(then) as events:
        leaf(1)
    assert [row for row in events if row[1] == "leaf"] == [
        (CALL, "leaf", leaf.__code__.co_firstlineno, None, 1), (LINE, "leaf", line, None, 1)], events


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
    """What the debugger itself runs in a stopped thread is not reported; afterwards the thread is traced as before."""
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
