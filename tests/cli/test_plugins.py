"""Plugins: the one of examples/plugin, built with the installed header alone, and such as are wrong."""

import json
import os
import resource
import shutil
import subprocess

import pytest

from support.target import SRCDIR

BUILD = os.path.realpath(os.environ.get("BUILDDIR", "."))
HEADER = os.path.join(SRCDIR, "lib", "plugin", "probing_plugin.h")
EXAMPLE = os.path.join(SRCDIR, "examples", "plugin", "limits.c")
READY = "print('ready', flush=True); import sys; sys.stdin.read()"
COMPILER = shutil.which("cc") or shutil.which("gcc")

WRONG = """
#include <probing_plugin.h>
#include <stdio.h>
static const struct probing_host *host;
static const struct probing_column columns[] = {COLUMNS {0}};
static int fill(struct probing_rows *rows, char *error, size_t cap)
{
    char byte[4] = "?";
    host->note(rows, "this is a note");
    if (host->pid(rows) == 0) {
        snprintf(error, cap, "nobody is there");
        return -1;
    }
    host->begin(rows);
    host->integer(rows, host->pid(rows));
    host->integer(rows, (int64_t)host->read(rows, 16, byte, 4));
    host->integer(rows, host->text(rows, "comm", byte, sizeof byte));
    host->string(rows, byte);
    host->real(rows, 0.5);
    host->string(rows, "one too many");
    host->begin(rows);
    return 0;
}
static const struct probing_table table = {sizeof table, SCHEMA, NAME, "a table", columns, 0, fill};
static const struct probing_table *const tables[] = {&table, 0};
static const struct probing_plugin plugin = {VERSION, sizeof plugin, "wrong", tables};
const struct probing_plugin *probing_plugin_v1(const struct probing_host *given) { host = given; return &plugin; }
"""
FIVE = ('{"pid", PROBING_INTEGER, "id", ""}, {"got", PROBING_INTEGER, "", ""}, {"len", PROBING_INTEGER, 0, 0}, '
        '{"comm", PROBING_TEXT, 0, 0}, {"half", PROBING_REAL, 0, 0},')


@pytest.fixture(scope="module")
def folder():
    """Where plugins may lie, for root too: nobody else can write anywhere on the way to it."""
    path = os.path.join(BUILD, "tests", "plugins-{}".format(os.getpid()))
    os.makedirs(path)
    os.chmod(path, 0o755)
    above = path
    while above != "/":
        above = os.path.dirname(above)
        info = os.stat(above)
        if info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022 and (os.geteuid() == 0 or not info.st_mode & 0o1000):
            shutil.rmtree(path)
            pytest.skip("others can write to " + above)
    os.mkdir(os.path.join(path, "include"))
    shutil.copy(HEADER, os.path.join(path, "include"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def build(folder):
    if not COMPILER:
        pytest.skip("needs a compiler")

    def compile_it(name, source, **defined):
        path = os.path.join(folder, name + ".so")
        words = ["-D{}={}".format(key, value) for key, value in defined.items()]
        subprocess.run([COMPILER, "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC",
                        "-I", os.path.join(folder, "include"), *words, "-x", "c", "-o", path, "-"],
                       input=source.encode(), check=True, timeout=120)
        os.chmod(path, 0o644)
        return path

    return compile_it


@pytest.fixture(scope="module")
def example(build):
    with open(EXAMPLE) as source:
        return build("limits", source.read())


@pytest.fixture(scope="module")
def good(build):
    """What a wrong one would be if it were right."""
    return build("five", WRONG, COLUMNS=FIVE, SCHEMA='"my"', NAME='"five"', VERSION="1")


@pytest.fixture
def ask(probing, start):
    """ask(plugins, sql): (rows, what was said beside them) of a process."""
    target = start(READY)

    def query(plugins, sql, status=0):
        done = probing(target.pid, "query", "-f", "json", sql, env=dict(os.environ, PROBING_PLUGINS=plugins))
        assert done.status == status, done.err
        return (json.loads(done.out) if status == 0 else None), done.err

    query.pid = target.pid
    return query


def test_the_example(ask, example):
    rows, said = ask(example, "SELECT * FROM plugin.limits")
    assert not said
    told = {row["name"]: row for row in rows}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = {resource.RLIM_INFINITY: None}
    assert told["Max open files"] == {"name": "Max open files", "soft": number.get(soft, soft), "hard": number.get(hard, hard),
                                      "unit": "files"}
    assert told["Max cpu time"]["unit"] == "seconds" and len(rows) >= 15
    shown, _ = ask(example, "SHOW TABLES")
    assert [row["doc"] for row in shown if (row["table_schema"], row["table_name"]) == ("plugin", "limits")] == [
        "what the process may use at most"]
    columns, _ = ask(example, "DESCRIBE plugin.limits")
    assert [column["column_name"] for column in columns] == ["name", "soft", "hard", "unit"]
    joined, _ = ask(example, "SELECT soft > count(*) AS enough FROM plugin.limits, system.threads WHERE plugin.limits.name = 'Max processes'")
    assert joined[0]["enough"] in (None, 1)


def test_what_a_plugin_can_ask(ask, good, example):
    """Several of them; cells beyond the columns are left out, missing ones NULL."""
    rows, said = ask("{}::{}".format(good, example), "SELECT * FROM my.five")
    assert rows == [{"pid": ask.pid, "got": 0, "len": len("python3\n") if rows[0]["len"] == 8 else rows[0]["len"],
                     "comm": rows[0]["comm"], "half": 0.5}, dict.fromkeys(["pid", "got", "len", "comm", "half"])]
    with open("/proc/{}/comm".format(ask.pid)) as comm:
        text = comm.read()
    assert (rows[0]["len"], rows[0]["comm"]) == (len(text), text[:3])
    assert "this is a note" in said


def test_its_own_refusal(probing, good):
    done = probing("query", "SELECT * FROM my.five", env=dict(os.environ, PROBING_PLUGINS=good))
    assert done.status == 6 and "my.five: nobody is there" in done.err


def test_such_as_are_wrong(ask, build, good, folder):
    """A note each, and the query runs."""
    text = os.path.join(folder, "text.so")
    with open(text, "w") as out:
        out.write("no library")
    empty = build("empty", "int nothing;")
    cases = {
        os.path.join(folder, "missing.so"): "No such file", text: "file too short", empty: "it has no probing_plugin_v1",
        folder: "is not a file",
        build("newer", WRONG, COLUMNS=FIVE, SCHEMA='"my"', NAME='"five"', VERSION="2"): "does not work with this version",
        build("named", WRONG, COLUMNS=FIVE, SCHEMA='"my"', NAME='"a b"', VERSION="1"): "its name is not valid",
        build("bare", WRONG, COLUMNS="", SCHEMA='"my"', NAME='"five"', VERSION="1"): "columns of my.five are not valid",
        build("twice", WRONG, COLUMNS=FIVE + FIVE, SCHEMA='"my"', NAME='"five"', VERSION="1"): "columns of my.five are not valid",
        build("ours", WRONG, COLUMNS=FIVE, SCHEMA='"system"', NAME='"process"', VERSION="1"): "a table system.process already",
    }
    for path, why in cases.items():
        rows, said = ask(path, "SELECT 1 AS one")
        assert rows == [{"one": 1}] and why in said and os.path.basename(path) in said, (path, said)
    rows, said = ask("{}:{}".format(empty, good), "SELECT half FROM my.five")
    assert rows[0] == {"half": 0.5}  # the others are there


def test_whose_files(ask, good, folder):
    """A plugin is code: nobody else may have written it."""
    loose = os.path.join(folder, "loose")
    os.mkdir(loose)
    inside = shutil.copy(good, loose)
    for path, mode, why in ((inside, 0o666, "others can write to " + inside), (inside, 0o664, "others can write to " + inside),
                            (loose, 0o777, "others can write to " + loose)):
        before = os.stat(path).st_mode
        os.chmod(path, mode)
        rows, said = ask(inside, "SELECT 1 AS one")
        assert rows == [{"one": 1}] and why in said
        said = ask(inside, "SELECT half FROM my.five", status=9)[1]
        assert why in said and "no such table: my.five" in said  # which is why
        os.chmod(path, before & 0o7777)
    assert ask(inside, "SELECT half FROM my.five")[0]
    link = os.path.join(folder, "link.so")
    os.symlink(inside, link)
    assert ask(link, "SELECT half FROM my.five")[0]
    if os.geteuid() == 0:
        os.chown(inside, 65534, -1)
        assert "belongs to another user" in ask(link, "SELECT 1 AS one")[1]
        os.chown(inside, 0, -1)
        os.chmod(loose, 0o1777)  # others may not replace the file, but root asks for more
        assert "others can write to" in ask(inside, "SELECT 1 AS one")[1]


def test_nothing_is_loaded_where_nobody_asks(probing, good):
    """No SQL, no plugin."""
    done = subprocess.run(["strace", "-f", "-e", "trace=openat", os.environ["PROBING"], "list"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=dict(os.environ, PROBING_PLUGINS=good), check=True)
    assert b"five.so" not in done.stderr
