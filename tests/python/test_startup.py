"""Which processes get a probe by PROBING, and at what cost."""

import glob
import json
import os
import re
import shutil
import statistics
import subprocess

import pytest

import package
from support.torch_python import torch_python

CHILDREN = ("subprocess", "spawn", "fork")

# PROBING: whose start it means, of the processes of starts.py, and what the program sees of the variable
FORMS = [
    ("0", (), "0"),
    ("1", ("self",), None),
    ("followed", ("self",), None),
    ("2", ("self",) + CHILDREN, "2"),
    ("regex:starts[.]py$", ("self",), "regex:starts[.]py$"),
    ("regex:^none$", (), "regex:^none$"),
    ("starts.py", ("self",), "starts.py"),
    ("tarts.py", (), "tarts.py"),
]


def begun(said, rows):
    """The names of the processes that started a probe."""
    names = {pid: name for name, pid in said.items() if isinstance(pid, int)}
    return sorted(str(names.get(pid, pid)) for pid in rows.pids)


@pytest.mark.parametrize("value, meant, left", FORMS, ids=[form[0] for form in FORMS])
def test_forms(installed, value, meant, left):
    said, rows = installed.told(installed.within("starts.py"), PROBING=value)
    assert begun(said, rows) == sorted(meant)
    assert said["variable"] == left
    assert all(how == "PROBING=" + value for _, how in rows.starts)


def test_without_the_variable_nothing_starts(installed):
    said, rows = installed.told(installed.within("starts.py"))
    assert rows.pids == [] and said["variable"] is None


def test_probe_is_the_older_name(installed):
    said, rows = installed.told(installed.within("starts.py"), PROBE="1")
    assert begun(said, rows) == ["self"]
    said, rows = installed.told(installed.within("starts.py"), PROBE="1", PROBING="0")
    assert begun(said, rows) == [] and said["variable"] == "0"


def make_package(installed):
    folder = os.path.join(installed.folder, "jobs")
    os.makedirs(folder, exist_ok=True)
    open(os.path.join(folder, "__init__.py"), "w").close()
    for name in ("__main__.py", "work.py"):
        shutil.copy(os.path.join(package.HERE, "starts.py"), os.path.join(folder, name))


@pytest.mark.parametrize("args", [["-m", "jobs"], ["-m", "jobs", "--lr", "1"], ["-m", "jobs.work"], ["-um", "jobs.work", "-x"]], ids=" ".join)
def test_modules(installed, args):
    make_package(installed)
    where = {"PYTHONPATH": installed.inner}
    said, rows = installed.told(*args, "alone", PROBING="1", **where)
    assert begun(said, rows) == ["self"] and said["args"] == args[2:] + ["alone"]
    name = args[1]
    said, rows = installed.told(*args, "alone", PROBING="regex:^{}$".format(re.escape(name)), **where)
    assert begun(said, rows) == ["self"]
    said, rows = installed.told(*args, "alone", PROBING="work.py", **where)
    assert begun(said, rows) == (["self"] if name == "jobs.work" else [])


def test_a_command_and_standard_input(installed):
    assert len(installed.run("-c", "pass", PROBING="1")[1].pids) == 1
    assert len(installed.run("-", PROBING="1")[1].pids) == 1
    assert installed.run("-S", "-c", "pass", PROBING="1")[1].pids == []


def test_a_script_goes_first(installed):
    script = os.path.join(installed.folder, "first.py")
    with open(script, "w") as text:
        text.write("import os, probing\nos.environ['MARK'] = str(probing.is_active())\n")
    inner = installed.within("first.py")
    said, rows = installed.told(installed.within("starts.py"), "alone", PROBING="init:{}+1".format(inner))
    assert begun(said, rows) == ["self"] and (said["marked"], said["variable"]) == ("True", None)
    said, rows = installed.told(installed.within("starts.py"), "alone", PROBING="init:{}+other.py".format(inner))
    assert rows.pids == [] and said["marked"] is None


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "1 / 0", "this is no Python"])
def test_a_script_that_fails_is_a_line_in_the_log(fresh, text):
    with open(os.path.join(fresh.folder, "first.py"), "w") as script:
        script.write(text)
    said, rows = fresh.told("starts.py", "alone", PROBING="init:{}+1".format(fresh.within("first.py")))
    assert begun(said, rows) == ["self"]
    assert "first.py of PROBING ended with" in fresh.log()


def test_the_forkserver_and_its_children(installed):
    said, rows = installed.told(installed.within("starts.py"), "forkserver", PROBING="2")
    expected = ["self", "forkserver"] + list(CHILDREN)
    assert begun(said, rows) == sorted(expected)


def test_the_tool_itself_is_left_alone(installed):
    if installed.python.root:
        pytest.skip("the tool's libraries are not in that root")
    done, rows = installed.run("-m", "probing", "--version", PROBING="2")
    assert done.stdout.startswith("probing ") and rows.pids == []


# ---- whom it must not lead ----

@pytest.fixture
def in_venv(fresh, wheel):
    """A virtual environment with the package: there it is found without the user's site, too."""
    folder = os.path.join(fresh.folder, "venv")
    subprocess.run(fresh.python.command("-m", "venv", "--without-pip", folder), check=True, timeout=package.DEADLINE)
    (site,) = glob.glob(os.path.join(folder, "lib", "python*", "site-packages"))
    package.unpack(wheel, site)
    return os.path.join(folder, "bin", "python3")


@pytest.mark.parametrize("switch", ["-I", "-E", "-uE"])
def test_a_python_that_ignores_the_environment_ignores_these_variables(fresh, in_venv, switch):
    mark = os.path.join(fresh.folder, "mark")
    with open(os.path.join(fresh.folder, "first.py"), "w") as script:
        script.write("open({!r}, 'w').close()\n".format(mark))
    value = "init:{}+2".format(os.path.join(fresh.folder, "first.py"))
    for variables in ({"PROBING": value}, {"PROBE": value}):
        _, rows = fresh.run(command=[in_venv, switch, "-c", "pass"], **variables)
        assert rows.pids == [] and not os.path.exists(mark)
    _, rows = fresh.run(command=[in_venv, "-u", "-c", "pass"], PROBING=value)
    assert len(rows.pids) == 1 and os.path.exists(mark)


# ---- launchers ----

TRAIN = """
import json, os, sys
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
with open(os.path.join(sys.argv[1], "rank-%d" % rank), "w") as told:
    json.dump({"pid": os.getpid(), "variable": os.environ.get("PROBING")}, told)
dist.barrier()  # gloo's other rank still connects to this one
dist.destroy_process_group()
"""

LOADER = """
import json, os, sys
import torch.utils.data as data
class Pids(data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, at): return os.getpid()
if __name__ == "__main__":
    loader = data.DataLoader(Pids(), num_workers=2, multiprocessing_context=sys.argv[1])
    print(json.dumps({"self": os.getpid(), "workers": sorted({int(pid) for batch in loader for pid in batch})}))
"""


@pytest.fixture(scope="module")
def with_torch(wheel, tmp_path_factory):
    """A virtual environment with the package, and torch from where it is; (its folder, its Python)."""
    base = torch_python()
    if base is None:
        pytest.skip("no Python with torch")
    folder = str(tmp_path_factory.mktemp("torch"))
    subprocess.run([base, "-m", "venv", "--without-pip", os.path.join(folder, "venv")], check=True, timeout=package.DEADLINE)
    python = os.path.join(folder, "venv", "bin", "python3")
    site = "import sysconfig; print(sysconfig.get_path('purelib'))"
    lies, goes = (subprocess.check_output([one, "-c", site], encoding="utf-8").strip() for one in (base, python))
    package.unpack(wheel, goes)
    with open(os.path.join(goes, "torch-lies-there.pth"), "w") as line:
        line.write(lies + "\n")
    for name, text in (("train.py", TRAIN), ("loader.py", LOADER)):
        with open(os.path.join(folder, name), "w") as program:
            program.write(text)
    return folder, python


def run_torch(folder, words, **variables):
    log = os.path.join(folder, "rows")
    if os.path.exists(log):
        os.remove(log)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PROB", "PYTHON", "LD_"))}
    kept.update(FAKE_PROBE_LOG=log, XDG_RUNTIME_DIR=folder, OMP_NUM_THREADS="1", **variables)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=package.DEADLINE, env=kept, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout, package.Rows(log)


@pytest.mark.parametrize("value", ["1", "train.py"])
def test_torchrun_means_its_workers(with_torch, value):
    folder, python = with_torch
    launcher = ["-m", "torch.distributed.run"]
    if value != "1":
        with open(os.path.join(folder, "torchrun"), "w") as script:
            script.write("from torch.distributed.run import main\nif __name__ == '__main__':\n    main()\n")
        launcher = [os.path.join(folder, "torchrun")]
    _, rows = run_torch(folder, [python, *launcher, "--standalone", "--nproc-per-node=2", "train.py", folder], PROBING=value)
    ranks = []
    for rank in (0, 1):
        with open(os.path.join(folder, "rank-{}".format(rank))) as told:
            ranks.append(json.load(told))
    assert rows.pids == sorted(rank["pid"] for rank in ranks)
    assert [rank["variable"] for rank in ranks] == [None if value == "1" else value] * 2


@pytest.mark.parametrize("method, value", [("fork", "1"), ("fork", "2"), ("spawn", "2")])
def test_workers_of_a_data_loader(with_torch, method, value):
    folder, python = with_torch
    out, rows = run_torch(folder, [python, "loader.py", method], PROBING=value)
    said = json.loads(out.splitlines()[-1])
    assert len(said["workers"]) == 2
    meant = [said["self"]] + (said["workers"] if value == "2" else [])
    assert set(meant) <= set(rows.pids)
    assert value == "2" or rows.pids == [said["self"]]


# ---- what it costs ----

def line():
    with open(os.path.join(package.SRCDIR, "python", "probing_c.pth")) as text:
        (one,) = text.read().splitlines()
    return one


def test_without_the_variable_nothing_is_imported(installed):
    code = "import sys; print(sorted(sys.modules))"
    with_hook = installed.run("-c", code)[0].stdout
    hook = os.path.join(installed.site, "probing_c.pth")
    with open(hook) as text:
        one = text.read()
    try:
        with open(hook, "w") as text:
            text.write("# site imports a codec for any file of this kind\n")
        without = installed.run("-c", code)[0].stdout
    finally:
        with open(hook, "w") as text:
            text.write(one)
    assert with_hook == without
    timed = installed.run("-X", "importtime", "-c", "pass", quiet=False)[0].stderr
    assert "probing" not in timed and (not timed or "site" in timed)


def test_without_the_variable_the_line_costs_far_less_than_a_millisecond(installed):
    code = ("import time, json\nline = {!r}\nspent = []\n"
            "for _ in range(200):\n    began = time.perf_counter(); exec(line); spent.append(time.perf_counter() - began)\n"
            "print(json.dumps(spent))").format(line())
    spent, _ = installed.told("-c", code)
    assert statistics.median(spent) < 0.001 and min(spent) < 0.0002


@pytest.mark.parametrize("value", ["0", "other.py", "regex:other[.]py$", "regex:.*/other_[.]py"])
def test_for_others_one_small_file_is_imported(installed, value):
    code = "import sys; print(sorted(name for name in sys.modules if name != '_probing_hook'))"
    assert installed.run("-c", code, PROBING=value)[0].stdout == installed.run("-c", code)[0].stdout


def test_with_it_the_modules_are_few(installed):
    """The hook brings ctypes and what it needs, not json, re, inspect or subprocess."""
    code = "import sys; print([name for name in ('json', 'inspect', 'subprocess', 'typing', 'runpy', 'dataclasses') if name in sys.modules])"
    plain = installed.run("-c", code)[0].stdout
    assert installed.run("-c", code, PROBING="1")[0].stdout == plain
