"""The files of the source tree, and the tools that check them."""

import functools
import os
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.path.abspath(os.environ.get("SRCDIR", os.path.join(HERE, "..", "..")))
BUILDDIR = os.path.abspath(os.environ.get("BUILDDIR", os.path.join(SRCDIR, "build")))


@functools.lru_cache(maxsize=None)
def files():
    """Every file of the source tree, by its path there; those that git ignores are left out.  [] outside a git tree."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], cwd=SRCDIR,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
    return sorted(path for path in done.stdout.splitlines() if os.path.isfile(os.path.join(SRCDIR, path)))


def named(*endings):
    found = [path for path in files() if path.endswith(endings)]
    if not found:
        pytest.skip("not a git tree")
    return found


def read(path):
    with open(os.path.join(SRCDIR, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def tool(name):
    """The path of a tool that setup.sh installs."""
    path = os.path.join(os.environ.get("PROBING_LINT", os.path.join(BUILDDIR, "lint")), "bin", name)
    if not os.path.exists(path):
        pytest.skip("no {}: tests/lint/setup.sh installs it".format(path))
    return path


def run(*command):
    """Run in the source tree; what it printed must be nothing that it calls an error."""
    done = subprocess.run(command, cwd=SRCDIR, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=290)
    assert done.returncode == 0, "{} found:\n{}".format(os.path.basename(command[0]), done.stdout[-8000:])
