"""The gate, which stops every thread."""

import ctypes
import itertools
import time

from common import Thread, hot, module, one_line, sleeping, until


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
