"""The command line: its words, what it prints where, and with which status."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from support.terminal import on_a_terminal
from support.waits import until

PROBING = os.environ["PROBING"]
COMMANDS = {"list": "ls l ps", "backtrace": "bt b dump remote", "debug": "dbg d attach", "dap": "", "query": "q", "tables": "tbl", "snapshot": "",
            "tasks": "async", "inspect": "", "profile": "record flamegraph performance perf p", "diff": "", "top": "", "crash": "", "memory": "mem",
            "inject": "in i", "eval": "e", "repl": "r", "config": "cfg c", "detach": "", "launch": "", "collect": "", "cluster": "", "serve": "", "export": "", "hang": "", "skill": "skills", "mcp": "", "kernel": "", "gdb": "", "gdb-script": "", "vscode": "", "demo": "", "doctor": "",
            "help": "", "version": "", "completion": ""}
USAGE, NOT_FOUND, QUERY_ERROR, UNSUPPORTED = 2, 3, 9, 6


def test_version(probing):
    assert re.fullmatch(r"probing \d+\.\d+\.\d+\n", probing("--version").works())
    assert probing("-V").works() == probing("version").works() == probing("--version").works()


def test_start_loads_few_libraries():
    """Each costs every command: arithmetic is in lib/base/real.h, libraries that few commands need are opened by lib/base/lazy.h."""
    library = os.path.join(os.path.dirname(PROBING), "libprobing.so.0")
    for path in PROBING, library:
        told = subprocess.run(["readelf", "-dW", path], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
        needed = set(re.findall(r"NEEDED.*\[(lib\w+|ld-linux)", told))
        assert needed <= {"libprobing", "libjansson", "libc", "libdl", "libpthread", "ld-linux"}, path


def test_help_names_every_command_and_status(probing):
    text = probing("help").works()
    for name in COMMANDS:
        assert re.search(r"^  {}\b".format(name), text, re.M)
    for status in (0, 2, 3, 4, 5, 6, 7, 8, 9, 70):
        assert re.search(r"^ +{}  \w".format(status), text, re.M)
    assert probing("--help").works() == text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(probing, name):
    text = probing("help", name).works()
    assert text.startswith("probing {}: ".format(name)) and "Usage" in text
    assert probing(name, "--help").works() == text
    for alias in COMMANDS[name].split():
        assert probing("help", alias).works() == text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("word, near", [("backtrase", "backtrace"), ("lst", "list"), ("qurey", "query"),
                                        ("snap", "snapshot"), ("tabels", "tables")])
def test_unknown_command_names_the_nearest(probing, word, near):
    probing(word).fails(USAGE, 'unknown command "{}"'.format(word), "did you mean `{}`?".format(near))
    probing("help", word).fails(USAGE, near)
    probing(1, word).fails(USAGE, near)


@pytest.mark.parametrize("word", ["modules", "objects", "tensors", "threads"])
def test_unknown_command_that_another_takes(probing, word):
    for args in ((word,), (1, word), (word, 1)):
        probing(*args).fails(USAGE, "did you mean `inspect {}`?".format(word))


def test_unknown_command_without_a_neighbour(probing):
    probing("zzzzzz").fails(USAGE, "probing help")


@pytest.mark.parametrize("args, words", [
    ((1, "bt", "--nativ=3"), ["--native takes no argument"]),
    ((1, "bt", "--locls"), ["unknown option --locls", "did you mean --locals?"]),
    ((1, "bt", "-Z"), ["unknown option -Z", "probing help backtrace"]),
    ((1, "bt", "--thread"), ["--thread needs an argument"]),
    ((1, "bt", 1, 2), ["one argument too many"]),
    ((1, "bt", 1, "--thread", 1), ["thread is given twice"]),
    ((1, "bt", "--watch=x"), ["--watch=x"]),
    ((1, "bt", "--watch=0"), ["--watch=0"]),
    ((1, "bt", "--json", "--group"), ["--group"]),
    ((1, "query"), ["query needs an argument"]),
    ((1, "query", "-f", "xml", "SELECT 1"), ["table, json, jsonl, csv", '"xml"']),
    (("query", "-", ), ["standard input is empty"]),
    ((1, "inspect"), ["inspect needs one of: modules, tensors, objects, threads, imports"]),
    ((1, "inspect", "tensor"), ['inspect: "tensor" is not one of: modules, tensors, objects, threads, imports']),
    (("inspect", "threads"), ["needs a target"]),
    (("tables", "a;b"), ["not the name of a table"]),
    (("completion", "tcsh"), ["tcsh"]),
    (("--color", "red", "list"), ["auto, always, never"]),
    (("backtrace",), ["needs a target", "probing list"]),
    ((1,), ["no command", "backtrace"]),
    ((), ["no command", "probing list"]),
    (("-p", "x", "bt"), ["not a process id"]),
    (("-p", 1, "-p", 2, "bt"), ["2 times"]),
    (("-t", "", "bt"), ["target is empty"]),
    (("-p", 99999999999, "bt"), ["not a process id"]),
    (("-p", 1, "list"), ["list takes no target"]),
    (("debug",), ["needs a target"]),
])
def test_wrong_words(probing, args, words):
    probing(*args).fails(USAGE, *words)


def test_a_server_without_a_token(probing):
    """Another one's server, or none; or the program that asks is not built."""
    told = probing("-t", "127.0.0.1:9922", "bt")
    assert (told.status in (NOT_FOUND, UNSUPPORTED), told.out) == (True, "") and "PROBING_AUTH_TOKEN" in told.err or "without-serve" in told.err


def test_target_forms(probing, job):
    def stacks(*words):
        """Without what changes from look to look: a thread that has just been started may run for a moment yet."""
        return re.sub(r'" (active|idle)\b', '"', probing(*words).works())

    expected = stacks(job.pid, "backtrace")
    assert "innermost" in expected
    for words in (["-p", job.pid, "bt"], ["--pid={}".format(job.pid), "b"], ["-t", job.pid, "backtrace"],
                  ["--target", job.pid, "bt"], ["-n", job.name, "bt"], ["-t", job.name, "bt"],
                  [job.name, "bt"], ["bt", "-p", job.pid], [job.pid, "debug", "--dump"], [job.pid, "d", "-d"],
                  [" {}\n".format(job.pid), "bt"]):
        assert stacks(*words) == expected, words


def test_several_targets(probing, job, start):
    other = start(job.args[2], "another-job", env={**os.environ, "RANK": "3", "WORLD_SIZE": "8"})
    for words in (["-t", "{}\n{}".format(job.pid, other.pid)], [job.pid, other.pid],
                  ["-p", "{},{}".format(job.pid, other.pid)], ["-t", job.pid, other.pid]):
        err = probing(*words, "bt").fails(USAGE, "2 targets", "choose one", str(job.pid), str(other.pid))
        assert "rank 3" in err
    err = probing(os.getppid() if os.getppid() != 1 else 1, 1, job.pid, "bt").fails(USAGE, "targets were given")
    probing(1, job.pid, "bt").fails(USAGE, "only {} of them is Python".format(job.pid)) if not python_init() else None
    assert probing("{}\n{}".format(job.pid, job.pid), "bt").status == 0, "the same twice is one"
    assert err.count("\n") <= 3


def python_init():
    return b"python" in open("/proc/1/cmdline", "rb").read()


def test_colour_only_on_a_terminal(probing, job, tmp_path):
    assert "\x1b" not in probing(job.pid, "bt").works()
    assert "\x1b[" in probing("--color", "always", job.pid, "bt").works()
    assert "\x1b[" in on_terminal([job.pid, "bt"])
    assert "\x1b" not in on_terminal([job.pid, "bt"], NO_COLOR="1")
    assert "\x1b[" in on_terminal([job.pid, "bt"], NO_COLOR="")
    assert "\x1b" not in on_terminal([job.pid, "bt"], TERM="dumb")
    assert "\x1b" not in on_terminal([job.pid, "bt", "--color", "never"])


def on_terminal(words, columns=80, **variables):
    """Standard output of a run whose standard output is a terminal."""
    status, text = on_a_terminal([PROBING, *words], **{"TERM": "xterm", "COLUMNS": str(columns), "LINES": "24", "NO_COLOR": None, **variables})
    assert status == 0
    return text.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("sql, meant", [("t.tid FROM python.threads t", "os_thread_id"), ("thread FROM python.backtrace", "thread_name"),
                                        ("thread_name FROM system.threads", "name"), ("lineno FROM profiling_data", "line"),
                                        ("pid FROM profiling_data", "process"), ("nme FROM system.threads", "name")])
def test_a_column_by_the_name_of_another_table(probing, job, sql, meant):
    probing(job.pid, "query", "SELECT " + sql).fails(9, "did you mean {}?".format(meant))


def test_definitions_of_a_module_are_counted(probing, start):
    program = start("import sys, enum\nclass Kind(enum.Enum):\n    A = 1\ndef f(): pass\nlimit = 41\nprint('ready', flush=True)\nsys.stdin.read()\n")
    out = probing(program.pid, "bt", "--locals").works()
    assert "limit = 41" in out and "… and 4 more: modules, classes, functions (-v)" in out and "<module 'enum'" not in out
    told = probing(program.pid, "bt", "--locals", "-v").works()
    assert "enum = <module 'enum'" in told and "<module> (<string>:7:1)" in told  # columns as editors count them
    listed = json.loads(probing(program.pid, "bt", "--locals", "--json").works())
    assert "enum" in str(listed[0]["frames"][-1])


def test_rows_that_do_not_fit_are_vertical(probing, job):
    r"""On a terminal only, and unless a table is asked for; \G asks for it anywhere."""
    wide = "SELECT * FROM python.backtrace LIMIT 2"
    told = re.sub("\x1b\\[[0-9;]*m", "", on_terminal([job.pid, "query", wide], 100))
    assert told.startswith("-- row 1 --") and "-- row 2 --" in told and "\r\n        func: " in told and told.endswith("(2 rows)\r\n")
    assert on_terminal([job.pid, "query", "SELECT func, lineno FROM python.backtrace LIMIT 1"]).startswith("\x1b[1mfunc")
    assert "-- row 1" not in on_terminal([job.pid, "query", "-f", "table", wide], 100)
    assert "-- row 1" not in probing(job.pid, "query", wide).works()
    for end in ("\\G", " \\G;\n", ";\\G"):
        assert probing("query", "SELECT 1 AS a, NULL AS bb" + end).works() == "-- row 1 --\n a: 1\nbb: \n(1 row)\n"


def test_list_below(probing, job, any_python):
    """A process and what it started, also by way of a shell."""
    code = "import subprocess, sys, time\nprint(subprocess.Popen(['sh', '-c', sys.executable + ' -c \"import time; time.sleep(600)\" & echo $!; wait'], stdout=subprocess.PIPE).stdout.readline().decode().strip(), flush=True)\ntime.sleep(600)"
    with subprocess.Popen(any_python.command("-c", code), stdout=subprocess.PIPE, encoding="utf-8") as parent:
        child = int(parent.stdout.readline())
        try:
            until(lambda: any(one["pid"] == child for one in json.loads(probing("list", "--json").works())))
            for words, pids in (([str(parent.pid)], {parent.pid, child}), (["{},{}".format(child, job.pid)], {child, job.pid}), (["4194999"], set())):
                assert {one["pid"] for one in json.loads(probing("list", "--json", "--below", *words).works())} == pids
            for wrong in ("", "x", "1,", "-1", "0"):
                probing("list", "--below=" + wrong).fails(USAGE, "process ids")
        finally:
            os.kill(child, signal.SIGKILL)
            parent.kill()


def test_list_is_cut_to_the_terminal(job):
    lines = on_terminal(["list"], columns=72).replace("\r", "").splitlines()
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert plain[0].split()[0] == "PID"
    assert max(len(line) for line in plain) <= 72


def test_a_closed_pipe_is_quiet(job):
    for words in (["help"], [str(job.pid), "bt"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PROBING, *words], stdout=writer, stderr=subprocess.PIPE, timeout=120)
        os.close(writer)
        assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_a_full_disk_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROBING, "help"], stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 11 and b"standard output" in done.stderr


def test_help_as_json(probing):
    told = json.loads(probing("help", "--json").works())
    assert {one["name"] for one in told["commands"]} == set(COMMANDS)
    for one in told["commands"]:
        text = probing("help", one["name"]).works()
        assert one["summary"] in text and all("--" + option["name"] in text for option in one["options"])
    backtrace = next(one for one in told["commands"] if one["name"] == "backtrace")
    assert backtrace["target"] == "optional" and "bt" in backtrace["aliases"]
    assert {"status": 2, "meaning": "the command line is wrong"} in told["statuses"]
    assert {"name": "pprof", "aliases": [], "suffixes": [".pb", ".pprof"]}.items() <= {
        one["name"]: one for one in told["profile_formats"]}["pprof"].items()
    color = next(one for one in told["options"] if one["name"] == "color")
    assert color["choices"] == ["auto", "always", "never"]


def test_help_in_columns(probing):
    """Every summary begins in one column, however many aliases a command has."""
    listed = probing("help").works().split("Commands\n")[1].split("\nOptions")[0]
    columns = [line[22:] for line in listed.splitlines()]
    for name in COMMANDS:
        assert probing("help", name).works().splitlines()[0].split(": ", 1)[1] in columns, name


def test_man_page(probing, tmp_path):
    text = probing("help", "--man").works()
    for name, aliases in COMMANDS.items():
        assert re.search(r"^\.SS {}{}$".format(name, "".join(", " + alias for alias in aliases.split())), text, re.M)
        for option in re.findall(r"^ +(?:-\w, )?--([\w-]+)", probing("help", name).works(), re.M):
            assert option.replace("-", "\\-") in text, option
    for section in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "EXIT STATUS", "PERMISSIONS", "ENVIRONMENT"):
        assert ".SH " + section in text
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("no man and groff here to format it")
    page = tmp_path / "probing.1"
    page.write_text(text)
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", str(page)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"")


def test_dump_into_the_targets_log(probing, start, job_program, tmp_path):
    """debug --dump --to-target: behind what its log has already; a pipe that nobody empties does not hold us up."""
    log = tmp_path / "log"
    with open(str(log), "w") as file:
        file.write("before\n")
        file.flush()
        process = start(job_program, "logging", stderr=file)
        said = probing(process.pid, "debug", "--dump", "--to-target").works()
        assert "written to the standard error of process {}".format(process.pid) in said
        file.write("behind\n")
    text = log.read_text()
    assert text.startswith("before\n") and text.endswith("behind\n")
    assert "innermost" in text and "waiter-3" in text and "\x1b" not in text
    probing(process.pid, "debug", "--to-target", "--listen").fails(USAGE, "--dump")
    full, other = os.pipe()
    os.set_blocking(other, False)
    try:
        while True:
            os.write(other, b"x" * 65536)
    except BlockingIOError:
        pass
    os.set_blocking(other, True)
    process = start(job_program, "stuck", stderr=other)
    probing(process.pid, "debug", "--dump", "--to-target").fails(13, "nobody reads")
    os.close(full)
    os.close(other)
