"""What the interpreter has after the end is what it had before."""

import ctypes
import sys
import threading
import time

from common import (
    CALL,
    LINE,
    RAISE,
    RETURN,
    UNWIND,
    Thread,
    hot,
    line_of,
    module,
    numbers,
    one_line,
    outer,
    plant,
    sleeping,
    until,
)


def descending(thread, depth=30):
    if depth:
        for _ in iter([1]):
            return descending(thread, depth - 1)
    thread.wait.wait(200)
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


def case_fields_given_back():
    """Every field of every kind of thread is as before: while the threads wait, and again after they ran on."""
    waiting = Thread(descending)
    waiting.wait = threading.Event()
    threads = [Thread(body) for body in (hot, sleeping, one_line, own_tracer)] + [waiting]
    for thread in threads:
        thread.start()
    native = ctypes.CFUNCTYPE(None)(lambda: time.sleep(0.001))
    module.evaluation_native(ctypes.cast(native, ctypes.c_void_p))
    until(lambda: all(thread.count for thread in threads if thread is not waiting))
    suspended = numbers(10)
    next(suspended)
    module.evaluation_inside(1)

    def fields():
        """The states of the threads: the native thread is a new one each time, and sometimes there is none."""
        listed = module.evaluation_fields().decode().splitlines()
        return listed[0], {tuple(line.split(":")[1].split()[:4]) for line in listed[1:]}

    def quiet():
        """The flags of the innermost calls: when one ends, its caller gets its flag.  A new thread has none yet."""
        listed = [line.split(":")[1].split() for line in module.evaluation_fields().decode().splitlines()[1:]]
        return {words[4] for words in listed if len(words) > 4}

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
    waiting.wait.set()
    waiting.join()
    assert waiting.failure is None
    for thread in threads[:3]:
        thread.end()
    module.evaluation_native_stop()
    assert module.evaluation_fields().decode().splitlines()[0] == without[0]
    assert quiet() == {"0"}
