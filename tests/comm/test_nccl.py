"""The NCCL profiler plugin, driven by a stand-in for NCCL as versions 4, 5 and 6: nccl.coll_perf, nccl.proxy_ops, the event mask."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from support.target import TARGETS, probing, query

BUILD = os.environ.get("BUILDDIR", ".")
PLUGIN = os.path.join(os.path.abspath(BUILD), ".libs", "libprobing-nccl.so")
HOST = os.path.join(BUILD, "tests", "comm", ".libs", "nccl_host.so")
COLLS = "SELECT * FROM nccl.coll_perf ORDER BY seq"


class Job:
    def __init__(self, version, **variables):
        environment = dict(os.environ, NCCL_HOST=HOST, RANK="3", **variables)
        environment = {key: value for key, value in environment.items() if value is not None}
        self.child = subprocess.Popen([sys.executable, os.path.join(TARGETS, "nccl_job.py"), str(version)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, env=environment)
        assert self.child.stdout.readline() == b"ready\n"
        self.pid = self.child.pid

    def __call__(self, expression):
        """What an expression of nccl_job.py gives."""
        self.child.stdin.write(expression.encode() + b"\n")
        self.child.stdin.flush()
        return eval(self.child.stdout.readline())

    def switch(self, value, mask):
        probing("-t", self.pid, "inject")
        probing("-t", self.pid, "config", "probing.nccl=" + value)
        until = time.monotonic() + 30
        while self("n.nccl_mask()") != mask:
            assert time.monotonic() < until
            time.sleep(0.02)

    def end(self):
        self.child.kill()
        self.child.communicate()


@pytest.fixture
def start():
    started = []

    def begin(version=6, **variables):
        started.append(Job(version, **dict({"NCCL_PROFILER_PLUGIN": PLUGIN}, **variables)))
        assert started[-1]("n.nccl_comm(0, 0xabcd, 8, 5)") == 0
        return started[-1]

    yield begin
    for job in started:
        job.end()


VERSIONS = pytest.mark.parametrize("version", [4, 5, 6])


@VERSIONS
def test_a_collective(start, version):
    """Its fields lie where that version has them; the GPU's clock counts when it is given."""
    job = start(version)
    assert job("n.nccl_mask()") == 0
    job.switch("on", 94)
    before = time.time()
    job("h.update(c=n.nccl_coll(0, 7, b'AllReduce', 1000, b'ncclFloat32', 2))")
    job("n.nccl_stop(h['c'])")
    assert query(job.pid, COLLS) == []  # its kernels have not ended
    for channel in range(2):
        job("h.update(k=n.nccl_kernel(0, h['c'], {}, {}))".format(channel, 5000 + channel))
        job("n.nccl_state(h['k'], 22, {})".format(9000 + channel))
        job("n.nccl_stop(h['k'])")
    row, = query(job.pid, COLLS)
    assert (row["coll_func"], row["seq"], row["count"], row["dtype"], row["n_channels"]) == ("AllReduce", 7, 1000, "ncclFloat32", 2)
    assert (row["algo"], row["proto"], row["comm_hash"], row["n_ranks"], row["rank"]) == ("RING", "LL128", 0xabcd, 8, 3)
    assert (row["msg_size_bytes"], row["timing_source"], row["exec_time_ns"], row["is_p2p"]) == (4000, "kernel_gpu", 4001, 0)
    assert row["algobw_gbps"] == pytest.approx(4000 / 4001) and row["pid"] == job.pid and row["peer"] is None
    assert before <= row["timestamp"] <= time.time() and row["enqueue_time_ns"] > 0


@VERSIONS
def test_point_to_point_and_proxies(start, version):
    job = start(version)
    job.switch("on", 94)
    job("h.update(c=n.nccl_p2p(0, b'Send', 500, b'ncclBfloat16', 6))")
    job("n.nccl_stop(h['c'])")
    job("h.update(o=n.nccl_proxy(0, h['c'], 1, 6, 2, 1))")
    for number in range(2):
        job("h.update(s=n.nccl_step(0, h['o'], {}))".format(number))
        for state, size in ((8, 0), (20, 0), (9, 600)):
            job("n.nccl_state(h['s'], {}, {})".format(state, size))
        job("n.nccl_stop(h['s'])")
    job("n.nccl_stop(h['o'])")
    job("h.update(k=n.nccl_kernel(0, h['c'], 1, 0))")
    job("n.nccl_stop(h['k'])")
    proxy, = query(job.pid, "SELECT * FROM nccl.proxy_ops")
    assert (proxy["coll_func"], proxy["peer"], proxy["is_send"], proxy["n_steps"], proxy["trans_bytes"]) == ("Send", 6, 1, 2, 1200)
    assert min(proxy[name + "_ns"] for name in ("send_gpu_wait", "send_peer_wait", "send_wait")) > 0
    assert proxy["recv_wait_ns"] == proxy["recv_flush_wait_ns"] == 0
    assert proxy["send_gpu_wait_ns"] + proxy["send_peer_wait_ns"] + proxy["send_wait_ns"] <= proxy["duration_ns"]
    row, = query(job.pid, COLLS)
    assert (row["is_p2p"], row["peer"], row["seq"], row["msg_size_bytes"], row["timing_source"]) == (1, 6, None, 1000, "kernel_ch")


@VERSIONS
def test_work_requests_of_the_network(start, version):
    """With bit 128 alone; those of another plugin are not taken for InfiniBand's."""
    job = start(version, NCCL_PROFILE_EVENT_MASK=str(94 | 128))
    job.switch("on", 94 | 128)
    job("h.update(c=n.nccl_coll(0, 7, b'AllReduce', 1000, b'ncclFloat32', 1))")
    job("h.update(o=n.nccl_proxy(0, h['c'], 1, 6, 2, 1))")
    job("h.update(s=n.nccl_step(0, h['o'], 0))")
    job("h.update(q=n.nccl_net(0, h['s'], 1 << 16 | 1, 77, 1 << 40, 4096), lone=n.nccl_net(0, None, 1 << 16 | 1, 78, 5, 1))")
    job("h.update(other=n.nccl_net(0, h['s'], 2 << 16 | 1, 79, 6, 1), later=n.nccl_net(0, h['s'], 1 << 16 | 2, 80, 7, 1))")
    for handle in ("q", "lone", "other", "later", "q"):
        job("n.nccl_stop(h['{}'])".format(handle))
    first, second = query(job.pid, "SELECT * FROM nccl.net_qp ORDER BY qp_num")
    assert (first["device"], first["qp_num"], first["wr_id"], first["opcode"], first["length"]) == (2, 77, 1 << 40, 0, 4096)
    assert (first["comm_hash"], first["rank"], first["peer"], first["is_send"]) == (0xabcd, 3, 6, 1) and first["duration_ns"] > 0
    assert (second["qp_num"], second["peer"], second["is_send"]) == (78, None, None)
    job.switch("off", 0)
    counters, = query(job.pid, "SELECT net FROM nccl.profiler_counters")
    assert counters == {"net": 2}


FLIGHT = "SELECT * FROM nccl.inflight_ops ORDER BY start_ns"


@VERSIONS
def test_what_is_in_flight(start, version):
    """Where a hang stands: one that was enqueued, one whose kernel waits, and what the proxy waits for, while the process is stopped."""
    job = start(version)
    job.switch("on", 94)
    before = time.time_ns()
    job("h.update(done=n.nccl_coll(0, 6, b'AllReduce', 10, b'ncclInt8', 1))")
    job("h.update(c=n.nccl_coll(0, 7, b'AllReduce', 1000, b'ncclFloat32', 1), p=n.nccl_p2p(0, b'Send', 500, b'ncclBfloat16', 6))")
    job("h.update(e=n.nccl_coll(0, 8, b'AllGather', 10, b'ncclInt8', 2), k=n.nccl_kernel(0, h['done'], 0, 0))")
    for handle in ("done", "k", "c", "p"):
        job("n.nccl_stop(h['{}'])".format(handle))
    job("h.update(k=n.nccl_kernel(0, h['c'], 0, 0), o=n.nccl_proxy(0, h['c'], 1, 4, 2, 1), r=n.nccl_proxy(0, h['c'], 2, 3, 2, 0))")
    job("h.update(s=n.nccl_step(0, h['o'], 0))")
    for state in (8, 20):
        job("n.nccl_state(h['s'], {}, 0)".format(state))
    os.kill(job.pid, 19)
    try:
        rows = query(job.pid, FLIGHT)
    finally:
        os.kill(job.pid, 18)
    assert [(row["kind"], row["coll_func"], row["seq"], row["state"], row["peer"]) for row in rows] == [
        ("coll", "AllReduce", 7, "running", None), ("p2p", "Send", None, "queued", 6), ("coll", "AllGather", 8, "enqueuing", None),
        ("proxy_op", "AllReduce", 7, "send_peer_wait", 4), ("proxy_op", "AllReduce", 7, None, 3)]
    assert {(row["pid"], row["rank"], row["comm_hash"], row["n_ranks"]) for row in rows} == {(job.pid, 3, 0xabcd, 8)}
    assert [row["msg_size_bytes"] for row in rows[:3]] == [4000, 1000, 10]
    assert [(row["channel_id"], row["is_send"]) for row in rows[2:]] == [(None, None), (1, 1), (2, 0)]
    for row in rows:
        assert before <= row["start_ns"] <= row["ts"] <= time.time_ns() and row["start_ns"] + row["age_ns"] == pytest.approx(row["ts"], abs=5e7)
    assert 0 < rows[3]["state_ns"] <= rows[3]["age_ns"] and rows[4]["state_ns"] is None
    for handle in ("s", "o", "r", "k", "e"):
        job("n.nccl_stop(h['{}'])".format(handle))
    assert [row["coll_func"] for row in query(job.pid, FLIGHT)] == ["Send", "AllGather"]
    job("n.nccl_end(0)")
    assert query(job.pid, FLIGHT) == []


def test_in_flight_while_it_works(start):
    """No row is of two events: what is read while the job goes on was so at one moment."""
    job = start()
    job.switch("on", 94)
    job.child.stdin.write(b"n.nccl_speed(0, 1500000)\n")
    job.child.stdin.flush()
    for _ in range(20):
        for row in query(job.pid, FLIGHT):
            assert (row["coll_func"], row["msg_size_bytes"], row["comm_hash"]) == ("AllReduce", 4000, 0xabcd)
    assert job.child.stdout.readline()


def test_in_flight_of_what_was_dropped(start):
    """Off and on again: what began before is not told, and where it is off, a note says so."""
    job = start()
    job.switch("on", 94)
    job("h.update(c=n.nccl_coll(0, 7, b'AllReduce', 1000, b'ncclFloat32', 1))")
    job.switch("off", 0)
    done = probing("-t", job.pid, "query", "-f", "json", FLIGHT, check=False)
    assert json.loads(done.stdout) == [] and "probing.nccl=on" in done.stderr
    job.switch("on", 94)
    assert query(job.pid, FLIGHT) == []
    job("h.update(c=n.nccl_coll(0, 8, b'AllReduce', 1000, b'ncclFloat32', 1))")
    assert [row["seq"] for row in query(job.pid, FLIGHT)] == [8]


@pytest.mark.skipif(not shutil.which("gcore"), reason="no gcore here (package gdb)")
def test_in_flight_of_a_core(start, tmp_path):
    job = start()
    job.switch("on", 94)
    job("h.update(c=n.nccl_coll(0, 7, b'AllReduce', 1000, b'ncclFloat32', 1))")
    path = str(tmp_path / "core")
    subprocess.run(["gcore", "-o", path, str(job.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    row, = query("{}.{}".format(path, job.pid), FLIGHT)
    assert (row["seq"], row["state"], row["comm_hash"], row["rank"]) == (7, "enqueuing", 0xabcd, 3)


def test_in_flight_without_the_plugin():
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    done = probing("-t", child.pid, "query", "-f", "json", FLIGHT, check=False)
    child.kill()
    child.communicate()
    assert json.loads(done.stdout) == [] and "has not loaded our plugin" in done.stderr


@VERSIONS
def test_any_order(start, version):
    """Children after their parent's row, ends twice, an end after the communicator's, kinds that are not known, no context."""
    job = start(version)
    job.switch("on", 94)
    job("h.update(a=n.nccl_coll(0, 1, b'AllGather', 10, b'ncclInt8', 1), b=n.nccl_coll(0, 2, b'AllGather', 10, b'ncclInt8', 1))")
    job("h.update(kb=n.nccl_kernel(0, h['b'], 0, 0), ka=n.nccl_kernel(0, h['a'], 0, 0))")
    for handle in ("kb", "ka", "b", "a", "a", "ka"):  # kernels first, then twice
        job("n.nccl_stop(h['{}'])".format(handle))
    job("h.update(late=n.nccl_proxy(0, h['a'], 0, 1, 1, 0))")
    job("n.nccl_stop(h['late'])")
    job("h.update(lone=n.nccl_proxy(0, None, 0, 1, 1, 0), wrong=n.nccl_step(0, 12345678901, 1))")
    job("n.nccl_stop(h['lone'])")
    job("n.nccl_stop(h['wrong'])")
    job("n.nccl_state(99, 9, 1)")
    job("n.nccl_stop(77)")
    assert job("n.nccl_other(0, 1 << 5)") is None and (version == 4 or job("n.nccl_other(0, 1 << 12)") is None)
    job("h.update(c=n.nccl_coll(0, 3, b'AllGather', 10, b'ncclInt8', 4))")
    job("n.nccl_stop(h['c'])")
    job("n.nccl_end(0)")  # kernels of the last one were never seen to end
    job("h.update(k=n.nccl_kernel(0, h['c'], 0, 0))")
    job("n.nccl_stop(h['k'])")
    rows = query(job.pid, COLLS)
    assert [(row["seq"], row["timing_source"]) for row in rows] == [(1, "kernel_ch"), (2, "kernel_ch"), (3, "enqueue")]
    proxies = query(job.pid, "SELECT coll_func, seq FROM nccl.proxy_ops ORDER BY seq")
    assert proxies == [{"coll_func": None, "seq": None}, {"coll_func": "AllGather", "seq": 1}]
    counters, = query(job.pid, "SELECT * FROM nccl.profiler_counters")
    assert counters["coll"] == 3 and counters["rows_written"] >= 5 and counters["unmatched"] >= 3 and counters["rank"] == 3


def test_more_than_it_remembers(start):
    """Collectives that never end: each is written when its place is needed."""
    job = start()
    job.switch("on", 94)
    job("[n.nccl_coll(0, i, b'Reduce', 1, b'ncclInt8', 1) for i in range(20000)] and 0")
    done, = query(job.pid, "SELECT count(*) AS n, max(seq) AS last, count(enqueue_time_ns) AS ended FROM nccl.coll_perf")
    assert done == {"n": 20000 - 16384, "last": 20000 - 16384 - 1, "ended": 0}


def test_the_mask_is_changed_while_it_runs(start):
    job = start()
    for _ in range(20):
        job.switch("on", 94)
        job.switch("off", 0)
    assert job("n.nccl_coll(0, 1, b'Reduce', 1, b'ncclInt8', 0)") is None
    job.switch("on", 94)
    job("n.nccl_stop(n.nccl_coll(0, 5, b'Reduce', 1, b'ncclInt8', 0))")
    assert [row["seq"] for row in query(job.pid, COLLS)] == [5]
    job("n.nccl_comm(1, 0xef, 2, 1)")
    assert job("n.nccl_mask()") == 94  # a communicator that comes later
    probing("-t", job.pid, "detach")
    assert job("n.nccl_mask()") == 0


def test_small_messages_and_the_mask_of_the_environment(start):
    job = start(NCCL_PROFILE_EVENT_MASK="2")
    probing("-t", job.pid, "inject", "-D", "probing.nccl.min_msg_bytes=100")
    job.switch("on", 2)
    for count in (99, 100):
        job("n.nccl_stop(n.nccl_coll(0, {0}, b'Reduce', {0}, b'ncclInt8', 1))".format(count))
    assert [(row["seq"], row["timing_source"]) for row in query(job.pid, COLLS)] == [(100, "enqueue")]


def test_a_job_that_runs_without_it_is_told_why(start):
    job = start
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={key: value for key, value in os.environ.items() if key != "NCCL_PROFILER_PLUGIN"})
    child.stdout.readline()
    try:
        probing("-t", child.pid, "inject")
        done = probing("-t", child.pid, "config", "probing.nccl=on", check=False)
        assert done.returncode != 0 and "before its first communicator" in done.stderr and "python.torch_nccl_flight_record" in done.stderr
        probing("-t", child.pid, "config", "probing.nccl=off")
        assert query(child.pid, COLLS) == []
    finally:
        child.kill()
        child.communicate()
    assert job


@pytest.mark.parametrize("given", [None, "theirs.so"])
def test_launch_names_it_where_nobody_did(given):
    environment = {key: value for key, value in os.environ.items() if key != "NCCL_PROFILER_PLUGIN"}
    if given:
        environment["NCCL_PROFILER_PLUGIN"] = given
    done = probing("launch", sys.executable, "-c", "import os; print(os.environ['NCCL_PROFILER_PLUGIN'])", env=environment)
    assert os.path.basename(done.stdout.strip()) == (given or "libprobing-nccl.so")


def test_cost(start):
    """Off it costs next to nothing of what a collective with its kernel costs when it is on."""
    job = start()
    off = min(job("n.nccl_speed(0, 10000)") for _ in range(50))  # some of them undisturbed
    job.switch("on", 94)
    on = min(job("n.nccl_speed(0, 1000)") for _ in range(50))
    print(json.dumps({"off_ns": off, "on_ns": on}))
    assert off < on / 5
