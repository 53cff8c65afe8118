"""comm_metrics and probing.clock: over made-up rows of two ranks, whose truth is known, and over ranks of gloo."""

import json
import os
import random
import statistics
import subprocess
import sys

import pytest

from support.ranks import two_ranks_with_tables
from support.target import probing, query
from support.waits import until

COLUMNS = "timestamp:time\ngroup:text\nseq:integer\nop:text\nduration_ms:real"
OBSERVED = COLUMNS + "\ncollective_seq_id:integer\nsource:text\nbackend:text"
T0 = 1.7e9 - 1.7e9 % 60 + 30


@pytest.fixture
def ranks(tmp_path):
    """Two live ranks: (pids, write(rank, rows))."""
    with two_ranks_with_tables(tmp_path / "data") as (pids, write):
        yield pids, lambda rank, rows, columns=COLUMNS: write(rank, "comm_collective", columns, rows)


def made_up(write, shift=0.0, op="all_reduce", count=40, ends=True, at=T0, drift=0.0):
    """Collectives of two ranks, rank 1's clock shifted, and faster: [(last rank, wait, transfer)], in s."""
    chance, truth, rows = random.Random(7), [], ([], [])

    def shown(rank, moment):
        return moment + (shift + drift * (moment - at) if rank else 0)

    for number in range(count):
        begins = [at + number * 0.05 + chance.uniform(0, 0.004) for _ in range(2)]
        last = begins.index(max(begins))
        transfers = [chance.uniform(2e-4, 4e-4) for _ in range(2)]
        for rank in range(2):
            end = max(begins) + transfers[rank]
            rows[rank].append((shown(rank, begins[rank]), "dp", number, op, (end - begins[rank]) * 1e3 if ends else None))
        truth.append((last, max(begins) - min(begins), transfers[1 - last]))
    for rank in range(2):
        write(rank, rows[rank])
    return truth


@pytest.mark.parametrize("shift", [0.0, 0.123, -3.5, 0.002])
def test_made_up_rows(ranks, shift):
    pids, write = ranks
    truth = made_up(write, shift)
    rows = query(pids[1], "SELECT * FROM comm_metrics ORDER BY seq")
    assert [row["seq"] for row in rows] == list(range(len(truth)))
    for row, (last, wait, transfer) in zip(rows, truth):
        error = row["error_ms"] / 1e3 + 1e-6
        assert 0 < row["error_ms"] < 1 and (row["op"], row["group"], row["source"]) == ("all_reduce", "dp", "observer")
        if wait > error:
            assert (row["src_rank"], row["dst_rank"]) == (last, 1 - last)
            assert abs(row["wait_ms"] / 1e3 - wait) <= error and abs(row["latency_ms"] / 1e3 - transfer) <= error
            assert row["resolved"] == (row["latency_ms"] >= row["error_ms"])
    with open("/proc/{}/stat".format(pids[0])) as file:
        launcher = file.read().rpartition(")")[2].split()[1]
    done = probing("-t", "@launcher-" + launcher, "query", "-f", "jsonl", "SELECT * FROM comm_metrics ORDER BY seq", check=False)
    assert (done.returncode, done.stderr) == (0, "probing: note: 2 of 2 ranks answered\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == rows, "asked as a job: " + done.stderr
    clocks = query(pids[0], "SELECT rank, offset_s, error_s, collectives, reference FROM probing.clock ORDER BY rank, timestamp")
    assert {row["rank"] for row in clocks} == {0, 1}
    for row in clocks:
        assert abs(row["offset_s"] - (shift if row["rank"] else 0)) <= row["error_s"] + 1e-6
        assert row["error_s"] <= 1e-3 and row["reference"] == 0
    assert sum(row["collectives"] for row in clocks if row["rank"]) == len(truth)


@pytest.mark.parametrize("at", [0, 1, 25, 58.5])
@pytest.mark.parametrize("count", [20, 1300])
def test_the_error_is_small_at_any_moment(ranks, at, count):
    """Whenever in the minute it was, and wherever the clocks have drifted to: below a millisecond, and the truth inside."""
    pids, write = ranks
    at, drift = T0 - 30 + at, 40e-6
    truth = made_up(write, 0.123, count=count, at=at, drift=drift)
    rows = query(pids[0], "SELECT * FROM comm_metrics ORDER BY seq")
    assert [row["seq"] for row in rows] == list(range(count))
    for row, (last, wait, transfer) in zip(rows, truth):
        error = row["error_ms"] / 1e3 + 1e-6
        assert row["error_ms"] <= 1
        if wait > error:
            assert (row["src_rank"], row["dst_rank"]) == (last, 1 - last)
            assert abs(row["wait_ms"] / 1e3 - wait) <= error and abs(row["latency_ms"] / 1e3 - transfer) <= error
    clocks = query(pids[0], "SELECT timestamp, offset_s, error_s FROM probing.clock WHERE rank = 1")
    for row in clocks:
        assert abs(row["offset_s"] - 0.123 - drift * (row["timestamp"] - at)) <= row["error_s"] + 1e-6 <= 1e-3


def test_the_promised_statement(ranks):
    pids, write = ranks
    made_up(write)
    rows = query(pids[0], "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics GROUP BY src_rank, dst_rank")
    assert {(row["src_rank"], row["dst_rank"]) for row in rows} == {(0, 1), (1, 0)}
    assert all(0.2 <= row["avg(latency_ms)"] <= 0.4 for row in rows)


def test_ranks_are_not_counted_twice(ranks):
    pids, write = ranks
    truth = made_up(write)
    one, = query(pids[0], "SELECT count(*) AS n FROM comm_metrics")
    all_of_them, = query(pids[0], "SELECT count(*) AS n FROM comm_metrics", "--ranks")
    assert one["n"] == all_of_them["n"] == len(truth)


def test_ends_that_are_not_known(ranks):
    """NCCL's: who was last is known, how long the transfer took is not."""
    pids, write = ranks
    truth = made_up(write, ends=False)
    rows = query(pids[0], "SELECT * FROM comm_metrics ORDER BY seq")
    assert len(rows) == len(truth) and {row["latency_ms"] for row in rows} == {None} == {row["resolved"] for row in rows}
    assert [row["src_rank"] for row in rows] == [last for last, _, _ in truth]


def observed(write, groups=1, anew=None, held=10):
    """The observer's rows of 60 collectives, of which the recorder holds the last ones.  Rank 1 was switched on after nine; rank 0
    began to count anew."""
    rows = ([], [])
    truth = made_up(lambda rank, all_of_them: rows[rank].extend(all_of_them), count=60)
    for rank, begun in enumerate((0, 9)):
        told = []
        for number in range(begun, 60):
            begin, _, _, op, duration = rows[rank][number]
            first = anew if anew and rank == 0 and number >= anew else begun
            known = number >= 60 - held
            told.append((begin, "dp{}".format(number % groups) if known else None, number - first, op, duration, 2 * number + 5 if known else None,
                         "observer", "gloo"))
        write(rank, told, OBSERVED)
    return truth


def test_what_the_recorder_holds_no_more(ranks):
    pids, write = ranks
    truth = observed(write)[9:]
    rows = query(pids[0], "SELECT * FROM comm_metrics ORDER BY timestamp")
    assert [row["seq"] for row in rows] == [None] * 41 + [2 * number + 5 for number in range(50, 60)]
    for row, (last, wait, _) in zip(rows, truth):
        error = row["error_ms"] / 1e3 + 1e-6
        assert row["group"] == "dp0" and row["error_ms"] < 1
        if wait > error:
            assert (row["src_rank"], row["dst_rank"]) == (last, 1 - last) and abs(row["wait_ms"] / 1e3 - wait) <= error


def test_what_no_recorder_holds(ranks):
    """Gloo of an older PyTorch: two ranks have each collective together, at a time."""
    pids, write = ranks
    truth = observed(write, held=0)[9:]
    rows = query(pids[0], "SELECT * FROM comm_metrics ORDER BY timestamp")
    assert len(rows) == len(truth)
    for row, (last, wait, _) in zip(rows, truth):
        error = row["error_ms"] / 1e3 + 1e-6
        assert row["group"] is None and row["seq"] is None and row["error_ms"] < 1
        if wait > error:
            assert (row["src_rank"], row["dst_rank"]) == (last, 1 - last) and abs(row["wait_ms"] / 1e3 - wait) <= error
    with open("/proc/{}/stat".format(pids[0])) as file:
        launcher = file.read().rpartition(")")[2].split()[1]
    done = probing("-t", "@launcher-" + launcher, "query", "-f", "jsonl", "SELECT * FROM comm_metrics ORDER BY timestamp", check=False)
    assert (done.returncode, done.stderr) == (0, "probing: note: 2 of 2 ranks answered\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == rows, "asked as a job: " + done.stderr


def test_nothing_recorded_says_why(ranks):
    pids, write = ranks
    made_up(write, count=0)
    done = probing("-t", pids[0], "query", "-f", "json", "SELECT * FROM comm_metrics", check=False)
    assert done.stdout.strip() == "[]" and "no collective of a rank is recorded" in done.stderr


@pytest.mark.parametrize("groups, anew, count", [(1, 30, 30), (2, None, 10)])
def test_what_cannot_be_told_is_left_out(ranks, groups, anew, count):
    """What was counted before it began anew, and an operation of two groups."""
    pids, write = ranks
    observed(write, groups, anew)
    done = probing("-t", pids[0], "query", "-f", "json", "SELECT * FROM comm_metrics", check=False)
    assert len(json.loads(done.stdout)) == count and "left out" in done.stderr


def test_collectives_that_run_side_by_side(ranks):
    """As seen of gloo's two threads: of three collectives rank 1 began the first one last, so it counted it behind the others.  A
    fourth has no counterpart."""
    pids, write = ranks
    rows = ([], [])
    made_up(lambda rank, all_of_them: rows[rank].extend(all_of_them))
    at = T0 + 3
    spans = ([(20.9, 55.2), (22.0, 44.85), (44.9, 45.7), (60, 61)], [(43.8, 44.98), (45.0, 45.77), (50.9, 57.1), (560, 561)])  # ms
    for rank in range(2):
        rows[rank].extend((at + begin / 1e3, "dp", 40 + number, "all_reduce", end - begin) for number, (begin, end) in enumerate(spans[rank]))
        write(rank, rows[rank])
    done = probing("-t", pids[0], "query", "-f", "json", "SELECT * FROM comm_metrics WHERE seq >= 40 ORDER BY seq", check=False)
    assert "1 of 88 collectives are left out" in done.stderr and "contradict" not in done.stderr
    found = [(row["seq"], row["src_rank"], round(row["wait_ms"], 2)) for row in json.loads(done.stdout)]
    assert found == [(40, 1, 30), (41, 1, 21.8), (42, 1, 0.1)], found


def test_one_that_waits_for_nobody(ranks):
    """A broadcast's receivers wait for its root alone, and who that is was not recorded."""
    pids, write = ranks
    made_up(write, op="broadcast", shift=50)
    assert query(pids[0], "SELECT * FROM comm_metrics") == []
    clocks = query(pids[0], "SELECT * FROM probing.clock WHERE rank = 1")
    assert all(row["collectives"] == 0 for row in clocks)


def test_numbers_that_do_not_belong_together(ranks):
    """Rank 1 counted from another moment: the collectives contradict each other, which is said."""
    pids, write = ranks
    write(0, [(T0 + n * 0.05, "dp", n, "all_reduce", 1.0) for n in range(20)])
    write(1, [(T0 + n * 0.05 + n % 2 * 0.02, "dp", n, "all_reduce", 1.0) for n in range(20)])
    done = probing("-t", pids[0], "query", "SELECT error_ms FROM comm_metrics LIMIT 1", check=False)
    assert done.returncode == 0 and "contradict" in done.stderr


@pytest.mark.parametrize("missing_sends, missing_receipts", [(0, 0), (3, 0), (0, 4)])
@pytest.mark.parametrize("shift", [0.0, 0.123])
def test_point_to_point(ranks, shift, missing_sends, missing_receipts):
    """Rank 0 sends bursts, rank 1 answers each; the one or the other was switched on later.  Collectives in between bound the clocks."""
    pids, write = ranks
    chance, truth, rows, now = random.Random(3), [], ([], []), T0
    for number in range(40):
        begins = [now + chance.uniform(0, 0.001) for _ in range(2)]
        for rank in range(2):
            rows[rank].append((begins[rank] + shift * rank, "dp", number, "all_reduce", (max(begins) - begins[rank]) * 1e3 + 0.3))
        now += 0.01
        for sender, count in ((0, 3), (1, 1)):
            sends = [now + n * 0.0004 + chance.uniform(0, 0.0002) for n in range(count)]  # all before the first has come
            wanted = now + chance.uniform(-0.002, 0.004)
            for n, send in enumerate(sends):
                receive, end = wanted + n * 1e-4, max(send, wanted + n * 1e-4) + 0.002
                rows[sender].append((send + shift * sender, None, n, "send", (end - send) * 1e3))
                rows[1 - sender].append((receive + shift * (1 - sender), None, n, "recv", (end - receive) * 1e3))
                truth.append((sender, send, receive, end))
            now += 0.012
    late = [None if not count else sorted(row[0] for row in rows[side] if row[3] == kind)[count - 1]
            for side, kind, count in ((0, "send", missing_sends), (1, "recv", missing_receipts))]
    for rank in range(2):
        write(rank, sorted((row for row in rows[rank] if late[rank] is None or row[0] > late[rank]), key=lambda row: row[0]))
    known = [one for one in truth if (late[0] is None or (one[1] if one[0] == 0 else one[2]) > late[0])
             and (late[1] is None or (one[1] if one[0] == 1 else one[2]) + shift > late[1])]
    rows = query(pids[1], "SELECT * FROM comm_metrics WHERE op = 'send' ORDER BY timestamp")
    assert len(rows) == len(known) and {(row["seq"], row["group"], row["source"]) for row in rows} == {(None, None, "observer")}
    known.sort(key=lambda one: max(one[1:3]) + shift * one[0])
    for row, (sender, send, receive, end) in zip(rows, known):
        assert (row["src_rank"], row["dst_rank"]) == (sender, 1 - sender) and row["error_ms"] <= 0.6
        error = row["error_ms"] + 1e-3
        assert abs(row["latency_ms"] - 2) <= error and abs(row["wait_ms"] - max(0, send - receive) * 1e3) <= error


def test_no_job(start_job):
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    done = probing("-t", child.pid, "query", "-f", "json", "SELECT * FROM comm_metrics", check=False)
    child.kill()
    child.communicate()
    assert done.stdout.strip() == "[]" and "is not a rank of a job" in done.stderr


# ---- ranks of gloo ----

def loaded(job):
    for pid in job.pids:
        probing("-t", pid, "inject")


def test_the_late_rank_is_named(start_job):
    """Nothing was recorded by us: what the Flight Recorder holds serves.  30 ms late each time."""
    job = start_job(3, 1, 30)
    loaded(job)
    job.steps(30)
    rows = query(job.pids[2], "SELECT * FROM comm_metrics WHERE seq > 3 ORDER BY seq")
    seen = [[begin for begin, _ in one] for one in job.ended()]
    assert len(rows) >= 2 * 26 and {row["source"] for row in rows} == {"recorder"}
    off = []
    for row in rows:  # as the program saw it: beside other work another rank may be the last
        begins = [one[row["seq"] - 1] for one in seen]
        off.append(abs(row["wait_ms"] - 1e3 * (begins[row["src_rank"]] - begins[row["dst_rank"]])))
    assert statistics.median(off) < 5, off
    last = [max(range(3), key=lambda rank: seen[rank][row["seq"] - 1]) for row in rows]
    assert sum(row["src_rank"] == one for row, one in zip(rows, last)) >= 0.8 * len(rows)
    assert statistics.median(row["wait_ms"] for row in rows if row["src_rank"] == 1) >= 20


def test_one_that_is_killed_within_a_collective(start_job):
    """The others are inside when rank 2 ends: they are still read, and the one that is missing is not made up."""
    job = start_job(3)
    loaded(job)
    assert job.ask(2, "sleep", 30) == "begun"
    last = len(job.tell(2))
    os.kill(job.pids[2], 9)
    rows = query(job.pids[0], "SELECT DISTINCT src_rank, dst_rank FROM comm_metrics")
    assert rows and {row["src_rank"] for row in rows} | {row["dst_rank"] for row in rows} == {0, 1}
    until(lambda: query(job.pids[0], "SELECT * FROM python.torch_nccl_pg_status")[0]["last_enqueued_collective"] >= last + 1)
    status, = query(job.pids[0], "SELECT * FROM python.torch_nccl_pg_status")
    assert status["last_enqueued_collective"] == last + 1


def test_a_clock_that_is_shifted(start_job):
    """Rank 1's wall clock shows 123 ms more: the observer's rows have ends, so the collectives say so."""
    shim = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "comm", ".libs", "shifted_clock.so")
    job = start_job(2, variables={"RANK1_LD_PRELOAD": os.path.abspath(shim), "RANK1_SHIFT_MS": "123"})
    for pid in job.pids:
        probing("-t", pid, "inject")
        probing("-t", pid, "config", "probing.torch.profiling=on")
    def told(sql):  # one that began when the recorder was read may be left out
        return json.loads(probing("-t", job.pids[0], "query", "-f", "json", sql, check=False).stdout)

    def known():  # each collective may bound it closer, and on a busy machine few do
        job.steps(len(job.tell(0)) + 40)
        clock, = told("SELECT * FROM probing.clock WHERE rank = 1 ORDER BY collectives DESC LIMIT 1")
        assert abs(clock["offset_s"] - 0.123) <= clock["error_s"] and clock["collectives"] >= 20
        return clock["error_s"] <= 1e-3

    until(known, 240)
    rows = told("SELECT * FROM comm_metrics")
    assert len(rows) >= 20 and {row["source"] for row in rows} == {"observer"}
    assert sum(row["error_ms"] <= 1 for row in rows) >= 20
    seen = job.ended()
    assert statistics.median(off_ms(row, seen, 0.123) for row in rows) < 50  # a shift that stays would be all of 123


def off_ms(row, seen, shift):
    """How far a wait is from what the program saw itself, by its own clocks of which rank 1's is shifted."""
    number = next(i for i, (begin, end) in enumerate(seen[row["src_rank"]]) if begin - 1e-3 <= row["timestamp"] <= end + 1e-3)
    return abs(row["wait_ms"] - 1e3 * abs(seen[0][number][0] - seen[1][number][0] + shift))


def test_a_rank_that_loses_the_cpu_between_two_clocks(start_job):
    """Its rows have the right time all the same, within what the program itself saw; others' are compared with them."""
    shim = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "comm", ".libs", "shifted_clock.so")
    job = start_job(2, variables={"RANK1_LD_PRELOAD": os.path.abspath(shim), "RANK1_LATE_EVERY": "7"})
    probing("-t", job.pids[1], "inject")
    probing("-t", job.pids[1], "config", "probing.torch.profiling=on", "probing.torch.step=obey", check=False)
    job.steps(len(job.tell(0)) + 50)
    rows = query(job.pids[1], "SELECT timestamp AS begin, timestamp + duration_ms / 1e3 AS end FROM python.comm_collective")
    told = job.ended()[1]
    assert len(rows) >= 30
    for row in rows:
        assert any(begin - 1e-3 <= row["begin"] and row["end"] <= end + 1e-3 for begin, end in told), row


def test_who_waits_has_it_in_comm_wait(start_job):
    """30 ms for rank 1, which comes late to each: the step of rank 0 has them as comm_wait, as it calls Work.wait; so long as it says itself."""
    job = start_job(2, 1, 30)
    for pid in job.pids:
        probing("-t", pid, "inject")
        probing("-t", pid, "config", "probing.torch.profiling=on", "probing.torch.step=obey", check=False)
    job.steps(len(job.tell(0)) + 40)
    for pid, late in zip(job.pids, (False, True)):
        rows = query(pid, "SELECT step_duration_sec AS duration, comm_wait, other FROM python.torch_step_timing ORDER BY timestamp")
        told = job.ended()[job.pids.index(pid)]
        assert len(rows) >= 15 and all(row["comm_wait"] + row["other"] <= row["duration"] + 1e-6 for row in rows)
        waited = [row["comm_wait"] for row in rows[:-1]]
        inside = [end - begin for begin, end in told]
        # Its rows are of steps one after the other: somewhere among all of them.
        off = min(statistics.median(abs(a - b) for a, b in zip(waited, inside[at:])) for at in range(len(inside) - len(waited) + 1))
        assert off < 2e-3, (off, waited, inside)
        assert late or statistics.median(waited) >= 0.02, waited


def test_what_two_ranks_send(start_job):
    """Rank 0 sends 100 ms late; who received waited so long, and the transfer itself is short."""
    job = start_job(2, 0, 100, variables={"TRANSFERS": "1"})
    for pid in job.pids:
        probing("-t", pid, "inject")
        probing("-t", pid, "config", "probing.torch.profiling=on")
    job.steps(len(job.tell(0)) + 20)
    done = probing("-t", job.pids[0], "query", "-f", "json", "SELECT * FROM comm_metrics WHERE op = 'send'", check=False)
    rows = json.loads(done.stdout)
    assert len(rows) >= 15 and {(row["src_rank"], row["dst_rank"]) for row in rows} == {(0, 1)}
    waited, took = (statistics.median(row[name] for row in rows) for name in ("wait_ms", "latency_ms"))
    assert waited >= 50 and took < waited / 3, (waited, took)
