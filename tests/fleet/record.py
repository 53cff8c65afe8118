"""Makes tests/fleet/corpus/stacks.json: real stacks of ranks, native frames too.

View 0 is of a rank that hangs in its reader; then come those of the ranks that wait for it in gloo, and of four ranks that train
(examples/train.py), looked at as often as argument 1 says (40).
"""

import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from fakes import KINDS, RECORD, members  # noqa: E402
from support.target import DEADLINE, PROBING, TARGETS  # noqa: E402
from support.torch_python import torch_python  # noqa: E402


class Recorder:
    def __init__(self):
        self.frames, self.stacks, self.views = {}, {}, []

    def number(self, table, key):
        return table.setdefault(key, len(table))

    def look(self, job):
        """{rank: its stacks}"""
        told = subprocess.run([PROBING, "-t", "@" + job, "backtrace", "--native", "--json"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE)
        ranks = {}
        for row in json.loads(told.stdout)["rows"]:
            frames = tuple(self.number(self.frames, (KINDS.index(one["kind"]), one["name"], one["file"], one["line"])) for one in row["frames"])
            stack = self.number(self.stacks, (row["thread"], frames))
            share = row["threads"] // row["count"]  # ranks may differ in how many threads stand there
            for rank in members(row["ranks"]):
                ranks.setdefault(rank, []).extend([stack] * share)
        return ranks

    def write(self):
        with open(RECORD, "w") as out:
            out.write('{"frames": [\n')
            out.write(",\n".join(json.dumps(list(one)) for one in self.frames))
            out.write('\n],\n"stacks": [\n')
            out.write(",\n".join(json.dumps([thread, list(frames)], separators=(",", ":")) for thread, frames in self.stacks))
            out.write('\n],\n"views": [\n')
            out.write(",\n".join(json.dumps(one, separators=(",", ":")) for one in self.views))
            out.write("\n]}\n")


def hanging(recorder):
    jobs = subprocess.Popen([torch_python(), os.path.join(TARGETS, "hang_jobs.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    assert jobs.stdout.readline() == "ready\n"
    for case, guilty in (("reader", 3), ("tensor", 2), ("slow", 1)):
        print(case, guilty, "record", file=jobs.stdin, flush=True)
        assert jobs.stdout.readline().startswith("pids")
        time.sleep(2)
        ranks = recorder.look("record")
        recorder.views += [sorted(ranks[rank]) for rank in ([guilty] if not recorder.views else []) + [0, 1, 2]]
    jobs.stdin.close()
    jobs.wait()


def running(recorder, looks):
    program = os.path.join(HERE, "..", "..", "examples", "train.py")
    ranks = [subprocess.Popen([torch_python(), program], stdout=subprocess.DEVNULL, env=dict(os.environ, RANK=str(rank), WORLD_SIZE="4", PROBING_JOB="train"))
             for rank in range(4)]
    time.sleep(30)
    for _ in range(looks):
        recorder.views += [sorted(stacks) for stacks in recorder.look("train").values()]
    for one in ranks:
        one.kill()
        one.wait()


def main(looks):
    recorder = Recorder()
    hanging(recorder)
    running(recorder, looks)
    recorder.write()


main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
