"""gdb run by root shows source of the target, and of nothing else: whatever lies at the path of a frame."""

import os
import shutil
import subprocess

import pytest

import parties

PLUGIN = os.path.abspath(os.path.join(parties.SRCDIR, "gdb", "probing-gdb.py"))
# Its code says that it is of a file of that name.
TARGET = """
import os, sys
os.chroot(sys.argv[1])
code = compile("def innermost():\\n    print('ready', flush=True)\\n    sys.stdin.read()\\ninnermost()\\n", "/folder/source.py", "exec")
exec(code)
"""
SOURCE = "line one\nline two\nthe third line\n"


@pytest.fixture
def listed(users, python, spawn, tmp_path):
    """listed(make): what py-list says, where make(root) has filled the target's root."""
    gdb = shutil.which("gdb")
    if not gdb or subprocess.run([gdb, "-nx", "-batch", "-ex", "python import ctypes"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.STDOUT).returncode:
        pytest.skip("no gdb with Python")

    def look(make):
        root = tmp_path / "root"
        root.mkdir()
        make(root)
        job = spawn([python, "-c", TARGET, root])
        done = subprocess.run([gdb, "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", str(job.pid), "-ex", "source " + PLUGIN,
                               "-ex", "py-up", "-ex", "py-down", "-ex", "py-list"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", timeout=2 * parties.DEADLINE,
                              env=dict(os.environ, PROBING_BUILDDIR=parties.BUILD, HOME="/nonexistent", LC_ALL="C.UTF-8"))
        return done.stdout

    return look


def test_its_own(listed):
    def make(root):
        (root / "real").mkdir()
        (root / "real" / "source.py").write_text(SOURCE)
        (root / "folder").symlink_to("/real")

    assert "the third line" in listed(make)


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_is_not(listed, tmp_path, what):
    def make(root):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "source.py").write_text(SOURCE)
        if what == "link":
            (root / "folder").symlink_to(tmp_path / "outside")
        else:
            (root / "folder").mkdir()
            os.mkfifo(str(root / "folder" / "source.py"))

    said = listed(make)
    assert "the third line" not in said and "source.py" in said
