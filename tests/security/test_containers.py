"""Containers that share a folder for sockets (a host's /tmp in each) have processes of one pid: none is taken for the other."""

import glob
import os
import subprocess
import sys

from parties import DEADLINE
from support.target import children

SLEEPER = "import sys\nprint('ready', flush=True)\nsys.stdin.read()"
NOT_FOUND = 3


def ask(pid, *words):
    return subprocess.run([os.environ["PROBING"], "-t", str(pid), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE)


def test_one_pid_in_two_containers(spawn, namespaces, tmp_path):
    words = namespaces("--pid", "--fork", "--kill-child", "--mount-proc")
    environment = dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path))
    pids = []
    for _ in range(2):
        outer = spawn([*words, sys.executable, "-c", SLEEPER], env=environment)
        pids += children(outer.pid)
    first, second = pids
    done = ask(first, "inject")
    assert done.returncode == 0, done.stderr
    missing = ask(second, "detach")
    assert missing.returncode == NOT_FOUND and "has no probe" in missing.stderr, missing
    done = ask(second, "inject")
    assert done.returncode == 0, done.stderr
    sockets = [os.path.basename(path) for path in glob.glob(str(tmp_path / "probing" / "*.sock"))]
    assert sorted(name.split("-")[2] for name in sockets) == sorted(
        "{}.sock".format(os.stat("/proc/{}/ns/pid".format(pid)).st_ino) for pid in pids)
    for pid in pids:
        mark = "mark_{}".format(pid)
        assert ask(pid, "eval", "--namespace", "__main__", mark + " = 1").returncode == 0
    for pid, other in (first, second), (second, first):
        asked = "'mark_{}' in globals(), 'mark_{}' in globals()".format(pid, other)
        assert ask(pid, "eval", "--namespace", "__main__", asked).stdout.strip() == "(True, False)"
        assert ask(pid, "detach").returncode == 0
