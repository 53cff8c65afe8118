"""make uninstall takes what make install brought, and nothing of others; configure says what to install."""

import compileall
import json
import os
import shutil
import subprocess

import pytest

BUILDDIR = os.path.abspath(os.environ["BUILDDIR"])
# Files of others, beside ours and within folders that only ours are likely to be in.
OTHERS = ("lib/libother.so.1", "lib/libprobing.so.7", "lib/probing/plugins/theirs.so", "share/probing/skills/own.md",
          "share/gdb/auto-load/usr/bin/python3.11-gdb.py", "include/other.h", "share/zsh/site-functions/_other", "bin/other")
# Folders that a prefix has for everybody.
COMMON = {"bin", "include", "lib", "share", "share/man"}

if not shutil.which("make"):
    pytest.skip("needs make", allow_module_level=True)


def make(*words):
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR")}
    done = subprocess.run(["make", "-s", "-C", BUILDDIR, *words, "prefix=/opt/p", "exec_prefix=/opt/p", "GDB_AUTO_LOAD_DIR=/opt/p/share/gdb/auto-load"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", env=kept, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]


def below(folder):
    """(files, folders) below a folder, by their paths there."""
    files, folders = set(), set()
    for top, inner, names in os.walk(folder):
        files.update(os.path.relpath(os.path.join(top, name), folder) for name in names)
        folders.update(os.path.relpath(os.path.join(top, name), folder) for name in inner)
    return files, folders


def test_uninstall(tmp_path):
    """Beside files of others: they stay, and nothing of ours does, folders included."""
    top = str(tmp_path / "opt" / "p")
    for name in OTHERS:
        os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
        with open(os.path.join(top, name), "w") as file:
            file.write("of somebody else")
    before = below(top)
    make("install", "DESTDIR={}".format(tmp_path))
    installed, _ = below(top)
    assert {"lib/pkgconfig/probing.pc", "lib/libprobing.so.0.0.0", "share/gdb/auto-load/usr/bin/python3.11-gdb.gdb"} <= installed
    assert [name for name in installed if name.endswith((".la", ".a"))] == []
    assert compileall.compile_dir(os.path.join(top, "share/probing/gdb"), quiet=1)  # as the gdb of somebody who may write there does
    make("uninstall", "DESTDIR={}".format(tmp_path))
    files, folders = below(top)
    assert files == before[0] == set(OTHERS) and before[1] <= folders and folders - before[1] <= COMMON


def test_without_the_probe(tmp_path):
    """--disable-probe leaves out what is loaded into processes, for `make install` and the wheel."""
    configure = os.path.join(os.path.abspath(os.environ["SRCDIR"]), "configure")
    subprocess.run([configure, "-q", "--disable-probe", "--disable-dependency-tracking"], cwd=str(tmp_path), stdin=subprocess.DEVNULL, check=True, timeout=300)
    told = subprocess.run(["make", "-s", "--eval=print: ; @echo $(lib_LTLIBRARIES) $(pkglib_LTLIBRARIES) $(noinst_LTLIBRARIES) $(PYTHON_NATIVE)", "print"],
                          cwd=str(tmp_path), stdout=subprocess.PIPE, encoding="utf-8", check=True, timeout=300).stdout
    subprocess.run(["make", "-s", "install-exec-hook", "DESTDIR={}/there".format(tmp_path)], cwd=str(tmp_path), check=True, timeout=300)
    assert {"libprobing.la", "python/native/probing"} <= set(told.split()) and "libprobe" not in told and "nccl" not in told, told


def test_doctor_without_the_probe(tmp_path):
    """It is limited, not broken.  Of a build without the probe there is here the one object that knows it, which comes before that of the library."""
    configure = os.path.join(os.path.abspath(os.environ["SRCDIR"]), "configure")
    subprocess.run([configure, "-q", "--disable-probe", "--disable-dependency-tracking"], cwd=str(tmp_path), stdin=subprocess.DEVNULL, check=True, timeout=300)
    subprocess.run(["make", "-s", "inject/library.lo"], cwd=str(tmp_path), check=True, timeout=300)
    before = str(tmp_path / "before.so")
    subprocess.run(["gcc", "-shared", "-Wl,--exclude-libs,ALL", "-o", before, str(tmp_path / "inject" / ".libs" / "library.o"),
                    os.path.join(BUILDDIR, ".libs", "libprb.a")], check=True, timeout=100)
    done = subprocess.run([os.environ["PROBING"], "doctor", "-f", "json"], stdout=subprocess.PIPE, encoding="utf-8", check=True, timeout=100,
                          env=dict(os.environ, LD_PRELOAD=before))
    probe, = [one for one in json.loads(done.stdout) if one["check"] == "probe"]
    assert probe["state"] == "limited" and probe["text"] == "this build has no probe (configure --disable-probe, the default without glibc)"
    assert probe["remedy"] == "Looking, queries and profiles work; for inject, eval and debug use a build with the probe"


def test_a_library_that_is_missing(tmp_path):
    """configure names it, and the package to install."""
    configure = os.path.join(os.path.abspath(os.environ["SRCDIR"]), "configure")
    done = subprocess.run([configure, "-q"], cwd=str(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          timeout=300, env=dict(os.environ, PKG_CONFIG_LIBDIR=str(tmp_path), PKG_CONFIG_PATH=str(tmp_path)))
    assert done.returncode == 1 and "jansson >= 2.11 is needed" in done.stdout, done.stdout
    assert "Install libjansson-dev (Debian, Ubuntu) or jansson-devel (Fedora, RHEL, openSUSE)." in done.stdout
