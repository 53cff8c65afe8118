"""tests/aarch64.sh on a machine that lacks some of what it needs: it installs just that, or says what is missing."""

import os
import shutil
import subprocess

import pytest

SCRIPT = os.path.join(os.path.abspath(os.environ["SRCDIR"]), "tests", "aarch64.sh")
# What every system has; of the rest there is what a test puts beside them.
COMMON = ("sh", "dirname", "mkdir", "sed", "tr", "grep", "rm", "touch")
WANTED = {"mmdebstrap": "mmdebstrap", "cpio": "cpio", "depmod": "kmod", "mke2fs": "e2fsprogs"}


def machine(folder, commands):
    """A PATH of a machine with these commands, on which apt-get tells what it is asked for and fails."""
    place = folder / "bin"
    place.mkdir()
    for name in COMMON:
        (place / name).symlink_to(shutil.which(name))
    written = {name: "exit 1" for name in commands}
    written.update({"id": "echo 0", "apt-get": 'echo "$@" >>{}; exit 1'.format(folder / "asked")})
    for name, script in written.items():
        (place / name).write_text("#!/bin/sh\n{}\n".format(script))
        (place / name).chmod(0o755)
    return str(place)


@pytest.mark.parametrize("missing", WANTED)
def test_a_missing_command_is_installed(tmp_path, missing):
    path = machine(tmp_path, set(WANTED) - {missing})
    done = subprocess.run([SCRIPT, str(tmp_path / "machine"), "root"], env={"PATH": path, "ARCHIVE": "file:///none"}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stdout) == (77, "aarch64: needs {}\n".format(WANTED[missing]))
    assert (tmp_path / "asked").read_text().split()[-1] == WANTED[missing]
