"""Which CPython interpreters there are to look at: version managers, PATH, and a root folder with newer ones.

PROBING_PYTHONS: a comma-separated list of words; only interpreters whose id has one of them are used.
PROBING_NEWER_ROOT: a root folder as tests/newer-pythons.sh makes it; else the build tree's newer-pythons, else none.
"""

import functools
import glob
import json
import os
import shutil
import subprocess

ABOUT = (
    "import sys, sysconfig, json, os;"
    "maps = '/proc/self/maps';"
    "shared = os.path.exists(maps) and 'libpython' in open(maps).read();"
    "print(json.dumps([list(sys.version_info[:3]), sys.executable, shared,"
    " sysconfig.get_config_var('Py_GIL_DISABLED') or 0, sys.implementation.name]))"
)


class Python:
    """One interpreter and the way to start it."""

    def __init__(self, prefix, executable, version, how, root=None, variables=None):
        self.prefix = list(prefix)  # what goes before it on the command line
        self.executable = executable
        self.version = tuple(version)
        self.how = how  # "shared", "static", "root", "container", with "-jit" and "t" marks
        self.root = root  # its root folder, None: ours
        self.variables = dict(variables or {})
        self.id = "{}.{}.{}-{}".format(*self.version, how)

    @property
    def container(self):
        return "container" in self.how

    @property
    def minor(self):
        return self.version[:2]

    def command(self, *args):
        set_variables = ["env"] + ["{}={}".format(*item) for item in self.variables.items()]
        return self.prefix + (set_variables if self.variables else []) + [self.executable, *args]


def ask(command):
    """What an interpreter says of itself, or None."""
    try:
        done = subprocess.run([*command, "-c", ABOUT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, timeout=120, check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def candidates():
    home = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for folder in sorted(glob.glob(os.path.join(home, "versions", "*", "bin"))):
        yield os.path.join(folder, "python3")
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if not folder.endswith("/shims"):
            for name in ["python3"] + ["python3.{}".format(minor) for minor in range(6, 16)]:
                yield os.path.join(folder, name)


def newer_root():
    root = os.environ.get("PROBING_NEWER_ROOT")
    if not root:
        root = os.path.join(os.environ.get("BUILDDIR", "."), "newer-pythons")
    return root if os.path.exists(os.path.join(root, ".ready")) else None


def of_this_machine():
    seen = set()
    for path in candidates():
        real = os.path.realpath(path)
        if real in seen or not os.access(path, os.X_OK):
            continue
        seen.add(real)
        told = ask([path])
        if told and told[4] == "cpython" and tuple(told[0]) >= (3, 6):
            yield Python([], path, told[0], ("shared" if told[2] else "static") + ("t" if told[3] else ""))


def of_root(root):
    """Each of the root's interpreters from outside and as a container; from 3.14 on also with its JIT."""
    if os.geteuid() != 0 or not shutil.which("chroot"):
        return
    chroot = ["chroot", root]
    container = ["unshare", "--pid", "--mount", "--uts", "--fork", "--kill-child",
                 "--mount-proc={}/proc".format(root), *chroot]
    contained = shutil.which("unshare") and ask([*container, "/usr/bin/python3.13"])
    for path in sorted(glob.glob(os.path.join(root, "usr/bin/python3.[0-9]*"))):
        name = "/usr/bin/" + os.path.basename(path)
        told = ask([*chroot, name]) if name.rsplit(".", 1)[1].isdigit() else None
        if not told:
            continue
        yield Python(chroot, name, told[0], "root", root)
        if contained:
            yield Python(container, name, told[0], "container", root)
        if tuple(told[0]) >= (3, 14):
            yield Python(chroot, name, told[0], "root-jit", root, {"PYTHON_JIT": "1"})


@functools.lru_cache(maxsize=None)
def found():
    pythons = list(of_this_machine())
    root = newer_root()
    if root:
        pythons += of_root(root)
    words = [word for word in os.environ.get("PROBING_PYTHONS", "").split(",") if word]
    # One of a patch release and kind is enough.
    unique = {python.id: python for python in pythons if not words or any(word in python.id for word in words)}
    return sorted(unique.values(), key=lambda python: (python.version, python.how))


def parametrize(metafunc, chosen=found):
    """For pytest_generate_tests of a folder's conftest.py: tests that take `python` run on all that chosen() returns."""
    if "python" in metafunc.fixturenames:
        all_of_them = chosen()
        metafunc.parametrize("python", all_of_them, ids=[python.id for python in all_of_them], scope="session")
