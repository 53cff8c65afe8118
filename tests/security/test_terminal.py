"""What a hostile target is called does nothing to the terminal of who looks at it."""

import os
import re
import subprocess
import sys

import pytest

from support.terminal import on_a_terminal

# Title, question for the cursor, C1 CSI, bidi override, carriage return, backspace, bell, line separator.
EVIL = "a\x1b]0;EVIL\x07b\x1b[6nc\x9b32md\u202ee\rf\bg\x7fh\u2028i"
HOSTILE = """
import asyncio, ctypes, sys, threading
evil = {evil!r}
ctypes.CDLL(None).prctl(15, b"p\\x1b]0;EVIL", 0, 0, 0)
code = compile("def f():\\n    local = (evil, {{evil: evil}}, evil.encode())\\n    try:\\n        raise ValueError(evil)\\n    except ValueError as error:\\n"
               "        wait()\\n", evil + ".py", "exec")
def wait():
    async def stay():
        print("ready", flush=True)
        await asyncio.sleep(1000)
    async def main():
        task = asyncio.ensure_future(stay())
        if hasattr(task, "set_name"):
            task.set_name(evil)
        await task
    asyncio.new_event_loop().run_until_complete(main())
space = {{"evil": evil, "wait": wait}}
exec(code, space)
f = space["f"]
if hasattr(f.__code__, "replace"):
    f.__code__ = f.__code__.replace(co_name=evil, co_filename=evil)
f.__name__ = evil
thread = threading.Thread(target=f, name=evil)
thread.start()
thread.join()
"""
TABLES = ["python.backtrace", "python.threads", "python.locals", "python.tasks", "python.exception", "system.threads", "system.process", "system.environment"]
COMMANDS = [["backtrace", "--locals"], ["backtrace", "--native"], ["backtrace", "--json"], ["tasks"], ["tasks", "--json"]]
COMMANDS += [["query", "-f", form, "SELECT * FROM " + table] for table in TABLES for form in ("table", "csv", "jsonl")]
OURS = re.compile("\x1b\\[[0-9;]*m")  # bold and colours
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile():
    env = dict(os.environ, EVIL=EVIL)
    with subprocess.Popen([sys.executable, "-c", HOSTILE.format(evil=EVIL), EVIL, b"\xff\xfe\x1b[5n"], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as job:
        assert job.stdout.readline() == b"ready\n"
        yield job.pid
        job.kill()


def on_terminal(words):
    """(exit status, all that it wrote to a terminal but its own colours)."""
    status, told = on_a_terminal(words, stderr="terminal", TERM="xterm")
    # bad UTF-8 fails here
    return status, OURS.sub("", told.replace(b"\r\n", b"\n").decode())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_of_one_process(hostile, words):
    status, told = on_terminal([os.environ["PROBING"], "-t", str(hostile), *words])
    assert status == 0, told
    assert not RAW.search(told), repr(told)
    assert "EVIL" in told or words[-1].rsplit(".")[-1] in ("process", "environment")


@pytest.mark.parametrize("words", [["list"], ["list", "-v"], ["list", "--json"]], ids=" ".join)
def test_of_all(hostile, words):
    status, told = on_terminal([os.environ["PROBING"], *words])
    assert status == 0 and str(hostile) in told and "EVIL" in told
    assert not RAW.search(told), repr(told)
