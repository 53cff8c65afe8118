"""nccl.ras and nccl.ras_ranks: a stand-in for NCCL's RAS service, which speaks JSON, or text alone, or anything."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from support.ranks import two_ranks
from support.target import DEADLINE, free_port, probing
from support.waits import until

COMMS = "SELECT * FROM nccl.ras"
RANKS = "SELECT * FROM nccl.ras_ranks"
OPS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


class Service:
    """NCCL's side.  answer: bytes of the status; json: whether it knows that format; words: what each command gets instead of its answer
    (None: nothing, bytes)."""

    def __init__(self, answer=b"", json=True, words=None, host="127.0.0.1"):
        self.answer, self.json, self.words = answer, json, words or {}
        self.commands = []
        self.listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port = self.listener.getsockname()[1]
        self.address = "{}:{}".format("[{}]".format(host) if ":" in host else host, self.port)
        self.threads = [threading.Thread(target=self.serve, daemon=True)]
        self.threads[0].start()

    def serve(self):
        while True:
            try:
                one = self.listener.accept()[0]
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.talk, args=(one,), daemon=True))
            self.threads[-1].start()

    def talk(self, one):
        try:
            with one, one.makefile("rb") as lines:
                for line in lines:
                    command = line.decode().rstrip("\n")
                    self.commands.append(command)
                    answer = self.words.get(command.split()[0], self)
                    if answer is self:
                        answer = self.usual(command)
                    if answer is None:
                        continue
                    one.sendall(answer() if callable(answer) else answer)
                    if "STATUS" in command:
                        return
        except OSError:
            pass

    def usual(self, command):
        if command.startswith("CLIENT PROTOCOL "):
            return b"SERVER PROTOCOL 2\n"
        if command.startswith("SET FORMAT") and not self.json:
            return b"ERROR: Unknown command " + command.encode() + b"\n"
        return self.answer if "STATUS" in command else b"OK\n"

    def end(self):
        self.listener.close()


@pytest.fixture
def service():
    started = []

    def begin(*args, **more):
        started.append(Service(*args, **more))
        return started[-1]

    yield begin
    for one in started:
        one.end()


@pytest.fixture
def job():
    """job(service's address): the pid of a rank whose NCCL_RAS_ADDR this is."""
    started = []

    def begin(address, **more):
        environment = dict(os.environ, RANK="3", WORLD_SIZE="4", **more)
        if address:
            environment["NCCL_RAS_ADDR"] = address
        started.append(subprocess.Popen([sys.executable, "-c", "print('ready', flush=True); input()"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment))
        assert started[-1].stdout.readline() == b"ready\n"
        return started[-1].pid

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def told(pid, sql, *options):
    """(rows, notes)"""
    done = probing("-t", pid, "query", "-f", "json", *options, sql, check=False)
    assert done.returncode == 0, done
    return json.loads(done.stdout), done.stderr


def counts(*numbers):
    return dict(zip(OPS, numbers))


def rank(number, pid, launched, init=0, error=0, **flags):
    status = dict({"finalize_called": False, "destroy_flag": False, "abort_flag": False}, init_state=init, async_error=error, **flags)
    return {"rank": number, "host": "10.0.0.7", "pid": pid, "cuda_dev": number, "nvml_dev": number + 4, "status": status,
            "collective_counts": launched}


def missing(number, pid, silent=False, dead=False):
    return {"rank": number, "host": "10.0.0.8", "pid": pid, "cuda_dev": 0, "nvml_dev": 0,
            "status": {"unresponsive": silent, "considered_dead": dead}}


def comm(name, size, ranks, absent=()):
    return {"hash": name, "secondary_hash": "0x1:0x2", "size": size, "ranks_count": len(ranks), "missing_ranks_count": len(absent),
            "ranks": ranks, "missing_ranks": list(absent)}


def report(*comms, timeouts=0):
    return json.dumps({"nccl_version": "2.28.9", "cuda_runtime_version": 12080, "cuda_driver_version": 12080, "timestamp": "x",
                       "communicators_count": len(comms), "communicators": comms,
                       "ras": {"collection_time_sec": 0.001, "timeouts_count": timeouts}}).encode()


def test_json(service, job):
    """A communicator that is well, and one of four ranks of which two are missing, one is late, and one has an error."""
    one = service()
    pid = job(one.address)
    well = comm("0xfedcba9876543210", 2, [rank(0, pid, counts(0, 0, 1, 0, 9)), rank(1, 7, counts(0, 0, 1, 0, 9))])
    ill = comm("0x1", 4, [rank(0, pid, counts(2, 0, 0, 5, 41)), rank(1, 8, counts(2, 0, 0, 4, 38), error=6)],
               [missing(2, 9, silent=True), missing(3, 10, silent=True, dead=True)])
    one.answer = report(well, ill, timeouts=2)
    rows, notes = told(pid, COMMS)
    assert [row["comm_hash"] for row in rows] == [0xfedcba9876543210 - (1 << 64), 1]
    first, second = rows
    assert (first["pid"], first["rank"], first["nccl_version"]) == (pid, 3, "2.28.9") and abs(first["timestamp"] - time.time()) < 60
    assert (first["n_ranks"], first["missing_ranks"], first["missing"], first["behind"]) == (2, 0, None, None)
    assert (first["status"], first["errors"], first["all_gather"], first["all_reduce"]) == ("RUNNING", "OK", 1, 9)
    assert (second["n_ranks"], second["missing_ranks"], second["missing"], second["behind"]) == (4, 2, "2,3", "1")
    assert (second["status"], second["errors"]) == ("RUNNING", "INCOMPLETE,ERROR,MISMATCH")
    assert [second[key] for key in ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce")] == [2, 0, 0, 5, 41]
    assert json.loads(second["raw"]) == ill
    assert "2 processes did not answer" in notes
    # Beside much other work, the first word may have been said again.
    assert one.commands[-4:] == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json", "VERBOSE STATUS"]
    rows, _ = told(pid, RANKS + " WHERE comm_hash = 1 ORDER BY comm_rank")
    assert [(row["comm_rank"], row["rank_pid"], row["status"], row["error"], row["behind"]) for row in rows] == [
        (0, pid, "RUNNING", None, 0), (1, 8, "RUNNING", "Remote process error", 3), (2, 9, "UNRESPONSIVE", None, None),
        (3, 10, "DEAD", None, None)]
    assert (rows[1]["host"], rows[1]["cuda_dev"], rows[1]["nvml_dev"], rows[1]["all_reduce"]) == ("10.0.0.7", 1, 5, 38)
    joined, _ = told(pid, "SELECT r.comm_rank FROM nccl.ras c JOIN nccl.ras_ranks r USING (comm_hash) WHERE c.errors <> 'OK' AND r.behind > 0")
    assert joined == [{"comm_rank": 1}]


def test_states(service, job):
    one = service()
    pid = job(one.address)
    one.answer = report(comm("0x5", 4, [rank(0, pid, counts(0, 0, 0, 0, 0), init=7), rank(1, 2, counts(0, 0, 0, 0, 0), abort_flag=True),
                                        rank(2, 3, counts(0, 0, 0, 0, 0), destroy_flag=True)], [missing(3, 4)]))
    rows, _ = told(pid, RANKS)
    assert [row["status"] for row in rows] == ["INIT", "ABORT", "FINALIZE", "NOCOMM"]
    row, = told(pid, COMMS)[0]
    assert (row["status"], row["errors"]) == ("ABORT", "MISMATCH")


TEXT = """NCCL version 2.26.2 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.003s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         2         2       3-4         8         7   RUNNING  INCOMPLETE,ERROR
    1         1         1         4         4         4   RUNNING  MISMATCH
    2         2         1         2         2         4   RUNNING      OK

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 4711 on node 10.0.0.2 managing GPU 3

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 4712 on node 10.0.0.2 managing GPU 2

#0-1 (00000000000000ab) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 7 -- GPU 3 (NVML 5) managed by process 4711 on node 10.0.0.2

#0-1 (00000000000000ab) ERROR
  Asynchronous errors on 2 ranks
  2 ranks reported System error
  Rank 2 -- GPU 2 managed by process 12 on node 10.0.0.1
  Rank 3 -- [process information not found]

Warnings
========

TIMEOUT
  Encountered 1 communication timeout while gathering communicator data

#1-0 (ffffffffffffffff) MISMATCH
  Communicator ranks have different status
  3 ranks have status RUNNING
  Rank 1 has status FINALIZE -- GPU 1 managed by process 21 on node 10.0.0.1
  Communicator ranks have different AllReduce operation counts
  2 ranks have launched up to operation 41
  Rank 3 has launched up to operation 38 -- GPU 3 managed by process 23 on node 10.0.0.1
  Rank 1 has not launched any operations -- GPU 1 managed by process 21 on node 10.0.0.1

"""


def test_text(service, job):
    """An older NCCL: communicators without hashes, but for those that something is wrong with, and ranks that are named."""
    one = service(TEXT.encode(), json=False)
    pid = job(one.address)
    rows, notes = told(pid, COMMS)
    assert [(row["comm_hash"], row["n_ranks"], row["status"], row["errors"]) for row in rows] == [
        (None, 8, "RUNNING", "INCOMPLETE,ERROR"), (0xab, 8, "RUNNING", "INCOMPLETE,ERROR"), (-1, 4, "RUNNING", "MISMATCH"),
        (None, 2, "RUNNING", "OK"), (None, 2, "RUNNING", "OK")]
    assert [(row["missing_ranks"], row["missing"], row["behind"], row["all_reduce"]) for row in rows[1:4]] == [
        (1, "7", None, None), (0, None, "1,3", 41), (0, None, None, None)]
    assert rows[0]["nccl_version"] == "2.26.2" and rows[0]["raw"] is None
    assert rows[1]["raw"].startswith("INCOMPLETE\n") and "ERROR\n" in rows[1]["raw"] and "Rank 7 -- GPU 3" in rows[1]["raw"]
    for said in "Missing communicator data from 1 job process", "1 job process is considered dead", "Encountered 1 communication timeout":
        assert said in notes
    rows, _ = told(pid, RANKS)
    assert [(row["comm_hash"], row["comm_rank"], row["status"], row["error"], row["rank_pid"], row["cuda_dev"], row["nvml_dev"],
             row["host"]) for row in rows] == [
        (0xab, 2, None, "System error", 12, 2, 2, "10.0.0.1"), (0xab, 3, None, "System error", None, None, None, None),
        (0xab, 7, "UNRESPONSIVE", None, 4711, 3, 5, "10.0.0.2"),
        (-1, 1, "FINALIZE", None, 21, 1, 1, "10.0.0.1"), (-1, 3, None, None, 23, 3, 3, "10.0.0.1")]
    assert [(row["all_reduce"], row["behind"]) for row in rows[3:]] == [(0, 41), (38, 3)]


def test_text_that_is_cut(service, job):
    one = service(TEXT[:TEXT.index("Warnings")].encode(), json=False)
    rows, notes = told(job(one.address), COMMS)
    assert len(rows) == 5 and "was cut" in notes


def test_no_communicator(service, job):
    one = service(b"NCCL version 2.26.2 compiled\n\nCommunicators... (0.0s)\n===\n\nNo communicator data collected!\n\nErrors\n======\n\n"
                  b"Warnings\n========\n\n", json=False)
    assert told(job(one.address), COMMS) == ([], told(job(one.address), COMMS)[1])
    assert "knows of no communicator" in told(job(one.address), COMMS)[1]


@pytest.mark.parametrize("words, note", [
    ({"CLIENT": b"HTTP/1.1 400 Bad Request\r\n\r\n"}, "no RAS service"),
    ({"CLIENT": b"\0\xff" * 400 + b"\n"}, "a line of more than"),
    ({"CLIENT": b"SERVER PROTOCOL 2\n", "TIMEOUT": b"ERROR: Invalid\n"}, "refuses a time limit"),
    ({"VERBOSE": b"{\"communicators\": [{\"hash\": "}, "cannot be read"),
    ({"VERBOSE": b"[]"}, "cannot be read"),
    ({"VERBOSE": b"[" * 100000}, "cannot be read"),
    ({"VERBOSE": b""}, "cannot be read"),
])
def test_garbage(service, job, words, note):
    one = service(report(), words=words)
    rows, notes = told(job(one.address), COMMS)
    assert rows == [] and note in notes


def test_more_than_there_can_be(service, job):
    one = service(TEXT.replace("    2         2         1", "    2 999999999         1").encode(), json=False)
    rows, notes = told(job(one.address), COMMS)
    assert rows == [] and "more communicators or ranks than can be" in notes


def test_cells_of_other_types(service, job):
    one = service(json.dumps({"nccl_version": 2, "communicators": [
        7, {"hash": "no", "size": "8", "ranks": [None, {"rank": 1 << 62, "host": 5, "status": [], "collective_counts": {"AllReduce": 1.5}}]}]}).encode())
    pid = job(one.address)
    rows, notes = told(pid, COMMS)
    assert len(rows) == 2 and all(row["comm_hash"] is None and row["n_ranks"] is None and row["status"] is None for row in rows)
    assert "of another job" in notes
    assert [(row["comm_rank"], row["all_reduce"], row["status"]) for row in told(pid, RANKS)[0]] == [(None, None, None), (1 << 62, None, None)]


def test_an_answer_without_end(service, job):
    def endless():
        time.sleep(0.01)
        return b"x" * (33 << 20)
    one = service(words={"VERBOSE": endless})
    rows, notes = told(job(one.address), COMMS)
    assert rows == [] and "more than 32 MiB" in notes


def test_one_that_hangs(service, job):
    """It says nothing, or not all: the query ends in bounded time, and says so."""
    silent, half = service(words={"CLIENT": None}), service(words={"VERBOSE": None})
    pid = job(silent.address)
    begun = time.monotonic()
    rows, notes = told(pid, COMMS)
    assert rows == [] and "did not answer in time" in notes and time.monotonic() - begun < DEADLINE / 2
    until(lambda: silent.commands == 3 * ["CLIENT PROTOCOL 2"])  # ranks share the port, and another may answer
    rows, notes = told(job(half.address), "SET probing.query_timeout = 3; " + COMMS)
    assert rows == [] and "did not end its answer in time" in notes


def test_none(job):
    port = free_port()
    rows, notes = told(job("127.0.0.1:{}".format(port)), COMMS)
    assert rows == [] and "no RAS service of NCCL answers at 127.0.0.1:{}".format(port) in notes and "NCCL_RAS_ENABLE" in notes


@pytest.mark.parametrize("address, note", [("8.8.8.8:28028", "no address of this machine"), ("nccl.example:28028", "no address of this machine"),
                                           ("nonsense", "no HOST:PORT"), ("[::1]:0", "no HOST:PORT"), ("/tmp/x:1", "no address of this machine")])
def test_addresses_that_are_refused(job, address, note):
    """The target names it: we are not sent to other machines, and ask no name server."""
    rows, notes = told(job(address), COMMS)
    assert rows == [] and note in notes


@pytest.mark.parametrize("host", ["::1", "0.0.0.0"])
def test_other_addresses(service, job, host):
    try:
        one = service(report(), host=host)
    except OSError:
        pytest.skip("no address {} here".format(host))
    assert "knows of no communicator" in told(job(one.address), COMMS)[1]


def test_two_jobs_that_share_the_port(service, job):
    """The kernel chooses who answers: it is asked again until the process is among the ranks."""
    one = service()
    pid = job(one.address)
    answers = iter([report(comm("0x1", 1, [rank(0, 1, counts(0, 0, 0, 0, 0))])), report(comm("0x2", 1, [rank(0, pid, counts(0, 0, 0, 0, 0))]))])
    one.words["VERBOSE"] = lambda: next(answers)
    rows, notes = told(pid, COMMS)
    assert [row["comm_hash"] for row in rows] == [2] and not notes


def test_ranks_are_not_counted_twice(service):
    """One rank alone asks."""
    one = service(report(comm("0x2", 2, [])))
    with two_ranks(NCCL_RAS_ADDR=one.address) as pids:
        rows, _ = told(pids[1], COMMS, "--ranks")
        assert [(row["comm_hash"], row["pid"]) for row in rows] == [(2, min(pids))]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_the_service_of_another_user(job, service):
    """Who is first at the port of everybody may tell anything."""
    code = ("import os, socket, sys\none = socket.create_server(('127.0.0.1', 0))\nos.setuid(65533)\n"
            "own = socket.create_server(('127.0.0.1', 0))\nprint(own.getsockname()[1], flush=True)\n"
            "while True:\n    c = own.accept()[0]\n    c.recv(100)\n    c.sendall(b'SERVER PROTOCOL 2\\n')\n    c.recv(100)\n")
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        rows, notes = told(job("127.0.0.1:{}".format(int(child.stdout.readline()))), COMMS)
        assert rows == [] and "of user 65533 is refused" in notes
    finally:
        child.kill()
        child.communicate()
    assert service
