"""What the commands print of a program: forms of output, and that a hostile program cannot reach the terminal."""

import ast
import csv
import io
import json
import re
import subprocess

import pytest

from support.target import PROBING
from support.terminal import on_a_terminal
from support.torch_python import torch_python
from support.waits import until

HOSTILE = r'''
import sys, threading
source = """
def cle\u00e4r(*a):
    secret = "\\x1b[2J\\u009b31m\\u202egnp.exe\\r\\n\\x00"
    sys.stdin.read()
"""
space = {"sys": sys}
exec(compile(source, "/tmp/\x1b]0;owned\x07/\udcff\u009b2J\n\u202e.py", "exec"), space)
threading.main_thread().name = "\x1b[31mred\x1b[0m\nThread 1 \u2067"
print("ready", flush=True)
space["cle\u00e4r"](1)
'''
QUERY_ERROR = 9


def harmless(text):
    """No control characters but line feeds, no C1 codes, no direction marks, valid UTF-8."""
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\udc80-\udcff]", text)
    return text


def test_hostile_text_is_escaped(probing, start):
    evil = start(HOSTILE, "\x1b[31marg\x07", "\u202eline\nfeed")
    text = harmless(probing(evil.pid, "bt", "--locals").works())
    assert "\\u009b2J\\n\\u202e.py:4" in text
    assert "\\x1b]0;owned\\a" in harmless(probing(evil.pid, "bt", "-v").works())
    assert len([line for line in text.splitlines() if line.startswith("Thread ")]) == 1
    for words in (["bt", "--group"], ["bt", "--native"], ["bt", "--json", "--locals"],
                  ["query", "SELECT * FROM python.backtrace"],
                  ["query", "-f", "json", "SELECT file, thread_name FROM python.backtrace"],
                  ["query", "SELECT char(27) || '[31m', char(155), x'1b'"]):
        harmless(probing(evil.pid, *words).works())
    for words in (["list"], ["list", "-v"], ["list", "--tree"], ["list", "--json"]):
        harmless(probing(*words).works())
    harmless(probing("-t", "\x1b[31m", "bt").fails(3))
    harmless(probing("\x1b[31m").fails(2))


def test_text(probing, job):
    text = probing(job.pid, "bt").works().splitlines()
    assert text[0].startswith("Process {}: ".format(job.pid)) and text[1].startswith("Python 3.")
    main = text.index(next(line for line in text if '"MainThread"' in line))
    assert re.fullmatch(r'Thread {} "MainThread" (idle|active.*)'.format(job.pid), text[main])
    assert re.fullmatch(r"    innermost \(<string>:5\)", text[main + 1])
    assert text[main + 2] == "    outer (<string>:6)"
    assert sum(line.startswith("Thread ") for line in text) == 6


def test_locals(probing, job):
    text = probing(job.pid, "bt", "--locals").works()
    assert "        value = 7\n" in text and "        box = [1, 'two']\n" in text
    assert "        evil = '\\x1b]0;title\\x07'\n" in text
    assert "        name = '\u540d\u524d'\n" in text


def test_group(probing, job):
    text = probing(job.pid, "bt", "--group").works()
    assert re.search(r"^5 threads: .*\"waiter-0\"", text, re.M) and re.search(r"^1 thread: .*\"MainThread\"", text, re.M)
    assert text.count(" (threading.py:") >= 3 and text.index("5 threads") < text.index("1 thread:")


def test_one_thread(probing, job):
    whole = json.loads(probing(job.pid, "bt", "--json").works())
    waiter = next(thread for thread in whole if thread["thread_name"] == "waiter-3")
    for tid in (waiter["os_thread_id"], waiter["thread_id"], hex(waiter["thread_id"])):
        for words in ([tid], ["--thread", tid]):
            text = probing(job.pid, "bt", *words).works()
            assert '"waiter-3"' in text and text.count("Thread ") == 1
    probing(job.pid, "bt", 2**31 - 7).fails(3, str(2**31 - 7))


def test_native(probing, job):
    text = probing(job.pid, "bt", "--native").works()
    main = text[text.index('"MainThread"'):].split("\n\n")[0].splitlines()
    # Of a C library without its symbol table (Debian 13) the innermost function has no name.
    assert ("read" in main[1] or main[1].endswith("(libc.so.6)")) and any("innermost" in line for line in main) and "_start" in main[-1]


def test_list(probing, job):
    text = probing("list").works()
    assert text.split()[0] == "PID" and re.search(r"^ *{} .*{}".format(job.pid, job.name), text, re.M)
    mine = next(one for one in json.loads(probing("list", "--json").works()) if one["pid"] == job.pid)
    assert mine["threads"] == 6 and mine["rank"] is None and mine["python"].startswith("3.")
    assert mine["rss"] > 1 << 20 and mine["command"].endswith(job.name)


FAMILY = """
import subprocess, sys
children = [subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
            for _ in range(2)]
print(*[child.pid for child in children], flush=True)
sys.stdin.read()
"""


def test_list_tree(probing, start):
    parent = start(FAMILY)
    children = sorted(map(int, parent.ready.split()))
    # A child is listed once it has become Python.
    until(lambda: {one["pid"] for one in json.loads(probing("list", "--json").works())}.issuperset(children))
    text = probing("list", "--tree").works()
    order = [int(pid) for pid in re.findall(r"^ *(\d+)", text, re.M)]
    first = order.index(parent.pid)
    assert order[first:first + 3] == [parent.pid, *children]
    rows = text.splitlines()[1:][first:first + 3]
    marks = [re.search("[├└]─ |$", row) for row in rows]
    assert [mark.group() for mark in marks[1:]] == ["├─ ", "└─ "]
    if marks[0].group():  # itself below another Python, such as this one
        assert marks[1].start() == marks[2].start() == marks[0].start() + 3


def test_list_ranks(probing, start, job):
    ranked = start(job.args[2], env={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"})
    assert re.search(r"^ *{} +3/8 ".format(ranked.pid), probing("list").works(), re.M)


SQL = "SELECT 1 AS a, 'x,\"y\"' AS b, NULL AS c, 2.5 AS d, '' AS e UNION ALL SELECT -9223372036854775808, '\u540d', 1, 0.1, 'z'"


def test_formats(probing):
    rows = [{"a": 1, "b": 'x,"y"', "c": None, "d": 2.5, "e": ""},
            {"a": -2**63, "b": "\u540d", "c": 1, "d": 0.1, "e": "z"}]
    assert json.loads(probing("q", "-f", "json", SQL).works()) == rows
    assert [json.loads(line) for line in probing("q", "-f", "jsonl", SQL).works().splitlines()] == rows
    table = list(csv.reader(io.StringIO(probing("q", "-fcsv", SQL).works())))
    assert table == [["a", "b", "c", "d", "e"], ["1", 'x,"y"', "", "2.5", ""], [str(-2**63), "\u540d", "1", "0.1", "z"]]
    lines = probing("query", SQL).works().splitlines()
    assert lines[0].split() == ["a", "b", "c", "d", "e"] and lines[-1] == "(2 rows)" and len(lines) == 4
    assert lines[1].index('x,"y"') == lines[0].index("b")


def test_standard_input_and_statements(probing):
    text = probing("q", "-f", "json", "-", input="SELECT 1 AS a;\nSELECT 2 AS b;").works()
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        found.append(value)
    assert found == [[{"a": 1}], [{"b": 2}]]
    assert json.loads(probing("q", "-f", "json", "SELECT 1 AS a WHERE 0").works()) == []


def test_a_thread_without_a_name(probing, start):
    """Python has no name for it: it is called as the kernel calls it, in JSON as in the text."""
    program = start("import _thread, sys, threading, time\ndef alone():\n    time.sleep(600)\n_thread.start_new_thread(alone, ())\n"
                    "print('ready', flush=True)\nsys.stdin.read()")
    def both():
        entries = json.loads(probing(program.pid, "bt", "--json").works())
        return len(entries) == 2 and entries

    entries = until(both)
    name, = [entry["thread_name"] for entry in entries if entry["thread_name"] != "MainThread"]
    tid, = [entry["os_thread_id"] for entry in entries if entry["thread_name"] != "MainThread"]
    with open("/proc/{}/task/{}/comm".format(program.pid, tid)) as file:
        assert name == file.read().rstrip("\n")
    assert '{} "{}"'.format(tid, name) in probing(program.pid, "bt").works()


def test_big_output_is_whole(probing):
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i, 'some text' AS t FROM n"
    lines = probing("q", "-f", "csv", sql).works().splitlines()
    assert len(lines) == 60001 and lines[-1] == "60000,some text"


@pytest.mark.parametrize("sql, word", [("SELEC 1", "SELEC"), ("SELECT nope", "nope"), ("SELECT * FROM nope", "nope"),
                                       ("SELECT (", ""), ("DROP TABLE x", ""), ("SELECT 1; SELECT nope", "nope")])
def test_wrong_sql(probing, job, sql, word):
    probing("query", sql).fails(QUERY_ERROR, word)
    probing(job.pid, "query", sql).fails(QUERY_ERROR, word)


def test_query_of_a_program(probing, job):
    sql = "SELECT func, file, lineno FROM python.backtrace WHERE thread_name = 'MainThread' ORDER BY depth LIMIT 2"
    rows = json.loads(probing(job.pid, "query", "-f", "json", sql).works())
    assert [row["func"] for row in rows] == ["innermost", "outer"] and rows[0]["lineno"] == 5


def test_secrets(probing, start, job):
    env = {"HF_TOKEN": "hunter2", "PLAIN": "word"}
    program = start(job.args[2], env=env)
    sql = "SELECT name, value FROM system.environment ORDER BY name"
    assert "hunter2" not in probing(program.pid, "q", sql).works()
    shown = probing(program.pid, "q", "--reveal-secrets", sql).works()
    assert "hunter2" in shown and "word" in shown


def test_tables(probing):
    text = probing("tables").works()
    for name in ("backtrace", "threads", "interpreters", "modules", "locals", "process", "maps", "environment", "libraries"):
        assert name in text
    described = json.loads(probing("tables", "python.backtrace", "-f", "json").works())
    assert any("lineno" in row.values() for row in described)
    probing("tables", "python.nope").fails(QUERY_ERROR, "python.nope")


THINGS = """
import enum as it_s_an_enum, sys
class Thing: pass
kept = [Thing() for _ in range(321)]
sys.modules["it's"] = it_s_an_enum
print("ready", flush=True)
sys.stdin.read()
"""


def test_inspect(probing, start, job):
    program = start(THINGS)

    def rows(*words, pid=program.pid):
        return json.loads(probing(pid, "inspect", *words, "-f", "json").works())

    assert [(row["type"], row["count"]) for row in rows("objects", "main__.THING")] == [("__main__.Thing", 321)]
    sizes = [row["bytes"] for row in rows("objects")]
    assert len(sizes) > 20 and sizes == sorted(sizes, reverse=True)
    assert [row["name"] for row in rows("imports", "it's")] == ["it's"]
    assert {"enum", "sys"} < {row["name"] for row in rows("imports")}
    assert rows("objects", "no such class") == rows("imports", "' OR 1 --") == []
    waiters = rows("threads", "WAITER-", pid=job.pid)
    assert sorted(row["thread_name"] for row in waiters) == ["waiter-{}".format(i) for i in range(5)]
    assert {(row["func"], row["gil_state"]) for row in waiters} == {("wait", "none")}
    assert [row["os_thread_id"] for row in rows("threads", job.pid, pid=job.pid)] == [job.pid]
    assert "innermost" not in probing(job.pid, "inspect", "threads", "waiter-3").works()
    assert rows("tensors") == rows("modules") == []  # without torch


TORCH = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
kept = torch.zeros(10, 3, dtype=torch.float64)
print("ready", flush=True)
sys.stdin.read()
"""


def test_inspect_torch(probing):
    python = torch_python()
    if python is None:
        pytest.skip("no Python with torch")
    with subprocess.Popen([python, "-c", TORCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as program:
        assert program.stdout.readline() == "ready\n"
        (linear,) = json.loads(probing(program.pid, "inspect", "modules", "linear", "-f", "json").works())
        tensors = json.loads(probing(program.pid, "inspect", "tensors", "-f", "json").works())
        table = probing(program.pid, "inspect", "modules").works().splitlines()
        largest = probing(program.pid, "inspect", "tensors").works().splitlines()
        program.stdin.close()
    assert table[0].split() == ["name", "type", "parameters", "trainable", "bytes", "dtype", "device", "training"]
    assert [row.split()[:3] for row in table[2:4]] == [["0", "Linear", "40"], ["1", "ReLU", "0"]], table
    assert largest[1].split()[1] == "Tensor" and largest[2].split()[1] == "Parameter", largest
    assert max(map(len, table + largest)) <= 80
    assert (linear["name"], linear["parameters_total"], linear["dtype"]) == ("0", 40, "float32")
    assert [(one["shape"], one["bytes"]) for one in tensors[:3]] == [("[10, 3]", 240), ("[8, 4]", 128), ("[8]", 32)]


def test_json_is_what_literal_eval_reads(probing, job):
    threads = json.loads(probing(job.pid, "bt", "--json", "--locals").works())
    main = next(thread for thread in threads if thread["thread_name"] == "MainThread")
    values = {one["name"]: ast.literal_eval(one["repr"]) for one in main["frames"][0]["locals"]}
    assert values == {"value": 7, "evil": "\x1b]0;title\x07", "name": "\u540d\u524d", "box": [1, "two"]}


def test_long_cells_widen_no_other_row(probing):
    """In a pipe all of a cell is there; the other rows stay as narrow as they are, the columns in line."""
    long = "x" * 900
    out = probing("query", "SELECT 'short' AS name, 1 AS n, 'end' AS last UNION ALL SELECT '{}', 22, 'tail' "
                  "UNION ALL SELECT 'middling', 333, NULL".format(long)).works()
    head, first, second, third, _ = out.splitlines()
    assert second.split() == [long, "22", "tail"]
    assert max(len(head), len(first), len(third)) < 40
    assert head.index("n", 4) == first.index("1") == third.index("333") + 2 and head.index("last") == first.index("end")
    both = probing("query", "SELECT 'a' AS name, '{}' AS big, '{}' AS more, 'z' AS last".format("y" * 61, "w" * 61)).works()
    assert both.splitlines()[1].split() == ["a", "y" * 61, "w" * 61, "z"]


MANY = "kept = [[i] for i in range(200000)]\nprint('ready', flush=True)\ninput()"


def test_progress(start):
    """From a second on, in a line of the terminal that is erased at the end; none elsewhere."""
    target = start(MANY)
    second = "(SELECT count(*) FROM python.torch_phases(1.1))"
    asked = [PROBING, "-t", target.pid, "query", "-f", "csv",
             "SELECT count FROM {} CROSS JOIN python.objects WHERE type = 'list'".format(second)]
    status, told = on_a_terminal(asked, stderr="terminal", TERM="xterm")
    assert status == 0 and b"\r131,072 objects found\x1b[K" in told or b"\r65,536 objects found\x1b[K" in told, told
    shown, rows = told.rsplit(b"\r\x1b[K", 1)
    assert rows.splitlines()[0] == b"count" and int(rows.splitlines()[1]) >= 200000
    status, told = on_a_terminal(asked, stderr="terminal", TERM="dumb")
    assert status == 0 and told.splitlines() == rows.splitlines()


def test_query_vertical(probing):
    """A column a line, the names to the right; text that is safe for a terminal; several statements."""
    sql = "SELECT 1 AS a, 'x' || char(27) || 'y' AS long_name UNION ALL SELECT NULL, 2.5; SELECT 3 AS b"
    assert probing("query", "-f", "vertical", sql).works() == (
        "-- row 1 --\n        a: 1\nlong_name: x\\x1by\n"
        "-- row 2 --\n        a: \nlong_name: 2.5\n(2 rows)\n"
        "\n-- row 1 --\nb: 3\n(1 row)\n")
