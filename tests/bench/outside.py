"""Figures of looking at a training job from outside, nothing loaded: how right the shares of its phases are, and what the job pays."""

import json
import statistics
import subprocess

import tracing
from support import pythons
from support import target as live
from support.torch_python import torch_python

PHASES = ("data", "forward", "backward", "optimizer", "zero_grad")
SAMPLES = 1200


def report(target):
    target.child.stdin.write(b"\n")
    target.child.stdin.flush()
    return json.loads(target.line())


def worst_of(target, seconds):
    """How far the farthest phase is from what the program measured itself, points; and the samples."""
    report(target)
    rows = live.query(target.pid, "SELECT phase, sum(share) AS share, sum(samples) AS n FROM python.torch_phases({}) GROUP BY phase".format(seconds))
    truth, told = report(target), {row["phase"]: row["share"] for row in rows}
    return max(100 * abs(told.get(phase, 0) - truth[phase]) for phase in PHASES), sum(row["n"] for row in rows)


@tracing.needs_torch
def phases(figures, options):
    """Of a plain loop; as many samples as the bar is for."""
    with live.Target(pythons.Python([], torch_python(), (3, 0, 0), "torch"), "torch_loops.py", ["plain"]) as target:
        _, samples = worst_of(target, 2)
        seconds = min(40, max(3, round(2 * SAMPLES / max(1, samples))))
        told = [worst_of(target, seconds) for _ in range(1 if options.quick else 5)]
        off = statistics.median(worst for worst, _ in told)
        figures.add("shares of phases, {} samples, the farthest from the truth (one standard deviation is {:.2g})".format(
            round(statistics.median(n for _, n in told)), 100 * (0.25 / told[0][1]) ** 0.5), off, "points", "≤ 2 points", off <= 2)


@tracing.needs_torch
def outside(figures, options):
    """A step beside a look from outside, in pairs: CPU time of the thread that trains."""
    with tracing.Job(torch_python()) as job:
        pairs = []
        for _ in range(options.rounds * 2):
            plain = job.ask("steps", 100)
            job.send("steps 100")
            look = subprocess.Popen([live.PROBING, "-t", str(job.pid), "query", "SELECT * FROM python.torch_phases(20)"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            pairs.append((plain, json.loads(job.line())))
            look.terminate()
            look.wait()
        tracing.percent(figures, "a step beside `torch_phases`", tracing.More(pairs), 1)


PARTS = [phases, outside]
