"""Trace functions, profile functions and evaluators that are not ours, and a fork."""

import gc
import os
import sys
import weakref

from common import LINE, RAISE, UNWIND, Events, leaf, line_of, module, outer, plant


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


def case_programs_trace_function_stays():
    """The program sets, replaces and drops its trace function while ours is there, and after the end: it is called, never
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


def case_other_evaluator():
    line = line_of(leaf, "leaf")
    slot = module.evaluation_slot()
    with Events() as events:
        # it lies below ours
        module.evaluation_foreign(1)
        calls = module.evaluation_foreign_calls()
        plant(leaf, line)
        outer(10)
        assert module.evaluation_foreign_calls() > calls and len(events) == 10
        # its end removes ours, which is back at the first event, so not at once
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
