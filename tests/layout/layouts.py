"""The layout files as the tests read them, and the interpreters to hold against them."""

import functools
import os
import re
import subprocess

from support import pythons

SRCDIR = os.environ.get("SRCDIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FOLDER = os.path.join(SRCDIR, "lib", "py", "layout")
ROW = re.compile(r"^(OFFSET|ABSENT|TRAIT|NUMBER|NONE|DEBUG\w*)\((.*)\)$")


def read(path):
    """{("OFFSET", "frame", "code"): 32 or None, ("TRAIT", "instr"): "PREV_INSTR", ("NUMBER", ...): 3 or None, ...}"""
    rows = {}
    with open(path) as lines:
        for line in lines:
            match = ROW.match(line.strip())
            if not match:
                continue
            kind, words = match.group(1), match.group(2).split(", ")
            if kind == "OFFSET":
                rows["OFFSET", words[0], words[1]] = int(words[2])
            elif kind == "ABSENT":
                rows["OFFSET", words[0], words[1]] = None
            elif kind == "TRAIT":
                rows["TRAIT", words[0]] = words[1]
            elif kind == "NUMBER":
                rows["NUMBER", words[0]] = int(words[1])
            elif kind == "NONE":
                rows["NUMBER", words[0]] = None
            else:
                rows[(kind, *words[:2])] = words[2:]
    return rows


def of_version(version, free_threaded=False):
    """What the library holds for a release: the file of its minor version, and patches.def."""
    name = "{}.{}{}".format(version[0], version[1], "t" if free_threaded else "")
    rows = read(os.path.join(FOLDER, name + ".def"))
    with open(os.path.join(FOLDER, "patches.def")) as lines:
        for match in re.finditer(r'^PATCH\("(\S+)", (\d+), (\d+), (\w+), (\w+), (-?\d+)\)', lines.read(), re.M):
            layout, first, last, struct, field, offset = match.groups()
            if layout == name and int(first) <= version[2] <= int(last):
                rows["OFFSET", struct, field] = int(offset)
    return rows


@functools.lru_cache(maxsize=None)
def interpreters():
    """One way to start each interpreter."""
    return [python for python in pythons.found() if not python.container and "jit" not in python.how]


@functools.lru_cache(maxsize=None)
def free_threaded(python):
    script = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    told = subprocess.run(python.command("-c", script), stdout=subprocess.PIPE, check=True, universal_newlines=True)
    return told.stdout.strip() == "1"


def of_python(python):
    """What the library holds for an interpreter."""
    return of_version(python.version, free_threaded(python))


def include_of(python):
    """The folder of an interpreter's own headers, as seen from here; None: not installed."""
    script = "import sysconfig; print(sysconfig.get_paths()['include'])"
    told = subprocess.run(python.command("-c", script), stdout=subprocess.PIPE, check=True, universal_newlines=True)
    folder = (python.root or "") + told.stdout.strip()
    internal = python.version < (3, 7) or os.path.isdir(os.path.join(folder, "internal"))
    return folder if internal and os.path.exists(os.path.join(folder, "Python.h")) else None


def print_layout(include, out, free_threaded=False):
    """Run mk on a folder of headers; the rows it prints."""
    subprocess.run(["sh", os.path.join(FOLDER, "mk-layouts.sh"), str(out), include + (",t" if free_threaded else "")],
                   check=True)
    (name,) = os.listdir(str(out))
    return read(os.path.join(str(out), name))
