"""What the machine says of a job: memory_usage, system.usage, system.cgroup and system.network, beside /proc and known loads."""

import contextlib
import os
import re
import subprocess
import sys
import time

import pytest

from support.target import PROBING, probing, query

MB = 1 << 20
PROGRAM = """
import mmap, os, sys, threading, time
def spin():
    while True:
        pass
def nap():
    while True:
        time.sleep(0.005)
def brief():
    while True:  # 300 switches each, most of them before the thread ends
        one = threading.Thread(target=lambda: [time.sleep(0.0005) for _ in range(300)])
        one.start()
        one.join()
kept = mmap.mmap(-1, {private} << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
shared = mmap.mmap(-1, {shared} << 20)
for held in kept, shared:
    for page in range(0, len(held), 4096):
        held[page] = 1
for work in {work}:
    threading.Thread(target=work, daemon=True, name=work.__name__).start()
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.read()
"""


@contextlib.contextmanager
def job(private=1, shared=1, work="()", before=()):
    child = subprocess.Popen([*before, sys.executable, "-c", PROGRAM.format(private=private, shared=shared, work=work)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def one(pid, sql):
    row, = query(pid, sql)
    return row


def shares_of(pid):
    """(MB of its share of all pages, of those that nobody else has)"""
    with open("/proc/{}/smaps_rollup".format(pid)) as told:
        text = told.read()
    shared, dirty, clean = (int(re.search(key + r": +(\d+)", text)[1]) / 1024 for key in ("Pss", "Private_Dirty", "Private_Clean"))
    return shared, dirty + clean


def test_memory():
    with job(private=64, shared=32) as big, job() as small:
        shares = [shares_of(big)]
        more = one(big, "SELECT * FROM memory_usage")
        shares.append(shares_of(big))  # other programs begin and end, which have the interpreter's pages, too
        less = one(small, "SELECT * FROM memory_usage")
        assert more["pid"] == big and more["rank"] is None and abs(more["timestamp"] - time.time()) < 60
        assert 62 < more["anon"] - less["anon"] < 66 and 30 < more["shared"] - less["shared"] < 34
        assert more["memory_mb"] == pytest.approx(more["anon"] + more["file"] + more["shared"], abs=0.1)
        assert more["peak"] >= more["memory_mb"] - 0.5
        for name, told in zip(("pss", "uss"), zip(*shares)):
            assert 0.98 * min(told) <= more[name] <= 1.02 * max(told), (name, told)


def test_shares_are_read_only_when_they_are_named():
    """The kernel holds the lock of the maps meanwhile."""
    def opened(columns):
        with job() as pid:
            done = subprocess.run(["strace", "-f", "-e", "trace=openat", PROBING, "-t", str(pid), "query",
                                   "SELECT {} FROM memory_usage".format(columns)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        return "smaps_rollup" in done.stderr.decode()
    assert opened("uss") and not opened("memory_mb, cgroup_limit")


def seconds_of(pid):
    """{thread: (s on a CPU, s that it waited for one)}, and when that was."""
    told = {}
    for tid in os.listdir("/proc/{}/task".format(pid)):
        with open("/proc/{}/task/{}/schedstat".format(pid, tid)) as words:
            told[int(tid)] = [int(word) / 1e9 for word in words.read().split()[:2]]
    return told, time.monotonic()


def test_usage():
    """A thread that computes, one that sleeps often, and the main thread, which waits."""
    with job(work="(spin, nap)") as pid:
        before, began = seconds_of(pid)
        rows = query(pid, "SELECT * FROM system.usage(1)")
        after, ended = seconds_of(pid)
        around = ended - began - 1  # s that the kernel's numbers hold besides the second that was watched
        process, = [row for row in rows if row["scope"] == "process"]
        threads = sorted((row for row in rows if row["scope"] == "thread"), key=lambda row: row["os_thread_id"])
        assert [row["os_thread_id"] for row in threads] == sorted(map(int, os.listdir("/proc/{}/task".format(pid))))
        main, spin, nap = threads
        assert process["os_thread_id"] is None and main["os_thread_id"] == pid
        runs, waits = ((new - old) for old, new in zip(before[spin["os_thread_id"]], after[spin["os_thread_id"]]))
        assert runs - around - 0.02 < (spin["cpu_user_pct"] + spin["cpu_sys_pct"]) / 100 < min(1.01, runs + 0.02), (runs, around, spin)
        assert waits - around - 0.02 < spin["wait_pct"] / 100 < waits + 0.02, (waits, around, spin)
        assert runs > main["cpu_user_pct"] / 100
        assert process["cpu_user_pct"] + process["cpu_sys_pct"] == pytest.approx(
            sum(row["cpu_user_pct"] + row["cpu_sys_pct"] for row in threads), abs=5 + 100 * around)
        assert main["cpu_user_pct"] + main["cpu_sys_pct"] < 1
        assert nap["vol_ctxt"] > main["vol_ctxt"]
        assert main["state"] == "S"


def test_threads_that_come_and_go():
    """What the process did is what its threads did: those that ended take nothing away, those that came bring nothing of before."""
    with job(work="(nap, brief)") as pid:
        for _ in range(3):
            rows = query(pid, "SELECT * FROM system.usage(0.7)")
            process, = [row for row in rows if row["scope"] == "process"]
            naps = sum(row["vol_ctxt"] for row in rows if row["scope"] == "thread")
            assert 0 < naps <= process["vol_ctxt"] <= naps + 400 and process["wait_pct"] is not None


def test_other_tools_names():
    """cpu.utilization has the same numbers under other names."""
    with job(work="(spin,)") as pid:
        rows = query(pid, "SELECT * FROM cpu.utilization(0.5)")
        process, = [row for row in rows if row["scope"] == "process"]
        spin, = [row for row in rows if row["scope"] == "thread" and row["tid"] != pid]
        assert process["tid"] == pid and process["thread_count"] == 2 and process["rss_kb"] > 5000
        assert 0.5e9 <= spin["wall_ns"] < 60e9 and spin["delta_total_ns"] == spin["delta_user_ns"] + spin["delta_sys_ns"]
        assert spin["cpu_total_pct"] == pytest.approx(100 * spin["delta_total_ns"] / spin["wall_ns"], abs=0.01)
        assert spin["cum_user_ns"] >= spin["delta_user_ns"] - 2e7 and abs(spin["ts"] - time.time()) < 60


def test_usage_of_disks():
    with job() as pid:
        row, = query(pid, "SELECT * FROM system.usage(0.2) WHERE scope = 'process'")
        assert row["read_mb"] == 0 and row["write_mb"] == 0 and row["majflt"] == 0


def test_arguments():
    with job() as pid:
        for sql, what in (("SELECT * FROM system.usage(0)", "above 0"), ("SELECT * FROM system.usage('x')", "above 0"),
                          ("SELECT * FROM system.usage(1000)", "more than a query may take")):
            done = probing("-t", pid, "query", sql, check=False)
            assert done.returncode == 9 and what in done.stderr, done


def test_of_a_snapshot(tmp_path):
    path = str(tmp_path / "one.snap")
    with job() as pid:
        probing("-t", pid, "snapshot", path)
    for table in "memory_usage", "system.usage", "system.cgroup", "system.network", "gpu_metrics":
        done = probing("-t", path, "query", "SELECT * FROM " + table, check=False)
        assert done.returncode != 0 and ("live process" in done.stderr or "does not run" in done.stderr), done


def test_network():
    with job() as pid:
        rows = {row["interface"]: row for row in query(pid, "SELECT * FROM system.network WHERE kind = 'net'")}
        with open("/proc/{}/net/dev".format(pid)) as told:
            lines = [line.split(":") for line in told if ":" in line]
    assert sorted(rows) == sorted(name.strip() for name, _ in lines)
    for name, numbers in lines:
        words, row = list(map(int, numbers.split())), rows[name.strip()]
        assert row["rx_bytes"] <= words[0] and row["tx_bytes"] <= words[8]  # it was asked before
        assert row["rx_packets"] <= words[1] and row["tx_packets"] <= words[9]


@pytest.fixture
def memory_group():
    """A control group of version 1 or 2 with a limit on memory, below ours; None: they cannot be made here."""
    for folder, limit in ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"):
        path = "{}/probing-test-{}".format(folder, os.getpid())
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            with open(os.path.join(path, limit), "w") as out:
                out.write(str(256 * MB))
        except OSError:
            os.rmdir(path)
            continue
        yield path
        os.rmdir(path)
        return
    pytest.skip("no control group can be made here")


def test_a_limit_of_the_group_above(memory_group):
    """The tightest limit counts, wherever it stands."""
    own = os.path.join(memory_group, "own")
    os.mkdir(own)
    try:
        with job(private=50) as pid:
            with open(os.path.join(own, "cgroup.procs"), "w") as out:
                out.write(str(pid))
            row = one(pid, "SELECT * FROM system.cgroup")
            assert row["path"].endswith("probing-test-{}/own".format(os.getpid())) and row["version"] in (1, 2)
            assert row["memory_limit"] == 256 * MB and row["limited_by"].endswith("probing-test-{}".format(os.getpid()))
            assert 0 <= row["memory_used"] <= 256 * MB
            usage = one(pid, "SELECT * FROM memory_usage")
            assert usage["cgroup_limit"] == 256 and usage["cgroup_used"] <= 256
    finally:
        os.rmdir(own)
