"""Files that the first release wrote are read by today's, for ever.  They are in 0.1, as its own commands wrote them (samples.py).

Never make them again: to change a format, raise its version and add a folder of the release that writes it.
"""

import json
import lzma
import os
import platform
import shutil
import sqlite3

import pytest

from support.target import probing

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "0.1")
with open(os.path.join(FILES, "expected.json"), encoding="utf-8") as text:
    EXPECTED = json.load(text)

if platform.machine() != "x86_64":
    pytest.skip("the files are of x86-64", allow_module_level=True)


@pytest.fixture
def sample(tmp_path):
    """sample(name): a copy; unpacked where it is packed."""

    def copy(name):
        path = str(tmp_path / name)
        stored = os.path.join(FILES, name)
        if os.path.exists(stored + ".xz"):
            with lzma.open(stored + ".xz") as packed, open(path, "wb") as out:
                shutil.copyfileobj(packed, out)
        else:
            shutil.copy(stored, path)
        os.chmod(path, 0o600)
        return path

    return copy


def rows(path, sql):
    return json.loads(probing("-t", path, "query", "-f", "json", sql).stdout)


@pytest.mark.parametrize("name", ["snapshot.snap", "crash.snap"])
def test_memory(sample, name):
    """The stacks of a snapshot and of a crash dump as the first release showed them."""
    assert rows(sample(name), EXPECTED[name]["sql"]) == EXPECTED[name]["rows"]


def test_crash_says_what_happened(sample):
    shown = probing("crash", "show", sample("crash.snap")).stdout
    for words in EXPECTED["crash.snap"]["says"]:
        assert words in shown


def test_packed(sample, tmp_path):
    """As it lies here: every command reads packed files."""
    path = str(tmp_path / "snapshot.snap.xz")
    shutil.copy(os.path.join(FILES, "snapshot.snap.xz"), path)
    assert rows(path, EXPECTED["snapshot.snap"]["sql"]) == EXPECTED["snapshot.snap"]["rows"]


@pytest.mark.parametrize("name", ["profile.db", "store.db"])
def test_database(sample, name):
    assert rows(sample(name), EXPECTED[name]["sql"]) == EXPECTED[name]["rows"]


def test_ring(sample, tmp_path):
    """A table's ring, in the folder of a process that ended."""
    folder = tmp_path / "rings"
    folder.mkdir(mode=0o700)
    shutil.move(sample("losses.ring"), str(folder / "losses.ring"))
    assert rows(folder, EXPECTED["losses.ring"]["sql"]) == EXPECTED["losses.ring"]["rows"]


def later_snapshot(path):
    with open(path, "r+b") as file:
        content = file.read()
        at = content.index(b"\nformat 1\n")
        file.seek(at)
        file.write(b"\nformat 2\n")


def later_store(path):
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 2")


def later_profile(path):
    with sqlite3.connect(path) as file:
        assert file.execute("UPDATE meta SET value = 2 WHERE key = 'version'").rowcount == 1


@pytest.mark.parametrize("name, raise_version, text", [("snapshot.snap", later_snapshot, "was written by a later version"),
                                                       ("store.db", later_store, "was written by a later version"),
                                                       ("profile.db", later_profile, "not a profile of version 1")])
def test_later_versions_are_refused(sample, name, raise_version, text):
    path = sample(name)
    raise_version(path)
    done = probing("-t", path, "query", "SELECT 1", check=False)
    assert done.returncode == 6 and text in done.stderr, done.stderr
