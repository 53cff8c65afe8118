"""What a profile says is true: known shares, no stack that never was, no name of a function that is gone."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from profiles import function, profile, sampling, shares, spent, stacks, truth
from support.target import DEADLINE, PROBING, Target, die_with_parent, probing, query

NAMES = ["sixty", "thirty", "ten"]
MODES = {"cpu": ["--mode", "cpu"], "wall": ["--idle"], "gil": ["--gil"]}


@pytest.mark.parametrize("kind", sorted(MODES))
def test_known_shares(start, any_python, tmp_path, kind):
    """60, 30 and 10 % of processor time, of time, and of the GIL are found within 2 points in 10 s at 100 Hz."""
    target = start(any_python, "shares.py", kind)
    told = profile(target.pid, tmp_path / "p.txt", *MODES[kind], seconds=10)
    expected = truth(target)
    found = shares(tmp_path / "p.txt", NAMES)
    room = 0.02 if told.samples > 900 else 0.02 + 0.5 / told.samples ** 0.5  # a busy machine lets few be taken
    for name in NAMES:
        assert abs(found[name] - expected[name]) < room, (found, expected, told.text)


def test_a_chain_without_a_frame_is_dropped(start, python, tmp_path):
    """No stack says only that it could not be read."""
    if python.minor < (3, 13) or python.container or "t" in python.how.split("-"):
        pytest.skip("the target finds the pointers to its frames from 3.13 on")
    target = start(python, "broken_chain.py")
    profile(target.pid, tmp_path / "p.txt", "--idle", "-r", 50)
    rows = stacks(tmp_path / "p.txt")
    assert rows and not [frames for frames, _ in rows if "cannot be read" in frames[-1]]
    target.child.stdin.write(b"\n")
    target.child.stdin.flush()
    assert target.child.wait(DEADLINE) == 0


def possible(frames):
    """Whether a stack of alternate.py can exist: one chain, no level left out."""
    levels = [(name[0], int(name[1:])) for name in map(function, frames) if re.match(r"^[ab]\d+$", name)]
    return (len({chain for chain, _ in levels}) <= 1 and
            [level for _, level in levels] == list(range(len(levels))))


@pytest.mark.parametrize("shape", ["own", "shared"])
def test_no_stack_that_never_was(start, python, tmp_path, shape):
    """At 1 kHz at most 0.1 % wrong and 1 % dropped, on every CPython."""
    if python.minor < (3, 8) or python.container:
        pytest.skip("the bar is for 3.8 and newer, seen from outside")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    target = start(python, "alternate.py", shape, 14)
    for seconds in (2, 10):  # two of 1,600 say little of a share: of more then
        told = profile(target.pid, tmp_path / "p.txt", "-r", 1000, "--idle", seconds=seconds, least=400)
        rows = stacks(tmp_path / "p.txt")
        whole = sum(count for _, count in rows)
        wrong = sum(count for frames, count in rows if not possible(frames))
        if wrong <= max(1, 0.001 * whole):
            break
    assert whole > 100 and {function(frame)[0] for frames, _ in rows for frame in frames} >= {"a", "b"}
    assert wrong <= max(1, 0.001 * whole), [row for row in rows if not possible(row[0])]
    assert told.dropped <= max(1, 0.01 * told.threads), told.text


def test_a_generator_is_not_the_outermost_frame(start, python, tmp_path):
    """A generator that yields has no caller for a moment: that is not the end of its stack."""
    if python.container or python.root or python.minor not in ((3, 6), (3, 11)):
        pytest.skip("generators that run in the evaluator, and those that have frames of their own")
    program = tmp_path / "dumps.py"
    program.write_text("import json\ndata = list(range(3000))\ndef encode(): return json.dumps(data, indent=1)\n"
                       "print('ready', flush=True)\nwhile True: encode()\n")
    with subprocess.Popen(python.command(str(program)), stdout=subprocess.PIPE, preexec_fn=die_with_parent) as target:
        try:
            target.stdout.readline()
            told = profile(target.pid, tmp_path / "p.txt", "-r", 500, seconds=3, least=300)
        finally:
            target.kill()
    rows = stacks(tmp_path / "p.txt")
    wrong = sum(count for frames, count in rows if function(frames[0]) != "<module>")
    assert wrong <= max(1, 0.002 * told.threads), [row for row in rows if function(row[0][0]) != "<module>"]
    assert told.dropped <= max(2, 0.03 * told.threads), told.text


def test_no_name_of_a_dead_function(start, python, tmp_path):
    """Code objects are freed and their addresses used again: a sample never tells a function that had ended before."""
    if python.container:
        pytest.skip("read the same there")

    logs = {how: "/tmp/probing-reborn-{}-{}".format(os.getpid(), how) for how in ("spins", "sleeps")}  # as the target sees it
    targets = {how: start(python, "reborn.py", log, how) for how, log in logs.items()}

    def once(how, seconds):
        """When it began, and [(name of a function, ns later)], of a profile."""
        profile(targets[how].pid, tmp_path / (how + ".db"), "-r", 1000, "--idle", seconds=seconds)
        with contextlib.closing(sqlite3.connect(str(tmp_path / (how + ".db")))) as db:
            began = db.execute("SELECT value FROM meta WHERE key = 'start'").fetchone()[0]
            return began, db.execute("SELECT functions.name, stays.start_ns FROM stays JOIN stacks ON stacks.id = stays.stack "
                                     "JOIN frames ON frames.id = stacks.frame JOIN functions ON functions.id = frames.function "
                                     "WHERE functions.name LIKE 'made_%'").fetchall()

    def sampled(how):
        for seconds in (2, 6, 18, 54):  # a busy machine lets few functions run, and few samples be taken
            began, rows = once(how, seconds)
            if len({name for name, _ in rows}) > 25:
                break
        targets[how].end()
        log_here = pathlib.Path((python.root or "") + logs[how])
        lives = {name: (float(begin), float(end)) for name, begin, end in (line.split() for line in log_here.read_text().splitlines())}
        log_here.unlink()
        return began, rows, lives

    with concurrent.futures.ThreadPoolExecutor() as both:
        told = dict(zip(logs, both.map(sampled, logs)))
    for how, (began, rows, lives) in told.items():
        assert len({name for name, _ in rows}) > 25, how
        for name, ns in rows:
            if name in lives:
                assert lives[name][1] > began + ns * 1e-9 - 0.003, (how, name, lives[name], began + ns * 1e-9)


def test_threads_are_born_and_end(start, any_python, tmp_path):
    """Threads at a thousand a second: each stack is whole, and sampling goes on."""
    target = start(any_python, "churn.py")
    told = profile(target.pid, tmp_path / "p.txt", "-r", 500, "--idle", seconds=3, least=300)
    assert told.failed == 0
    assert told.dropped <= 0.02 * told.threads, told.text
    assert any(function(frames[-1]) == "short" or "start" in frames[-1] for frames, _ in stacks(tmp_path / "p.txt"))


def test_idle_threads_are_told(start, any_python, tmp_path):
    """By default threads that wait do not count; with --idle they do."""
    target = start(any_python, "shares.py", "wall")
    before = ran(target.pid), time.monotonic()
    active_told = profile(target.pid, tmp_path / "active.txt", least=60)
    share = (ran(target.pid) - before[0]) / (time.monotonic() - before[1])  # to wait for a processor is no rest
    idle_told = profile(target.pid, tmp_path / "idle.txt", "--idle", least=60)
    active = sum(count for _, count in stacks(tmp_path / "active.txt"))
    idle = sum(count for _, count in stacks(tmp_path / "idle.txt"))
    assert idle >= 0.9 * idle_told.samples and active <= active_told.samples * (0.25 + share), (share, active_told.text, idle_told.text)


def test_labels(start, any_python, tmp_path):
    """--function, --nolineno, --full-filenames and --threads change what a row shows."""
    target = start(any_python, "shares.py", "gil")
    shown = {}
    for option in ["--function", "--nolineno", "--full-filenames", "--threads"]:
        profile(target.pid, tmp_path / "p.txt", "--idle", option)
        shown[option] = {frame for frames, _ in stacks(tmp_path / "p.txt") for frame in frames}
    assert "spend (shares.py:17)" in shown["--function"]
    assert "spend (shares.py)" in shown["--nolineno"]
    assert any(re.match(r"^spend \(/.*/shares\.py:\d+\)$", frame) for frame in shown["--full-filenames"])
    assert any(str(target.pid) in frame for frame in shown["--threads"])


# PTRACE_SEIZE, again and again: the sampler itself traces the thread at some moments.
TRACER = """
import ctypes, sys, time
until = time.monotonic() + 60
while ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) != 0:
    assert time.monotonic() < until
print(1, flush=True)
sys.stdin.read()
"""


def test_one_root_without_native_frames(start, any_python, tmp_path):
    """Samples whose native frames cannot be read, as another program traces the thread, stand with the others."""
    target = start(any_python, "shares.py", "gil")
    command = subprocess.Popen([PROBING, "-v", "-t", str(target.pid), "profile", "--native", "-r", "200",
                                "-o", str(tmp_path / "p.txt")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    tracer = None
    try:
        sampling(target.pid, command)
        tracer = subprocess.Popen([sys.executable, "-c", TRACER, str(target.pid)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        assert tracer.stdout.readline() == b"1\n"
        sampling(target.pid, command, 60)
        command.send_signal(signal.SIGINT)
        said = command.communicate(timeout=DEADLINE)[1].decode()
    finally:
        for child in (command, tracer):
            if child:
                child.kill()
                child.communicate()
    assert int(re.search(r"(\d+) stacks of threads are of two moments", said)[1]) > 0, said
    roots = {frames[0] for frames, _ in stacks(tmp_path / "p.txt")}
    assert len(roots) == 1 and "<module>" not in function(roots.pop()), said


def test_native_frames(start, any_python, tmp_path):
    """Native frames stand below and between the Python ones."""
    target = start(any_python, "shares.py", "wall")
    profile(target.pid, tmp_path / "p.txt", "--native", "--idle", seconds=2, least=50)
    most = max(stacks(tmp_path / "p.txt"), key=lambda row: row[1])[0]
    names = [function(frame) for frame in most]
    assert "spend" in names and names.index("spend") < len(names) - 1, most
    assert not any(frame.endswith(".py)") for frame in most[names.index("spend") + 1:])


SPINS = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "sample", ".libs", "spins.so")


def test_spinning_waits(start, any_python, tmp_path):
    """Threads that spin for a GPU or for other ranks are named as waiting, and do not count as running."""
    target = start(any_python, "spins.py", SPINS)
    rows, took = [], dict.fromkeys(("cudaStreamSynchronize", "ncclGroupEnd", "compute"), 0)
    until = time.monotonic() + DEADLINE
    while sum(took.values()) < 150:  # it may wait for a processor more than it has one
        assert time.monotonic() < until, took
        profile(target.pid, tmp_path / "cpu.txt", "--native", "--mode", "cpu", seconds=4)
        rows += [(list(map(function, frames)), count) for frames, count in stacks(tmp_path / "cpu.txt")]
        took = {name: sum(count for frames, count in rows if name in frames) for name in took}
    assert abs(took["cudaStreamSynchronize"] / sum(took.values()) - 0.6) < 0.15, took
    for frames, _ in rows:
        told = "(waits for CUDA)" if "cudaStreamSynchronize" in frames else "(waits for NCCL)" if "ncclGroupEnd" in frames else None
        assert (frames[-1] == told) if told else not frames[-1].startswith("(waits"), frames
    profile(target.pid, tmp_path / "active.txt", "--native", seconds=4, least=200)
    names = {name for frames, _ in stacks(tmp_path / "active.txt") for name in map(function, frames)}
    assert "compute" in names and not names & {"cudaStreamSynchronize", "ncclGroupEnd"}, names


RESTING = """
import ctypes, os, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
threading.Thread(target=library.rest_and_compute, args=(25,), daemon=True).start()
os.write(1, b"ready\\n")
while True:
    time.sleep(0.02)
"""


def ran(pid):
    """Seconds that the thread beside the main one, or that where it is alone, ran or waited for a processor."""
    tid = max((int(tid) for tid in os.listdir("/proc/{}/task".format(pid))), key=lambda tid: tid != pid)
    with open("/proc/{}/task/{}/schedstat".format(pid, tid)) as file:
        words = file.read().split()
    return (int(words[0]) + int(words[1])) * 1e-9


@pytest.mark.parametrize("others,within", [(0, 0.25), (8, 0.2)])
def test_what_runs_between_two_looks(any_python, tmp_path, others, within):
    """A thread that rests without the GIL is not asked at every sample, and yet what it runs then is counted, and what it waits for
    a processor that others have."""
    (tmp_path / "resting.py").write_text(RESTING)
    target = Target(any_python, "resting.py", [SPINS], folder=str(tmp_path))
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=die_with_parent) for _ in range(others)]
    try:
        before = ran(target.pid), time.monotonic()
        told = profile(target.pid, tmp_path / "p.txt", "-r", 200, seconds=5)
        # The command's begin and end are of it; a wait counts where it ends, so one of before may make it more than all.
        share = min(1, (ran(target.pid) - before[0]) / (time.monotonic() - before[1]))
    finally:
        target.end()
        for one in spinning:
            one.kill()
            one.wait()
    counted = sum(count for frames, count in stacks(tmp_path / "p.txt") if any("run" in frame for frame in frames))
    assert counted / told.samples == pytest.approx(share, rel=within), (counted, told.text, share)


ONE_OF_MANY = """
import os, sys, threading
lock = threading.Lock()
lock.acquire()
begun = threading.Semaphore(0)
def wait():
    begun.release()
    lock.acquire()
def busy():
    os.write(1, b"busy\\n")
    while True:
        pass
for _ in range(40):
    threading.Thread(target=wait, daemon=True).start()
for _ in range(40):
    begun.acquire()
os.write(1, b"ready\\n")
sys.stdin.readline()
busy()
"""


def test_one_of_many_runs(any_python, tmp_path):
    """Where one thread keeps the GIL the others are not even visited, and yet counted in every sample."""
    (tmp_path / "one_of_many.py").write_text(ONE_OF_MANY)
    target = Target(any_python, "one_of_many.py", folder=str(tmp_path)).settle()  # the last may not wait yet
    try:
        target.child.stdin.write(b"\n")
        target.child.stdin.flush()
        assert target.line() == "busy"
        told = profile(target.pid, tmp_path / "p.txt", "--function", seconds=2, least=60)
        all_told = profile(target.pid, tmp_path / "all.txt", "--idle", "--threads")
        stays_told = profile(target.pid, tmp_path / "all.db", "--idle")
        gil_told = profile(target.pid, tmp_path / "gil.txt", "--gil", "--function")
    finally:
        target.end()
    threads = {}
    for frames, count in stacks(tmp_path / "all.txt"):
        threads[frames[0]] = threads.get(frames[0], 0) + count
    assert sum(threads.values()) == all_told.threads - all_told.dropped
    assert len(threads) == 41 and sum(count == all_told.samples for count in threads.values()) >= 40, (threads, all_told.text)
    with sqlite3.connect(str(tmp_path / "all.db")) as db:
        assert db.execute("SELECT sum(samples) FROM stays").fetchone()[0] == stays_told.threads - stays_told.dropped
    assert sum(count for _, count in stacks(tmp_path / "gil.txt")) <= gil_told.samples
    counted = {frames[-1].split(" ")[0]: count for frames, count in stacks(tmp_path / "p.txt")}
    assert told.threads == 41 * told.samples and not told.dropped
    assert sum(counted.values()) == counted["busy"] == pytest.approx(told.samples, rel=0.05), counted


CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time\\ndef busy():\\n    end = time.process_time() + 2\\n"
                          "    while time.process_time() < end: pass\\nbusy()"])
child.wait()
sys.exit(3)
"""


def test_subprocesses_of_a_program_that_is_started(any_python, tmp_path):
    """The program's end ends the profile, its status is ours, its children are found while it runs."""
    path = tmp_path / "p.txt"
    done = probing("profile", "-s", "-o", path, "--", any_python.executable, "-c", CHILD, check=False)
    assert done.returncode == 3, done.stderr
    busy = [frames for frames, _ in stacks(path) if any(function(frame) == "busy" for frame in frames)]
    assert busy and all(frames[0].startswith("process ") for frames in busy), stacks(path)


QUERY = ("SELECT operation_name, avg(duration_ms) AS mean, count(*) AS stays FROM profiling_data "
         "WHERE timestamp > now() - interval '5 minutes' GROUP BY operation_name ORDER BY avg(duration_ms) DESC")


def test_sql(start, any_python, tmp_path):
    """The stays of a live target and of a saved profile have the lengths that the program gave them."""
    target = start(any_python, "shares.py", "wall", 0.5)  # long beside the time for which a busy machine takes no sample
    profile(target.pid, tmp_path / "p.db", seconds=6)
    both = query(target.pid, QUERY.replace("profiling_data", "profile(6, 100)")), query(tmp_path / "p.db", QUERY)
    assert query(target.pid, "SELECT count(*) AS n FROM profiling_data")[0]["n"] > 5
    _, one = spent(target)
    for rows in both:
        mean = {row["operation_name"]: row["mean"] for row in rows}
        for name in ("sixty", "thirty"):  # the first and the last one are cut
            assert mean[name] == pytest.approx(1000 * one[name], rel=0.3), (one, rows)
        assert rows[0]["operation_name"] in ("main", "<module>")
    columns = {"timestamp", "operation_name", "duration_ms", "self_ms", "samples", "file", "line", "depth", "thread",
               "process", "rank"}
    row = query(tmp_path / "p.db", "SELECT * FROM profiling_data LIMIT 1")[0]
    assert columns <= set(row) and row["process"] == target.pid


def test_difference(start, any_python, tmp_path):
    """diff colours what takes more, and counts what is gone."""
    for kind in ("wall", "gil"):
        target = start(any_python, "shares.py", kind)
        profile(target.pid, tmp_path / (kind + ".db"), "--idle", seconds=2, least=50)
        profile(target.pid, tmp_path / (kind + ".txt"), "--idle", seconds=2, least=50)
        target.end()
    for end in ("db", "txt"):
        probing("diff", tmp_path / ("wall." + end), tmp_path / ("gil." + end), "-o", tmp_path / "d.svg")
        text = (tmp_path / "d.svg").read_text(encoding="utf-8")
        assert '"base":[' in text and "rgb(255," in text and "rgb(" in text


def test_exceptions(any_python, tmp_path):
    """--mode exception counts the handler, not the rest."""
    program = tmp_path / "handling.py"
    program.write_text("import os, time\ndef spin(seconds):\n    end = time.time() + seconds\n"
                       "    while time.time() < end: pass\n"
                       "def handling():\n    try:\n        raise ValueError\n    except ValueError:\n        spin(0.05)\n"
                       "def plain():\n    spin(0.05)\n"
                       "os.write(1, b'ready\\n')\nwhile True:\n    handling()\n    plain()\n")
    target = Target(any_python, "handling.py", folder=str(tmp_path))
    try:
        profile(target.pid, tmp_path / "p.txt", "--mode", "exception", seconds=3, least=200)
    finally:
        target.end()
    rows = stacks(tmp_path / "p.txt")
    whole = sum(count for _, count in rows)
    handled = sum(count for frames, count in rows if any(function(frame) == "handling" for frame in frames))
    assert whole > 30 and handled >= 0.95 * whole, rows


def test_an_old_profile(start, any_python, tmp_path):
    """Only the tables that it has are listed; a query that counts from now says that the profile is older."""
    target = start(any_python, "alternate.py", "own", 3)
    path = str(tmp_path / "p.db")
    profile(target.pid, path, seconds=1)
    listed = json.loads(probing("-t", path, "tables", "-f", "json").stdout)
    assert [row["table_name"] for row in listed] == ["profiling_data"]
    sql = "SELECT count(*) AS n FROM profiling_data WHERE timestamp > now() - interval '5 minutes'"
    assert query(path, sql)[0]["n"] > 0
    with sqlite3.connect(path) as saved:
        saved.execute("UPDATE meta SET value = value - 660 WHERE key = 'start'")
    done = probing("-t", path, "query", "-f", "csv", sql, check=False)
    assert done.stdout == "n\n0\n" and "ended 11 minutes before" in done.stderr and "max(timestamp)" in done.stderr
