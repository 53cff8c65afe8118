"""probing memory: a row a process, and what changes while it watches."""

import json
import os
import subprocess
import sys

import pytest

from screen import Screen

PROBING = os.environ["PROBING"]
GROWING = """
import sys
kept = []
print("ready", flush=True)
for line in sys.stdin:
    kept.append(bytearray(b"x") * (int(line) << 20))
    print("grown", flush=True)
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print('ready', flush=True); import sys; sys.stdin.read()"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
child.kill()
child.wait()
"""


def table(text):
    """Dicts of the words of an aligned table; "group" has blanks, and is left out here."""
    head, *lines = text.splitlines()
    names = head.split()
    assert "group" not in names or len(names) > 8
    return [dict(zip(names, line.split())) for line in lines]


def megabytes(text):
    return float(text.rstrip("KMG")) * {"K": 1 / 1024, "M": 1, "G": 1024}.get(text[-1], 1 / 1048576)


def test_one_process(probing, start):
    target = start(GROWING)
    row, = table(probing(target.pid, "memory").works())
    told, = json.loads(probing(target.pid, "query", "-f", "json", "SELECT * FROM memory_usage").works())
    assert row["pid"] == str(target.pid) and row["resident"][-1] in "MK"
    for column, name in ("memory_mb", "resident"), ("anon", "own"), ("file", "files"), ("peak", "peak"):
        assert megabytes(row[name]) == pytest.approx(told[column], rel=0.05, abs=0.5), name
    same, = json.loads(probing(target.pid, "mem", "-f", "json").works())
    assert same["pid"] == target.pid and same["peak"] == told["peak"]


def test_subprocesses(probing, start):
    target = start(PARENT)
    rows = table(probing(target.pid, "memory", "--subprocesses").works())
    assert sorted(row["pid"] for row in rows) == sorted([str(target.pid), target.ready])
    rows = json.loads(probing(target.pid, "memory", "--subprocesses", "-f", "json").works())
    assert sorted(row["pid"] for row in rows) == sorted([target.pid, int(target.ready)])


def test_watching():
    """What has changed since the first screen, of one process that then ends."""
    target = subprocess.Popen([sys.executable, "-c", GROWING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    view = Screen([PROBING, "-t", str(target.pid), "memory", "--watch=0.1"])
    try:
        assert view.until(lambda lines: any("+0.0" in line or " +0" in line for line in lines))
        target.stdin.write(b"64\n")
        target.stdin.flush()
        assert target.stdout.readline() == b"grown\n"
        lines = view.until(lambda lines: any("+64" in line or "+63" in line or "+65" in line for line in lines))
        assert lines[0].split()[-3:] == ["change", "a", "minute"]
    finally:
        view.close()
        target.kill()
        target.communicate()


@pytest.mark.parametrize("words, told", [(["--watch=0"], "watch"), (["-w", "-f", "json"], "--format prints once"), (["-f", "xml"], "xml")])
def test_bad_options(probing, start, words, told):
    probing(start(GROWING).pid, "memory", *words).fails(2, told)
