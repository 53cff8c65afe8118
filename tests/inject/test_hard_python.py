"""Hard injections into every CPython found: it computes the same as before, and ends as it would have."""

import json
import subprocess
import time

import pytest

from support import injection, pythons
from support.injection import ROUNDS, inject, injector, short
from support.target import Target
from support.torch_python import torch_python


def goes_on(target):
    """Both threads compute, and rightly."""
    told = []
    for _ in range(2):
        before = told
        until = time.monotonic() + injection.DEADLINE
        while True:
            target.child.stdin.write(b"\n")
            target.child.stdin.flush()
            line = target.line()
            assert line and not line.startswith("wrong"), line
            told = [int(word) for word in line.split()]
            if not before or all(now > was for now, was in zip(told, before)):
                break
            assert time.monotonic() < until, line
            time.sleep(0.01)


def test_every_cpython_computes_on(start, python):
    if "jit" in python.how and python.minor == (3, 14):
        pytest.skip("the experimental compiler of 3.14 ends this program by SIGSEGV, 12 of 200 times, without an injection, too")
    target = start(python, "steady.py")
    account = inject(target.pid, short(0.1))
    assert account["injected"] == short(0.1), account
    goes_on(target)
    target.child.stdin.close()
    assert target.child.wait(injection.DEADLINE) == 0
    target.child.stdin = open("/dev/null")


def test_interpreter_exit_during_injection(start, python):
    if python.minor == (3, 14) and python.how.endswith("jit"):
        pytest.skip("without an injector, too, 1 exit in 200 hangs or crashes: its JIT, and daemon threads that run")
    for delay in range(short(0.1)):
        target = start(python, "steady.py")
        process = subprocess.Popen(injector(target.pid), stdout=subprocess.PIPE, encoding="utf-8")
        time.sleep(delay % 12 * 0.001)
        target.child.stdin.close()
        assert target.child.wait(injection.DEADLINE) == 0, delay
        account = json.loads(process.communicate(timeout=injection.DEADLINE)[0].splitlines()[-1])
        assert not account["hung"], account
        target.child.stdin = open("/dev/null")


@pytest.fixture(scope="module")
def torch():
    path = torch_python()
    if not path:
        pytest.skip("no Python with torch")
    return pythons.Python([], path, (3, 0, 0), "torch")


def test_training_gives_the_same_weights(torch):
    """Bit by bit: what an injector does to one vector register shows here."""
    # Workers that wait for work without spinning: two processors may be shared with other tests.  The sums depend on how
    # many threads share the work, and MKL chooses that anew where it is not told to leave it.
    variables = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "false", "MKL_DYNAMIC": "false"}
    with Target(torch, "torch_exact.py", [60], variables=variables) as target:
        told = [target.line()]
        for _ in range(max(1, ROUNDS // 100)):
            account = inject(target.pid, short(0.3))
            assert account["injected"] > 0, account
            told += [target.line(), target.line()]  # the first may have been there before
        target.child.stdin.write(b"\n")
        target.child.stdin.flush()
        told += iter(target.line, None)
    assert len(set(told)) == 1, told
