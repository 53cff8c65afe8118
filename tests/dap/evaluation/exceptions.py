"""Exceptions, and steps, which follow them."""

import sys
import threading
import time
import traceback
import weakref

from common import (
    CALL,
    LINE,
    RAISE,
    RETURN,
    UNWIND,
    Events,
    Thread,
    failing,
    leaf,
    line_of,
    module,
    numbers,
    outer,
    plant,
    raising,
    until,
)


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
    """Frames that ran before: an exception that leaves them is reported with its value, one that they catch is freed, and
    a thread that waits in such a frame slows no other thread."""
    alive, wait = [], threading.Event()

    class Mine(Exception):
        def __init__(self):
            Exception.__init__(self)
            alive.append(weakref.ref(self))

    def body():
        wait.wait(200)
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
    """A step follows an exception out of frames that ran before the hook came, to where it is caught; Python code changes
    what is watched, as in the debugger."""
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


def case_interrupted():
    """An exception that the callback raises reaches the program."""
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
