"""Crash dumps where another user was in the folder before, or a part of ours is not what it was."""

import glob
import os
import shutil
import signal
import stat
import subprocess

import pytest

import parties

CRASHES = """
import ctypes, os, sys
print("ready", flush=True)
sys.stdin.readline()
{}
ctypes.string_at(8)
"""
USER_NAMESPACE = os.stat("/proc/self/ns/user").st_ino
PLACES = ("/tmp/probing-{0}", "/tmp/probing-{0}-{1}", "/var/tmp/probing-{0}")


@pytest.fixture
def own_tmp(users, namespaces, tmp_path):
    """A mount namespace with /tmp and /var/tmp of its own, in which the words behind run; and where /tmp and /var/tmp lie here."""
    made = []
    for name in ("tmp", "var"):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(0o1777)
        made.append(str(folder))
    for above in tmp_path.parents:
        if not os.stat(str(above)).st_mode & 0o001:
            os.chmod(str(above), 0o755)
    tmp_path.chmod(0o755)
    return namespaces("--mount"), made


class Victim:
    """A process of U's whose crash is to be dumped by the defaults, in a /tmp of its own."""

    def __init__(self, spawn, installed, python, own_tmp, before="", **settings):
        words, (tmp, var) = own_tmp
        shutil.copytree(installed.folder, os.path.join(tmp, "installed"), dirs_exist_ok=True)
        self.places = [os.path.join(var if place.startswith("/var") else tmp, os.path.basename(place.format(parties.U, USER_NAMESPACE)))
                       for place in PLACES]
        mounts = "mount --bind \"$1\" /var/tmp && mount --rbind \"$0\" /tmp && shift && exec \"$@\""
        self.become = ["setpriv", "--clear-groups", "--regid={}".format(parties.U), "--reuid={}".format(parties.U)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LD_PRELOAD": "/tmp/installed/libprobe.so", "LD_LIBRARY_PATH": "/tmp/installed",
                       "PROBE": "1", "PROBING_CRASH": "1", "XDG_RUNTIME_DIR": "/tmp/run", "PROBING_CRASH_WAIT": "60",
                       **settings}
        os.mkdir(os.path.join(tmp, "run"), 0o700)
        os.chown(os.path.join(tmp, "run"), parties.U, parties.U)
        self.command = [*words, "sh", "-c", mounts, tmp, var, *self.become, "env", *("{}={}".format(*one) for one in environment.items()),
                        python, "-c", CRASHES.format(before)]
        self.spawn = spawn

    def squat(self, *which, how=None):
        for place in which:
            path = self.places[place]
            if how == "link":
                os.symlink("/tmp", path)
            else:
                os.mkdir(path, 0o777)
                os.chmod(path, 0o777)
                os.mkdir(os.path.join(path, "crash"), 0o777)
                os.chmod(os.path.join(path, "crash"), 0o777)
                os.chown(path, parties.V, parties.V)
                os.chown(os.path.join(path, "crash"), parties.V, parties.V)

    def crash(self):
        """What it left: the files of each place; a dump's text beside it does not count."""
        process = self.spawn(self.command, stderr=subprocess.PIPE)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(parties.DEADLINE) == -signal.SIGSEGV
        self.told = process.stderr.read()
        left = [sorted(glob.glob(os.path.join(place, "crash", "*"))) for place in self.places]
        return [[os.path.basename(path) for path in files if path.endswith(".snap") or path[:-4] + ".snap" not in files] for files in left]


@pytest.mark.parametrize("program", ["", "/bin/false"], ids=["a dump", "a text"])
@pytest.mark.parametrize("taken, how", [((), None), ((0,), None), ((0, 1), None), ((0,), "link"), ((0, 1), "link")], ids=str)
def test_who_comes_first_takes_no_dump_away(spawn, installed, python, own_tmp, program, taken, how):
    victim = Victim(spawn, installed, python, own_tmp, **({"PROBING_CRASH_PROGRAM": program, "PROBING_CRASH_WAIT": "0.5"} if program else {}))
    victim.squat(*taken, how=how)
    left = victim.crash()
    expected = len(taken)
    assert [len(files) for files in left] == [int(place == expected) for place in range(3)], victim.told
    assert left[expected][0].endswith(".txt" if program else ".snap")
    folder = os.stat(os.path.join(victim.places[expected], "crash"))
    assert (folder.st_uid, stat.S_IMODE(folder.st_mode)) == (parties.U, 0o700)


def test_nothing_is_written_where_all_is_taken(spawn, installed, python, own_tmp):
    victim = Victim(spawn, installed, python, own_tmp)
    victim.squat(0, 1, 2)
    assert victim.crash() == [[], [], []]
    assert "is not a folder that only this user can enter" in victim.told and "nothing can be written" in victim.told


# A program that closes all that it does not know, and opens its own: no text of ours goes into them.
CLOSES = """
sys.stdin = sys.stdout = None
os.closerange(3, 256)
kept = [os.open("/tmp/own-%d" % i, os.O_RDWR | os.O_CREAT, 0o600) for i in range(40)]
"""
FORKS = """
if os.fork():
    os.wait()
    os.kill(os.getpid(), 11)
"""


@pytest.mark.parametrize("program", ["", "/bin/false"], ids=["a dump", "a text"])
def test_descriptors_that_the_program_closed(spawn, installed, python, own_tmp, program):
    victim = Victim(spawn, installed, python, own_tmp, before=CLOSES, **({"PROBING_CRASH_PROGRAM": program} if program else {}))
    assert len(victim.crash()[0]) == 1
    own = glob.glob(os.path.join(own_tmp[1][0], "own-*"))
    assert len(own) == 40 and not any(os.path.getsize(path) for path in own)


def test_a_child_leaves_its_own(spawn, installed, python, own_tmp):
    victim = Victim(spawn, installed, python, own_tmp, before=FORKS, PROBING_CRASH_PROGRAM="/bin/false", PROBING_CRASH_WAIT="0.5")
    assert len(victim.crash()[0]) == 2, victim.told


def test_a_folder_named_probing_is_no_program(spawn, installed, python, own_tmp):
    """Beside the library there is none; on PATH there is a folder of that name first."""
    words, (tmp, _) = own_tmp
    os.makedirs(os.path.join(tmp, "first", "probing"))
    os.makedirs(os.path.join(tmp, "second"))
    os.makedirs(os.path.join(tmp, "alone"))
    for name in ("probing", "libprobing.so.0"):
        shutil.copy(os.path.join(installed.folder, name), os.path.join(tmp, "second"))
    shutil.copy(os.path.join(installed.folder, "libprobe.so"), os.path.join(tmp, "alone"))
    victim = Victim(spawn, installed, python, own_tmp, LD_PRELOAD="/tmp/alone/libprobe.so", PATH="/tmp/first:/tmp/second:/usr/bin:/bin")
    ((dump,), _, _) = victim.crash()
    assert dump.endswith(".snap"), victim.told


def test_a_full_disk_leaves_no_empty_text(spawn, installed, python, own_tmp):
    small = os.path.join(own_tmp[1][0], "small")
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=1777", "none", small], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        dumps = os.path.join(small, "dumps")
        os.mkdir(dumps)
        os.chown(dumps, parties.U, parties.U)
        with open(os.path.join(small, "full"), "wb", 0) as file:
            with pytest.raises(OSError):
                while True:
                    file.write(b"x" * 4096)
        victim = Victim(spawn, installed, python, own_tmp, PROBING_CRASH_DIR="/tmp/small/dumps")
        victim.crash()
        assert os.listdir(dumps) == []
        assert "nothing can be written to" in victim.told and "no space left" in victim.told
    finally:
        subprocess.run(["umount", small], check=True)
