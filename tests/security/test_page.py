"""Hostile targets of a root-run `inject`: what they write to the page that both share, and where they lead the library."""

import os
import pty
import shutil
import subprocess
import time

import pytest

import parties
from support import pythons
from support.injection import wait_until

CORRUPT, TIMEOUT = 8, 13
LIMIT_S = 60  # nothing that a target does holds the tool; on a busy machine it takes some seconds
SECRET = "nobody but root writes here\n" * 5
COVER = 'mount -t tmpfs none "$1" && shift && exec setpriv --reuid {0} --regid {0} --clear-groups "$@"'.format(parties.U)


@pytest.fixture
def open_folder(tmp_path_factory):
    """A folder that everybody may enter."""
    folder = tmp_path_factory.mktemp("open")
    folder.chmod(0o755)
    folder.parent.chmod(0o755)
    return folder


@pytest.fixture
def liar(users, installed, spawn, namespaces, open_folder):
    """liar(*words, carried=False): as the first user; carried: in its mount namespace the library is not to be seen."""
    program = str(open_folder / "liar")
    built = os.path.join(parties.BUILD, "tests", "targets", "liar")
    shutil.copy(built, program)
    os.chmod(program, 0o755)

    def start(*words, carried=False, **options):
        if not carried:
            return spawn([program, *words], user=users[0], **options)
        return spawn([*namespaces("--mount"), "sh", "-c", COVER, "sh", installed.folder, program, *words], **options)

    return start


def inject(installed, job):
    began = time.monotonic()
    done = installed.run("-t", job.pid, "inject", "--force")
    done.seconds = time.monotonic() - began
    return done


@pytest.fixture
def protected(open_folder):
    file = open_folder / "protected"
    file.write_text(SECRET)
    file.chmod(0o600)
    return file


def lies(installed, times, start, limit=LIMIT_S):
    """Runs of the tool in which start()'s target came to lie, each ended within `limit` seconds."""
    for _ in range(20):
        job = start()
        done = inject(installed, job)
        job.kill()
        if "lied" in job.stdout.read():
            assert done.seconds < limit and done.returncode not in (-11, -7), (done.returncode, done.stderr, done.seconds)
            yield done
            times -= 1
        if not times:
            return
    raise AssertionError("it never came to lie")


@pytest.mark.parametrize("carried", [False, True], ids=["seen", "carried"])
def test_descriptor_of_a_protected_file(liar, installed, protected, carried):
    """O_PATH needs no right to a file: the tool must not write to it with its own."""
    for _ in lies(installed, 1 if carried else 3, lambda: liar("progress", "2", protected, carried=carried)):
        assert protected.read_text() == SECRET


@pytest.mark.parametrize("number", [0, 1, 4, 5, 7, 77, 2**32 - 1])
def test_what_the_page_may_say(liar, installed, number):
    """Nothing that a target says there holds the tool, or makes it end by a signal."""
    for done in lies(installed, 1, lambda: liar("progress", number, carried=True)):
        assert done.returncode in (0, CORRUPT, TIMEOUT) or done.stderr


def test_descriptor_of_a_file_of_its_own(liar, installed, open_folder):
    """What is not fresh memory is not written to: it may be anybody's mapped code by now."""
    folder = open_folder / "own"
    folder.mkdir()
    folder.chmod(0o777)
    for _ in lies(installed, 1, lambda: liar("descriptor", folder / "file", carried=True)):
        assert (folder / "file").stat().st_size == 0


def test_descriptor_of_the_terminal(liar, installed):
    master, slave = pty.openpty()
    try:
        for _ in lies(installed, 1, lambda: liar("descriptor", "-", carried=True, stdin=slave)):
            os.set_blocking(master, False)
            with pytest.raises(BlockingIOError):
                os.read(master, 100)
    finally:
        os.close(slave)
        os.close(master)


# ---- where files are made ----

ROOT = """
set -e
mount -t tmpfs none "$1"; cd "$1"
mkdir -p usr proc dev tmp
chmod 1777 tmp
for name in lib lib64 bin; do [ -L /$name ] && cp -P /$name . || { mkdir $name; mount --bind /$name $name; }; done
mount --bind /usr usr
mount -t proc none proc
ln -s "$2" dev/shm
cp "$3" liar
exec chroot --userspec=USER:USER . /liar idle
""".replace("USER", str(parties.U))


def test_a_link_that_leads_out_of_the_root(liar, installed, spawn, namespaces, open_folder):
    """In the target's root /dev/shm is a link to a path, which is a folder of this machine, too."""
    outside, root = open_folder / "outside", open_folder / "root"
    outside.mkdir()
    outside.chmod(0o777)
    root.mkdir()
    liar("idle")
    job = spawn([*namespaces("--mount"), "sh", "-c", ROOT, "sh", root, outside, open_folder / "liar"])
    made = outside.stat().st_mtime_ns
    done = inject(installed, job)
    assert outside.stat().st_mtime_ns == made and not list(outside.iterdir())
    assert done.returncode != 0  # it has no descriptor left, to open the library with
    assert subprocess.run(["ls", "-A", "/proc/{}/root/tmp".format(job.pid)], stdout=subprocess.PIPE).stdout == b""


def test_a_folder_that_its_user_may_not_write(liar, installed, spawn, namespaces, open_folder):
    """A user may put another folder in the place of /tmp, in a mount namespace of his own: his rights there are all we have."""
    theirs = open_folder / "theirs"
    theirs.mkdir()
    theirs.chmod(0o755)
    liar("idle")
    cover = 'for at in /dev/shm /tmp /var/tmp; do mount --bind "$1" $at; done; shift; ' \
            'exec setpriv --reuid {0} --regid {0} --clear-groups "$@"'.format(parties.U)
    (theirs / "liar").write_bytes((open_folder / "liar").read_bytes())
    (theirs / "liar").chmod(0o755)
    job = spawn([*namespaces("--mount"), "sh", "-c", cover, "sh", theirs, "/tmp/liar", "idle"])
    made = theirs.stat().st_mtime_ns
    done = inject(installed, job)
    assert theirs.stat().st_mtime_ns == made and done.returncode != 0, done.stderr


def test_nothing_stays_of_a_target_that_dies(liar, installed):
    """The library was made in its /dev/shm, and it died before it was loaded."""
    before = set(os.listdir("/dev/shm"))
    for _ in range(3):
        job = liar("die", carried=True)
        done = inject(installed, job)
        assert done.returncode != 0 and job.wait(parties.DEADLINE) == -9, done.stderr
    found = [name for name in set(os.listdir("/dev/shm")) - before if name.startswith(".probing-")]
    # Those that other tools make meanwhile do not stay.
    wait_until(lambda: not [name for name in found if os.path.lexists("/dev/shm/" + name)])


# ---- PEP 768: the script that the target runs for us answers in a file ----

SWAPS = """
import os, sys, threading, time
main, how = threading.main_thread(), sys.argv[1]
def swap():
    while True:
        for folder in ("/dev/shm", "/tmp", "/var/tmp"):
            for name in os.listdir(folder) if os.path.isdir(folder) else []:
                if name.startswith(".probing-") and name.endswith(".answer"):
                    path = os.path.join(folder, name)
                    os.unlink(path)
                    os.mkfifo(path) if how == "pipe" else os.symlink(sys.argv[2], path)
                    print("lied", flush=True)
                    return
threading.Thread(target=swap, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["pipe", "link"])
def test_answer_of_the_target(users, installed, spawn, how):
    """A pipe in its place holds nobody, and a link in its place is not followed."""
    found = [python for python in pythons.found() if python.minor >= (3, 14) and python.how == "root"]
    if not found:
        pytest.skip("no CPython 3.14 with a root of its own")
    secret = "prb-secret-{}".format(os.getpid())
    path = os.path.join(found[0].root, "tmp", secret)
    with open(path, "w") as file:
        file.write("the words of somebody else")
    os.chmod(path, 0o600)
    try:
        job = spawn(["chroot", "--userspec={0}:{0}".format(users[0]), found[0].root, found[0].executable, "-c", SWAPS, how, secret])
        began = time.monotonic()
        done = installed.run("-t", job.pid, "inject", "--method", "remote-exec")
        assert job.stdout.readline() == "lied\n"
        assert done.returncode != 0 and time.monotonic() - began < LIMIT_S
        assert "somebody else" not in done.stderr and "native code" in done.stderr, done.stderr
    finally:
        os.unlink(path)
