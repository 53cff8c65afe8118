"""`import probing` in every CPython found, the rows that it writes, and the wheel as pip takes it."""

import json
import math
import os
import subprocess
import sys
import zipfile

import pytest

import package


@pytest.fixture(scope="session")
def used(installed):
    """What uses.py said, the rows that it wrote, its interpreter."""
    said, rows = installed.told(installed.within("uses.py"), json.dumps({"sample_rate": 1}))
    return said, rows, installed


def pick(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_without_a_probe_calls_do_nothing(used):
    said, rows, _ = used
    assert said["before"] == [False, False, False] and said["without"] is False
    assert "none" not in [row["layer"] for row in rows.of("losses")]
    assert all(row["name"] != "without" for row in rows.of("spans") + rows.of("events"))


def test_tables(used):
    said, rows, _ = used
    assert said["kept"] is True
    assert [column[:3] for column in rows.tables["losses"]] == [("time", "time", "s"), ("layer", "text", ""), ("norm", "real", "")]
    long = "x" * 65535
    assert pick(rows.of("losses"), "layer", "norm") == [
        ("fc1", 0.5), ("fc\u00e9", 2.0), (None, None), ("a", 1.0), ("b", None), ("a text", 0.125), ("<Bad whose str() failed>", None),
        (long, math.inf), ("?", None), ("again", 1.0)] and said["same"] is True
    assert all(1.7e9 < row["time"] < 1e11 for row in rows.of("losses"))


def test_types(used):
    said, rows, _ = used
    kinds = [column[1] for column in rows.tables["types"]]
    assert kinds == ["time", "text", "real", "boolean", "integer", "time"]
    assert pick(rows.of("types"), "norm", "frozen", "count", "seen") == [
        (1.5, 1, -(1 << 63), 1767312000.0), (2.0, 0, (1 << 63) - 1, 0.0), (2.0, None, 2, None)]
    assert rows.tables["docs"] == [("used", "integer", "bytes", "of memory", " all"), ("time", "real", "", "")]
    assert rows.of("docs") == [{"used": 1, "time": 2.0}]


def test_wrong_calls_are_told_at_once(used):
    said, _, installed = used
    assert [one.partition(":")[0] for one in said["wrong"][:10]] == ["TypeError"] * 3 + ["ValueError"] * 3 + ["TypeError"] + ["ValueError"] * 3
    assert said["wrong"][10:] == said["wrong without"] == [
        "TypeError: table losses has 2 columns (layer, norm), not 1", "TypeError: table losses: norm takes a number, not text",
        "TypeError: table losses: norm takes a number, not 6 values (log one: x.mean(), x.norm())",
        "TypeError: table losses: norm takes a number, not an object that is not a number",
        "ValueError: table counts: n takes an integer of 64 bits, not 2.5",
        "ValueError: table counts: n takes an integer of 64 bits, not 9223372036854775808",
        "TypeError: probing.log: loss takes a number, not text",
        "TypeError: probing.log: loss takes a number, not 6 values (log one: x.mean(), x.norm())",
        "TypeError: probing.log: other takes a number or text, not an object that is not a number",
        "TypeError: probing.log: epoch takes a number, not an object that is not a number",
        "TypeError: the name of a table is text, not int", "ValueError: python.torch_names is a table of Probing's own: choose another name"]
    assert said["refused"] is False and "table python.refused: no room" in installed.log()


def test_spans_and_events(used):
    said, rows, _ = used
    spans = {row["name"]: row for row in rows.of("spans")}
    assert sorted(spans) == ["around", "coroutine", "fails", "function", "generator", "inner", "outer"]
    assert spans["inner"]["parent_id"] == spans["outer"]["span_id"] and spans["outer"]["parent_id"] is None
    assert json.loads(spans["outer"]["attributes"]) == {"batch": 3, "late": True} and spans["inner"]["attributes"] is None
    assert spans["fails"]["error"] == "KeyError" and "Bad" in spans["fails"]["attributes"] and said["raised"]
    assert said["wrapped"] == [3, [1, 2], 4, "Adds.", "add"]
    (event,) = rows.of("events")
    assert (event["name"], event["span_id"], event["step"]) == ("in", spans["inner"]["span_id"], 10)
    assert all(0 <= row["duration"] < 60 and row["step"] == 10 and row["os_thread_id"] > 0 for row in rows.of("spans"))
    main, other = (row["os_thread_id"] for row in rows.of("spans") if row["name"] == "function")
    assert main == spans["outer"]["os_thread_id"] != other


def test_steps(used):
    said, rows, _ = used
    assert said["steps"] == [0, 1, 10]
    assert pick(rows.of("steps"), "step", "epoch") == [(0, None), (1, 1.0), (10, 1.0)]
    durations = [row["previous_duration"] for row in rows.of("steps")]
    assert durations[0] is None and all(duration >= 0 for duration in durations[1:])


def test_metrics(used):
    _, rows, _ = used
    assert [column[:2] for column in rows.tables["training_logs"]] == [
        ("time", "time"), ("epoch", "integer"), ("step", "integer"), ("loss", "real"), ("note", "text"), ("train_acc", "real"), ("other", "text")]
    assert pick(rows.of("training_logs"), "epoch", "step", "loss", "note", "train_acc", "other") == [
        (1, 10, 0.125, "n", 1.0, None), (2, 10, 0.5, None, None, '{"later": 3}'),
        (None, 10, 0.5, "7", None, '{"epoch": 2.5, "train/acc": "high"}'), (None, 10, 0.25, None, None, None)]


def test_settings(used):
    said, rows, _ = used
    everything = {"probing.max_memory": "1GB", "probing.sample_rate": "1"}
    assert said["config"] == ["1", "1", None, sorted(everything), 2, everything]
    assert rows.settings == ["probing.sample_rate 1", "probing.sample_rate 0.5", "probing.sample_rate true", "probing.sample_rat 1"]
    assert said["unknown"] == "there is no setting probing.sample_rat"


def test_detach_and_again(used):
    said, rows, _ = used
    assert said["active"] is True
    assert said["end"] == [True, False, False, False] and said["again"] == [True, True]
    assert [how for _, how in rows.starts] == ["import", "import"]


def test_a_server_for_this_process(installed):
    """init(listen=) gives its address; where there is none, a warning, and the program goes on."""
    code = "import warnings, probing\nwith warnings.catch_warnings(record=True) as seen:\n warnings.simplefilter('always')\n" \
           " print(probing.init(listen='127.0.0.1:9922', allow='eval'), probing.init(listen='127.0.0.1:1'), probing.init())\n" \
           "print([str(one.message) for one in seen])"
    done, rows = installed.run("-c", code)
    assert rows.served == ["127.0.0.1:9922 eval", "127.0.0.1:1 "]
    assert done.stdout == "http://127.0.0.1:9922/#token=t None None\n" + str(["probing.init: listen='127.0.0.1:1': no server: taken"]) + "\n"


def test_a_forked_child_does_not_write_to_its_parents_rings(installed):
    code = ("import os, probing, sys\nprobing.init()\nt = probing.table('t', {'a': int})\nt.append(1)\npid = os.fork()\n"
            "kept = t.append(2), probing.is_active()\nif pid == 0: os._exit(kept != (False, False))\n"
            "print(os.waitpid(pid, 0)[1], kept)")
    done, rows = installed.run("-W", "ignore", "-c", code)
    assert done.stdout == "0 (True, True)\n" and [row["a"] for row in rows.of("t")] == [1, 2]


def test_a_tensor_with_a_gradient_gives_no_warning(installed):
    code = ("import warnings, probing\nwarnings.simplefilter('error')\n"
            "class Plain(object):\n    requires_grad = False\n    def __float__(self): return 0.5\n    def __int__(self): return 0\n"
            "class Tensor(Plain):\n    requires_grad = True\n    def detach(self): return Plain()\n"
            "    def __float__(self): warnings.warn('requires_grad'); return 0.25\n"
            "probing.init()\nt = probing.table('norms', {'norm': float, 'n': int})\n"
            "print(probing.log(loss=Tensor()), t.append(Tensor(), 1), t.append(1.5, Tensor()))")
    done, rows = installed.run("-c", code)
    assert done.stdout == "True True True\n"
    assert [row["loss"] for row in rows.of("training_logs")] == [0.5]
    assert pick(rows.of("norms"), "norm", "n") == [(0.5, 1), (1.5, 0)]


def test_names_that_sql_has_are_reserved(installed):
    listed = subprocess.run([os.environ["PROBING"], "tables", "-f", "json"], check=True, stdout=subprocess.PIPE, timeout=package.DEADLINE).stdout
    ours = {row["table_name"] for row in json.loads(listed.decode()) if row["table_schema"] == "python"}
    written = {"spans", "events", "steps", "training_logs"}
    done, _ = installed.run("-c", "from probing_c import _tables; print(*sorted(_tables.RESERVED))")
    assert set(done.stdout.split()) == ours | written | {"torch_names"}  # which other tables are read with


# The tool needs its libraries; in another root they are not.

def tool_runs(installed):
    return installed.python.root is None


def test_query_and_backtrace_read_from_outside(installed):
    if not tool_runs(installed):
        pytest.skip("the tool's libraries are not in that root")
    code = ("import json, os, probing\ndef here(): return probing.backtrace()\n"
            "threads = here()\n"
            "print(json.dumps([os.getpid(), [frame['name'] for frame in threads[0]['frames']],\n"
            " probing.query('SELECT pid, NULL AS none FROM system.process'), probing.query('SELECT 1.5, 2 -- two', tuples=True)]))")
    (pid, names, rows, tuples), _ = installed.told("-c", code)
    assert names == ["here", "<module>"], "from the caller outwards"
    assert rows == [{"pid": pid, "none": None}] and tuples == [[1.5, 2]]


def test_wrong_sql_and_a_passed_deadline_are_errors(installed):
    if not tool_runs(installed):
        pytest.skip("the tool's libraries are not in that root")
    code = ("import probing\nfor sql, timeout in (('SELEC 1', None), ('SELECT 1', 0)):\n try: probing.query(sql, timeout=timeout)\n"
            " except probing.ProbeError as error: print(str(error))")
    lines = installed.run("-c", code)[0].stdout.splitlines()
    assert lines[0].startswith("probing: ") and lines[-1] == "no answer in 0 s"


def test_yama_is_asked_for_that_child_only(installed):
    """Where the kernel wants the process's word it is given for the child, and taken back."""
    if not tool_runs(installed):
        pytest.skip("the tool's libraries are not in that root")
    code = ("import json, probing\nfrom probing_c import _tool\nasked = []\n_tool._yama_wants = lambda: True\n"
            "allow, _tool._allow = _tool._allow, lambda pid: (asked.append(pid), allow(pid))\n"
            "probing.query('SELECT 1')\nprint(json.dumps(asked))")
    (first, last), _ = installed.told("-c", code)
    assert first > 1 and last == 0


# ---- the wheel ----

@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An empty virtual environment with pip; its bin folder."""
    folder = str(tmp_path_factory.mktemp("venv"))
    made = subprocess.run([sys.executable, "-m", "venv", folder], timeout=package.DEADLINE)
    if made.returncode != 0:
        pytest.skip("no venv here")
    return os.path.join(folder, "bin")


def in_environment(environment, *words):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PROB", "PYTHON", "LD_"))}
    kept["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    path = os.path.join(environment, words[0])
    done = subprocess.run([path if os.path.exists(path) else words[0], *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", timeout=package.DEADLINE, env=kept, cwd="/")
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_pip_installs_and_removes_the_wheel(environment, wheel):
    in_environment(environment, "pip", "install", "--no-index", "--no-deps", wheel)
    tool = in_environment(environment, "probing", "--version")
    assert tool == subprocess.check_output([os.environ["PROBING"], "--version"], encoding="utf-8")
    assert in_environment(environment, "python", "-m", "probing", "--version") == tool
    assert in_environment(environment, "probing-c", "--version") == tool
    assert "Name: probing-c" in in_environment(environment, "pip", "show", "probing-c")
    site = in_environment(environment, "python", "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
    assert os.path.exists(os.path.join(site, "probing_c.pth"))
    in_environment(environment, "pip", "uninstall", "-y", "probing-c")
    assert not [name for name in os.listdir(site) if "probing" in name]


def test_pip_installs_the_tree_for_who_works_on_it(environment):
    """`pip install -e`: the sources and the build's binaries where they are, the start-up hook, too."""
    build = os.path.abspath(package.BUILDDIR)
    in_environment(environment, "pip", "install", "--no-index", "--no-deps", "--config-settings", "build=" + build, "-e", os.path.abspath(package.SRCDIR))
    where = "import os, probing_c; print(os.path.realpath(probing_c.__file__)); print(os.path.realpath(probing_c._native.FOLDER + '/libprobe.so'))"
    source, binary = in_environment(environment, "python", "-c", where).splitlines()
    assert source == os.path.realpath(os.path.join(package.SRCDIR, "python", "probing_c", "__init__.py"))
    assert binary == os.path.realpath(os.path.join(package.NATIVE, "libprobe.so"))
    assert in_environment(environment, "probing", "--version") == subprocess.check_output([os.environ["PROBING"], "--version"], encoding="utf-8")
    started = in_environment(environment, "env", "PROBING=1", os.path.join(environment, "python"), "-c", "import probing; print(probing.is_active())")
    assert started == "True\n"
    in_environment(environment, "python", "-c", "import importlib.util as u; assert u.find_spec('backend') is None")
    in_environment(environment, "pip", "uninstall", "-y", "probing-c")
    in_environment(environment, "python", "-c", "import importlib.util as u; assert u.find_spec('probing_c') is None and u.find_spec('probing') is None")


def test_the_wheel_is_the_same_each_time(wheel, tmp_path):
    again = package.make_wheel(str(tmp_path / "again"), package.FAKE)
    with open(wheel, "rb") as one, open(again, "rb") as two:
        assert one.read() == two.read()
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        listed = [line.split(",")[0] for line in packed.read(record).decode().splitlines()]
    assert sorted(names) == sorted(listed)
    assert not [name for name in names if "__pycache__" in name]
