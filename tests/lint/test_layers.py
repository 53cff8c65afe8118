"""The layers of lib/layers.txt hold, for what files include and for what their compiled code calls."""

import collections
import os
import re
import subprocess

import pytest

from tree import BUILDDIR, SRCDIR, named, read

CODE = ("lib/", "inject/", "dap/", "fleet/", "cli/")


def layers():
    """({folder: folders that it may use}, {(file or folder, folder)}: exceptions); a folder's line stands after what it uses."""
    allowed, exceptions = {}, set()
    for line in read("lib/layers.txt").splitlines():
        line = line.partition("#")[0].strip()
        if "->" in line:
            exceptions.add(tuple(line.split(" -> ")))
        elif line:
            folder, _, words = line.partition(":")
            assert folder not in allowed, "two lines for " + folder
            for word in words.split():
                assert word in allowed, "{} stands above {}, which it may use".format(folder, word)
            allowed[folder] = set(words.split())
    return allowed, exceptions


ALLOWED, EXCEPTIONS = layers()
NEEDED = set()  # exceptions that something made use of


def layer(path):
    """The folder of layers.txt that a file belongs to: the longest one above it."""
    folder = os.path.dirname(path)
    while folder and folder not in ALLOWED:
        folder = os.path.dirname(folder)
    assert folder, "lib/layers.txt has no folder for " + path
    return folder


def sources():
    return [path for path in named(".c", ".h", ".def") if path.startswith(CODE)]


def faults(uses):
    """What of {(file, file that it uses)} the layers do not allow."""
    wrong = collections.defaultdict(list)
    for user, used in sorted(uses):
        above, below = layer(user), layer(used)
        if above == below or below in ALLOWED[above]:
            continue
        excepted = {(user, below), (above, below), (user, used)} & EXCEPTIONS
        NEEDED.update(excepted)
        if not excepted:
            wrong[above, below].append("{} uses {}".format(user, used))
    return ["{} may not use {}: {}".format(above, below, "; ".join(found[:5])) for (above, below), found in wrong.items()]


def test_includes():
    paths = set(sources())
    uses = set()
    for path in paths:
        for name in re.findall(r'^\s*#\s*include "(.*)"', read(path), re.M):
            for start in (os.path.dirname(path), "lib", ""):
                used = os.path.normpath(os.path.join(start, name))
                if used in paths:
                    uses.add((path, used))
                    break
    assert len(uses) > 500
    assert not faults(uses)


def objects():
    """{object file: its source}"""
    found = {}
    for path in sources():
        if path.endswith(".c"):
            folder, name = os.path.split(path[:-2])
            for where in (folder, os.path.join(folder, ".libs")):
                full = os.path.join(BUILDDIR, where)
                for entry in os.listdir(full) if os.path.isdir(full) else ():
                    if entry == name + ".o" or entry.endswith("-" + name + ".o"):
                        found[os.path.join(full, entry)] = path
    return found


def public():
    """{function: the installed header that declares it}"""
    headers = [path for path in sources() if path.count("/") == 1 and path.endswith(".h")]
    return {name: path for path in headers for name in re.findall(r"\b(prb_\w+)\(", read(path))}


def test_calls():
    """A call from another top folder by an installed header is a use of that header."""
    found = objects()
    if len(found) < 300:
        pytest.skip("nothing is built in " + BUILDDIR)
    done = subprocess.run(["nm", "-AP", *found], stdout=subprocess.PIPE, check=True, encoding="utf-8", cwd=SRCDIR)
    defined, wanted = collections.defaultdict(set), []
    for line in done.stdout.splitlines():
        place, name, kind = line.split()[:3]
        path = found[place.rstrip(":")]
        if kind in "TDBRV":
            defined[name].add(path)
        elif kind == "U":
            wanted.append((path, name))
    installed, uses = public(), set()
    for path, name in wanted:
        if len(defined.get(name, ())) == 1:
            used = next(iter(defined[name]))
            outside = path.partition("/")[0] != used.partition("/")[0]
            uses.add((path, installed.get(name, used) if outside else used))
    assert len(uses) > 1000
    assert not faults(uses)


def test_exceptions_are_needed():
    """Runs after the others."""
    if not NEEDED:
        pytest.skip("needs the other tests of this file")
    assert not sorted(EXCEPTIONS - NEEDED)
