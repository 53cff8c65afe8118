"""A function that is called again and again; each value of its variables follows from the number of the call.

Each line of its input is evaluated, and the result printed: how a test looks for what was left behind.
"""

import ctypes
import sys
import threading
import time


class Box(object):
    pass


class Small(object):
    __slots__ = ("number",)


class Trainer(object):
    def __init__(self):
        self.rate = 1.0
        self.plain = {"total": 0}

    def work(self, call):
        epoch = call // 100  # noqa: F841 all these are read from outside
        loss = call * 0.25
        out = {"loss": -call, "nested": [call, (call, 7)], "a,b": call + 1}  # noqa: F841
        text = u"call %d \u00e9" % call  # noqa: F841
        good = call % 2 == 0  # noqa: F841
        big = call << 70  # noqa: F841
        negative = -call  # noqa: F841
        nothing = None  # noqa: F841
        box = Box()  # noqa: F841
        self.rate = 1.0 / call
        self.plain["total"] = call
        if call % 3:
            sometimes = call  # noqa: F841

        def inner():
            return loss

        time.sleep(0.001)
        return inner

    def numbers(self, call):
        for number in range(3):
            yield number + call


def again(number):
    """Two of a name are told apart by module and qualified name."""
    def work():
        call_too = number  # noqa: F841
        return None
    return work()


def evaluator():
    """The interpreter's function that runs frames, told by how often its address stands in the interpreter (from 3.11, NULL is the same)."""
    head = ctypes.pythonapi.PyInterpreterState_Head
    head.restype = ctypes.c_void_p
    standard = ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    return list((ctypes.c_void_p * 300).from_address(head())).count(standard)


def answer():
    for line in sys.stdin:
        print(eval(line, globals()))
        sys.stdout.flush()


threading.Thread(target=answer, daemon=True).start()
trainer = Trainer()
calls = 0
while True:
    calls += 1
    trainer.work(calls)
    again(calls)
    sum(trainer.numbers(calls))
    if calls == 3:
        print("ready")
        sys.stdout.flush()
