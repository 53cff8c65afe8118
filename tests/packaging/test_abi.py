"""What libprobing.so.0 exports stays: names with their versions, arguments, structs; and it says which libraries it opens by name."""

import lzma
import os
import platform
import re
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.path.abspath(os.environ["SRCDIR"])
BUILDDIR = os.path.abspath(os.environ["BUILDDIR"])
LIBRARY = os.path.join(BUILDDIR, ".libs", "libprobing.so.0")
PUBLIC, PRIVATE = "PROBING_0.1", "PROBING_PRIVATE"
INSTALLED = ("lib/probing.h", "lib/format/format.h", "dap/dap.h", "inject/inject.h", "inject/control.h", "inject/debug.h")
# The library's types and functions of the first release: abidw, without what only our own programs call.
STORED = os.path.join(HERE, "libprobing.abi.xz")
SUPPRESSED = os.path.join(HERE, "libprobing.abignore")
CHANGE = 4  # a bit of abidiff's exit status


def text(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


def read(path):
    with open(os.path.join(SRCDIR, path), encoding="utf-8") as file:
        return file.read()


def marked(path):
    """The functions of a header that are marked PRB_API."""
    code = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    return re.findall(r"\bPRB_API\b[^;(]*?\b(prb_\w+)\s*\(", code)


def exported():
    """{symbol: version} of the library; the versions themselves are left out."""
    found = {}
    for line in text("nm", "-DP", "--defined-only", "--with-symbol-versions", LIBRARY).splitlines():
        name, kind = line.split()[:2]
        if kind != "A":
            symbol, _, version = name.partition("@@")
            found[symbol] = version
    return found


@pytest.fixture(scope="module")
def symbols():
    if not shutil.which("nm"):
        pytest.skip("needs binutils")
    return exported()


def test_installed_headers_are_what_is_promised(symbols):
    promised = sorted(name for path in INSTALLED for name in marked(path))
    assert sorted(name for name, version in symbols.items() if version == PUBLIC) == promised
    in_map = re.findall(r"\b(prb_\w+);", read("lib/libprobing.map"))
    assert sorted(in_map) == promised


def test_the_rest_is_private(symbols):
    """Of a header that is not installed, and with the version that says so; nothing else can be seen."""
    assert {version for version in symbols.values()} == {PUBLIC, PRIVATE}
    headers = {os.path.relpath(os.path.join(folder, file), SRCDIR) for top in ("lib", "fleet") for folder, _, names in os.walk(os.path.join(SRCDIR, top))
               for file in names if file.endswith(".h")}
    others = {name for path in headers.difference(INSTALLED) for name in marked(path)}
    assert {name for name, version in symbols.items() if version == PRIVATE} == others


def test_soname():
    assert re.search(r"SONAME.*\[libprobing\.so\.0\]", text("readelf", "-dW", LIBRARY))


def compared(stored, path):
    """abidiff's exit status and words: an interface that was stored, and the library."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(stored)
    done = subprocess.run(["abidiff", "--suppressions", SUPPRESSED, "--exported-interfaces-only", "--no-added-syms", path, LIBRARY], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=280)
    return done.returncode, done.stdout


def test_types_and_arguments_stay(tmp_path):
    """To renew after an addition: make abi."""
    if not shutil.which("abidiff"):
        pytest.skip("needs abidiff (abigail-tools)")
    if platform.machine() != "x86_64" or ".debug_info" not in text("readelf", "-SW", LIBRARY):
        pytest.skip("compares x86-64 with debug information")
    with lzma.open(STORED, "rt", encoding="utf-8") as packed:
        stored = packed.read()
    status, changes = compared(stored, str(tmp_path / "stored.abi"))
    assert status == 0, changes
    # What was stored, with prb_error smaller than it is.
    other = re.sub(r"(<class-decl name='prb_error' size-in-bits=')(\d+)", lambda found: found[1] + str(int(found[2]) - 64), stored)
    status, changes = compared(other, str(tmp_path / "other.abi"))
    assert other != stored and status & CHANGE and "prb_error" in changes
    # A public function that is gone.
    other = re.sub(r"( *<elf-symbol name='prb_)version(' .*\n)", r"\1version\2\1vanished\2", stored)
    status, changes = compared(other, str(tmp_path / "other.abi"))
    assert other != stored and status & CHANGE and "prb_vanished" in changes


def test_libraries_that_are_opened_have_notes():
    with open(os.path.join(BUILDDIR, "config.h"), encoding="utf-8") as config:
        sonames = set(re.findall(r'#define PRB_SONAME_\w+ "(.+)"', config.read()))
    lines = text(sys.executable, os.path.join(SRCDIR, "packaging", "dlopen_notes.py"), LIBRARY, os.path.join(BUILDDIR, ".libs", "probing"))
    assert {line.split()[0] for line in lines.splitlines()} == sonames
