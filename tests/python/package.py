"""The wheel of this tree, and CPythons that have it: unpacked into a user base, where every interpreter looks by itself."""

import glob
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import zipfile

BUILDDIR = os.environ.get("BUILDDIR", ".")
SRCDIR = os.environ.get("SRCDIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
HERE = os.path.join(SRCDIR, "tests", "python")
NATIVE = os.path.join(BUILDDIR, "python", "native")
FAKE = os.path.join(BUILDDIR, "tests", "python", ".libs", "fakeprobe.so")
DEADLINE = 240  # s that anything here may take: less than a test may


def make_wheel(folder, libprobe):
    """The wheel with that libprobe.so in it; its path."""
    native = os.path.join(folder, "native")
    os.makedirs(native)
    for name in ("probing", "libprobing.so.0", "libprobing-nccl.so"):
        shutil.copy(os.path.join(NATIVE, name), native)
    if os.path.exists(os.path.join(NATIVE, "probing-serve")):
        shutil.copy(os.path.join(NATIVE, "probing-serve"), native)
    shutil.copy(libprobe, os.path.join(native, "libprobe.so"))
    backend = os.path.abspath(os.path.join(SRCDIR, "python", "backend.py"))
    subprocess.run([sys.executable, backend, "wheel", "native", "."], check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE, cwd=folder)
    (path,) = glob.glob(os.path.join(folder, "*.whl"))
    return path


def unpack(wheel, folder):
    """What pip does with a wheel without scripts of its own."""
    with zipfile.ZipFile(wheel) as packed:
        for entry in packed.infolist():
            path = packed.extract(entry, folder)
            os.chmod(path, stat.S_IMODE(entry.external_attr >> 16) or 0o644)


class Rows:
    """What the stand-in of libprobe.so was asked: starts, tables and rows, by process."""

    def __init__(self, path):
        self.starts, self.tables, self.rows, self.settings, self.served = [], {}, [], [], []
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                pid, what, rest = line.rstrip("\n").split(" ", 2)
                if what == "start":
                    self.starts.append((int(pid), rest.strip()))
                elif what == "table":
                    name, columns = rest.split(" ", 1)
                    self.tables[name] = [tuple(column.split(":")) for column in columns.strip("|").split("|")]
                elif what == "row":
                    name, packed = rest.split(" ")
                    self.rows.append((name, self._row(self.tables[name], bytes.fromhex(packed))))
                elif what == "serve":
                    self.served.append(rest)
                else:
                    self.settings.append(rest)

    @staticmethod
    def _row(columns, packed):
        """A packed row (inject/probe/start.h) as a dict."""
        kinds = [column[1] for column in columns]
        letters = "<Q" + "".join("d" if kind in ("real", "time") else "q" for kind in kinds)
        nulls, *values = struct.unpack_from(letters, packed)
        at, row = struct.calcsize(letters), {}
        for number, (column, value) in enumerate(zip(columns, values)):
            if nulls >> number & 1:
                assert value == 0
                row[column[0]] = None
            elif column[1] == "text":
                row[column[0]], at = packed[at:at + value].decode("utf-8"), at + value
            else:
                row[column[0]] = value
        assert at == len(packed)
        return row

    def of(self, table):
        return [row for name, row in self.rows if name == table]

    @property
    def pids(self):
        return sorted({pid for pid, _ in self.starts})


class Installed:
    """An interpreter with the package in a user base of its own."""

    def __init__(self, python, wheel, folder):
        self.python = python
        self.folder = folder  # on this side
        self.inner = folder[len(python.root):] if python.root else folder
        self.base = os.path.join(folder, "base")
        self.site = os.path.join(self.base, "lib", "python{}.{}{}".format(*python.minor, "t" if python.how in ("sharedt", "statict") else ""), "site-packages")
        os.makedirs(self.site)
        unpack(wheel, self.site)
        for name in ("starts.py", "uses.py"):
            shutil.copy(os.path.join(HERE, name), folder)
        os.makedirs(os.path.join(folder, "run"))
        self._count = 0

    def within(self, name):
        """A file of the folder as the interpreter sees it."""
        return os.path.join(self.inner, name)

    def environment(self, **variables):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PROB", "PYTHON", "LD_"))}
        kept.update(PYTHONUSERBASE=self.within("base"), PYTHONDONTWRITEBYTECODE="1", XDG_RUNTIME_DIR=self.within("run"),
                    PYTHONIOENCODING="utf-8", LC_ALL="C.UTF-8", HOME=self.within("run"))
        kept.update(variables)
        return kept

    def run(self, *args, check=True, quiet=True, command=None, **variables):
        """One run; (CompletedProcess, Rows).  With check it must succeed, with quiet without a word on standard error."""
        self._count += 1
        log = "rows-{}".format(self._count)
        variables.setdefault("FAKE_PROBE_LOG", self.within(log))
        done = subprocess.run(command or self.python.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              encoding="utf-8", timeout=DEADLINE, env=self.environment(**variables), cwd=self.folder if not self.python.root else "/")
        if check:
            assert done.returncode == 0, done.stderr
        if quiet:
            assert done.stderr == ""
        return done, Rows(os.path.join(self.folder, log))

    def told(self, *args, **variables):
        """The last line of a run as JSON, and Rows."""
        done, rows = self.run(*args, **variables)
        return json.loads(done.stdout.splitlines()[-1]), rows

    def log(self):
        path = os.path.join(self.folder, "run", "probing", "probing.log")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as lines:
            return lines.read()
