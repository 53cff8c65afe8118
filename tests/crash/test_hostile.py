"""Crash dumps that are damaged, or made to hurt: what reads them ends in time with an answer or an error."""

import json
import os
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


def test_a_folder_in_sql(dump, tmp_path):
    """system.crashes: what is no dump is told or left out, and nothing of it is followed, waited for or run."""
    path, data = dump
    folder = tmp_path / "shared"
    folder.mkdir()
    for name, content in (("good", data), ("copy", data), ("empty", b""), ("cut", data[:len(data) // 3]), ("text", b"#!/bin/sh\n"),
                          ("escape\x1b[31m", data)):
        (folder / "crash-{}.snap".format(name)).write_bytes(content)
    (folder / "crash-note.txt").write_text("SIGSEGV\n")
    (folder / "other.snap").write_bytes(data)
    os.symlink("/etc/passwd", str(folder / "crash-link.snap"))
    os.symlink(path, str(folder / "crash-theirs.snap"))
    os.mkfifo(str(folder / "crash-pipe.snap"))
    (folder / "crash-folder.snap").mkdir()
    with open(str(folder / "crash-sparse.snap"), "wb") as file:
        file.truncate(1 << 40)
    environment = dict(os.environ, PROBING_CRASH_DIR=str(folder))
    sql = "SELECT kind, title, pid, file, bytes, crash_group FROM system.crashes ORDER BY file"
    rows = json.loads(probing("query", "-f", "json", sql, env=environment, timeout=60).stdout)
    kinds = {row["file"]: row["kind"] for row in rows}
    assert kinds == {"crash-good.snap": "signal", "crash-copy.snap": "signal", "crash-escape\x1b[31m.snap": "signal", "crash-empty.snap": "broken",
                     "crash-cut.snap": kinds["crash-cut.snap"], "crash-text.snap": "broken", "crash-sparse.snap": "broken", "crash-note.txt": "text"}, kinds
    good = [row for row in rows if row["kind"] == "signal"]
    assert len({row["crash_group"] for row in good}) == 1 and all("SIGSEGV" in row["title"] and row["pid"] for row in good)
    told = probing("query", "SELECT file, title FROM system.crashes", env=environment).stdout
    assert not CONTROL.search(told), ascii(told)


def test_a_folder_that_is_not_there_in_sql(tmp_path):
    """The default one of this user, or that of PROBING_CRASH_DIR, is made when it is not there."""
    environment = dict(os.environ, PROBING_CRASH_DIR=str(tmp_path / "none"))
    assert json.loads(probing("query", "-f", "json", "SELECT count(*) AS n FROM system.crashes", env=environment).stdout) == [{"n": 0}]
    (tmp_path / "file").write_text("x")
    refused = probing("query", "SELECT * FROM system.crashes", env=dict(os.environ, PROBING_CRASH_DIR=str(tmp_path / "file")), check=False)
    assert refused.returncode and "folder" in refused.stderr
