#!/usr/bin/env python3
"""The Python files of the wheel in a folder of Python's, for distributions: python_files.py DESTDIR FOLDER PROGRAMS LIBRARIES.

The folder is made below DESTDIR, as `make install` does.

Where the wheel has programs and libraries of its own, links lead to those that are installed: PROGRAMS/probing, LIBRARIES/libprobe.so.
"""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(os.path.dirname(HERE), "python")
sys.path.insert(0, PYTHON)
sys.dont_write_bytecode = True

import backend  # noqa: E402


def main(destdir: str, place: str, programs: str, libraries: str) -> None:
    folder = destdir + place
    for package in backend.PACKAGES:
        os.makedirs(os.path.join(folder, package), exist_ok=True)
        for name in sorted(os.listdir(os.path.join(PYTHON, package))):
            if name.endswith((".py", ".typed")):
                shutil.copyfile(os.path.join(PYTHON, package, name), os.path.join(folder, package, name))
    for name in backend.START:
        shutil.copyfile(os.path.join(PYTHON, name), os.path.join(folder, name))
    shutil.copyfile(os.path.join(backend.ROOT, "serve", "page", "icon.svg"), os.path.join(folder, "probing_c", "icon.svg"))
    for name, _, data in backend.records("probing_c-{}.dist-info".format(backend.version())):
        if os.path.basename(name) in ("METADATA", "entry_points.txt"):
            os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(folder, name), "wb") as paper:
                paper.write(data)
    native = os.path.join(folder, backend.NATIVE)
    os.makedirs(native, exist_ok=True)
    for path in (programs + "/probing", programs + "/probing-serve", libraries + "/libprobe.so", libraries + "/libprobing-nccl.so"):
        os.symlink(os.path.relpath(path, os.path.join(place, backend.NATIVE)), os.path.join(native, os.path.basename(path)))


if __name__ == "__main__":
    main(*sys.argv[1:])
