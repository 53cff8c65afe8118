"""A job in a container, whose /dev/shm is its own: the collector outside finds and keeps what it records."""

import os
import signal
import subprocess

import pytest

from support.injection import wait_until
from support.target import TARGETS, probing, query

ALL = "SELECT number FROM python.variables WHERE number IS NOT NULL ORDER BY timestamp"


def can_unshare():
    return subprocess.run(["unshare", "-m", "-p", "-f", "--mount-proc", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.fixture
def job(any_python, store):
    """watched_calls.py in namespaces of its own for mounts and pids; its pid here."""
    if os.geteuid() != 0 or not can_unshare():
        pytest.skip("no namespaces can be made here: that takes root")
    inside = "mount -t tmpfs -o mode=700 tmpfs {} && exec {} {}".format(
        store.data, " ".join(any_python.command("")).strip(), os.path.join(TARGETS, "watched_calls.py"))
    environment = dict(os.environ, PROBING_DATA_DIR=str(store.data))
    child = subprocess.Popen(["unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", inside],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert child.stdout.readline().strip() == b"ready"
    with open("/proc/{0}/task/{0}/children".format(child.pid), encoding="ascii") as children:
        pid = int(children.read().split()[0])
    yield pid, child
    child.kill()
    child.wait()


def test_rows_outlive_the_container(job, store):
    pid, child = job
    done = probing(pid, "config", "probing.torch.exprs=call@work", check=False)
    assert done.returncode == 0, done.stderr
    collector = store.collect()
    wait_until(lambda: store.files() and len(query(pid, "SELECT * FROM memory_usage")) >= 2)
    told = [row["number"] for row in query(pid, ALL)]
    assert len(told) > 10
    os.kill(pid, signal.SIGKILL)
    child.wait()
    assert not list(store.data.glob("[0-9]*")), "nothing of it is where our own rings are"
    store.stop(collector)
    (file,) = store.files()
    cold = [row["number"] for row in query(file, ALL)]
    assert cold[:len(told)] == told and cold == sorted(cold)
    (who,) = query(file, "SELECT DISTINCT pid FROM memory_usage")
    assert who == {"pid": pid}, "as it is called here"
