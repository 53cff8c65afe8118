"""Objects, tensors, sources, crashes, snapshots: what is read of a target without its help."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import pytest

from serving import DEADLINE
from support import pythons
from support.target import Target, probing, query
from support.torch_python import torch_python

PROGRAM = """
import os, sys
class Kept(object):
    pass
def work():
    kept = Kept(); kept.weight = 5; kept.password = "correct horse"; kept.token = "battery staple"
    listed = list(range(300)); mapped = {"url": "http://joe:hunter22@host/", "x": [1, 2]}
    print("ready", flush=True)  # a line of its own: line 7
    sys.stdin.read()
work()
"""


@pytest.fixture
def program(any_python, tmp_path):
    (tmp_path / "kept.py").write_text(PROGRAM)
    with Target(any_python, "kept.py", folder=str(tmp_path)) as target:
        yield target.settle(only=True)


def base(job):
    return "/api/v1/p/{}".format(job.pid)


def address(job, name):
    return query(job.pid, "SELECT address FROM python.locals WHERE name = '{}'".format(name))[0]["address"]


def test_object(server, program):
    told = server.ask(base(program) + "/object/{:#x}".format(address(program, "kept"))).json
    assert told["object"]["type"].endswith("Kept")
    parts = {part["name"]: part for part in told["parts"]}
    assert parts["weight"]["value"] == "5" and parts["weight"]["access"] == ".weight"
    listed = base(program) + "/object/{}".format(address(program, "listed"))
    assert server.ask(listed).json["object"]["elements"] == 300
    some = server.ask(listed + "?start=290&count=5").json["parts"]
    assert [part["value"] for part in some if part["name"].isdigit()] == ["290", "291", "292", "293", "294"]
    assert server.ask(server_path(program, server, "mapped", "['x']")).json["object"]["elements"] == 2


def server_path(program, server, name, access):
    """The address that a part says is that of the part."""
    told = server.ask(base(program) + "/object/{}".format(address(program, name))).json
    return base(program) + "/object/" + [part["address"] for part in told["parts"] if part["access"] == access][0]


def test_object_shows_no_secret(server, program):
    for name in ("kept", "mapped"):
        text = server.ask(base(program) + "/object/{}".format(address(program, name))).text
        assert "correct horse" not in text and "battery staple" not in text and "hunter22" not in text and "***" in text


@pytest.mark.parametrize("where, status", [("x", 404), ("-1", 404), ("0x", 404), ("0x1", 422), ("0xffffffffffffffffff", 404), ("8", 422),
                                           ("0x7fff00000000", 422)])
def test_no_object(server, program, where, status):
    for kind in ("object", "tensor"):
        answer = server.ask(base(program) + "/{}/{}".format(kind, where))
        assert answer.status in (status, 500) and answer.error["message"], answer.body


def test_tensor(server, tmp_path):
    path = torch_python()
    if not path:
        pytest.skip("no Python with torch")
    (tmp_path / "kept.py").write_text("""
import sys, torch
def work():
    grid = torch.arange(24.0).reshape(4, 6); grid[0, 0] = float("nan")
    print("ready", flush=True)
    sys.stdin.read()
work()
""")
    python = pythons.Python([], path, pythons.ask([path])[0], "torch")
    with Target(python, "kept.py", folder=str(tmp_path)) as job:
        job.settle(only=True)
        where = base(job) + "/tensor/{:#x}".format(address(job, "grid"))
        told = server.ask(where).json
        assert told["shape"] == [4, 6] and told["dtype"] == "float32" and told["device"] == "cpu" and "statistics" not in told
        assert told["values"].startswith("[[nan, 1.0,")
        seen = server.ask(where + "?statistics=1&bins=4&count=0").json
        assert seen["statistics"]["nan"] == 1 and seen["statistics"]["max"] == 23.0 and "values" not in seen
        assert sum(seen["statistics"]["histogram"]) == 23
        assert server.ask(where + "?slice=1,2:4").json["values"] == "[8.0, 9.0]"
        assert server.ask(where + "?slice=nonsense").status == 400
        assert server.ask(where + "?bins=1000").status == 400
        assert server.ask(base(job) + "/tensor/{}".format(id(None))).status >= 400


GRID = """
import sys, numpy, torch
def work():
    torch.manual_seed(1)
    large = torch.randn(300, 500); large[7, 9] = float("nan"); large[299, 499] = float("-inf")
    turned = large.T; deep = torch.arange(24.0).reshape(2, 3, 4); flag = numpy.array([True, False, True]); point = torch.tensor(2.5)
    odd = torch.ones(3, dtype=torch.complex64); none = torch.ones(0, 4); half = torch.full((2, 2), 0.5, dtype=torch.bfloat16)
    expected = [large[(300 * i + 7) // 8:(300 * (i + 1) + 7) // 8].nan_to_num(0, 0, 0).double().sum().item().__round__(3) for i in range(8)]
    print("ready", flush=True)
    sys.stdin.read()
work()
"""


def test_tensor_map(server, tmp_path):
    """Means of cells are those that torch computes; NaN and infinity are in their cells."""
    path = torch_python()
    if not path:
        pytest.skip("no Python with torch")
    (tmp_path / "kept.py").write_text(GRID)
    python = pythons.Python([], path, pythons.ask([path])[0], "torch")
    with Target(python, "kept.py", folder=str(tmp_path)) as job:
        job.settle(only=True)

        def ask(name, words="", status=200):
            answer = server.ask(base(job) + "/tensor/{}/map{}".format(address(job, name), words))
            assert answer.status == status, answer.body
            return answer.json

        told = ask("large", "?count=8")
        assert [told[key] for key in ("rows", "columns", "down", "across", "elements", "read")] == [300, 500, 8, 8, 150000, 150000]
        (expected,) = [row["value"] for row in query(job.pid, "SELECT value FROM python.locals WHERE name = 'expected'")]
        sizes = [[len([i for i in range(300) if i * 8 // 300 == r]) * len([j for j in range(500) if j * 8 // 500 == c]) for c in range(8)] for r in range(8)]
        bad = {cell: count for cell, count in told["nan"] + told["inf"]}
        for row, total in enumerate(json.loads(expected)):
            cells = [(told["mean"][row * 8 + c], sizes[row][c] - bad.get(row * 8 + c, 0)) for c in range(8)]
            assert abs(sum(mean * count for mean, count in cells) - total) < 0.05, row
        assert told["nan"] == [[0, 1]] and told["inf"] == [[63, 1]]
        turned = ask("turned", "?count=8")
        assert (turned["rows"], turned["columns"]) == (500, 300) and turned["nan"] == [[0, 1]] and turned["inf"] == [[63, 1]]
        assert all(abs(turned["mean"][c * 8 + r] - told["mean"][r * 8 + c]) < 1e-5 for r in range(8) for c in range(8))
        deep = ask("deep", "?slice=1,...")
        assert deep["mean"] == [float(i) for i in range(12, 24)] and (deep["rows"], deep["columns"]) == (3, 4)
        assert "slice" in ask("deep", status=400)["error"]["message"]
        assert ask("flag")["mean"] == [1, 0, 1] and ask("half")["mean"] == [0.5] * 4 and ask("point")["mean"] == [2.5]
        assert ask("none")["mean"] == [] and ask("none")["elements"] == 0
        assert ask("odd", status=422)["error"]["code"] == "unsupported"
        ask("large", "?count=0", 400), ask("large", "?count=10000", 400), ask("large", "?slice=9000", 400)
        assert server.ask(base(job) + "/tensor/{}/map".format(id(None))).status >= 400


# ---- sources ----


def test_source(server, program, tmp_path):
    path = str(tmp_path / "kept.py")
    told = server.ask(base(program) + "/source?frame={}:9".format(path)).json
    assert told["file"] == path and told["line"] == 9 and told["first"] == 1
    assert told["lines"] == PROGRAM.splitlines()
    frame = server.ask(base(program) + "/stacks").json["frames"][0]
    assert server.ask(base(program) + "/source?frame={}:{}".format(frame["file"], frame["line"])).status == 200


def test_no_other_file(server, program, tmp_path):
    secret = tmp_path / "other.py"
    secret.write_text("x = 1\n")
    for frame in (str(secret), "/etc/passwd", "/etc/passwd:1", str(tmp_path / ".." / tmp_path.name / "kept.py"), "", "x" * 3000,
                  "/proc/self/environ"):
        answer = server.ask(base(program) + "/source?frame=" + frame)
        assert answer.status in (400, 404) and "x = 1" not in answer.text and "root:" not in answer.text, frame


@pytest.fixture
def open_folder():
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    yield pathlib.Path(folder)
    shutil.rmtree(folder)


def test_a_link_in_place_of_it(server, open_folder):
    """The target's user put a link where its source was: his rights decide."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    folder = open_folder / "his"
    folder.mkdir()
    (folder / "kept.py").write_text(PROGRAM.replace("sys.stdin.read()", "import time; time.sleep(1000)"))
    os.chown(str(folder), 65534, 65534)
    secret = open_folder / "secret"
    secret.write_text("the secret\n")
    secret.chmod(0o600)
    child = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", str(folder / "kept.py")],
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        if child.stdout.readline() != b"ready\n":
            pytest.skip("another user cannot read there")
        (folder / "kept.py").unlink()
        (folder / "kept.py").symlink_to(secret)
        answer = server.ask("/api/v1/p/{}/source?frame={}".format(child.pid, folder / "kept.py"))
        assert answer.status == 404 and "the secret" not in answer.text, answer.body
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


# ---- crashes, snapshots, tables ----


def test_crashes(serve, start, any_python, tmp_path):
    folder = tmp_path / "crashes"
    folder.mkdir(mode=0o700)
    server = serve(variables={"PROBING_CRASH_DIR": str(folder)})
    assert server.ask("/api/v1/crashes").json == {"crashes": [], "count": 0, "truncated": False}
    job = start(any_python, "threads.py").settle()
    probing(job.pid, "inject", "-c", "-D", "probing.crash_dir={}".format(folder))
    os.kill(job.pid, 11)
    job.child.wait(DEADLINE)
    told = server.ask("/api/v1/crashes").json
    assert told["count"] == 1
    dump = told["crashes"][0]
    assert dump["pid"] == job.pid and "SIGSEGV" in dump["title"] and dump["kind"] == "signal" and dump["bytes"] > 1000
    assert server.ask("/api/v1/p/" + dump["id"]).json["kind"] == "snapshot"
    assert server.ask("/api/v1/p/" + dump["id"] + "/stacks").json["threads"]


def test_snapshot(server, job, tmp_path):
    file = tmp_path / "x.snap"
    answer = server.ask(base(job) + "/snapshot?native=1")
    assert answer.status == 200 and answer.body[:4] == b"\x7fELF" and answer.headers["content-type"] == "application/octet-stream"
    file.write_bytes(answer.body)
    there = json.loads(probing("-t", file, "backtrace", "--json").stdout)
    assert {thread["os_thread_id"] for thread in there} == {thread["id"] for thread in server.ask(base(job) + "/stacks").json["threads"]}
    assert not [name for name in os.listdir(server.folder) if name.startswith("snapshot")]
    assert struct.unpack("<H", answer.body[16:18])[0] == 4  # ET_CORE


def test_threads_and_a_table(server, job):
    told = server.ask(base(job) + "/threads").json
    assert told["rows"] and "thread_name" in told["columns"]
    assert server.ask(base(job) + "/threads?format=csv").text == probing(job.pid, "query", "-f", "csv", "SELECT * FROM python.threads").stdout
    told = server.ask(base(job) + "/tables/python.threads").json
    assert told["rows"] and server.ask(base(job) + "/tables/python.threads?format=text").text == probing(job.pid, "tables", "python.threads").stdout
    for name in ("nothing", "python.nothing", "x;y", "'x'"):
        assert server.ask(base(job) + "/tables/" + name.replace("'", "%27")).status in (400, 404), name
