"""Merged stacks of hundreds of ranks on hosts that are not there, compared with what these ranks are.

PROBING_FLEET_RANKS: how many (512).  A look at 10,000 takes the asker at most half a second of CPU time, and by the clock, best of five, a second.
"""

import json
import os
import resource
import time

import pytest

from bus import missing
from fakes import Fakes, Record, shown, states
from support.injection import wait_until

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
RANKS = int(os.environ.get("PROBING_FLEET_RANKS", 512))
EACH = 8
PARTIAL = 15
RECORD = Record()


@pytest.fixture(scope="module")
def many(bus):
    """RANKS ranks of two jobs, as many on each of the hosts."""
    one = Fakes(os.path.join(bus.folder, "agent"), ("llama", "other"), 0, RANKS // EACH, EACH, connections=4)
    yield one
    one.end()


def look(bus, *words, job="llama"):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = bus.run("-t", "@" + job, *words)
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("{} ranks: {:.3f} s, CPU {:.3f} s".format(RANKS, seconds, cpu))
    return done, seconds, cpu


def test_merged(bus, many):
    """Each stack once, with all of its ranks; the ranks of one job alone."""
    for job in ("llama", "other"):
        done, _, _ = look(bus, "backtrace", "--json", job=job)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert set(states(told["coverage"]).values()) == {"answered"} and told["coverage"]["expected"] == RANKS
        assert shown(told["rows"]) == RECORD.groups(range(RANKS), job)


def test_odd_one_first(bus, many):
    """One rank among all stands elsewhere: it is the first that is shown."""
    odd = RANKS * 47 // 100
    many.order("odd", odd)
    done, _, _ = look(bus, "backtrace", "--json")
    rows = json.loads(done.stdout)["rows"]
    many.order("odd", -1)
    assert shown(rows) == RECORD.groups(range(RANKS), "llama", odd)
    assert rows[0]["ranks"] == str(odd) and any(frame["name"].endswith("read_shard") for frame in rows[0]["frames"]), rows[0]


def test_some_ranks(bus, many):
    """Only they are asked for, and nobody else is in the answer."""
    chosen = [1, 2, 3, EACH, *range(3 * EACH, 5 * EACH), RANKS - 1]
    done, _, _ = look(bus, "backtrace", "--json", job="other:1-3,{},{}-{},{}".format(EACH, 3 * EACH, 5 * EACH - 1, RANKS - 1))
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["coverage"]["expected"] == len(chosen), done.stderr
    assert shown(told["rows"]) == RECORD.groups(chosen, "other")


def test_other_release(bus, many):
    """It answers, and is named."""
    many.order("fault", 3, 3, "release")
    done, _, _ = look(bus, "backtrace")
    many.order("fault", 3, 3, "honest")
    assert done.returncode == 0 and "1 host is of another release than this " in done.stderr and ": node00003 has 0.0.0" in done.stderr, done.stderr


def test_clocks_apart(bus, many):
    """How far a host's clock is off is told, and no answer depends on it."""
    many.order("clock", 2, 2, 3600)
    many.order("clock", 3, 3, -7200)
    try:
        nodes = {}

        def all_told():  # who does not, is late
            nodes.update({one["host"]: one for one in json.loads(bus.run("cluster", "nodes", "-f", "json").stdout)})
            return all(nodes["node0000{}".format(number)]["clock_offset"] is not None for number in (1, 2, 3))

        wait_until(all_told)
        for host, wanted in (("node00001", 0), ("node00002", 3600), ("node00003", -7200)):
            assert abs(nodes[host]["clock_offset"] - wanted) < 60 and nodes[host]["clock_error"] >= 0, nodes[host]
        done, _, _ = look(bus, "backtrace", "--json")
        assert done.returncode == 0 and shown(json.loads(done.stdout)["rows"]) == RECORD.groups(range(RANKS), "llama")
    finally:
        many.order("clock", 2, 3, 0)


@pytest.mark.skipif(RANKS < 10000, reason="PROBING_FLEET_RANKS is not 10000")
def test_soon(bus, many):
    """10,000 ranks within a second."""
    looks = [look(bus, "backtrace") for _ in range(5)]
    assert min(seconds for _, seconds, _ in looks) < 1 and min(cpu for _, _, cpu in looks) < 0.5
