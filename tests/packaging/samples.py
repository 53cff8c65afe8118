"""Writes the files of tests/packaging/0.1 with this build's commands: samples.py FOLDER.  For a release that has a new format, never for an old one."""

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile

PROBING = os.environ["PROBING"]
BUILDDIR = os.environ["BUILDDIR"]
PROGRAM = '''
import ctypes, signal, sys, threading

def wait(word, number):
    both = {"word": word, "number": number}
    gate.acquire()
    return both

def crash(address):
    reason = "of the first release"
    ctypes.string_at(address)

gate = threading.Lock()
gate.acquire()
threading.Thread(target=wait, args=("caf\\u00e9", 7), name="waits", daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
crash(16)
'''
STACK = """SELECT thread_name, depth, func, lineno FROM python.backtrace
 WHERE func IN ('wait', 'crash', '<module>') AND file LIKE '%program.py' ORDER BY thread_name, depth"""
COLUMNS = "step:integer:count\nloss:real\nnote:text\ntimestamp:time"
ROWS = [(step, step / 8, "note {}".format(step % 3), 1.7e9 + step / 4) for step in range(20)] + [(None, None, None, 1.7e9 + 60)]
ALL = "SELECT step, loss, note, timestamp FROM python.losses ORDER BY timestamp"


def probing(*words, **more):
    done = subprocess.run([PROBING, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **more)
    if done.returncode:
        raise SystemExit("{}: {}".format(words, done.stderr))
    return done.stdout


def rows(path, sql):
    return json.loads(probing("-t", path, "query", "-f", "json", sql))


def pack(path, to):
    """With a bound on memory that any reader has."""
    with open(path, "rb") as file, lzma.open(to, "wb", preset=6) as packed:
        shutil.copyfileobj(file, packed)


def started(work, **environment):
    """The program, in an environment without anything of this machine's."""
    child = subprocess.Popen([sys.executable, "-I", "program.py"], cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=dict(PATH="/usr/bin:/bin", HOME=work, **environment))
    assert child.stdout.readline() == b"ready\n"
    return child


def memory(work, out, expected):
    child = started(work)
    probing(child.pid, "snapshot", os.path.join(work, "snapshot.snap"), "--locals")
    crashes = os.path.join(work, "crashes")
    probing("-p", child.pid, "inject", "-c", "-D", "probing.crash_dir=" + crashes)
    child.stdin.write(b"\n")
    child.stdin.close()
    assert child.wait() == -signal.SIGSEGV
    (dump,) = [name for name in os.listdir(crashes) if name.endswith(".snap")]
    shutil.move(os.path.join(crashes, dump), os.path.join(work, "crash.snap"))
    for name in ("snapshot.snap", "crash.snap"):
        path = os.path.join(work, name)
        expected[name] = {"sql": STACK, "rows": rows(path, STACK)}
        assert len(expected[name]["rows"]) >= 2, expected
        pack(path, os.path.join(out, name + ".xz"))
    shown = probing("crash", "show", os.path.join(work, "crash.snap"))
    expected["crash.snap"]["says"] = [words for words in ("SIGSEGV", "crash (", "program.py") if words in shown]


def profile(work, out, expected):
    child = started(work)
    path = os.path.join(work, "profile.db")
    probing(child.pid, "profile", "-d", "0.5", "--idle", "-o", path)
    child.kill()
    child.wait()
    sql = "SELECT operation_name, sum(samples) > 0 AS seen FROM profiling_data WHERE operation_name LIKE '%wait' GROUP BY 1 ORDER BY 1"
    expected["profile.db"] = {"sql": sql, "rows": rows(path, sql)}
    pack(path, os.path.join(out, "profile.db.xz"))


def tables(work, out, expected):
    """A ring, and the store's file of it."""
    data, state = os.path.join(work, "data"), os.path.join(work, "state")
    os.mkdir(data, 0o700)
    child = started(work)
    with open("/proc/{}/stat".format(child.pid)) as stat:
        rings = os.path.join(data, "{}-{}".format(child.pid, stat.read().rsplit(")", 1)[1].split()[19]))
    os.mkdir(rings, 0o700)
    writer = subprocess.Popen([os.path.join(BUILDDIR, "tests", "live", "ring_write"), rings, "losses", COLUMNS], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, encoding="utf-8")
    writer.communicate("".join("\t".join("NULL" if value is None else str(value) for value in row) + "\n" for row in ROWS))
    probing("collect", "--once", env=dict(os.environ, PROBING_DATA_DIR=data, XDG_STATE_HOME=state))
    child.kill()
    child.wait()
    pack(os.path.join(rings, "losses.ring"), os.path.join(out, "losses.ring.xz"))
    folder = os.path.join(state, "probing", "store")
    (store,) = [name for name in os.listdir(folder) if name.endswith(".db")]
    pack(os.path.join(folder, store), os.path.join(out, "store.db.xz"))
    for name, path in (("losses.ring", rings), ("store.db", os.path.join(folder, store))):
        expected[name] = {"sql": ALL, "rows": rows(path, ALL)}
        assert len(expected[name]["rows"]) == len(ROWS)


def main(out):
    os.makedirs(out, exist_ok=True)
    expected = {}
    with tempfile.TemporaryDirectory(prefix="sample-") as work:
        with open(os.path.join(work, "program.py"), "w", encoding="utf-8") as program:
            program.write(PROGRAM)
        for part in (memory, profile, tables):
            part(work, out, expected)
    with open(os.path.join(out, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(expected, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
