"""Root's debugging server for a user's job lends its client the job's rights and nothing more: no file, no process of others."""

import os

import pytest

from debugger import Server, session

SECRET = "only-for-root-to-read"
SLEEP = """
import time
def innermost():
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
innermost()
"""
# A child with other ids than its parent, which it may tell by its pid.
PARENT = """
import ctypes, os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    libc = ctypes.CDLL(None)
    ids = list(map(int, sys.argv[2:]))
    if sys.argv[1] == "gid":
        libc.setresgid(*ids)
        libc.setresuid({user}, {user}, {user})
    else:
        libc.setresgid({user}, {user}, {user})
        libc.setresuid(*ids)
    os.write(write, b"x")
    while True:
        time.sleep(0.01)
os.read(read, 1)
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
print("ready", *open("/proc/self/task/{{}}/children".format(os.getpid())).read().split(), flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.fixture
def folder():
    """(path, a file in it that only root may read); anybody may look into it."""
    import shutil
    import tempfile

    path = tempfile.mkdtemp(prefix="prb-security-", dir="/tmp")
    os.chmod(path, 0o777)
    secret = os.path.join(path, "secret")
    with open(secret, "w") as file:
        file.write(SECRET)
    os.chmod(secret, 0o600)
    yield path, secret
    shutil.rmtree(path)


@pytest.fixture
def look(users, installed, python, spawn, folder):
    """look(path of a program or "", *options): (place of root's server, sources(*paths) as the job's user)."""

    def begin(program, *options):
        with open(program, "w") as file:
            file.write(SLEEP)
        os.chown(program, users[0], users[0])
        job = spawn([python, program], user=users[0])
        server = Server(spawn, installed, None, job.pid, options)

        def sources(*paths):
            return session(python, users[0], server.place, ["attach", {"look": True}], ["configurationDone", {}],
                           *[["source", {"source": {"path": path}, "sourceReference": 0}] for path in paths])[2:]

        return sources

    return begin


@pytest.mark.parametrize("options", [["--listen"], ["--snapshot"]])
def test_files_that_the_user_may_not_read(look, folder, options):
    path, secret = folder
    program = os.path.join(path, "program.py")
    answers = look(program, *options)(program, "/etc/shadow", secret, "/proc/self/environ", "/etc/passwd")
    assert answers[0]["content"] == SLEEP
    assert all(isinstance(one, str) for one in answers[1:]), answers


@pytest.mark.parametrize("what", ["link", "fifo", "/proc/self/root"])
def test_a_program_that_was_swapped(look, folder, what):
    """Its frames name it as before."""
    path, secret = folder
    program = os.path.join(path, "program.py")
    sources = look(program, "--snapshot")
    os.unlink(program)
    if what == "link":
        os.symlink(secret, program)
    elif what == "fifo":
        os.mkfifo(program, 0o666)
    else:
        os.symlink(what + secret, program)
    answer, = sources(program)
    assert isinstance(answer, str) and SECRET not in answer


def test_a_core_of_a_user(users, installed, python, spawn, folder):
    """Root looks at a user's snapshot whose frames name a file of root's."""
    path, secret = folder
    program = os.path.join(path, "program.py")
    with open(program, "w") as file:
        file.write(SLEEP)
    job = spawn([python, program], user=users[0])
    snapshot = os.path.join(path, "job.snap")
    assert installed.run("-t", job.pid, "snapshot", snapshot).returncode == 0
    os.chown(snapshot, users[0], users[0])
    server = spawn([installed.path, "debug", "--core", snapshot, "--address", "127.0.0.1:0"], wait_for="waiting for ",
                   env=installed.environment())
    place = ("127.0.0.1", int(server.line.rpartition(":")[2]))
    requests = [["attach", {}], ["configurationDone", {}],
                *[["source", {"source": {"path": one}, "sourceReference": 0}] for one in (program, "/etc/shadow")]]
    answers = session(python, None, place, *requests)[2:]
    assert answers[0]["content"] == SLEEP and isinstance(answers[1], str)
    os.unlink(program)
    os.symlink(secret, program)
    answers = session(python, None, place, *requests)[2:]
    assert isinstance(answers[0], str) and isinstance(answers[1], str)


@pytest.mark.parametrize("kind,ids", [("uid", (0, 0, 0)), ("uid", ("U", "U", 0)), ("uid", ("V", "V", "V")), ("uid", (0, "U", "U")),
                                      ("gid", ("U", "U", 0)), ("gid", ("V", "V", "V"))])
@pytest.mark.parametrize("look", [False, True], ids=["probe", "look"])
def test_a_child_with_other_ids(users, installed, python, spawn, kind, ids, look):
    """Also one whose saved id is root's, which could become root again."""
    names = {"U": users[0], "V": users[1]}
    words = [str(names.get(one, one)) for one in ids]
    job = spawn([python, "-c", PARENT.format(user=users[0]), kind, *words])
    child = int(job.line.split()[1])
    try:
        server = Server(spawn, installed, None, job.pid, ["--listen"])
        attach = {"processId": child, "look": look}
        answers = session(python, users[0], server.place, ["attach", attach], ["evaluate", {"expression": "1"}])
        assert isinstance(answers[0], str) and isinstance(answers[1], str), answers
        assert os.path.exists("/proc/{}".format(child))
    finally:
        os.kill(child, 9)


def test_a_child_of_the_same_user(users, installed, python, spawn):
    job = spawn([python, "-c", PARENT.format(user=users[0]), "uid", *[str(users[0])] * 3])
    child = int(job.line.split()[1])
    try:
        server = Server(spawn, installed, None, job.pid, ["--listen"])
        answers = session(python, users[0], server.place, ["attach", {"processId": child}])
        assert isinstance(answers[0], dict), answers
    finally:
        os.kill(child, 9)


def test_orphans_with_ranks(users, installed, python, spawn, namespaces):
    """Two users' processes that init has taken in are no ranks of one job."""
    orphan = "import os, sys\nif os.fork():\n    os._exit(0)\nos.setsid()\n" + SLEEP
    found = []
    try:
        for user in users:
            job = spawn([python, "-c", orphan.replace('"ready"', '"ready", os.getpid()')], user=user,
                        env=dict(installed.environment(), RANK=str(len(found)), WORLD_SIZE="2"))
            found.append(int(job.line.split()[1]))
        server = Server(spawn, installed, None, found[0], ["--listen"])
        answers = session(python, users[0], server.place, ["attach", {"processId": found[1]}])
        assert isinstance(answers[0], str), answers
    finally:
        for pid in found:
            os.kill(pid, 9)


def test_a_job_that_becomes_root(users, installed, python, spawn, folder):
    """Through a program with the set-user-id bit: the server lets nobody use its own rights on it."""
    import shutil

    shell = os.path.join(folder[0], "python")
    shutil.copy(os.path.realpath(python), shell)
    os.chmod(shell, 0o4755)
    home = os.path.dirname(os.path.dirname(os.path.realpath(python)))
    text = """
import os, sys, time
if len(sys.argv) == 1:
    print("ready", flush=True)
    sys.stdin.readline()
    os.execve({shell!r}, [{shell!r}, "-c", sys.orig_argv[-1] if hasattr(sys, "orig_argv") else open("/proc/self/cmdline").read().split(chr(0))[2], "again"], dict(os.environ, PYTHONHOME={home!r}))
print("again", os.geteuid(), flush=True)
while True:
    time.sleep(0.01)
""".format(shell=shell, home=home)
    job = spawn([python, "-c", text], user=users[0])
    server = Server(spawn, installed, None, job.pid, ["--listen"])
    job.stdin.write("\n")
    job.stdin.flush()
    again = job.stdout.readline().split()
    if again != ["again", "0"]:
        pytest.skip("no program may set its user here")
    for look in (False, True):
        answers = session(python, users[0], server.place, ["attach", {"look": look}], ["evaluate", {"expression": "1"}])
        assert isinstance(answers[0], str), answers
