#!/usr/bin/env python3
"""Print patches.def: how every release of CPython differs from the 3.N.def of its minor version.

    mk-patches.py [--aarch64] CLONE PYCONFIGS [INCLUDE...] > patches.def

CLONE is a git clone of CPython with its release tags.  PYCONFIGS is a folder of pyconfig.h files, one 3.N.h for each
minor version (what configure made on 64-bit Linux).  INCLUDE: the headers of releases that the clone has not.
--aarch64 prints patches-aarch64.def: the same for that processor, against the same 3.N.def.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = """\
/*
 * Releases whose fields stand elsewhere than in 3.N.def, on {processor}:
 * PATCH(layout, first release, last release, struct, field, bytes).
 * Printed by mk-patches.py from the headers of every release tag {first} to {last}{others}.
 * What is not here did not move.  Do not edit.
 */
"""


def read_def(path):
    """{(struct, field): offset or None} of a 3.N.def."""
    fields = {}
    with open(path) as lines:
        for line in lines:
            match = re.match(r"(?:OFFSET\((\w+), (\w+), (-?\d+)\)|ABSENT\((\w+), (\w+)\))", line)
            if match:
                struct, field, offset, absent_struct, absent_field = match.groups()
                fields[struct or absent_struct, field or absent_field] = None if offset is None else int(offset)
    return fields


def release_tags(clone):
    names = subprocess.run(["git", "-C", clone, "tag"], check=True, capture_output=True, text=True).stdout.split()
    versions = [tuple(map(int, match.groups())) for match in map(re.compile(r"v(\d+)\.(\d+)\.(\d+)$").match, names) if match]
    return sorted(version for version in versions if (3, 4) <= version[:2])


def headers_of_tag(clone, pyconfigs, version, work):
    """The folder of a release's headers, from its tag."""
    root = os.path.join(work, "%d.%d.%d" % version)
    os.mkdir(root)
    archive = subprocess.run(["git", "-C", clone, "archive", "v%d.%d.%d" % version, "Include"], capture_output=True)
    subprocess.run(["tar", "x", "-C", root], input=archive.stdout, check=True)
    shutil.copy(os.path.join(pyconfigs, "%d.%d.h" % version[:2]), os.path.join(root, "Include", "pyconfig.h"))
    return os.path.join(root, "Include")


def version_of(include):
    with open(os.path.join(include, "patchlevel.h")) as text:
        words = dict(re.findall(r"define PY_(MAJOR|MINOR|MICRO)_VERSION\s+(\d+)", text.read()))
    return int(words["MAJOR"]), int(words["MINOR"]), int(words["MICRO"])


def layout_of(include, free_threaded, processor):
    """The fields that the headers of a release give."""
    environment = dict(os.environ)
    if processor == "AArch64":
        environment["LAYOUT_CPPFLAGS"] = "-include " + os.path.join(HERE, "mk", "aarch64.h")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["sh", os.path.join(HERE, "mk-layouts.sh"), out, include + (",t" if free_threaded else "")],
                       check=True, stdout=subprocess.DEVNULL, env=environment)
        (name,) = os.listdir(out)
        return read_def(os.path.join(out, name))


def patches_of(layout, releases):
    """Rows (layout, first, last, struct, field, offset) of the runs of releases that differ from their 3.N.def."""
    ours = read_def(os.path.join(HERE, layout + ".def"))
    rows = []
    for key, expected in ours.items():
        # first, last, offset; releases that are not listed count with the one before them, the first ones with the first
        run = None
        for i, (patch, fields) in enumerate(releases):
            until = releases[i + 1][0] - 1 if i + 1 < len(releases) else 255
            offset = fields[key]
            if offset is None and expected is not None:
                raise SystemExit("%s.%d: %s.%s is absent" % (layout, patch, *key))
            if offset == expected:
                run = None
            elif run and run[2] == offset:
                run[1] = until
            else:
                run = [patch if i else 0, until, offset]
                rows.append((key, run))
    return [(layout, *run[:2], *key, run[2]) for key, run in rows]


def main(processor, clone, pyconfigs, *includes):
    tags = release_tags(clone)
    with tempfile.TemporaryDirectory() as work:
        headers = {tag: headers_of_tag(clone, pyconfigs, tag, work) for tag in tags}
        more = {version_of(include): include for include in includes}
        others = "".join(", %d.%d.%d" % version for version in sorted(more))
        print(HEADER.format(processor=processor, first="%d.%d.%d" % tags[0], last="%d.%d.%d" % tags[-1], others=others),
              end="")
        headers.update(more)
        for major, minor in sorted({version[:2] for version in headers}):
            for free_threaded in (False, True) if minor >= 13 else (False,):
                layout = "%d.%d%s" % (major, minor, "t" if free_threaded else "")
                releases = [(version[2], layout_of(headers[version], free_threaded, processor))
                            for version in sorted(headers) if version[:2] == (major, minor)]
                for row in patches_of(layout, releases):
                    print('PATCH("%s", %d, %d, %s, %s, %d)' % row)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--aarch64"]:
        main("AArch64", *arguments[1:])
    else:
        main("x86-64", *arguments)
