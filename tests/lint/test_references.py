"""What is named must exist: files in comments, functions in headers."""

import collections
import io
import os
import re
import subprocess
import tokenize

import pytest

from test_layers import objects
from tree import named, read

# Comments name files of CPython, the kernel, the C library, PyTorch, NumPy and SQLite where our code follows theirs.
FOLDERS = ("Python", "Objects", "Modules", "Include", "Lib", "internal", "fs", "arch/arm64", "uapi", "asm", "asm-generic", "linux",
           "sys", "nptl", "c10", "torch", "numpy", "probing")  # probing: where our headers are installed
FILES = {
    "Python.h", "StorageImpl.h", "_threadmodule.c", "bytecodes.c", "classobject.c", "descrobject.c", "initconfig.c", "iterobject.c",
    "lowlevellock.h", "methodobject.c", "ndarraytypes.h", "pthreadtypes-arch.h", "pyconfig.h", "pyerrors.h", "python-gdb.py",
    "setobject.h", "sigframe.h", "sqlite3ext.h", "taskgroups.py", "tokenize.c", "tupleobject.h", "typeobject.c",
    "20b.py", "b.py", "file.py", "t.py",  # examples
}
NAME = re.compile(r"(?<![\w/<.*-])((?:[\w.-]+/)*\w[\w-]*\.(?:c|h|py|def|mk|sh|S|js|ts))\b(?!\.)")


def comments(path):
    """[(line number, comment)] of a source file; in Python, docstrings too."""
    text = read(path)
    if path.endswith((".c", ".h", ".def", ".S")):
        return [(text.count("\n", 0, found.start()) + 1, found.group(0))
                for found in re.finditer(r"/\*.*?\*/|//[^\n]*", text, re.S)]
    if path.endswith(".py"):
        return [(token.start[0], token.string) for token in tokenize.generate_tokens(io.StringIO(text).readline)
                if token.type == tokenize.COMMENT or
                token.type == tokenize.STRING and token.line.lstrip().startswith('"""')]
    return [(number, line[line.index("#"):]) for number, line in enumerate(text.splitlines(), 1) if "#" in line]


def elsewhere(name):
    """A file of another project, or a placeholder as NAME.c."""
    stem = os.path.basename(name).partition(".")[0]
    return (name in FILES or name.startswith(tuple(folder + "/" for folder in FOLDERS)) or stem.startswith("pycore_") or
            re.search(r"[A-Z]{3}", stem) is not None)


def test_files_in_comments_exist():
    here = collections.defaultdict(list)
    for path in named(""):
        here[os.path.basename(path)].append(path)
    dead = []
    for path in named(".c", ".h", ".def", ".S", ".py", ".mk", ".sh", "bootstrap", "/run"):
        for line, comment in comments(path):
            for name in NAME.findall(comment):
                short = re.sub(r"^(\.\.?/)+", "", name)
                if not elsewhere(name) and not any(("/" + one).endswith("/" + short) for one in here[os.path.basename(name)]):
                    dead.append("{}:{}: no {}".format(path, line, name))
    assert not dead, "\n".join(dead)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def test_declared_functions_are_defined_and_used():
    found = objects()
    if len(found) < 300:
        pytest.skip("nothing is built")
    done = subprocess.run(["nm", "-AP", *found], stdout=subprocess.PIPE, check=True, encoding="utf-8")
    defined = {line.split()[1] for line in done.stdout.splitlines() if line.split()[2] in "TW"}
    words = collections.Counter()
    for path in named(".c", ".h", ".def", ".py", ".S", ".map"):
        words.update(re.findall(r"\bprb_\w+", without_comments(read(path)) if path.endswith((".c", ".h", ".def")) else read(path)))
    undefined, unused = [], []
    for path in named(".h"):
        if not path.startswith(("lib/", "inject/", "fleet/", "dap/", "cli/")):
            continue
        text = without_comments(read(path))
        for statement in re.findall(r"^(?!static|typedef|#|\s)[\w\s*]*?\b(prb_\w+)\([^;{}]*\)[^;{}]*;", text, re.M):
            if statement not in defined:
                undefined.append("{}: {}".format(path, statement))
            elif words[statement] < 3 and path.count("/") > 1:  # declared, defined, and nothing else; a public one is for users
                unused.append("{}: {}".format(path, statement))
    assert not undefined, "declared, defined nowhere:\n" + "\n".join(undefined)
    assert not unused, "declared, used nowhere:\n" + "\n".join(unused)
