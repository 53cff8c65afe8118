"""Crash dumps that are damaged, or made to hurt: what reads them ends in time with an answer or an error."""

import json
import re
import resource
import shutil

import pytest

from support.target import probing
from test_crash import Crasher

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def dump(any_python, tmp_path):
    """The path and the bytes of a dump."""
    if any_python.root:
        pytest.skip("its root does not hold the program that writes dumps")
    one = Crasher(any_python, tmp_path, "null")
    one.crash()
    (path,) = one.dumps
    with open(path, "rb") as file:
        return path, file.read()


def changed(dump, pattern, value):
    """The dump again, with what pattern's group matched, everywhere, replaced: as long as it was."""
    path, data = dump
    found = list(re.finditer(pattern, data))
    assert found, pattern
    for one in found:
        start, end = one.span(1)
        assert end - start >= len(value), (end - start, value)
        data = data[:start] + value.ljust(end - start) + data[end:]
    with open(path, "wb") as file:
        file.write(data)
    return path


@pytest.mark.parametrize("time", [b"inf", b"-inf", b"nan", b"1e308", b"-1e17", b"x"])
def test_times_that_are_none(dump, time):
    path = changed(dump, rb"\ntime (\d+\.\d+)\n", time)
    told = json.loads(probing("crash", "export", path).stdout, parse_constant=lambda word: pytest.fail(word))
    assert told["crash"]["kind"] == "signal"
    assert "SIGSEGV" in probing("crash", "show", path).stdout
    assert probing("-t", path, "query", "-f", "json", "SELECT time, pid FROM system.crash").stdout


def test_escapes_reach_no_terminal(dump, tmp_path):
    path = changed(dump, rb"\ntitle ([^\n]+)\n", b"\x1b]0;x\x07\x1b[31m\xff\xc2\x9b")
    for command in (["list", tmp_path], ["list", "--all", tmp_path], ["show", path], ["export", path]):
        told = probing("crash", *command).stdout
        assert told and not CONTROL.search(told), ascii(told[:400])


def test_more_dumps_than_files_may_be_open(dump, tmp_path):
    for i in range(60):
        shutil.copy(dump[0], str(tmp_path / "crash-copy{}.snap".format(i)))
    told = probing("crash", "list", tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))).stdout
    assert len(told.splitlines()) == 2 and re.search(r"\b61\b.*SIGSEGV", told), told


def test_damaged(dump, tmp_path):
    """Cut anywhere, or with any part turned over: an answer or an error, and no crash."""
    path, data = dump
    texts = data.index(b"kind signal\n")
    damaged = [data[:cut] for cut in range(0, len(data), max(1, len(data) // 11))]
    for at in [*range(0, len(data), max(1, len(data) // 29)), *range(texts, texts + 300, 23)]:
        damaged.append(data[:at] + bytes(255 - byte for byte in data[at:at + 8]) + data[at + 8:])
    for bytes_ in damaged:
        with open(path, "wb") as file:
            file.write(bytes_)
        for command in (["crash", "list", tmp_path], ["crash", "export", path],
                        ["-t", path, "query", "SELECT * FROM system.crash; SHOW TABLES"]):
            done = probing(*command, check=False)
            assert 0 <= done.returncode < 70, (command, done.returncode, done.stderr)
