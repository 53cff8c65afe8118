#!/usr/bin/env python3
"""Print probing_gdb/structs.py: the structs of the public headers that the plugin uses, for ctypes.

The build runs it when a header changes: mirror.py HEADER... >structs.py.  To have a struct more, name it in STRUCTS.
"""

import re
import sys
from typing import Dict, Iterator, List, Tuple

STRUCTS = ("error", "target_options", "debugger", "target_info", "local", "frame", "thread", "stacks", "stack_options", "part", "parts",
           "parts_options", "tensor", "statistics_options", "statistics", "snapshot_options", "value", "row_options")

TYPES = {"bool": "c_bool", "char": "c_char", "int": "c_int", "unsigned": "c_uint", "double": "c_double", "size_t": "c_size_t",
         "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64", "pid_t": "c_int",
         "prb_addr": "c_uint64", "enum": "c_int"}

FUNCTION = re.compile(r"(.*)\(\*(\w+)\)\((.*)\)$")
DECLARATOR = re.compile(r"(\W*)(\w+)(?:\[(\w+)\])?$")


def class_name(struct: str) -> str:
    """prb_stack_options is StackOptions."""
    return "".join(word.capitalize() for word in struct.split("_"))


def ctypes_of(words: str, stars: int) -> str:
    """The ctypes name of a C type with so many stars."""
    base = [word for word in words.split() if word not in ("const", "struct")]
    if stars and base == ["void"]:
        return "c.c_void_p"
    if stars and base == ["char"]:
        name, stars = "c.c_char_p", stars - 1
    elif base[0] in TYPES:
        name = "c." + TYPES[base[0]]
    else:
        name = class_name(base[0][len("prb_"):])
    for _ in range(stars):
        name = "c.POINTER({})".format(name)
    return name


def declared(declaration: str) -> Iterator[Tuple[str, str, str]]:
    """(name, ctypes name, array size or "") of each name in a declaration such as `const char *name, *comm`."""
    words = re.match(r"(?:const\s+)?(?:struct\s+|enum\s+)?\w+(?:\s+const\b)?", declaration)
    assert words, declaration
    for part in declaration[words.end():].replace("const", " ").split(","):
        found = DECLARATOR.match(part.replace(" ", ""))
        assert found, declaration
        yield found.group(2), ctypes_of(words.group(), found.group(1).count("*")), found.group(3) or ""


def with_lengths(members: List[Tuple[str, str]]) -> List[Tuple[str, str]]:
    """A string with its length beside it may hold NULs, so it remains an address."""
    following = members[1:] + [("", "")]
    return [(name, "c.c_void_p" if kind == "c.c_char_p" and after == "length" else kind)
            for (name, kind), (after, _) in zip(members, following)]


def members_of(body: str, numbers: Dict[str, str]) -> Tuple[List[Tuple[str, str]], List[str]]:
    """The members of a struct, and the types of those that are functions."""
    members, callbacks = [], []
    for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        function = FUNCTION.match(declaration)
        if function:
            result, name, arguments = function.groups()
            kinds = with_lengths([one[:2] for part in arguments.split(",") for one in declared(part.strip())])
            callbacks.append("{} = c.CFUNCTYPE({})".format(
                name.upper(), ", ".join([ctypes_of(result, 0)] + [kind for _, kind in kinds])))
            members.append((name, name.upper()))
            continue
        for name, kind, size in declared(declaration):
            members.append((name, "{} * {}".format(kind, numbers.get(size, size)) if size else kind))
    return with_lengths(members), callbacks


def mirror(headers: List[str]) -> str:
    """The text of structs.py."""
    text = "\n".join(headers)
    numbers = dict(re.findall(r"^#define (\w+) (\d+)\b", text, re.MULTILINE))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    out = ['"""Made from the public headers by mirror.py; do not edit."""', "", "import ctypes as c"]
    for struct in STRUCTS:
        body = re.search(r"^struct prb_%s \{(.*?)^\};" % struct, text, re.MULTILINE | re.DOTALL)
        assert body, "the headers have no struct prb_" + struct
        members, callbacks = members_of(body.group(1), numbers)
        out += (["", ""] + callbacks if callbacks else []) + ["", "", "class {}(c.Structure):".format(class_name(struct)), "    _fields_ = ["]
        out += ['        ("{}", {}),'.format(*member) for member in members] + ["    ]"]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    read = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as header:
            read.append(header.read())
    sys.stdout.write(mirror(read))
