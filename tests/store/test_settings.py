"""Settings of a live job, which its collector follows without a restart of either."""

import os
import re
import shutil
import sqlite3
import time

import pytest

from support import gpus
from support.injection import wait_until
from support.rings import Writer, folder_of
from support.target import probing, query

SAMPLES = "SELECT timestamp FROM memory_usage ORDER BY timestamp"


@pytest.fixture
def job(start, any_python, store):
    """A process that records a variable with each call of a function."""
    target = start(any_python, "watched_calls.py", variables={"PROBING_DATA_DIR": str(store.data)})
    assert probing(target.pid, "config", "probing.torch.exprs=call@work", check=False).returncode == 0
    return target


def config(job, *words):
    done = probing(job.pid, "config", *words, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_time(times):
    """Whether they come faster than once a second: a busy machine makes many late, but not a quarter early."""
    return sorted(b - a for a, b in zip(times, times[1:]))[len(times) // 4] < 0.5


def test_intervals(job, store):
    """Faster at once, and none at all."""
    collector = store.collect()
    wait_until(lambda: len(query(job.pid, SAMPLES)) >= 3)
    assert config(job, "probing.cpu.sample_interval=0.1s") == "probing.cpu.sample_interval = 100\n"
    since = time.time()
    wait_until(lambda: len(query(job.pid, SAMPLES)) >= 20)
    after = [row["timestamp"] for row in query(job.pid, SAMPLES) if row["timestamp"] > since]
    assert in_time(after), after
    config(job, "probing.cpu.sample_interval=0")
    wait_until(lambda: time.time() - query(job.pid, SAMPLES)[-2]["timestamp"] > 2.5)  # the last one is of now
    count = len(query(job.pid, SAMPLES))
    config(job, "probing.cpu.sample_interval=500ms")
    wait_until(lambda: len(query(job.pid, SAMPLES)) > count + 1)
    store.stop(collector)


def test_from_the_job_s_environment(start, any_python, store):
    target = start(any_python, "watched_calls.py", variables={"PROBING_DATA_DIR": str(store.data)})
    done = probing("-t", target.pid, "inject", "-D", "probing.cpu.sample_interval=100", "-D", "probing.torch.exprs=call@work", check=False)
    assert done.returncode == 0, done.stderr
    collector = store.collect()
    wait_until(lambda: len(query(target.pid, SAMPLES)) >= 12)
    times = [row["timestamp"] for row in query(target.pid, SAMPLES)]
    assert in_time(times), times
    store.stop(collector)


def kept(file):
    connection = sqlite3.connect("file:{}?mode=ro".format(file), uri=True)
    found = connection.execute("SELECT resolution, count(*), sum(rows) FROM chunk WHERE shape IN (SELECT id FROM shape WHERE name = 'probing_host_memory')"
                               " GROUP BY resolution").fetchall()
    wishes = dict(connection.execute("SELECT key, value FROM about WHERE key <> 'job'"))
    connection.close()
    return {resolution: rows for resolution, _, rows in found}, wishes


def make_older(file):
    connection = sqlite3.connect(str(file))
    connection.execute("UPDATE chunk SET first = first - 7200, last = last - 7200")
    connection.commit()
    connection.close()


def test_ages(job, store):
    """A collector that runs makes old rows one a minute as soon as the job wishes it; the file says so from then on."""
    collector = store.collect()
    config(job, "probing.cpu.sample_interval=100")
    wait_until(lambda: len(query(job.pid, SAMPLES)) >= 30)
    store.stop(collector)
    (file,) = store.files()
    make_older(file)
    collector = store.collect()
    wait_until(lambda: len(query(job.pid, SAMPLES)) >= 40)
    raw, wishes = kept(file)
    assert set(raw) == {0} and wishes == {}
    config(job, "probing.store_raw=1h", "probing.retention_days=30")
    # Two settings, one after the other: the collector may take its turn between them.
    wait_until(lambda: 1 in kept(file)[0] and kept(file)[1] == {"raw": 3600, "retention": 30 * 86400})
    store.stop(collector)
    assert "stand for a minute" in probing("-t", file, "query", "SELECT count(*) FROM memory_usage", check=False).stderr
    make_older(file)
    config(job, "probing.store_minutes=90m")
    store.collect_once()
    rows, wishes = kept(file)
    assert 2 in rows and wishes["minutes"] == 5400


def test_room(job, store):
    """Its file is made smaller, the oldest rows first; what is of now stays."""
    writer = Writer(folder_of(store.data, job.pid), "events", "step:integer\nnote:text\ntimestamp:time")
    for turn in range(5):
        for step in range(30 * turn, 30 * turn + 30):
            writer.write(step, os.urandom(4000).hex(), time.time())
        store.collect_once()
    (file,) = store.files()
    assert file.stat().st_size > 400 * 1024
    config(job, "probing.store_memory=400KB")
    store.collect_once()
    assert file.stat().st_size <= 400000 and kept(file)[1] == {"memory": 400000}
    steps = [row["step"] for row in query(file, "SELECT step FROM events ORDER BY step")]
    assert steps and steps == list(range(150))[-len(steps):]
    writer.kill()


def test_gpus(job, store, monkeypatch, tmp_path):
    """Faster, and no longer; what is said of threads comes as before."""
    gpus.pretend(monkeypatch, tmp_path, str(job.pid))
    config(job, "probing.gpu.sample_interval=100ms")
    collector = store.collect()
    samples = "SELECT DISTINCT timestamp FROM gpu_metrics ORDER BY timestamp"
    wait_until(lambda: len(query(job.pid, samples)) >= 12)
    times = [row["timestamp"] for row in query(job.pid, samples)]
    assert in_time(times), times
    config(job, "probing.gpu.sample_interval=0")
    wait_until(lambda: query(job.pid, SAMPLES)[-2]["timestamp"] > query(job.pid, samples)[-3]["timestamp"] + 1.5)  # two are of now
    store.stop(collector)


SHARES = "SELECT timestamp, os_thread_id, gil_pct FROM system.usage WHERE scope = 'thread'"
SHORT = re.compile(r", (\d\d|1[0-4]\d)\)")  # 50 to 149 ms
SPIN = b"threading.Thread(target=lambda: all(map(lambda _: sum(range(1000000)), iter(int, 1))), daemon=True).start()\n"


def threads_of(pid):
    return set(map(int, os.listdir("/proc/{}/task".format(pid))))


def shares_since(job, moment):
    """{thread: its shares in the rows after that}"""
    found = {}
    for row in query(job.pid, SHARES):
        if row["timestamp"] > moment:
            found.setdefault(row["os_thread_id"], []).append(row["gil_pct"])
    return found


def looks(log, begin):
    """What a collector that strace follows did to look at the GIL, from there in the log: its short waits, and its reads of memory."""
    return [line for line in log.read_text()[begin:].splitlines() if "process_vm_readv" in line or SHORT.search(line)]


def all_null(shares):
    return {share for of_thread in shares.values() for share in of_thread} == {None}


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_gil(job, store, tmp_path):
    """On: the thread that computes has it, the others do not.  Off, before and after: NULL, and the collector does not wake for it."""
    before = threads_of(job.pid)
    job.child.stdin.write(SPIN)
    job.child.stdin.flush()
    wait_until(lambda: threads_of(job.pid) - before)
    (spin,) = threads_of(job.pid) - before
    log = tmp_path / "calls"
    collector = store.collect("strace", "-D", "-o", str(log), "-e", "trace=poll,process_vm_readv")
    wait_until(lambda: len(shares_since(job, 0).get(spin, [])) >= 3)
    assert all_null(shares_since(job, 0)) and not looks(log, 0)
    assert config(job, "probing.gil=on") == "probing.gil = on\n"
    wait_until(lambda: len([share for share in shares_since(job, 0)[spin] if share is not None]) >= 4)
    told = {thread: [share for share in shares if share is not None] for thread, shares in shares_since(job, 0).items()}
    assert looks(log, 0)
    config(job, "probing.gil=off")
    off = time.time()
    wait_until(lambda: len(shares_since(job, off).get(spin, [])) >= 2)  # the first one's time may be before the collector saw it
    off, quiet = time.time(), log.stat().st_size
    wait_until(lambda: len(shares_since(job, off).get(spin, [])) >= 2)
    assert all_null(shares_since(job, off)) and not looks(log, quiet)
    store.stop(collector)
    means = {thread: sum(shares) / len(shares) for thread, shares in told.items() if shares}
    assert means.pop(spin) >= 70 and len(means) >= 2 and max(means.values()) <= 20, told


def test_gil_by_the_collector_s_environment(job, store, monkeypatch):
    """What the job itself says is above it."""
    monkeypatch.setenv("PROBING_GIL", "on")
    collector = store.collect()
    wait_until(lambda: [share for share in shares_since(job, 0).get(job.pid, []) if share is not None])
    config(job, "probing.gil=off")
    wait_until(lambda: query(job.pid, SHARES + " ORDER BY timestamp DESC LIMIT 1")[0]["gil_pct"] is None)
    store.stop(collector)


def test_refused(job):
    for word in "probing.cpu.sample_interval=fast", "probing.store_raw=-1", "probing.store_memory=1 apple", "probing.gil=often":
        done = probing(job.pid, "config", word, check=False)
        assert done.returncode != 0 and word.split("=")[0] in done.stderr
