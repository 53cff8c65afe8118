"""The target compiles nothing when a debugger attaches: its interpreter does, beside it, and what it made is kept.

That byte code was used is seen by a word in it that its source has not; nobody but the owner of the cache may put it there.
"""

import ctypes
import functools
import glob
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import pytest

from client import PROBING, Client, Stdio
from support import pythons
from support.target import DEADLINE, children, die_with_parent
from support.waits import until

CALL = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "dap", "bytecode_call")
HEAD = struct.Struct("<8sQQ4sI")  # mark, check, build, magic, length of the version
SLEEP = "import sys, time; print('ready', flush=True); time.sleep(1000)"
SAID = "there is no source 7"  # inject/probe/debug/agent/sources.py


def checked(blob):
    """With the check of bytecode_form.h of what is behind it."""
    value, prime, mask, data = 0xcbf29ce484222325, 0x100000001b3, (1 << 64) - 1, blob[16:]
    whole = len(data) // 8 * 8
    for word, in struct.iter_unpack("<Q", data[:whole]):
        value = (value ^ word) * prime & mask
        value ^= value >> 32
    for byte in data[whole:]:
        value = (value ^ byte) * prime & mask
    return blob[:8] + struct.pack("<Q", value) + blob[16:]


def changed(blob):
    """It says IS where the source says is."""
    assert b"there is no source" in blob
    return blob.replace(b"there is no source", b"there IS no source")


def files(cache):
    return glob.glob(os.path.join(str(cache), "probing", "*"))


def attach(pid, cache):
    """Attach, and what it says of a source that is none."""
    with Client(Stdio(PROBING, "dap", env=dict(os.environ, XDG_CACHE_HOME=str(cache)))) as session:
        session.attach(pid)
        return session.refused("source", {"sourceReference": 7})


def attach_until_kept(pid, cache):
    """What attach() says, once the byte code is kept: on a busy machine its maker may be given up before it has all of it."""
    def is_kept():
        said = attach(pid, cache)
        return said if files(cache) else None

    return until(is_kept)


@pytest.fixture
def child():
    """child(*words, **of Popen): a process that said ready."""
    made = []

    def begin(*words, **more):
        made.append(subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=more.pop("preexec_fn", die_with_parent), **more))
        assert made[-1].stdout.readline() == b"ready\n"
        return made[-1].pid

    yield begin
    for one in made:
        one.kill()
        one.wait(DEADLINE)
        one.stdout.close()


@pytest.fixture
def kept(child, any_python, tmp_path):
    """(a target, its cache folder, the one file in it): attached once."""
    pid = child(*any_python.command("-c", SLEEP))
    assert SAID in attach_until_kept(pid, tmp_path)
    (name,) = files(tmp_path)
    return pid, tmp_path, name


def made_for(pid):
    return subprocess.run([CALL, str(pid)], stdout=subprocess.PIPE, timeout=DEADLINE, check=True).stdout.decode().rstrip("\n")


def made_in_time(pid):
    """The same of an interpreter that makes it: on a busy machine it may take too long now and then."""
    def made():
        said = made_for(pid)
        return None if said == "none" else said

    return until(made)


def rewrite(name, function):
    with open(name, "rb") as file:
        blob = file.read()
    with open(name, "wb") as file:
        file.write(function(blob))


def test_it_is_kept_and_used(debuggee, python, tmp_path):
    program = debuggee(python)
    if python.root:
        assert SAID in attach(program.pid, tmp_path)
        assert not files(tmp_path), "what another root's interpreter made is kept for ours"
        return
    assert SAID in attach_until_kept(program.pid, tmp_path)
    (name,) = files(tmp_path)
    assert os.stat(name).st_mode & 0o777 == 0o600
    rewrite(name, lambda blob: checked(changed(blob)))
    assert SAID.replace("is", "IS") in attach(program.pid, tmp_path)
    assert files(tmp_path) == [name]


@pytest.mark.parametrize("spoil", [
    changed,
    lambda blob: blob[:-1],
    lambda blob: checked(changed(blob)[:-1]),
    lambda blob: checked(changed(blob) + b"\0"),
    lambda blob: checked(b"PRBCODE1" + changed(blob)[8:]),
    lambda blob: checked(changed(blob)[:16] + bytes(8) + blob[24:]),
    lambda blob: checked(changed(blob)[:24] + b"\1\2\r\n" + changed(blob)[28:]),
    lambda blob: checked(changed(blob)[:32] + b"9" + changed(blob)[33:]),
    lambda blob: checked(changed(blob)[:28] + b"\xff\xff\xff\xff" + changed(blob)[32:]),
    lambda blob: b"",
], ids=["check", "cut", "length", "longer", "mark", "build", "magic", "version", "version_length", "empty"])
def test_damaged(kept, spoil):
    """It is not used: the target compiles, or it is made anew."""
    pid, cache, name = kept
    rewrite(name, spoil)
    assert SAID in attach(pid, cache)


def give_away(path):
    os.chown(path, 65534, 65534)


def link(path):
    os.rename(path, path + "-elsewhere")
    os.symlink(path + "-elsewhere", path)


def make_fifo(path):
    os.unlink(path)
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("which", ["file", "folder"])
@pytest.mark.parametrize("spoil", [give_away, lambda path: os.chmod(path, 0o770), lambda path: os.chmod(path, 0o707), link],
                         ids=["owner", "group", "others", "link"])
def test_not_the_users_own(kept, spoil, which):
    if os.geteuid() != 0:
        pytest.skip("gives files to another user")
    pid, cache, name = kept
    rewrite(name, lambda blob: checked(changed(blob)))
    spoil(name if which == "file" else os.path.dirname(name))
    assert SAID in attach(pid, cache)


def test_a_cache_that_is_no_file(kept):
    pid, cache, name = kept
    make_fifo(name)
    assert SAID in attach(pid, cache)


def test_no_place_for_a_cache(child, any_python, tmp_path):
    pid = child(*any_python.command("-c", SLEEP))
    (tmp_path / "probing").write_text("no folder")
    assert SAID in attach(pid, tmp_path)
    assert (tmp_path / "probing").read_text() == "no folder"


def test_the_oldest_goes(kept):
    pid, cache, name = kept
    for number in range(40):
        other = os.path.join(os.path.dirname(name), "bytecode-{:016x}".format(number))
        with open(other, "w"):
            pass
        os.utime(other, (number, number))
    os.unlink(name)

    def is_there():
        assert SAID in attach(pid, cache)
        return name in files(cache)

    until(is_there)
    assert len(files(cache)) == 40
    assert not os.path.exists(os.path.join(os.path.dirname(name), "bytecode-{:016x}".format(0)))


def test_all_interpreters(start, python):
    """Made by each, its own version in it, also behind another root."""
    target = start(python, "steady.py") if not python.root else None
    if target is None:
        pytest.skip("see test_another_root")
    told = made_in_time(target.pid)
    assert told.startswith("made ") and ".".join(map(str, python.version)) in told and told.endswith(" ours")


def test_another_root(debuggee, python):
    if not python.root:
        pytest.skip("it is of our root")
    pid = debuggee(python).pid
    if python.container or os.geteuid() != 0:
        assert made_for(pid) == "none", "another namespace cannot be entered as a whole"
    else:
        told = made_in_time(pid)
        assert told.startswith("made ") and not told.endswith(" ours")


def system_python():
    return next((python for python in pythons.found() if not python.root and python.executable.startswith("/usr/")), None)


def as_stranger():
    die_with_parent()
    os.setgroups([65533])
    os.setgid(65534)
    os.setuid(65534)
    die_with_parent()  # setuid(2) took it back


def test_another_users(child, tmp_path):
    """Its interpreter runs with that user's rights, and what it made is for it alone."""
    if os.geteuid() != 0 or not system_python():
        pytest.skip("as root, with a Python that all may run")
    pid = child(system_python().executable, "-c", SLEEP, preexec_fn=as_stranger)
    told = made_in_time(pid)
    assert told.startswith("made ") and not told.endswith(" ours")
    assert SAID in attach(pid, tmp_path)
    assert not files(tmp_path)


@pytest.fixture
def pretender(child):
    """pretender(name, **of Popen): a program of that name that is no interpreter, and never ends."""
    real = os.path.join(os.path.dirname(CALL), ".libs", "bytecode_call")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are for one user
        os.chmod(folder, 0o755)
        yield functools.partial(pretend, child, real if os.path.exists(real) else CALL, folder)


def pretend(child, real, folder, name, **more):
    program = os.path.join(folder, name)
    shutil.copy(real, program)
    return child(program, "for", "ever", **more)


def processes_of(name):
    """Processes that run a program of that path."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [int(pid)] if os.readlink("/proc/{}/exe".format(pid)) == name else []
        except OSError:
            pass
    return found


def refused_at_once(pid):
    """Whether it is not waited for, which takes 3 s each time; a busy machine may take so long now and then."""
    for _ in range(10):
        began = time.monotonic()
        assert made_for(pid) == "none"
        if time.monotonic() - began < 2:
            return True
    return False


def test_a_program_that_is_no_python(pretender):
    """It is never executed: who knows what it would do."""
    for name in ("trainer", "python-train", "python3.11-config", "ipython3"):
        assert refused_at_once(pretender(name)), name


def test_an_interpreter_that_does_not_answer(pretender):
    pid = pretender("python3")
    name = os.readlink("/proc/{}/exe".format(pid))
    began = time.monotonic()
    assert made_for(pid) == "none"
    assert 2 < time.monotonic() - began < DEADLINE
    assert processes_of(name) == [pid], "it still runs"


KEYCTL, ADD_KEY = {"x86_64": (250, 248), "aarch64": (219, 217)}[os.uname().machine]
JOIN_SESSION_KEYRING, SESSION_KEYRING = 1, ctypes.c_long(-3)


def with_a_key():
    """A session with a secret in its keyring."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(KEYCTL, JOIN_SESSION_KEYRING, None) < 0 or \
            libc.syscall(ADD_KEY, b"user", b"prb-test", b"secret", ctypes.c_size_t(6), SESSION_KEYRING) < 0:
        os._exit(77)


def begun_by(maker):
    """(status, descriptors) of the process that it began and that has told its name; None: not yet, or no longer."""
    for pid in children(maker.pid):
        try:
            with open("/proc/{}/status".format(pid)) as status:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in status)
            opened = sorted(os.listdir("/proc/{}/fd".format(pid)), key=int)
            if status["Name"].startswith("key") and opened:  # one that was ended has none
                return status, opened
        except (FileNotFoundError, ProcessLookupError):
            pass
    return None


def watched(maker):
    """begun_by(), once there is something; None at the maker's end."""
    seen = None
    while not seen and maker.poll() is None:
        time.sleep(0.002)
        seen = begun_by(maker)
    return seen


def spied(pid, keys=False):
    """The process that a maker for pid began, and what the maker said: it waits for 3 s, in which a busy machine may not let us look."""
    for _ in range(10):
        maker, seen = subprocess.Popen([CALL, str(pid)], stdout=subprocess.PIPE, preexec_fn=with_a_key if keys else None), None
        try:
            seen = watched(maker)
        finally:
            told = maker.communicate(timeout=DEADLINE)[0]
        if maker.returncode == 77:
            pytest.skip("no keyrings here")
        if seen:
            return seen[0], seen[1], told
    raise AssertionError("it was never seen to run")


def test_a_strangers_pretender_gets_no_right(pretender):
    """Root attaches: what that user calls python runs as that user, without any way back."""
    if os.geteuid() != 0:
        pytest.skip("as root")
    status, opened, told = spied(pretender("python3", preexec_fn=as_stranger))
    assert told == b"none\n"
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert status["Groups"].split() == ["65533"]
    assert status["NoNewPrivs"] == "1"
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
    assert opened == ["0", "1", "2"]


def may_run_nothing_else(pid, keys):
    name = os.readlink("/proc/{}/exe".format(pid))
    try:
        status, _, told = spied(pid, keys)
        assert told == b"none\n"
        assert processes_of(name) == [pid], "it outlives the tool"
    finally:
        for one in processes_of(name):
            if one != pid:
                os.kill(one, signal.SIGKILL)
    return status


def test_a_strangers_pretender_gets_no_key_and_leaves_nothing(pretender):
    if os.geteuid() != 0:
        pytest.skip("as root")
    status = may_run_nothing_else(pretender("python3", preexec_fn=as_stranger), True)
    assert status["Name"] == "key- fork-"
    assert int(status["CapBnd"], 16) == 0


def test_a_pretender_of_ones_own_leaves_nothing(pretender):
    """As root it can begin processes, and they end with it; anybody else cannot."""
    status = may_run_nothing_else(pretender("python3"), False)
    assert status["Name"] == ("key- fork+" if os.geteuid() == 0 else "key- fork-")
    if os.geteuid() == 0 and len(status["NSpid"].split()) == 1:
        pytest.skip("no pid namespace here")


def test_a_killed_tool_leaves_nothing(pretender):
    pid = pretender("python3")
    name = os.readlink("/proc/{}/exe".format(pid))
    for _ in range(10):
        with subprocess.Popen([CALL, str(pid)], stdout=subprocess.DEVNULL) as maker:
            seen = watched(maker)
            maker.kill()
        if seen:
            break
    assert seen, "it was never seen to run"
    until(lambda: processes_of(name) == [pid])


def test_a_program_that_others_may_write(pretender):
    pid = pretender("python3")
    os.chmod(os.readlink("/proc/{}/exe".format(pid)), 0o777)
    assert refused_at_once(pid)


def test_more_confined_than_we_are(child, any_python):
    """A target that may gain no privilege could gain freedom by what we execute."""
    setpriv = shutil.which("setpriv")
    if not setpriv:
        pytest.skip("no setpriv")
    assert made_for(child(setpriv, "--no-new-privs", *any_python.command("-c", SLEEP))) == "none"


def test_another_namespace(child, any_python):
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, "--net", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no namespace can be made")
    assert made_for(child(unshare, "--net", *any_python.command("-c", SLEEP))) == "none"
