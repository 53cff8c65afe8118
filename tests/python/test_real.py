"""The package with the probe itself: rows reach SQL, however the probe got in."""

import glob
import json
import os
import subprocess

import pytest

import package
from support import pythons
from support.waits import until

PROBING = os.environ["PROBING"]
LOGS = "SELECT epoch, avg(loss), min(loss), count(*) AS steps FROM training_logs GROUP BY epoch ORDER BY epoch"


class Lives:
    """A run of lives.py, talked to line by line."""

    def __init__(self, python, *args, **variables):
        self.folder = variables.pop("folder")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PROB", "PYTHON", "LD_"))}
        kept.update(PYTHONUSERBASE=os.path.join(self.folder, "base"), XDG_RUNTIME_DIR=os.path.join(self.folder, "run"),
                    PROBING_DATA_DIR=os.path.join(self.folder, "rings"), PYTHONDONTWRITEBYTECODE="1", **variables)
        self.environment = kept
        self.process = subprocess.Popen([*python, os.path.join(package.HERE, "lives.py"), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, encoding="utf-8", env=kept)
        self.pid = self.process.pid
        self.first = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def tool(self, *args, pid=None):
        done = subprocess.run([PROBING, "-t", str(pid or self.pid), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=package.DEADLINE, stdin=subprocess.DEVNULL, env=dict(os.environ, PROBING_DATA_DIR=os.path.join(self.folder, "rings")))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(self, sql):
        return json.loads(self.tool("query", "-f", "json", sql))

    def end(self):
        if self.process.stdout.closed:
            return None
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(package.DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        quiet = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode, quiet

    def log(self):
        with open(os.path.join(self.folder, "run", "probing", "probing.log"), encoding="utf-8") as lines:
            return lines.read()


@pytest.fixture(scope="module")
def real_wheel(tmp_path_factory):
    return package.make_wheel(str(tmp_path_factory.mktemp("wheel")), os.path.join(package.NATIVE, "libprobe.so"))


def of_this_root():
    return [python for python in pythons.found() if python.root is None]


@pytest.fixture
def begin(real_wheel, tmp_path):
    """begin(*args, python=…, **environment): lives.py under an interpreter that has the package."""
    begun = []

    def start(*args, python=None, **variables):
        python = python or of_this_root()[len(of_this_root()) // 2]
        site = os.path.join(str(tmp_path), "base", "lib", "python{}.{}".format(*python.minor), "site-packages")
        if not os.path.exists(site):
            os.makedirs(site)
            package.unpack(real_wheel, site)
        for name, mode in (("run", 0o700), ("rings", 0o700)):
            os.makedirs(os.path.join(str(tmp_path), name), mode, exist_ok=True)
        one = Lives(python.command(), *args, folder=str(tmp_path), **variables)
        begun.append(one)
        return one

    yield start
    for one in begun:
        one.end()


def test_rows_of_several_ranks(begin):
    """One table of all ranks' rows; one that a single rank has is there, too."""
    ranks = [begin("init", RANK=str(rank), WORLD_SIZE="2", MASTER_PORT="7") for rank in range(2)]
    for one in ranks:
        one.say("rows")
    ranks[1].say("other")
    found = json.loads(ranks[0].tool("query", "--ranks", "-f", "json",
                                     "SELECT rank, pid, count(*) AS n, max(step) AS step FROM training_logs GROUP BY rank"))
    assert found == [{"rank": rank, "pid": one.pid, "n": 4, "step": 3} for rank, one in enumerate(ranks)]
    found = json.loads(ranks[0].tool("query", "--ranks", "-f", "json", "SELECT rank, a FROM python.other"))
    assert found == [{"rank": 1, "a": 1}]
    ranks[0].say("wider")
    found = json.loads(ranks[0].tool("query", "--ranks", "-f", "json", "SELECT rank, a, b FROM python.other ORDER BY rank, a"))
    assert found == [{"rank": 0, "a": 2, "b": "x"}, {"rank": 1, "a": 1, "b": None}]


@pytest.mark.parametrize("python", of_this_root(), ids=lambda python: python.id)
def test_rows_reach_sql(begin, python):
    lives = begin("init", "query", python=python)
    assert lives.first["active"] and lives.say("rows") == {"kept": True, "active": True, "loss": [{"m": 1.0}]}
    assert lives.query(LOGS) == [{"epoch": 0, "avg(loss)": 0.75, "min(loss)": 0.5, "steps": 2},
                                 {"epoch": 1, "avg(loss)": pytest.approx(7 / 24), "min(loss)": 0.25, "steps": 2}]
    assert lives.query("SELECT layer, norm FROM python.norms") == [
        {"layer": "fc1", "norm": 1.0}, {"layer": "fc2", "norm": 2.0}, {"layer": "fc3", "norm": 3.0}, {"layer": "fc4", "norm": None}]
    rows = lives.query("SELECT s.name, s.duration, s.step, e.name AS inside, now() - s.time AS age, json_extract(e.attributes, '$.at') AS at "
                       "FROM python.spans s JOIN python.events e ON e.span_id = s.span_id ORDER BY s.span_id")
    assert [(row["name"], row["inside"], row["step"], row["at"]) for row in rows] == [("forward", "here", at, at) for at in range(4)]
    assert all(0 <= row["duration"] < 60 and -1 < row["age"] < 600 for row in rows)
    assert lives.query("SELECT t.thread_name AS name FROM python.threads t JOIN python.spans s ON s.os_thread_id = t.os_thread_id LIMIT 1") == [{"name": "MainThread"}]
    assert lives.query("SELECT count(*) AS n FROM python.steps") == [{"n": 4}]
    assert lives.tool("config", "probing.max_memory").strip() in ("64MB", "64000000", "61MiB")
    assert lives.end() == (0, "")
    assert len(lives.query(LOGS)) == 2  # also of a process that ended


def test_built_in_tables_keep_their_names(begin):
    lives = begin("init")
    assert lives.say("taken") == {"kept": False}
    assert "python.Threads is a built-in table" in lives.log()
    assert lives.query("SELECT thread_name FROM python.threads WHERE thread_name = 'MainThread'") == [{"thread_name": "MainThread"}]


def test_rows_go_on_after_a_detach(begin):
    """Who was detached records nothing; the next probe goes on with the same tables."""
    lives = begin("init")
    count = "SELECT count(*) AS n FROM python.norms"
    assert lives.say("rows")["kept"] and lives.query(count) == [{"n": 4}]
    lives.tool("detach")
    assert not lives.say("rows")["kept"] and lives.query(count) == [{"n": 4}]
    lives.tool("inject")
    until(lambda: lives.say("rows")["kept"])  # it looks for a probe once a second
    assert lives.query(count)[0]["n"] > 4


def test_the_variable_is_enough(begin):
    lives = begin(PROBING="1", PROBING_SAMPLE_RATE="0.25")
    assert lives.first["active"] and lives.say("rows")["kept"]
    assert lives.tool("config", "probing.sample_rate").strip() == "0.25"
    assert lives.tool("eval", "number").strip() == "4"
    # every fourth step is recorded, with what is in it; what is logged by name always is
    for table, expected in (("steps", [3]), ("spans", [3]), ("events", [3]), ("training_logs", [0, 1, 2, 3])):
        assert [row["step"] for row in lives.query("SELECT step FROM python." + table)] == expected
    assert "PROBING=1" in lives.log()


def test_a_forked_child_has_a_probe_of_its_own_where_children_are_meant(begin):
    lives = begin(PROBING="2")
    assert lives.say("rows")["kept"]
    child = lives.say("fork")
    assert child["active"] and child["kept"] and child["pid"] != lives.pid
    rows = json.loads(lives.tool("query", "-f", "json", "SELECT layer FROM python.norms", pid=child["pid"]))
    assert rows == [{"layer": "child"}]
    assert "child" not in [row["layer"] for row in lives.query("SELECT layer FROM python.norms")]


def test_a_forked_child_has_none_where_this_process_is_meant(begin):
    lives = begin(PROBING="1")
    lives.say("rows")
    child = lives.say("fork")
    assert not child["active"] and not child["kept"]


def test_a_probe_that_is_injected_is_found_and_its_end_is_noticed(begin):
    lives = begin()
    assert lives.say("rows") == {"kept": False, "active": False, "loss": None}
    for _ in range(2):
        lives.tool("inject")
        until(lambda: lives.say("rows")["kept"])  # it looks once a second
        assert lives.query("SELECT count(*) > 3 AS many FROM training_logs") == [{"many": 1}]
        lives.tool("detach")
        assert not lives.say("rows")["kept"]
    assert lives.end() == (0, "")


def test_the_packaged_tool_injects_the_packaged_library(begin):
    lives = begin()
    (site,) = glob.glob(os.path.join(lives.folder, "base", "lib", "python*", "site-packages"))
    native = os.path.join(site, "probing_c", "native")
    for words, said in ((["inject"], "loaded in"), (["eval", "6 * 7"], "42"), (["detach"], "")):
        done = subprocess.run([os.path.join(native, "probing"), str(lives.pid), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, encoding="utf-8", timeout=package.DEADLINE, env=lives.environment)
        assert done.returncode == 0 and said in done.stdout, done.stdout
    with open("/proc/{}/maps".format(lives.pid)) as maps:
        assert {line.split(None, 5)[5].strip() for line in maps if "libprobe" in line} == {os.path.join(native, "libprobe.so")}


MEMORY = """
import ctypes, os, sys
file = os.memfd_create("libprobe.so")
with open(sys.argv[1], "rb") as library:
    os.write(file, library.read())
name = "/proc/self/fd/%d" % file
first = ctypes.CDLL(name)
os.close(file)
import probing
from probing_c import _native
assert _native.library() == name, _native.library()
probing.init()
assert probing.is_active()
with open("/proc/self/maps") as maps:
    files = {line.split(None, 5)[5] for line in maps if "libprobe" in line}
assert len(files) == 1, files
"""


def test_a_library_that_has_no_file_any_more_is_found(begin):
    lives = begin()
    python = [python for python in of_this_root() if python.minor >= (3, 8)][-1]
    site = os.path.join(lives.folder, "base", "lib", "python{}.{}".format(*of_this_root()[len(of_this_root()) // 2].minor), "site-packages")
    subprocess.run(python.command("-c", MEMORY, os.path.join(package.NATIVE, "libprobe.so")), check=True, timeout=package.DEADLINE,
                   env=dict(lives.environment, PYTHONPATH=site))


@pytest.mark.parametrize("variables", [{"PROBE": "1"}, {"PROBE_PPROF": "1", "PROBE_ADDR": "127.0.0.1:3344", "PROBE_BG": "1", "PROBING_SERVE_PROGRAM": "/bin/true",
                                       "PROBING_CRASH_PROGRAM": "/bin/true"}], ids=["PROBE", "older"])
def test_preloaded(begin, real_wheel, variables, tmp_path):
    library = os.path.join(package.NATIVE, "libprobe.so")
    lives = begin(LD_PRELOAD=library, **variables)
    assert lives.first["active"] and "preload" in lives.log()
    if "PROBE_PPROF" in variables:
        assert lives.tool("config", "probing.listen").strip() == "127.0.0.1:3344"
        assert lives.tool("config", "probing.pprof").strip() == "on"
    # a program that is no Python is left alone
    before = lives.log()
    assert subprocess.run(["/bin/true"], env=lives.environment, timeout=package.DEADLINE).returncode == 0
    assert lives.log() == before
