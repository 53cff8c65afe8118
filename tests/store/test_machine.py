"""What the machine says of a job, kept by the collector once a second, outside the job: one table before and after its end."""

import os
import shutil
import signal
import time

from support import gpus
from support.target import DEADLINE, probing, query

USAGE = "SELECT * FROM system.usage"


def wait_for(target, statement, least):
    until = time.monotonic() + DEADLINE
    while True:
        rows = query(target, statement)
        if len(rows) >= least:
            return rows
        assert time.monotonic() < until, rows
        time.sleep(0.2)


def test_the_history_of_a_live_and_an_ended_job(recorder, store):
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    collector = store.collect()
    whole = USAGE + " WHERE scope = 'process' ORDER BY timestamp"
    hot = wait_for(recorder.pid, whole, 4)
    assert not query(recorder.pid, "SELECT * FROM information_schema.tables WHERE table_name LIKE '%probing_host%'")
    memory = query(recorder.pid, "SELECT timestamp, memory_mb, pid FROM memory_usage ORDER BY timestamp")
    assert len(memory) >= 4 and {row["pid"] for row in memory} == {recorder.pid}
    threads = {row["os_thread_id"] for row in query(recorder.pid, USAGE + " WHERE scope = 'thread'")}
    assert store.stop(collector) == "1 rows moved to the store\n"
    recorder.end()
    shutil.rmtree(str(recorder.rings))
    (file,) = store.files()
    cold = query(file, whole)
    assert cold[:len(hot)] == hot, "what was told is kept"
    apart = [b["timestamp"] - a["timestamp"] for a, b in zip(cold, cold[1:])]
    assert all(0.5 < one < DEADLINE for one in apart), apart
    assert {row["os_thread_id"] for row in query(file, USAGE + " WHERE scope = 'thread'")} >= threads
    assert {row["resolution"] for row in cold} == {"raw"}
    for table, least in (("memory_usage", 4), ("system.network", 1), ("cpu.utilization", 4)):
        rows = query(file, "SELECT * FROM {}".format(table))
        assert len(rows) >= least, table
    by_time = {row["timestamp"]: row for row in cold}
    for row in query(file, "SELECT * FROM cpu.utilization WHERE scope = 'process'"):
        same = by_time[row["ts"]]
        assert (row["cpu_user_pct"], row["tid"], row["comm"]) == (same["cpu_user_pct"], recorder.pid, same["comm"])
        assert row["rss_kb"] > 1000 and row["thread_count"] >= 1 and abs(row["wall_ns"] - 1e9) < 60e9
    refused = probing("-t", file, "query", "SELECT * FROM system.usage(1)", check=False)
    assert refused.returncode != 0 and "process" in refused.stderr


def descriptors_of_threads(pid):
    """Of the collector: the texts of threads that it keeps open."""
    found = []
    for name in os.listdir("/proc/{}/fd".format(pid)):
        try:
            where = os.readlink("/proc/{}/fd/{}".format(pid, name))
        except FileNotFoundError:
            continue
        found += [where] if where.endswith("/schedstat") else []
    return found


def test_descriptors_are_of_threads_that_live(recorder, store):
    """One for each thread, to read it again and again; none when the process has ended."""
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    collector = store.collect()
    wait_for(recorder.pid, USAGE + " WHERE scope = 'process'", 3)
    threads = os.listdir("/proc/{}/task".format(recorder.pid))
    assert sorted(one.split("/")[4] for one in descriptors_of_threads(collector.pid)) == sorted(threads)
    recorder.end()
    until = time.monotonic() + DEADLINE
    while descriptors_of_threads(collector.pid):
        assert time.monotonic() < until
        time.sleep(0.1)
    store.stop(collector)


def test_only_what_is_now_without_a_collector(recorder, store):
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    assert len(query(recorder.pid, "SELECT * FROM memory_usage")) == 1
    assert len(query(recorder.pid, "SELECT * FROM system.usage(0.2) WHERE scope = 'process'")) == 1


def test_the_command_shows_the_newest(recorder, store):
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    collector = store.collect()
    wait_for(recorder.pid, "SELECT * FROM memory_usage", 4)
    assert len(probing(recorder.pid, "memory", "-f", "jsonl").stdout.splitlines()) == 1
    store.stop(collector)


def test_a_killed_collector_loses_nothing_of_it(recorder, store):
    """Its rings outlive it; the next one moves what they hold before it begins with its own."""
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    for least in (3, 6):
        collector = store.collect()
        told = wait_for(recorder.pid, "SELECT timestamp FROM memory_usage ORDER BY timestamp", least)[:-1]
        collector.kill()
        collector.wait(DEADLINE)
        assert query(recorder.pid, "SELECT timestamp FROM memory_usage ORDER BY timestamp")[:len(told)] == told
    store.collect_once()
    (file,) = store.files()
    kept = [row["timestamp"] for row in query(file, "SELECT timestamp FROM memory_usage ORDER BY timestamp")]
    assert kept[:len(told)] == [row["timestamp"] for row in told] and len(set(kept)) == len(kept)
    assert not query(file, "SELECT * FROM probing.gaps")


def test_gpus_are_kept_once_for_a_job(recorder, store, monkeypatch, tmp_path):
    gpus.pretend(monkeypatch, tmp_path, "{} xid".format(recorder.pid))
    told = tmp_path / "told"
    monkeypatch.setenv("PRB_FAKE_NVML_TOLD", str(told))
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    collector = store.collect()
    wait_for(recorder.pid, "SELECT DISTINCT timestamp FROM gpu_metrics", 4)
    now = query(recorder.pid, "SELECT gpu_id, uuid, gpu_util, memory_used_mb, power_w FROM gpu_metrics ORDER BY timestamp DESC, gpu_id LIMIT 2")
    store.stop(collector)
    assert told.read_text().split().count(str(collector.pid)) == 1  # the library is loaded and begun once
    recorder.end()
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    (file,) = store.files()
    kept = query(file, "SELECT gpu_id, uuid, gpu_util, memory_used_mb, power_w FROM gpu_metrics ORDER BY timestamp, gpu_id")
    assert len(kept) >= 4 and [row["gpu_id"] for row in kept] == [0, 1] * (len(kept) // 2)
    assert set(kept[0]) == set(now[0]) and {row["uuid"] for row in kept} == {row["uuid"] for row in now}
    assert all(row["gpu_util"] is None or 0 <= row["gpu_util"] <= 100 for row in kept)
    grown = query(file, "SELECT sm_active, xid, nvlink_rx_mb, nvlink_tx_mb FROM gpu_metrics WHERE gpu_id = 0 ORDER BY timestamp")
    links = {"nvlink_rx_mb": 3072, "nvlink_tx_mb": 20480}
    assert grown[0] == dict(links, sm_active=None, xid=None), "nothing is known of before the first reading"
    assert grown[1:] == [dict(links, sm_active=37.5, xid=79)] * (len(grown) - 1)
    others = query(file, "SELECT DISTINCT sm_active, xid, nvlink_rx_mb, nvlink_tx_mb FROM gpu_metrics WHERE gpu_id = 1")
    assert others == [dict.fromkeys(grown[0])]
    same = query(file, "SELECT device_id AS gpu_id, gpu_util_pct AS gpu_util, power_w FROM gpu.utilization ORDER BY ts, device_id")
    assert same == [{name: row[name] for name in ("gpu_id", "gpu_util", "power_w")} for row in kept]
    users = query(file, "SELECT DISTINCT gpu_id, gpu_pid, memory_mb, sm_util FROM gpu_processes WHERE gpu_pid = {}".format(recorder.pid))
    assert users == [{"gpu_id": 0, "gpu_pid": recorder.pid, "memory_mb": 512, "sm_util": 63}]


FIRST_COLUMNS = ("timestamp:time\ngpu_id:integer\nuuid:text\nname:text\nbackend:text\ngpu_util:real\nmem_util:real\nmemory_used_mb:real\n"
                 "memory_total_mb:real\ntemperature_c:real\npower_w:real\nenergy_j:real\nsm_clock_mhz:integer\nmem_clock_mhz:integer\n"
                 "throttle:text\necc_errors:integer")


def test_gpus_as_a_first_collector_kept_them(recorder, store, monkeypatch, tmp_path):
    """Its rows have fewer columns; those that a later collector adds are NULL there."""
    recorder.write("probing_host_gpus", [(1.7e9, 0, "GPU-0", "NVIDIA Fake 9000", "nvml", 12) + (None,) * 10], FIRST_COLUMNS)
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    gpus.pretend(monkeypatch, tmp_path, "xid")
    collector = store.collect()
    wait_for(recorder.pid, "SELECT timestamp FROM gpu_metrics WHERE sm_active IS NOT NULL", 1)
    store.stop(collector)
    recorder.end()
    (file,) = store.files()
    rows = query(file, "SELECT gpu_util, sm_active, xid, nvlink_tx_mb FROM gpu_metrics WHERE gpu_id = 0 ORDER BY timestamp")
    assert rows[0] == {"gpu_util": 12, "sm_active": None, "xid": None, "nvlink_tx_mb": None}
    assert rows[-1] == {"gpu_util": 87, "sm_active": 37.5, "xid": 79, "nvlink_tx_mb": 20480}


def test_gpus_of_an_old_driver(recorder, store, monkeypatch, tmp_path):
    """It lacks the functions, so a collector's rows have NULL there, too."""
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    gpus.pretend(monkeypatch, tmp_path, library="host/nvml_old.so")
    collector = store.collect()
    wait_for(recorder.pid, "SELECT DISTINCT timestamp FROM gpu_metrics", 4)
    store.stop(collector)
    (file,) = store.files()
    rows = query(file, "SELECT name, sm_active, xid, nvlink_rx_mb, nvlink_tx_mb FROM gpu_metrics")
    assert len(rows) >= 3
    assert all(row == dict(dict.fromkeys(row), name="NVIDIA Fake 100") for row in rows)


def test_the_interval_and_none(recorder, store, monkeypatch):
    monkeypatch.setenv("PROBING_CPU_SAMPLE_MS", "0")
    writer = recorder.write("events", [(1, 0.5, "", 1.7e9)])
    collector = store.collect()
    until = time.monotonic() + DEADLINE
    while not store.files():
        assert time.monotonic() < until
        time.sleep(0.1)
    time.sleep(2.5)  # two turns, in which nothing may come
    assert not list(recorder.rings.glob("probing_host_*"))
    store.stop(collector)
    writer.kill()


def test_a_live_job_by_its_setting(recorder, store):
    """`config probing.store=on` starts the collector of the job's folder, which goes on until it is ended."""
    recorder.write("events", [(1, 0.5, "", 1.7e9)])
    assert probing(recorder.pid, "config", "probing.store=on", check=False).stdout == "probing.store = on\n"
    lock = store.data / "collector.lock"
    until = time.monotonic() + DEADLINE
    while not lock.exists() or not lock.read_text().startswith("process "):
        assert time.monotonic() < until
        time.sleep(0.02)
    collector = int(lock.read_text().split()[1].rstrip(","))
    try:
        with open("/proc/{}/stat".format(collector), encoding="utf-8") as stat:
            assert int(stat.read().rsplit(")", 1)[1].split()[1]) != os.getpid(), "nobody waits for it"
        assert str(store.folder) in probing("collect").stdout
        wait_for(recorder.pid, "SELECT * FROM memory_usage", 3)
        assert "goes on" in probing(recorder.pid, "config", "probing.store=off", check=False).stderr
    finally:
        os.kill(collector, signal.SIGTERM)
    while os.path.exists("/proc/{}".format(collector)):
        assert time.monotonic() < until + DEADLINE
        time.sleep(0.02)
    (file,) = store.files()
    assert len(query(file, "SELECT * FROM memory_usage")) >= 2
