"""A job of two ranks under torchrun, with DataLoader workers: each becomes a session; pausing one warns and counts down."""

import os
import re
import select
import signal
import subprocess
import time

import pytest

from client import Socket
from debuggee import evaluate, local_variables, marks, python_frames, resume, stack, stopped, top
from support.injection import wait_until
from support.target import DEADLINE, TARGETS, children, die_with_parent, free_port
from support.torch_python import torch_python

NAME = "ranked_torch.py"
PATH = os.path.realpath(os.path.join(TARGETS, NAME))
pytestmark = pytest.mark.skipif(not torch_python(), reason="needs a Python with torch (./bootstrap check has one)")


class Torchrun:
    """The launcher, its ranks by number, and how far each has come."""

    def __init__(self):
        self.child = subprocess.Popen(
            [torch_python(), "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1",
             "--master_port", str(free_port()), PATH],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=die_with_parent,
            env=dict(os.environ, OMP_NUM_THREADS="1", LC_ALL="C.UTF-8"))
        self.pid = self.child.pid
        self.text = b""
        self.steps = {0: -1, 1: -1}

    def wait_step(self, ranks=(0, 1), more=2, seconds=DEADLINE):
        """Until these ranks have made some more steps."""
        wanted = {rank: self.steps[rank] + more for rank in ranks}
        until = time.monotonic() + seconds
        while any(self.steps[rank] < number for rank, number in wanted.items()):
            left = until - time.monotonic()
            assert left > 0 and select.select([self.child.stdout], [], [], left)[0], "it makes no steps: {}".format(self.steps)
            self.read()

    def read(self):
        data = os.read(self.child.stdout.fileno(), 1 << 16)
        assert data, "the job ended"
        self.text += data
        *lines, self.text = self.text.split(b"\n")
        for line in lines:
            found = re.match(br"step (\d) (\d+)$", line)
            if found:
                self.steps[int(found.group(1))] = int(found.group(2))

    def ranks(self):
        """{rank: pid}"""
        found = {}
        for pid in children(self.pid):
            with open("/proc/{}/environ".format(pid), "rb") as file:
                for one in file.read().split(b"\0"):
                    if one.startswith(b"RANK="):
                        found[int(one[5:])] = pid
        return found

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(DEADLINE)
        finally:
            self.child.kill()
            self.child.wait()
            self.child.stdout.close()


@pytest.fixture
def torchrun():
    job = Torchrun()
    try:
        job.wait_step(seconds=2 * DEADLINE)
        yield job
    finally:
        job.end()


def wanted_sessions(parent, count):
    found = []
    while len(found) < count:
        request = parent.reverse_request("startDebugging")
        parent.reply(request)
        assert request["arguments"]["request"] == "attach"
        found.append(request["arguments"]["configuration"])
    return found


def test_ranks_and_workers_become_sessions(torchrun, client):
    """Over one server: the session of rank 0 asks for rank 1 and its own workers, that of rank 1 for its workers."""
    pids = torchrun.ranks()
    parent = client()
    parent.attach(pids[0], ranks=True, subProcess=True)
    found = {int(one["processId"]): one for one in wanted_sessions(parent, 3)}
    assert set(found) == {pids[1], *children(pids[0])}
    assert found[pids[1]]["name"].startswith("rank 1")
    with client() as other:
        other.attach(**found[pids[1]])
        assert {int(one["processId"]) for one in wanted_sessions(other, 2)} == set(children(pids[1]))
        other.request("setBreakpoints", {"source": {"path": PATH}, "breakpoints": [{"line": marks(NAME)["reduce"]}]})
        body = stopped(other, "breakpoint")
        frame = top(other, body["threadId"])
        assert local_variables(other, frame)["total"]["value"].startswith("Tensor float32 [] cpu")
        assert evaluate(other, "distributed.get_rank()", frame)["result"] == "1"
        other.disconnect()
    torchrun.wait_step()
    worker = next(pid for pid in found if pid != pids[1])
    with client() as child:
        child.attach(**found[worker])
        child.request("pause", {"threadId": 0})
        frames = python_frames(stack(child, stopped(child, "pause")["threadId"]))
        assert "_worker_loop" in [frame["name"].split(".")[-1] for frame in frames]
        child.disconnect()
    parent.disconnect()
    torchrun.wait_step()


def test_sessions_of_a_listening_server(torchrun, client, serve):
    """Where the client connects, its child sessions connect to the same server."""
    pids = torchrun.ranks()

    class Rank:
        pid = pids[0]

    server = serve(Rank, "--listen")
    parent = client(Socket(server.address))
    parent.attach(ranks=True, type="debugpy", connect={"host": server.address[0], "port": server.address[1]})
    configuration, = wanted_sessions(parent, 1)
    assert configuration["connect"] == {"host": server.address[0], "port": server.address[1]}
    assert configuration["subProcessId"] == pids[1] and "processId" not in configuration
    other = client(Socket(server.address))
    other.attach(**configuration)
    assert other.event("process")["systemProcessId"] == pids[1]
    parent.disconnect()
    other.disconnect()
    torchrun.wait_step()


def test_pausing_a_rank_warns(torchrun, client):
    """The time-out of the job's own group is told and counted down; going on in time, nothing is lost."""
    pids = torchrun.ranks()
    session = client()
    session.attach(pids[0])
    session.request("pause", {"threadId": 0})
    body = stopped(session, "pause")
    said = session.event("output", lambda one: one.get("category") == "important")["output"]
    assert "time-out" in said and "gloo" in said and "(35 s)" in said, said
    session.event("output", lambda one: "30 s until the time-out" in one["output"])
    resume(session, body["threadId"])
    torchrun.wait_step()
    session.disconnect()
    torchrun.wait_step()


def test_pausing_without_a_client_warns(torchrun, serve):
    """Nobody is connected: the server itself says it."""
    pids = torchrun.ranks()

    class Rank:
        pid = pids[0]

    server = serve(Rank, "--pause", "--resume-after", "3")
    wait_until(lambda: any("runs on" in line for line in server.errors))
    torchrun.wait_step()
    server.end()
    said = "".join(server.errors)
    assert "is paused: the time-out of" in said and "gloo" in said and "(35 s)" in said, said
