#!/usr/bin/env python3
"""Print patches.def: how every release of CPython differs from the 3.N.def of its minor version.

    mk-patches.py CLONE PYCONFIGS > patches.def

CLONE is a git clone of CPython with its release tags.  PYCONFIGS is a folder of pyconfig.h files, one 3.N.h for each
minor version (what configure made on 64-bit Linux).
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = """\
/*
 * Releases whose fields stand elsewhere than in 3.N.def: PATCH(layout, first, last, struct, field, bytes), releases first
 * to last.  Printed by mk-patches.py from the headers of every release tag {0} to {1}; what is not here did not move.
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


def measured_patch(layout):
    with open(os.path.join(HERE, layout + ".def")) as lines:
        return int(re.search(r"LAYOUT_BEGIN\([^)]*, (\d+), \w+\)", lines.read()).group(1))


def release_tags(clone):
    names = subprocess.run(["git", "-C", clone, "tag"], check=True, capture_output=True, text=True).stdout.split()
    versions = [tuple(map(int, match.groups())) for match in map(re.compile(r"v(\d+)\.(\d+)\.(\d+)$").match, names) if match]
    return sorted(version for version in versions if (3, 4) <= version[:2])


def layout_of(clone, pyconfigs, version, free_threaded, work):
    """The fields of a release, from its tag's headers."""
    minor = "%d.%d" % version[:2]
    root = os.path.join(work, "%d.%d.%d" % version)
    if not os.path.isdir(root):
        os.mkdir(root)
        archive = subprocess.run(["git", "-C", clone, "archive", "v%d.%d.%d" % version, "Include"], capture_output=True)
        subprocess.run(["tar", "x", "-C", root], input=archive.stdout, check=True)
        with open(os.path.join(pyconfigs, minor + ".h")) as source, \
                open(os.path.join(root, "Include", "pyconfig.h"), "w") as target:
            target.write(source.read())
    include = os.path.join(root, "Include") + (",t" if free_threaded else "")
    subprocess.run(["sh", os.path.join(HERE, "mk-layouts.sh"), root, include], check=True)
    return read_def(os.path.join(root, minor + ("t" if free_threaded else "") + ".def"))


def patches_of(layout, releases):
    """Rows (layout, first, last, struct, field, offset) of the runs of releases that differ from their 3.N.def."""
    ours = read_def(os.path.join(HERE, layout + ".def"))
    newest = releases[-1][0]
    later = newest if newest < measured_patch(layout) else 255  # what the newest release has, later ones have
    rows = []
    for key, expected in ours.items():
        run = None
        for patch, fields in releases:
            offset = fields[key]
            if run and (run[1], offset) == (patch - 1, run[2]):
                run[1] = patch
            elif offset != expected:
                run = [patch, patch, offset]
                rows.append((key, run))
            else:
                run = None
    for (struct, field), (_, _, offset) in rows:
        if offset is None:
            raise SystemExit(f"{layout}: {struct}.{field} is absent in some release")
    return [(layout, first, later if last == newest else last, struct, field, offset)
            for (struct, field), (first, last, offset) in rows]


def main(clone, pyconfigs):
    tags = release_tags(clone)
    print(HEADER.format("%d.%d.%d" % tags[0], "%d.%d.%d" % tags[-1]), end="")
    with tempfile.TemporaryDirectory() as work:
        for major, minor in sorted({tag[:2] for tag in tags}):
            for free_threaded in (False, True) if minor >= 13 else (False,):
                layout = "%d.%d%s" % (major, minor, "t" if free_threaded else "")
                releases = [(tag[2], layout_of(clone, pyconfigs, tag, free_threaded, work))
                            for tag in tags if tag[:2] == (major, minor)]
                for row in patches_of(layout, releases):
                    print('PATCH("%s", %d, %d, %s, %s, %d)' % row)


if __name__ == "__main__":
    main(*sys.argv[1:])
