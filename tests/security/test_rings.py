"""Tables that an ended process left: nobody slips in his own for another's."""

import json
import os
import shutil
import subprocess

import pytest

import parties

NOT_FOUND = 3
PLACE = "/dev/shm"


def ended_pid():
    with subprocess.Popen(["true"]) as child:
        child.wait()
    return child.pid


@pytest.fixture
def users(users):
    """Two who have nothing else on this machine: a probe in a process of another test would make, and remove, the same folder."""
    return 23456, 23457


@pytest.fixture
def leave(users):
    """leave(name, owner, folder, value): a table t with that value below /dev/shm/NAME, of that owner."""
    made = []

    def write(name, owner, folder, value, place=PLACE):
        data = os.path.join(place, name)
        if not os.path.exists(data):
            os.mkdir(data, 0o700)
            made.append(data)
        path = os.path.join(data, folder)
        os.mkdir(path, 0o700)
        made.append(path)
        writer = os.path.join(parties.BUILD, "tests", "live", "ring_write")
        subprocess.run([writer, path, "t", "a:real"], input="{}\n".format(value), stdout=subprocess.DEVNULL, encoding="utf-8", check=True)
        for entry in os.listdir(path):
            os.chown(os.path.join(path, entry), owner, owner)
        os.chown(path, owner, owner)
        os.chown(data, owner, owner)
        return path

    yield write
    for path in reversed(made):
        shutil.rmtree(path, ignore_errors=True)


def rows(installed, spec, user=None):
    done = installed.run("-t", spec, "query", "-f", "json", "SELECT a FROM python.t", user=user)
    return done.returncode, [row["a"] for row in json.loads(done.stdout)] if done.stdout else [], done.stderr


def name_of(user):
    return "probing-{}".format(user)


def test_ones_own(users, installed, leave):
    pid = ended_pid()
    leave(name_of(users[0]), users[0], "{}-5".format(pid), 0.25)
    leave(name_of(users[0]), users[0], "{}-7".format(pid), 0.5)
    assert rows(installed, pid, users[0]) == (0, [0.5], "")


def test_of_another_user(users, installed, leave):
    """V's folder is newer, and bears the pid of U's process."""
    pid = ended_pid()
    leave(name_of(users[0]), users[0], "{}-5".format(pid), 0.5)
    made_up = leave(name_of(users[1]), users[1], "{}-9".format(pid), 99.9)
    os.chmod(made_up, 0o755)
    os.chmod(os.path.dirname(made_up), 0o755)
    assert rows(installed, pid, users[0]) == (0, [0.5], "")
    status, found, said = rows(installed, pid)
    assert status == NOT_FOUND and not found
    assert all("of user {}".format(user) in said for user in users), said


def test_root_hears_whose(users, installed, leave):
    pid = ended_pid()
    leave(name_of(users[0]), users[0], "{}-5".format(pid), 0.5)
    status, found, said = rows(installed, pid)
    assert (status, found) == (0, [0.5]) and "left by user {}".format(users[0]) in said


@pytest.mark.parametrize("name", ["of U", "of nobody", "of a namespace"])
def test_a_name_that_is_anothers(users, installed, leave, name):
    """V owns what is called U's; neither U nor root take it."""
    pid = ended_pid()
    name = {"of U": name_of(users[0]), "of nobody": name_of(54321), "of a namespace": name_of(0) + "-4026531837"}[name]
    leave(name, users[1], "{}-9".format(pid), 99.9)
    for user in (users[0], None):
        assert rows(installed, pid, user)[:2] == (NOT_FOUND, [])


def test_a_start_to_come(users, installed, leave):
    pid = ended_pid()
    leave(name_of(users[0]), users[0], "{}-5".format(pid), 0.5)
    leave(name_of(users[0]), users[0], "{}-9999999999".format(pid), 99.9)
    assert rows(installed, pid)[1] == [0.5]


def test_a_folder_that_all_may_write(users, installed, leave):
    pid = ended_pid()
    path = leave(name_of(users[0]), users[0], "{}-5".format(pid), 0.5)
    os.chmod(os.path.dirname(path), 0o777)
    assert rows(installed, pid, users[0])[0] == NOT_FOUND


CHROOTED = "import os, sys; os.chroot(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("inside", [True, False])
def test_links_in_the_root_of_a_live_process(users, installed, python, spawn, leave, tmp_path, inside):
    """Its /dev/shm is a link, whose target is looked for below that root and nowhere else."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "dev" / "shm").symlink_to("/real" if inside else tmp_path / "real")
    job = spawn([python, "-c", CHROOTED, tmp_path])
    with open("/proc/{}/stat".format(job.pid)) as stat:
        start = stat.read().rsplit(")", 1)[1].split()[19]
    leave(name_of(0), 0, "{}-{}".format(job.pid, start), 0.5, place=str(tmp_path / "real"))
    assert rows(installed, job.pid)[1] == ([0.5] if inside else [])
