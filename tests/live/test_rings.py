"""Tables that a program writes itself, python.NAME: of a live process, and of one that ended."""

import json
import os
import pathlib
import subprocess

import pytest

from support.pythons import Python, ask
from support.rings import Writer, folder_of, start_time
from support.target import DEADLINE, probing, query

COLUMNS = "step:integer:count:of training\nloss:real\nnote:text::what was seen\ndone:boolean\nat:time"


@pytest.fixture
def ringed(start, any_python, tmp_path):
    """A target with a folder for its rings, and its writers."""
    data = tmp_path / "data"
    target = start(any_python, "hung.py", variables={"PROBING_DATA_DIR": str(data)}).settle()
    target.rings = pathlib.Path(folder_of(data, target.pid))
    writers = []

    def write(table, *rows, columns=COLUMNS):
        writer = Writer(str(target.rings), table, columns)
        writers.append(writer)
        for row in rows:
            writer.write(*row)
        return writer

    target.write = write
    yield target
    for writer in writers:
        writer.kill()


ROWS = [(1, 0.5, "first", 0, 1.7e9), (2, None, "h\u00e9", 1, 1.7e9 + 0.25), (None, None, None, None, None), (2**62, -1e300, "", 0, 0)]
NAMES = ["step", "loss", "note", "done", "at"]


def test_rows_of_a_live_process(ringed):
    writer = ringed.write("sights", *ROWS)
    expected = [dict(zip(NAMES, row)) for row in ROWS]
    assert query(ringed.pid, "SELECT * FROM python.sights") == expected
    assert query(ringed.pid, "SELECT note FROM sights WHERE step = 2") == [{"note": "h\u00e9"}]
    assert query(ringed.pid, "SELECT typeof(step) AS a, typeof(loss) AS b, typeof(note) AS c, typeof(done) AS d, "
                 "typeof(at) AS e FROM python.sights LIMIT 1") == \
        [{"a": "integer", "b": "real", "c": "text", "d": "integer", "e": "real"}]
    writer.write(7, 1.5, "later", 1, 0)
    assert query(ringed.pid, "SELECT count(*) AS n, max(step) AS m FROM python.sights") == [{"n": 5, "m": 2**62}]


def test_columns_are_documented(ringed):
    ringed.write("sights")
    described = query(ringed.pid, "DESCRIBE python.sights")
    assert [row["column_name"] for row in described] == NAMES
    assert [row["data_type"] for row in described] == ["INTEGER", "REAL", "TEXT", "INTEGER", "REAL"]
    assert [row["unit"] for row in described] == ["count", "", "", "", "s"]
    assert [row["doc"] for row in described] == ["of training", "", "what was seen", "0 or 1", "since the epoch"]
    assert described == json.loads(probing("-t", ringed.pid, "tables", "-f", "json", "python.sights").stdout)
    shown = query(ringed.pid, "SHOW TABLES")
    assert any({"table_schema": "python", "table_name": "sights"}.items() <= row.items() for row in shown)


def test_tables_are_there_before_their_first_row(ringed):
    """Those that the package writes: listed, described, empty; then the ring says what columns there are, and time is timestamp, too."""
    known = {row["table_name"] for row in query(ringed.pid, "SHOW TABLES") if row["table_schema"] == "python"}
    assert {"spans", "events", "steps", "training_logs"} <= known
    for table in ("spans", "events", "steps", "training_logs"):
        assert query(ringed.pid, "SELECT * FROM python." + table) == []
        columns = [row["column_name"] for row in query(ringed.pid, "DESCRIBE python." + table)]
        assert columns[0] == "time" and "timestamp" in columns
    ringed.write("training_logs", (5.0, 1, 0.5, 0.9), columns="time:time\nstep:integer\nloss:real\naccuracy:real")
    assert query(ringed.pid, "SELECT * FROM training_logs") == [{"time": 5.0, "step": 1, "loss": 0.5, "accuracy": 0.9, "timestamp": 5.0}]
    assert [row["table_name"] for row in query(ringed.pid, "SHOW TABLES")].count("training_logs") == 1


def test_tables_come_and_go(ringed):
    """Each statement has the tables of its moment."""
    assert probing("-t", ringed.pid, "query", "SELECT * FROM python.sights", check=False).returncode == 9
    ringed.write("sights", ROWS[0])
    ringed.write("other", (1,), (2,), columns="n:integer")
    assert query(ringed.pid, "SELECT count(*) AS n FROM python.sights JOIN python.other") == [{"n": 2}]
    (ringed.rings / "other.ring").unlink()
    assert probing("-t", ringed.pid, "query", "SELECT * FROM python.other", check=False).returncode == 9
    ringed.write("sights", (5,), columns="only:real")
    assert query(ringed.pid, "SELECT * FROM python.sights") == [{"only": 5.0}]


@pytest.mark.parametrize("by", ["pid", "folder"])
def test_rows_of_an_ended_process(ringed, by, monkeypatch):
    ringed.write("sights", *ROWS).kill()
    monkeypatch.setenv("PROBING_DATA_DIR", str(ringed.rings.parent))
    ringed.child.kill()
    ringed.child.wait(DEADLINE)
    spec = ringed.pid if by == "pid" else str(ringed.rings)
    assert query(spec, "SELECT step FROM python.sights WHERE loss IS NOT NULL") == [{"step": 1}, {"step": 2**62}]
    assert [row["table_name"] for row in query(spec, "SHOW TABLES")][-1] == "sights"
    refused = probing("-t", spec, "query", "SELECT * FROM python.threads", check=False)
    assert refused.returncode == 3 and "this one has ended" in refused.stderr


def test_no_tables_left(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBING_DATA_DIR", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait(DEADLINE)
    refused = probing("-t", ended.pid, "query", "SELECT 1", check=False)
    assert refused.returncode == 3 and "no process with that id left tables" in refused.stderr


def test_hostile_files_are_left_out(ringed):
    ringed.write("sights", ROWS[0])
    whole = (ringed.rings / "sights.ring").read_bytes()
    (ringed.rings / "empty.ring").write_bytes(b"")
    (ringed.rings / "short.ring").write_bytes(whole[:100])
    (ringed.rings / "noise.ring").write_bytes(os.urandom(100000))
    (ringed.rings / "link.ring").symlink_to("/etc/passwd")
    os.mkfifo(str(ringed.rings / "pipe.ring"))
    assert [row["table_name"] for row in query(ringed.pid, "SHOW TABLES") if row["doc"].startswith("rows that the program")] == ["sights"]
    assert query(ringed.pid, "SELECT step FROM python.sights") == [{"step": 1}]


def test_a_container(start, any_python):
    """A folder that only the target sees, named by its own pid: 1."""
    contained = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                 "mount -t tmpfs none /dev/shm && exec \"$@\"", "sh"]
    if not ask([*contained, any_python.executable]):
        pytest.skip("no namespaces for this user")
    target = start(Python(contained, any_python.executable, any_python.version, "container"), "hung.py").settle()
    inside = "/proc/{}/root/dev/shm/probing-{}".format(target.pid, os.geteuid())
    rings = "{}/1-{}".format(inside, start_time(target.pid))
    os.makedirs(rings, mode=0o700)
    writer = Writer(rings, "sights", COLUMNS)
    try:
        writer.write(*ROWS[0])
        assert query(target.pid, "SELECT step FROM python.sights") == [{"step": 1}]
    finally:
        writer.kill()


def test_a_folder_of_somebody_else(ringed):
    """Anybody may make a folder of any name in /tmp."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    ringed.write("sights", ROWS[0])
    os.chown(str(ringed.rings), 12345, 12345)
    assert probing("-t", ringed.pid, "query", "SELECT * FROM python.sights", check=False).returncode == 9
