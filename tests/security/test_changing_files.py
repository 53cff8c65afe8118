"""Files of a target that change, and are cut short, while the tool reads them: less is told, and nobody ends by a signal."""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import threading
import time

import pytest

from parties import DEADLINE, SRCDIR

PROBING = os.environ.get("PROBING", "probing")
LINES = ["backtrace", "--native", "--source-lines"]
SLEEPER = "import time; print('ready', flush=True); time.sleep(600)"


def loaded(elf):
    """Where the part of an ELF file ends that is mapped when it runs: symbols and debug information come behind it."""
    at, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    headers = [struct.unpack_from("<II6Q", elf, at + i * size) for i in range(count)]
    return max(offset + length for kind, _, offset, _, _, length, _, _ in headers if kind == 1)


@pytest.fixture
def job(tmp_path):
    """A stopped Python whose library is a copy of ours: .library, the bytes it had: .whole."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    library = os.path.join(sysconfig.get_config_var("LIBDIR") or "", name)
    if ".so" not in name or not os.path.exists(library):
        pytest.skip("this Python has no library of its own")
    copy = str(tmp_path / name)
    shutil.copy(os.path.realpath(library), copy)
    process = subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], stdout=subprocess.PIPE,
                               env=dict(os.environ, LD_LIBRARY_PATH=str(tmp_path)))
    assert process.stdout.readline() == b"ready\n"
    # It would end itself by SIGBUS, as soon as it ran.
    process.send_signal(signal.SIGSTOP)
    with open("/proc/{}/maps".format(process.pid)) as maps:
        assert copy in maps.read()
    process.library = copy
    with open(copy, "rb") as file:
        process.whole = file.read()
    process.loaded = loaded(process.whole)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def look(job, *words):
    return subprocess.run([PROBING, "-t", str(job.pid), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace", timeout=DEADLINE)


class Changes:
    """While it is entered, the library is cut short, damaged and made whole again, without end.  Never as far as what is mapped: the
    target's memory stays, and the tool goes all the way."""

    def __init__(self, job):
        self.job, self.end, self.rounds = job, False, 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        dice, whole, loaded = random.Random(14), self.job.whole, self.job.loaded
        with open(self.job.library, "r+b", buffering=0) as file:
            while not self.end:
                if dice.randrange(2):
                    at = dice.choice([loaded, dice.randrange(loaded, len(whole))])
                    os.truncate(self.job.library, at)
                else:
                    at = dice.choice([40, len(whole) - 4096, dice.randrange(loaded, len(whole) - 4096)])
                    file.seek(at)
                    file.write(bytes(dice.choices((0, 1, 0x7f, 0xff), k=24 if at == 40 else 2048)))
                time.sleep(dice.random() / 200)
                file.seek(at)
                file.write(whole[at:])
                self.rounds += 1
                time.sleep(dice.random() / 50)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end = True
        self.thread.join()


@pytest.mark.parametrize("words", [LINES, ["backtrace"], ["query", "SELECT path, build_id FROM system.libraries"], ["inject"]],
                         ids=["lines", "backtrace", "libraries", "inject"])
def test_no_signal(job, words):
    assert look(job, "backtrace").returncode == 0
    with Changes(job) as changes:
        end, looks = time.monotonic() + 3, 0
        # inject waits for the stopped job a while; what it reads before is what matters here.
        while (time.monotonic() < end and looks < 40) or looks < 2 or changes.rounds < 4:
            done = look(job, *words)
            assert done.returncode >= 0, (done.returncode, looks, done.stderr)
            assert done.returncode == 0 or done.stderr.startswith("probing: "), done.stderr
            looks += 1
    if words[0] != "inject":
        assert look(job, *words).returncode == 0


@pytest.mark.parametrize("length", [0, 100, 5000, 300000])
def test_a_file_that_stays_short(job, length):
    """Its memory is still mapped, but gone from the file: told, or told less."""
    os.truncate(job.library, length)
    for words in (["backtrace"], LINES, ["query", "SELECT path, build_id FROM system.libraries"]):
        done = look(job, *words)
        assert done.returncode >= 0, (words, done)
        assert done.returncode == 0 or done.stderr.startswith("probing: "), done.stderr


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
def test_in_gdb(job):
    """gdb with the plugin reads the file through us, and is not ended by it."""
    script = os.path.join(SRCDIR, "gdb", "probing-gdb.py")
    gdb = ["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-p", str(job.pid),
           "-ex", "source " + script]
    cut = "python import os; os.truncate({!r}, 4096)".format(job.library)
    done = subprocess.run([*gdb, "-ex", cut, "-ex", "py-backtrace", "-ex", "probing query SELECT count(*) FROM system.libraries",
                           "-ex", "echo still here\\n"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", errors="replace", timeout=2 * DEADLINE,
                          env=dict(os.environ, PROBING_BUILDDIR=os.environ.get("BUILDDIR", ".")))
    assert done.returncode >= 0 and "still here" in done.stdout, done.stdout[-2000:]
