"""This tree on other systems, built without a warning and tested there: PROBING_SYSTEMS="bullseye trixie noble", PROBING_ROOTS=FOLDER for the roots.

ARCHIVE is another archive than this machine's, or Ubuntu's own.  What came out stands in tests/SYSTEMS.md.
"""

import os
import subprocess

import pytest

SRCDIR = os.path.abspath(os.environ["SRCDIR"])
ROOTS = os.environ.get("PROBING_ROOTS", "")
LONGEST = 3600

if not ROOTS:
    pytest.skip("PROBING_SYSTEMS=SUITES PROBING_ROOTS=FOLDER", allow_module_level=True)


@pytest.mark.parametrize("suite", os.environ.get("PROBING_SYSTEMS", "").split())
def test_system(suite):
    done = subprocess.run([os.path.join(SRCDIR, "tests", "systems.sh"), suite, os.path.join(ROOTS, suite), "short"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=LONGEST)
    if done.returncode == 77:
        pytest.skip(done.stdout.splitlines()[-1])
    print(done.stdout)
    assert done.returncode == 0, done.stdout
