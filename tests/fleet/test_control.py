"""Settings and probes of all ranks of a job: without a bus, and over one, where it is control."""

import json
import os
import pathlib
import shutil
import tempfile

import pytest

from bus import Bus, missing
from conftest import PROGRAM

PERMISSION = 9
KEY = "probing.max_memory"
NOBODY = 65534


def has_probe(pid):
    with open("/proc/{}/maps".format(pid)) as file:
        return "libprobe" in file.read()


def rows(done):
    """[(ranks, text)] of what was said."""
    assert done.status == 0, done.out + done.err
    return [(row["ranks"], row["text"]) for row in done.json["rows"]]


def test_without_a_bus(ask, start_ranks):
    job = start_ranks(3)
    address, pids = "@" + job.name, [process.pid for process in job.processes.values()]
    done = ask("-t", address, "--timeout", 60, "config", "--json", KEY)
    assert [ranks for ranks, _ in rows(done)] == ["0-2"] and "it has no probe: these are the defaults" in done.out
    assert not any(map(has_probe, pids)), "to read loads none"
    done = ask("-t", address + ":1", "--timeout", 60, "inject", "-D", KEY + "=123MiB")
    assert done.status == 0 and done.out == "rank 1:\n    loaded\n", done.out + done.err
    assert list(map(has_probe, pids)) == [False, True, False]
    assert {ranks: text.splitlines()[0] for ranks, text in rows(ask("-t", address, "--timeout", 60, "config", "--json", KEY))}["1"] == KEY + " = 123MiB"
    done = ask("-t", address, "--timeout", 60, "config", KEY + "=99MiB")
    assert done.status == 0 and done.out == "ranks 0-2 (3 of 3):\n    {} = 99MiB\n".format(KEY), done.out + done.err
    assert all(map(has_probe, pids)) and "3 of 3 ranks answered" in done.err
    assert rows(ask("-t", address, "--timeout", 60, "config", "--json", KEY)) == [("0-2", KEY + " = 99MiB")]
    listed, = rows(ask("-t", address, "--timeout", 60, "config", "--json"))
    assert listed[0] == "0-2" and KEY + " = 99MiB" in listed[1].splitlines() and len(listed[1].splitlines()) > 10
    assert ask("-t", address + ":0", "--timeout", 60, "detach").out == "rank 0:\n    the probe ended\n"
    assert ask("-t", address, "--timeout", 60, "detach").out == "ranks 1-2 (2 of 3):\n    the probe ended\nrank 0:\n    it had no probe\n"


def test_refused_before_anything_is_done(ask, start_ranks):
    job = start_ranks(2)
    for words in (["config", KEY + "=much"], ["config", "probing.nothing=1"], ["inject", "-D", "nothing"]):
        done = ask("-t", "@" + job.name, *words)
        assert done.status in (2, 3) and not done.out, done.out + done.err
    assert not any(has_probe(process.pid) for process in job.processes.values())


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_over_a_bus(start_ranks, tmp_path):
    """Whoever may look reads settings; to change them, to load a probe and to end it, the agent must allow control, and the go is signed."""
    job, bus = start_ranks(2), Bus()
    bus.environment.update(PROBING_DATA_DIR=str(tmp_path / "data"), PROBING_STORE="off")
    pids = [process.pid for process in job.processes.values()]

    def tell(*words):
        return bus.run("-t", "@" + job.name, "--timeout", "60", *words)

    try:
        bus.up()
        assert bus.run("cluster", "attach").returncode == 0
        for words in (["config", KEY + "=99MiB"], ["inject"], ["detach"]):
            done = tell(*words)
            assert done.returncode != 0 and "does not allow control" in done.stderr, done.stderr
        done = tell("config", "--json", KEY)
        assert done.returncode == 0 and json.loads(done.stdout)["rows"][0]["ranks"] == "0-1", done.stderr
        assert not any(map(has_probe, pids))
        assert bus.run("cluster", "detach").returncode == 0
        assert bus.run("cluster", "attach", "--allow", "control").returncode == 0
        look = os.path.join(bus.folder, "look")
        refused = bus.run("--bus", look, "-t", "@" + job.name, "config", KEY + "=99MiB")
        assert refused.returncode != 0 and "refuses" in refused.stderr, refused.stderr
        assert not any(map(has_probe, pids))
        done = tell("inject")
        assert done.stdout == "ranks 0-1 (2 of 2):\n    loaded\n", done.stdout + done.stderr
        assert tell("config", KEY + "=99MiB").stdout == "ranks 0-1 (2 of 2):\n    {} = 99MiB\n".format(KEY)
        assert tell("detach").stdout == "ranks 0-1 (2 of 2):\n    the probe ended\n"
        folder = os.path.join(bus.home, ".local", "state", "probing")
        log = "".join((open(os.path.join(folder, name)).read()) for name in os.listdir(folder))
        assert all(kind + " of ranks 0-1" in log for kind in ("inject", "configure", "detach")), log
    finally:
        bus.run("cluster", "detach")
        bus.remove()


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_programs_over_a_bus(start_ranks, tmp_path):
    """A setting that names a program of the probe's runs it, so control does not set it: the host's own user does."""
    job, bus = start_ranks(1), Bus()
    bus.environment.update(PROBING_DATA_DIR=str(tmp_path / "data"), PROBING_STORE="off")
    ask, program = ["-t", "@" + job.name, "--timeout", "60"], "probing.crash_program"
    try:
        bus.up()
        assert bus.run("cluster", "attach", "--allow", "control").returncode == 0
        refused = bus.run(*ask, "config", program + "=/bin/true")
        assert refused.returncode and "names a program" in refused.stdout + refused.stderr, refused.stdout + refused.stderr
        done = bus.run(*ask, "inject", "-c", "-D", program + "=/bin/true", "-D", KEY + "=99MiB")
        assert done.stdout == "rank 0:\n    loaded\n", done.stdout + done.stderr
        assert bus.run(*ask, "config", program).stdout.split("=")[1].strip() == ""
        assert "99MiB" in bus.run(*ask, "config", KEY).stdout, "the others are set"
        pid = str(job.processes[0].pid)
        assert bus.run("-t", pid, "config", program + "=/bin/true").returncode == 0
    finally:
        bus.run("cluster", "detach")
        bus.remove()


@pytest.fixture
def open_folder():
    """Another user gets there: above pytest's own nobody else does."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="control-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(str(folder))


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root and another user")
def test_snapshots_of_another_user(start_ranks, open_folder):
    """An agent of root makes them with the rights of the rank's user: whoever may control writes no file where that user may not."""
    become = "os.setgroups([]); os.setgid({0}); os.setuid({0})\n".format(NOBODY)
    job, bus = start_ranks(1, program=PROGRAM.replace('print("ready"', become + 'print("ready"')), Bus()
    theirs = open_folder / "theirs"
    theirs.mkdir()
    os.chown(str(theirs), NOBODY, NOBODY)
    try:
        bus.up()
        assert bus.run("cluster", "attach", "--all-users", "--allow", "control", environment={"PROBING_STORE": "off"}).returncode == 0
        ask = ["-t", "@" + job.name, "--timeout", "60", "snapshot"]
        refused = bus.run(*ask, str(open_folder / "root.snap"))
        assert refused.returncode and "denied" in refused.stdout + refused.stderr, refused.stdout + refused.stderr
        assert not list(open_folder.glob("root*"))
        done = bus.run(*ask, str(theirs / "own.snap"))
        assert done.returncode == 0, done.stdout + done.stderr
        made = theirs / "own.rank0.snap"
        assert made.stat().st_uid == NOBODY and made.stat().st_mode & 0o777 == 0o600
        assert "innermost" in bus.run("-t", str(made), "backtrace").stdout
    finally:
        bus.run("cluster", "detach")
        bus.remove()
