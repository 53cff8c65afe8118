"""Hosts that are not there (fake_hosts.c), with stacks of a real job (tests/fleet/corpus/stacks.json), and what a look must say."""

import collections
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "corpus", "stacks.json")
PROGRAM = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "fleet", "fake_hosts")
KINDS = ("python", "native", "broken", "task")


class Fakes:
    """One process of them, with jobs, hosts first … first + count - 1, and ranks on each."""

    def __init__(self, bus_file, jobs, first, count, ranks, connections=1):
        self.words = [PROGRAM, bus_file, RECORD, ",".join(jobs), str(first), str(count), str(ranks), str(connections)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        assert self.process.stdout.readline() == "ready\n"

    def order(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", words

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Record:
    """Which rank stands where; as fake_hosts.c deals them out."""

    def __init__(self):
        with open(RECORD) as file:
            told = json.load(file)
        self.frames, self.views = told["frames"], told["views"]
        self.stacks = [(thread, tuple(frames)) for thread, frames in told["stacks"]]

    def view(self, rank, odd=None):
        return self.views[0 if rank == odd else 1 + (rank * 7919 + rank // 8) % (len(self.views) - 1)]

    def frame(self, number):
        kind, name, file, line = self.frames[number]
        return KINDS[kind], name, file, line

    def groups(self, ranks, job, odd=None, question=0):
        """{(thread, frames): ({rank, …}, threads)} of ranks of a job."""
        found = collections.defaultdict(lambda: [set(), 0])
        for rank in ranks:
            for number in self.view(rank, odd):
                thread, frames = self.stacks[number]
                frames = tuple(map(self.frame, frames))
                if thread == "MainThread":
                    frames = (("python", "question", "question.py", question), *frames, ("python", "run_" + job, "job.py", 1))
                found[thread, frames][0].add(rank)
                found[thread, frames][1] += 1
        return {key: (frozenset(ranks), threads) for key, (ranks, threads) in found.items()}


def members(text):
    """{0, 1, 5} of "0-1,5"."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def shown(rows):
    """The same as Record.groups of what `backtrace --json` printed; each group is there once."""
    found = {}
    for row in rows:
        key = row["thread"], tuple((one["kind"], one["name"], one["file"], one["line"]) for one in row["frames"])
        assert key not in found and row["count"] == len(members(row["ranks"])), key
        found[key] = frozenset(members(row["ranks"])), row["threads"]
    return found


def states(coverage):
    """{rank: state}; each rank is in exactly one, and all are expected."""
    found = {}
    for name in ("answered", "silent", "missing", "gone"):
        for rank in members(coverage[name]):
            assert found.setdefault(rank, name) == name, (rank, name, found[rank])
    for one in coverage["failed"]:
        assert found.setdefault(one["rank"], "failed") == "failed" and one["reason"], one
    assert sorted(found) == list(range(coverage["expected"])), coverage
    return found
