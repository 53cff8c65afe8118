"""--ranks of profile, top and backtrace: the ranks of a job are found from its launcher, a rank or what a rank started."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from screen import Screen
from support.waits import until

PROBING = os.environ["PROBING"]
TARGETS = os.path.join(os.environ["SRCDIR"], "tests", "targets")
RANKS = os.path.join(TARGETS, "ranks.py")


class Job:
    def __init__(self, program=RANKS):
        self.launcher = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE)

    def pids(self):
        """Of the launcher, the two ranks, the two workers that they started."""
        words = self.launcher.stdout.readline().split()
        assert words[:1] == [b"ready"]
        return [int(word) for word in words[1:]]

    def restart(self):
        os.write(self.launcher.stdin.fileno(), b"again\n")
        return self.pids()

    def end(self):
        self.launcher.kill()
        self.launcher.communicate()


@pytest.fixture(scope="module")
def job():
    started = Job()
    yield started.pids()
    started.end()


@pytest.fixture
def elastic():
    started = Job()
    yield started
    started.end()


def sampled(probing, path):
    rows = json.loads(probing("-t", path, "query", "-f", "json",
                              "SELECT DISTINCT process, rank FROM profiling_data ORDER BY rank").works())
    return [(row["process"], row["rank"]) for row in rows]


def profile(pids, *words):
    """Until it has samples of these processes, however long a busy machine takes."""
    with subprocess.Popen([PROBING, *map(str, words)], stderr=subprocess.PIPE) as child:
        wait_until_sampled(child, pids)
        child.send_signal(signal.SIGINT)
        said = child.communicate()[1]
    assert child.returncode == 0, said


def test_a_note_of_all_ranks_is_told_once(job):
    done = subprocess.run([PROBING, str(job[1]), "query", "--ranks", "-f", "json", "SELECT * FROM python.torch_trace"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=True)
    assert json.loads(done.stdout) == []
    assert done.stderr == ("probing: note: processes {}, {}: recording of PyTorch is off: `probing PID config probing.torch.profiling=on` turns it on; "
                           "PyTorch is not imported yet: recording begins when it is\n").format(job[1], job[2])


@pytest.mark.parametrize("of", ["launcher", "rank", "other rank", "worker"])
def test_profile(probing, job, tmp_path, of):
    """All ranks and nothing else, whatever the target is of the job."""
    target = job[["launcher", "rank", "other rank", "worker"].index(of)]
    profile([job[1], job[2]], "-t", target, "profile", "--ranks", "--idle", "-o", tmp_path / "p.db")
    assert sampled(probing, tmp_path / "p.db") == [(job[1], 0), (job[2], 1)]


def test_profile_without_target(probing, job, tmp_path):
    """Every job's ranks, but not what they started."""
    profile(job[1:3], "profile", "--ranks", "--idle", "-o", tmp_path / "p.db")
    seen = {pid for pid, _ in sampled(probing, tmp_path / "p.db")}
    assert seen >= set(job[1:3]) and not seen & {job[0], *job[3:]}


def test_profile_with_children(probing, job, tmp_path):
    profile(job[1:], "-t", job[1], "profile", "--ranks", "-s", "--idle", "-o", tmp_path / "p.db")
    assert {pid for pid, _ in sampled(probing, tmp_path / "p.db")} == set(job[1:])


def test_group(probing, job, tmp_path):
    profile(job[1:3], "-t", job[0], "profile", "--ranks", "--group", "rank", "-o", tmp_path / "p.txt")
    first = {line.split(";")[0] for line in (tmp_path / "p.txt").read_text().splitlines()}
    assert first == {"rank 0", "rank 1"}


def test_top(job):
    """Both ranks side by side, and their threads, on a terminal of 80 columns."""
    view = Screen([PROBING, "-t", str(job[0]), "top", "--ranks", "--view", "processes", "--delay", "0.3"])
    try:
        lines = view.until(lambda lines: all(any(re.match(r" *{} +{} .*computing".format(pid, rank), line)
                                                 for line in lines)
                                             for rank, pid in enumerate(job[1:3])))
        assert lines[1] == "2 processes" and not any(str(pid) in line for pid in job[3:] for line in lines)
        view.press("/rank 1\r")
        view.until(lambda lines: "filter: rank 1" in lines[0]
                   and [line.split()[0] for line in lines[4:-1] if line] == [str(job[2])])
        view.press("/\x1b")
        view.press("t")
        view.until(lambda lines: {line.split()[1] for line in lines[4:] if line.startswith("rank")} == {"0", "1"})
        view.press("pj\r")
        view.until(lambda lines: lines[0].startswith("probing top: threads of rank 1")
                   and {line.split()[1] for line in lines[4:-1] if line} == {"1"})
        view.press("\r")
        view.until(lambda lines: lines[0].startswith("probing top: stack of MainThread"))
        view.press("q")
        view.until(lambda lines: lines[0].startswith("probing top: threads of rank 1"))
        view.press("q")
        view.until(lambda lines: lines[0].startswith("probing top: processes"))
        view.press("\r")  # the same one is marked still
        view.until(lambda lines: lines[0].startswith("probing top: threads of rank 1"))
        view.press("t")
        view.until(lambda lines: {line.split()[1] for line in lines[4:] if line.startswith("rank")} == {"0", "1"})
        view.press("q")
        assert view.end() == 0
    finally:
        view.close()


def test_profile_of_restarted_ranks(probing, elastic, tmp_path):
    """What an elastic launcher starts while it is sampled; not their workers, and not the launcher."""
    first = elastic.pids()
    child = subprocess.Popen([PROBING, "-t", str(first[0]), "profile", "--ranks", "-r", "200", "-o", tmp_path / "p.db"],
                             stderr=subprocess.PIPE)
    try:
        wait_until_sampled(child, first[1:3])
        second = elastic.restart()
        wait_until_sampled(child, second[1:3])
    finally:
        child.send_signal(signal.SIGINT)
        said = child.communicate()[1]
    assert child.returncode == 0, said
    assert set(sampled(probing, tmp_path / "p.db")) == {(one[1 + rank], rank) for one in (first, second) for rank in (0, 1)}


def wait_until_held(child, pids):
    """It holds these processes (pidfd_open(2))."""
    def held():
        found = set()
        for fd in os.listdir("/proc/{}/fdinfo".format(child.pid)):
            try:
                with open("/proc/{}/fdinfo/{}".format(child.pid, fd)) as info:
                    found |= {int(line.split()[1]) for line in info if line.startswith("Pid:")}
            except OSError:  # closed meanwhile
                pass
        return found

    def all_of_them():
        assert child.poll() is None
        return set(pids) <= held()

    until(all_of_them)


def wait_until_sampled(child, pids):
    """And was given a processor for a hundred samples since."""
    def turns():
        assert child.poll() is None
        with open("/proc/{}/schedstat".format(child.pid)) as stat:
            return int(stat.read().split()[2])

    wait_until_held(child, pids)
    begun = turns()
    until(lambda: turns() >= begun + 100)


def test_top_of_restarted_ranks(elastic):
    first = elastic.pids()
    view = Screen([PROBING, "-t", str(first[1]), "top", "--ranks", "--view", "processes", "--delay", "0.3"])
    try:
        def rows(lines, pids):
            return all(any(re.match(r" *{} +{} .*computing".format(pid, rank), line) for line in lines)
                       for rank, pid in enumerate(pids[1:3]))
        view.until(lambda lines: rows(lines, first))
        second = elastic.restart()
        lines = view.until(lambda lines: rows(lines, second))
        assert lines[1] == "2 processes, 2 ended"
        view.until(lambda lines: not any(str(pid) in line for pid in first[1:] for line in lines))
        view.press("q")
        assert view.end() == 0
    finally:
        view.close()


def test_top_lines(probing, job):
    out = probing("-t", job[2], "top", "--ranks", "--view", "processes", "--count", 2, "--delay", "0.3").works()
    for rank, pid in enumerate(job[1:3]):
        assert re.search(r"^ *{} +{} ".format(pid, rank), out, re.M), out


def test_no_rank(probing):
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        for command in ("profile", "top", "backtrace"):
            probing("-t", child.pid, command, "--ranks").fails(3, "RANK")
    finally:
        child.communicate(b"\n")


@pytest.mark.parametrize("of", ["launcher", "rank", "other rank", "worker"])
def test_backtrace(probing, job, of):
    target = job[["launcher", "rank", "other rank", "worker"].index(of)]
    threads = json.loads(probing("-t", target, "backtrace", "--ranks", "--json").works())
    assert [(one["pid"], one["rank"]) for one in threads] == [(job[1], 0), (job[2], 1)]
    assert all(any(frame["name"] == "computing" for frame in one["frames"]) for one in threads)


def test_by_name(probing, tmp_path):
    program = str(tmp_path / "named_{}.py".format(os.getpid()))
    shutil.copy(RANKS, program)
    named = Job(program)
    try:
        pids = named.pids()
        one = probing(os.path.basename(program), "bt", "--json")
        assert {row["pid"] for row in json.loads(one.works())} == {pids[1]}
        assert "rank 0 of 2" in one.err  # which of them the name takes
        for command in (["bt", "--json"], ["query", "-f", "json", "SELECT DISTINCT pid FROM python.backtrace"]):
            done = probing(os.path.basename(program), *command, "--ranks")
            assert {row["pid"] for row in json.loads(done.works())} == set(pids[1:3])
            assert done.err == ""  # all of them were asked for
    finally:
        named.end()


def test_backtrace_with_subprocesses(probing, job):
    threads = json.loads(probing(job[1], "bt", "-s", "--json").works())
    assert {(one["pid"], one["rank"]) for one in threads} == {(job[1], 0), (job[3], 0)}
    threads = json.loads(probing(job[0], "bt", "-s", "--json").works())
    assert {(one["pid"], one["rank"]) for one in threads} \
        == {(job[0], None)} | {(job[1 + i], i % 2) for i in range(4)}


def test_backtrace_as_text(probing, job):
    out = probing(job[0], "bt", "--ranks").works()
    assert re.findall(r"^Rank (\d)\nProcess (\d+)", out, re.M) == [("0", str(job[1])), ("1", str(job[2]))]


def test_backtrace_group(probing, tmp_path):
    """Which ranks are where, on one screen."""
    program = tmp_path / "hung.py"
    program.write_text("import os, subprocess, sys\n"
                       "def all_reduce(): sys.stdin.read()\n"
                       "def load(): sys.stdin.read()\n"
                       "if len(sys.argv) > 1:\n"
                       "    print(1, flush=True)\n"
                       "    load() if sys.argv[1] == '1' else all_reduce()\n"
                       "else:\n"
                       "    ranks = [subprocess.Popen([sys.executable, __file__, str(n)], stdout=subprocess.PIPE,\n"
                       "                              env=dict(os.environ, RANK=str(n), WORLD_SIZE='4')) for n in range(4)]\n"
                       "    for one in ranks: one.stdout.readline()\n"
                       "    print(*[one.pid for one in ranks], flush=True)\n"
                       "    sys.stdin.read()\n")
    launcher = subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        pids = [int(word) for word in launcher.stdout.readline().split()]
        assert len(pids) == 4
        def grouped():
            told = probing(launcher.pid, "bt", "--ranks", "--group").works()
            return "Ranks 0, 2-3: 3 threads" in told and told

        out = until(grouped)  # they print a moment before they wait
        assert out.startswith("4 processes, 4 threads, 2 different stacks\n")
        blocks = out.split("\n\n")
        assert re.match(r"Ranks 0, 2-3: 3 threads: {} .*MainThread".format(pids[0]), blocks[1])
        assert re.search(r"^    all_reduce \(hung\.py:2\)", blocks[1], re.M)
        assert re.match(r"Rank 1: thread {} .*idle".format(pids[1]), blocks[2])
        assert re.search(r"^    load \(hung\.py:3\)", blocks[2], re.M)
    finally:
        launcher.communicate(b"")


def test_backtrace_watch_of_several(probing, job):
    probing(job[0], "bt", "--ranks", "--watch").fails(2, "--watch shows one process")


# ---- query, tasks, snapshot ----


def test_query(probing, job):
    """Each table has the rows of all ranks, also in joins and aggregates."""
    sql = "SELECT rank, pid, func FROM python.backtrace WHERE func = 'rank' ORDER BY rank"
    found = json.loads(probing(job[0], "query", "--ranks", "-f", "json", sql).works())
    assert found == [{"rank": rank, "pid": job[1 + rank], "func": "rank"} for rank in range(2)]
    sql = ("SELECT t.rank, count(*) AS frames, max(p.threads) AS threads FROM python.threads t JOIN python.backtrace b USING (pid, os_thread_id) "
           "JOIN system.process p USING (pid) GROUP BY t.rank HAVING count(*) > 2 ORDER BY 1")
    found = json.loads(probing(job[0], "query", "--ranks", "-f", "json", sql).works())
    assert [(row["rank"], row["threads"]) for row in found] == [(0, 1), (1, 1)]


def test_query_of_children(probing, job):
    found = json.loads(probing(job[1], "query", "-s", "-f", "json", "SELECT rank, pid, ppid FROM system.process ORDER BY pid").works())
    assert [(row["rank"], row["pid"], row["ppid"]) for row in found] == sorted([(0, job[1], job[0]), (0, job[3], job[1])], key=lambda row: row[1])
    wide = json.loads(probing(job[1], "query", "-s", "-f", "json", "SET probing.repr_limit = 16; SELECT * FROM python.locals WHERE name = 'worker'").works())
    assert [list(row)[:2] for row in wide] == [["rank", "pid"]]
    probing(job[1], "query", "-s", "SELECT rang FROM python.threads").fails(9, "rang", "rank")


def test_query_while_a_rank_ends(elastic):
    """It is left out with a note; the other rank's rows come."""
    launcher, rank, other = elastic.pids()[:3]
    sql = "SELECT rank, pid, n FROM (SELECT count(*) AS n FROM profiling_data(4, 500)) CROSS JOIN python.threads"
    child = subprocess.Popen([PROBING, str(launcher), "query", "--ranks", "-f", "json", sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until_held(child, [rank])
    os.kill(other, signal.SIGKILL)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert [(row["rank"], row["pid"]) for row in json.loads(out)] == [(0, rank)]
    assert "left out: process {}".format(other).encode() in err


def test_tasks(probing, tmp_path):
    program = tmp_path / "waits.py"
    program.write_text("import asyncio, sys\nasync def main():\n    print('ready', flush=True)\n    await asyncio.sleep(1000)\n"
                       "asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())\n")
    ranks = [subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, env=dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_PORT="7"))
             for rank in range(2)]
    try:
        for one in ranks:
            assert one.stdout.readline() == b"ready\n"
        found = json.loads(probing(ranks[0].pid, "tasks", "--ranks", "--json").works())
        assert [(task["rank"], task["pid"], task["coroutine"]) for task in found] == [(rank, ranks[rank].pid, "main") for rank in range(2)]
        out = probing(ranks[0].pid, "tasks", "--ranks").works()
        assert out.index("Rank 0") < out.index(str(ranks[0].pid)) < out.index("Rank 1") < out.index(str(ranks[1].pid))
    finally:
        for one in ranks:
            one.kill()
            one.communicate()


def test_snapshot(probing, job, tmp_path):
    """A file for each rank, and for each process of one."""
    probing(job[0], "snapshot", tmp_path / "stuck.snap", "--ranks").works()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stuck.rank0.snap", "stuck.rank1.snap"]
    assert "Snapshot of process {}".format(job[2]) in probing("-t", tmp_path / "stuck.rank1.snap", "bt").works()
    probing(job[1], "snapshot", tmp_path / "child", "-s").works()
    assert {path.name for path in tmp_path.iterdir()} > {"child.rank0", "child.rank0.{}".format(max(job[1], job[3]))}
