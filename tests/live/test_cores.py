"""Cores as machines keep them: written by the kernel, filtered, packed, moved to another machine.  What is told is what the
process told before it ended; what cannot be told is named."""

import glob
import gzip
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from support import pythons
from support import target as live
from support.target import DEADLINE, backtrace, probing, query

NO_ANONYMOUS, NO_HEADERS, ALL_OF_FILES = 0x32, 0x23, 0x7f  # coredump_filter(5)


def own(one):
    return one.root is None


def pytest_generate_tests(metafunc):
    if "local_python" in metafunc.fixturenames:
        found = [one for one in pythons.found() if own(one)]
        metafunc.parametrize("local_python", found or [None], ids=[one.id for one in found] or ["none"])


def unlimited():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def begin(python, folder, program="debugged_by_gdb.py", core_filter=None):
    """A target that may leave a core in folder, and what it tells while it lives."""
    with open("/proc/sys/kernel/core_pattern") as pattern:
        if not re.match(r"core(\.%p)?\n$", pattern.read()):
            pytest.skip("this machine's cores go elsewhere: /proc/sys/kernel/core_pattern")
    before, here = resource.getrlimit(resource.RLIMIT_CORE), os.getcwd()
    unlimited()
    os.chdir(str(folder))
    try:
        target = live.Target(python, program, folder=os.path.join(here, live.TARGETS))
    finally:
        os.chdir(here)
        resource.setrlimit(resource.RLIMIT_CORE, before)
    if core_filter is not None:
        with open("/proc/{}/coredump_filter".format(target.pid), "w") as file:
            file.write(hex(core_filter))
    return target.settle()


def dies(target, folder, number=signal.SIGSEGV):
    """Its core."""
    os.kill(target.pid, number)
    target.child.wait(DEADLINE)
    target.end()
    return glob.glob(os.path.join(str(folder), "core*"))[0]


def core_of(python, folder, **options):
    folder.mkdir()
    target = begin(python, folder, **options)
    return dies(target, folder)


def python_rows(threads):
    return sorted((thread["os_thread_id"], [(frame["name"], frame["filename"], frame["line"], [
        (local["name"], local["repr"]) for local in frame.get("locals") or []]) for frame in thread["frames"]
        if frame["kind"] == "python"]) for thread in threads)


def native_rows(threads):
    return {thread["os_thread_id"]: [frame["name"] for frame in thread["frames"] if frame["kind"] == "native"]
            for thread in threads}


FRAMES = "SELECT os_thread_id, depth, func, file, lineno FROM python.backtrace ORDER BY 1, 2"


def test_by_the_kernel(local_python, tmp_path):
    """Python and native frames, values and rows of SQL are those of the process."""
    if local_python is None:
        pytest.skip("no interpreter of this machine")
    target = begin(local_python, tmp_path)
    alive = backtrace(target.pid, "--native", "--locals")
    rows = query(target.pid, FRAMES)
    pid = target.pid
    core = dies(target, tmp_path)
    dead = backtrace(core, "--native", "--locals")
    assert python_rows(dead) == python_rows(alive) and len(dead) == 2
    assert native_rows(dead) == native_rows(alive)
    assert query(core, FRAMES) == rows
    head = probing("-t", core, "backtrace").stdout.splitlines()[0]
    assert head.startswith("Core of process {0}, Segmentation fault in thread {0}, taken ".format(pid))
    told, = query(core, "SELECT pid, source FROM system.process")
    assert (told["pid"], told["source"]) == (pid, "core")


@pytest.fixture(scope="module")
def one_core(tmp_path_factory):
    found = [one for one in pythons.found() if own(one)]
    if not found:
        pytest.skip("no interpreter of this machine")
    return core_of(found[-1], tmp_path_factory.mktemp("cores") / "plain")


PACKERS = {"zst": ["zstd", "-q", "-1", "-c"], "lz4": ["lz4", "-q", "-1", "-c"], "xz": ["xz", "-0", "-c"], "gz": ["gzip", "-1", "-c"]}


@pytest.mark.parametrize("ending", PACKERS)
def test_packed(one_core, tmp_path, ending, monkeypatch):
    """As systemd-coredump keeps them; one that is cut off is no core."""
    if not shutil.which(PACKERS[ending][0]):
        pytest.skip("no {} here".format(PACKERS[ending][0]))
    packed, unpacked = str(tmp_path / ("core.python3." + ending)), tmp_path / "unpacked"
    unpacked.mkdir()
    monkeypatch.setenv("TMPDIR", str(unpacked))
    with open(packed, "wb") as file:
        subprocess.run(PACKERS[ending] + [one_core], stdout=file, check=True, timeout=DEADLINE)
    done = probing("-t", packed, "backtrace", "--json", check=False)
    if "is packed" in done.stderr:
        pytest.skip("built without it: " + done.stderr)
    assert python_rows(backtrace(packed)) == python_rows(backtrace(one_core))
    assert query(packed, FRAMES) == query(one_core, FRAMES)
    assert not os.listdir(str(unpacked))
    size = os.path.getsize(packed)
    for kept in (size // 2, 4096, 30, 7):
        os.truncate(packed, kept)
        done = probing("-t", packed, "backtrace", check=False)
        assert done.returncode == 8 and packed in done.stderr and not done.stdout, (kept, done)


BOMB = """
import os, subprocess, sys, threading, zlib
command, folder = sys.argv[1:]
packer = zlib.compressobj(6, zlib.DEFLATED, 31)
with open(os.path.join(folder, "core.gz"), "wb") as file:
    file.write(packer.compress(b"\\x7fELF" + bytes(12)))
    for _ in range(64):
        file.write(packer.compress(b"x" * (1 << 20)))
    file.write(packer.flush())
before, ended = os.statvfs(folder).f_bavail, threading.Event()
free = [before]
def watch():
    while not ended.wait(0.001):
        free.append(os.statvfs(folder).f_bavail)
thread = threading.Thread(target=watch)
thread.start()
done = subprocess.run([command, "-t", os.path.join(folder, "core.gz"), "backtrace"], stderr=subprocess.PIPE,
                      env=dict(os.environ, TMPDIR=folder))
ended.set()
thread.join()
sys.stderr.buffer.write(done.stderr)
print(min(free) / before)
sys.exit(done.returncode)
"""


def test_packed_bomb(tmp_path):
    """What unpacks to more than there is room for leaves the disk room for others."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs a small file system of its own")
    script = 'mount -t tmpfs -o size=32m none "$1" 2>/dev/null || exit 77; exec "$2" -c "$3" "$4" "$1"'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable, BOMB, live.PROBING],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120)
    if done.returncode in (1, 77) and "probing" not in done.stderr:
        pytest.skip("no file system can be mounted here")
    if "is packed" in done.stderr:
        pytest.skip("built without zlib")
    assert done.returncode == 11 and "TMPDIR" in done.stderr, done
    assert float(done.stdout) > 0.05, done.stdout


def test_packed_is_no_core(tmp_path):
    """Known by its first bytes: nothing else of it is unpacked."""
    with gzip.open(str(tmp_path / "core.gz"), "wb", 1) as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))

    def used(run):
        """Seconds of processor time, and what it returned."""
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = run()
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began, done

    unpacking, _ = used(lambda: subprocess.run(["gzip", "-dc", str(tmp_path / "core.gz")], stdout=subprocess.DEVNULL, check=True))
    looking, done = used(lambda: probing("-t", tmp_path / "core.gz", "backtrace", check=False))
    if "is packed" not in done.stderr:
        assert done.returncode == 8 and "not a core" in done.stderr, done
        assert looking < unpacking / 2, (looking, unpacking)


def test_packed_without_room(one_core, tmp_path):
    packed = str(tmp_path / "core.gz")
    with open(packed, "wb") as file:
        subprocess.run(PACKERS["gz"] + [one_core], stdout=file, check=True, timeout=DEADLINE)
    done = subprocess.run(["prlimit", "--fsize=100000", live.PROBING, "-t", packed, "backtrace"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                          preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
    if "is packed" in done.stderr:
        pytest.skip("built without it: " + done.stderr)
    assert done.returncode not in (0, -signal.SIGXFSZ) and "TMPDIR" in done.stderr, done


@pytest.mark.parametrize("core_filter", [NO_HEADERS, ALL_OF_FILES, 0x01])
def test_partial(one_core, tmp_path, core_filter):
    """Without the heads of files, with all of them, and nothing but private memory: the stacks are whole."""
    found = [one for one in pythons.found() if own(one)]
    core = core_of(found[-1], tmp_path / "partial", core_filter=core_filter)

    def names(threads):
        """Of each thread, in no order of ids: those of a process may begin again from small ones."""
        return sorted([name for name, _, _, _ in rows] for _, rows in python_rows(threads))

    assert names(backtrace(core, "--locals")) == names(backtrace(one_core))


def test_without_memory(tmp_path):
    """Nothing private was kept: there is no stack to tell, and that is said."""
    found = [one for one in pythons.found() if own(one)]
    if not found:
        pytest.skip("no interpreter of this machine")
    core = core_of(found[-1], tmp_path / "empty", core_filter=NO_ANONYMOUS)
    done = probing("-t", core, "backtrace", check=False)
    assert done.returncode not in (0, 70) and done.returncode > 0 and not done.stdout, done
    assert "left out" in done.stderr and "coredump_filter" in done.stderr, done.stderr


def files_of(core):
    return [row["path"] for row in query(core, "SELECT DISTINCT path FROM system.maps WHERE path LIKE '/%' AND permissions LIKE '__x_'")]


def test_elsewhere(one_core, tmp_path):
    """Without the program's files: what is missing is named; with them below --sysroot, all is told."""
    empty, root = tmp_path / "empty", tmp_path / "root"
    empty.mkdir()
    expected = python_rows(backtrace(one_core))
    done = probing("-t", one_core, "--sysroot", empty, "backtrace", check=False)
    version, = query(one_core, "SELECT python FROM system.process")
    if tuple(int(word) for word in version["python"].split(".")[:2]) >= (3, 13):  # its memory tells where its state lies
        assert python_rows(json_of("-t", one_core, "--sysroot", empty, "backtrace", "--json")) == expected
        values = {name: text for _, rows in python_rows(json_of("-t", one_core, "--sysroot", empty, "backtrace", "--locals", "--json"))
                  for row in rows for name, text in row[3]}
        assert values["values"] == "[0, 1, 4, 9, 16]" and values["Layer"] == "<class '__main__.Layer'>", values
    else:
        assert done.returncode == 3 and "--sysroot" in done.stderr and "python3" in done.stderr, done.stderr
    for path in files_of(one_core):
        copy = str(root) + path
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(path, copy)
    assert python_rows(json_of("-t", one_core, "--sysroot", root, "backtrace", "--json")) == expected


def json_of(*words):
    import json

    return json.loads(probing(*words).stdout)


def test_native_frames_elsewhere(one_core, tmp_path):
    """Only the interpreter came along: Python is whole, and the libraries that native frames lack are named."""
    for path in files_of(one_core):
        if "python" in os.path.basename(path):
            os.makedirs(str(tmp_path) + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, str(tmp_path) + path)
    done = probing("-t", one_core, "--sysroot", tmp_path, "backtrace", "--native", check=False)
    assert done.returncode == 0 and "inner" in done.stdout and "called_back" in done.stdout
    assert re.search(r"libc\.so\.6", done.stderr) and "--sysroot" in done.stderr, done.stderr


def test_executable_elsewhere(tmp_path):
    """A static interpreter that was moved: --exe names it."""
    found = [one for one in pythons.found() if own(one) and one.how == "static"]
    if not found:
        pytest.skip("no static interpreter")
    copy = str(tmp_path / "python")
    shutil.copy(found[0].executable, copy)
    core = core_of(pythons.Python([], copy, found[0].version, "static"), tmp_path / "moved")
    expected = python_rows(backtrace(core))
    os.rename(copy, copy + "-moved")
    done = probing("-t", core, "backtrace", check=False)
    if done.returncode:
        assert "--exe" in done.stderr or "--sysroot" in done.stderr, done.stderr
    assert python_rows(json_of("-t", core, "--exe", copy + "-moved", "backtrace", "--json")) == expected
    done = probing("-t", core, "--exe", sys.executable if os.path.realpath(sys.executable) != os.path.realpath(
        found[0].executable) else "/bin/sh", "backtrace", check=False)
    assert done.returncode >= 0 and "Traceback" not in done.stderr
