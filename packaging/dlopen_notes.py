#!/usr/bin/env python3
"""The libraries that ELF files open by name while they run, as their notes say (lib/base/dlopen_note.h).

    dlopen_notes.py FILE...              lines: name, priority, what for
    dlopen_notes.py --debian FILE...     dlopen:Depends=... and dlopen:Recommends=... for debian/PACKAGE.substvars
    dlopen_notes.py --rpm GENERATOR... <NAMES        what this generator of rpm's prints of the files named on standard input, and ours
"""

import json
import struct
import subprocess
import sys
from typing import Dict, Iterator, List

OWNER, TYPE = b"FDO\0", 0x407C0C0A


def section(path: str) -> bytes:
    """The bytes of .note.dlopen, elf(5); none where it has none, or where it is not an ELF file of 64 bits."""
    with open(path, "rb") as file:
        elf = file.read()
    if elf[:6] != b"\x7fELF\2\1":
        return b""
    at, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + i * size) for i in range(count)]
    for header in headers:
        name = headers[names][4] + header[0]
        if elf[name:elf.index(b"\0", name)] == b".note.dlopen":
            return elf[header[4]:header[4] + header[5]]
    return b""


def notes(path: str) -> Iterator[Dict[str, object]]:
    data, at = section(path), 0
    while at + 12 <= len(data):
        owner_len, text_len, kind = struct.unpack_from("<III", data, at)
        owner = data[at + 12:at + 12 + owner_len]
        at += 12 + (owner_len + 3 & ~3)
        if (owner, kind) == (OWNER, TYPE):
            yield from json.loads(data[at:at + text_len].rstrip(b"\0").decode())
        at += text_len + 3 & ~3


def package(soname: str) -> str:
    """The installed Debian package that has the library."""
    found = subprocess.run(["dpkg-query", "-S", "*/" + soname], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    return sorted(line.split(":")[0] for line in found.splitlines() if not line.startswith("diversion"))[0]


def debian(found: List[Dict[str, object]]) -> None:
    for field, priorities in (("Depends", ("required", "recommended")), ("Recommends", ("suggested",))):
        names = {package(soname) for note in found if note["priority"] in priorities for soname in note["soname"]}  # type: ignore
        print("dlopen:{}={}".format(field, ", ".join(sorted(names))))


def rpm(found: List[Dict[str, object]], generator: List[str], paths: List[str]) -> None:
    """libdw.so.1()(64bit); what a job of one machine does not need is left to who has many."""
    subprocess.run(generator, input="".join(path + "\n" for path in paths), encoding="utf-8", check=True)
    for note in found:
        if note["priority"] != "suggested":
            for soname in note["soname"]:  # type: ignore
                print("{}()(64bit)".format(soname))


def main(words: List[str]) -> None:
    how = words.pop(0) if words and words[0].startswith("--") else ""
    paths = [line.rstrip("\n") for line in sys.stdin] if how == "--rpm" else words
    found = [note for path in paths for note in notes(path)]
    if how == "--debian":
        debian(found)
    elif how == "--rpm":
        rpm(found, words, paths)
    else:
        for note in found:
            print("{:24} {:12} {}".format(" ".join(note["soname"]), note["priority"], note["description"]))  # type: ignore


if __name__ == "__main__":
    main(sys.argv[1:])
