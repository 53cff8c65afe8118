"""What is installed holds no way back to the folder it was built in: whoever owns that would own root's program."""

import os
import re
import shutil
import subprocess

import pytest

from parties import BUILD, SRCDIR

BUILD, SRCDIR = os.path.realpath(BUILD), os.path.realpath(SRCDIR)
LEFT_OUT = {"venv", "newer-pythons", "editors", "node", "logs", "tests", ".git"}

if not shutil.which("make") or not shutil.which("readelf") or not shutil.which("strip"):
    pytest.skip("needs make and binutils", allow_module_level=True)


def make(build, *words):
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR")}
    done = subprocess.run(["make", "-C", build, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", env=kept, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def search_paths(path):
    """RPATH and RUNPATH of an ELF file."""
    words = subprocess.run(["readelf", "-dW", path], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    return [folder for found in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", words) for folder in found.split(":")]


def files(folder):
    for top, _, names in os.walk(folder):
        yield from (os.path.join(top, name) for name in names)


def holding(folder, build, scratch):
    """The files below `folder` that hold the path of a build, but for debug information."""
    found = []
    for path in files(folder):
        with open(path, "rb") as file:
            content = file.read()
        if content.startswith(b"\x7fELF"):
            subprocess.run(["strip", "-g", "-o", scratch, path], check=True)
            with open(scratch, "rb") as file:
                content = file.read()
        if build.encode() in content:
            found.append(path)
    return found


def elves(folder):
    found = [path for path in files(folder) if not os.path.islink(path) and open(path, "rb").read(4) == b"\x7fELF"]
    server = {"probing-serve"} if os.path.exists(os.path.join(BUILD, "probing-serve")) else set()
    assert {os.path.basename(path) for path in found} == {"probing", "libprobing.so.0.0.0", "libprobe.so", "libprobing-nccl.so"} | server
    return found


def setting(name, *words):
    return make(BUILD, "-s", "--eval", "prb-show:;@echo '={}$({})'".format(name, name), "prb-show", *words).split("=" + name)[-1].strip()


def test_with_the_configured_prefix(tmp_path):
    root = str(tmp_path / "root")
    make(BUILD, "-s", "install", "DESTDIR=" + root)
    folder = setting("libdir")
    for path in elves(root):
        assert set(search_paths(path)) <= {folder}, path
    assert holding(root, BUILD, str(tmp_path / "scratch")) == []
    done = subprocess.run([root + setting("bindir") + "/probing", "--version"], stdout=subprocess.PIPE, encoding="utf-8",
                          env=dict(os.environ, LD_LIBRARY_PATH=root + folder))
    assert done.returncode == 0 and done.stdout.startswith("probing ")


def copy_of_the_build(folder):
    """The build, where it can be linked for another prefix: beside links to the sources, at the same place below them."""
    place = os.path.relpath(BUILD, SRCDIR)
    if place.startswith("."):
        pytest.skip("built elsewhere than in a folder below the sources")
    copy = os.path.join(folder, place)
    shutil.copytree(BUILD, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copytree(os.path.join(BUILD, "tests"), os.path.join(copy, "tests"), symlinks=True,
                    ignore=lambda top, names: [name for name in names if not os.path.isdir(os.path.join(top, name))
                                               and not name.endswith((".Po", ".Plo"))])
    for name in os.listdir(SRCDIR):
        if name not in LEFT_OUT | {place.split(os.sep)[0]} or name in ("tests", "editors"):
            os.symlink(os.path.join(SRCDIR, name), os.path.join(folder, name))
    for name in ("libprobing.la", "libprobe.la", "cli/installed/probing"):
        os.unlink(os.path.join(copy, name))
    return copy


def test_with_another_prefix(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    copy, prefix = copy_of_the_build(str(tree)), str(tmp_path / "other")
    make(copy, "-s", "install", "prefix=" + prefix)
    for path in elves(prefix):
        assert search_paths(path) == ([prefix + "/lib"] if path.endswith("/probing") else []), path
    for build in (BUILD, str(tree)):
        assert holding(prefix, build, str(tmp_path / "scratch")) == []
    shutil.rmtree(str(tree))
    kept = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([prefix + "/bin/probing", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          env=dict(kept, LD_DEBUG="libs"))
    assert done.returncode == 0 and done.stdout.startswith("probing ")
    assert "calling init: {}/lib/libprobing.so.0".format(prefix) in done.stderr, done.stderr


@pytest.mark.parametrize("folder, named", [("/opt/p/lib", True), ("/usr/local/lib", True), ("/usr/lib", False), ("/usr/lib64", False),
                                           ("/usr/lib/aarch64-linux-gnu", False)])
def test_the_loaders_own_folders_are_not_named(folder, named):
    assert ("-Wl,-rpath," + folder in setting("cli_installed_probing_LDFLAGS", "libdir=" + folder)) == named


def test_the_test_sees_a_build_path(tmp_path):
    """The program of the build tree, which is not installed, does name its folder."""
    program = os.path.join(BUILD, ".libs", "probing")
    assert search_paths(program) == [os.path.join(BUILD, ".libs")]
    shutil.copy(program, str(tmp_path / "probing"))
    assert holding(str(tmp_path), BUILD, str(tmp_path) + ".scratch")
