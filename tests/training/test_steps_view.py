"""probing top --view steps: of a job that nothing looks into, beside what it says itself; of one whose steps are recorded."""

import re

import pytest

from loops import report
from support.ranks import two_ranks_with_tables
from support.target import probing

PHASES = ["data", "forward", "backward", "optimizer", "zero_grad"]
STEPS = ("timestamp:time\nglobal_step:integer\nlocal_step:integer\nstep_duration_sec:real:s\ndata:real:s\nforward:real:s\n"
         "backward:real:s\noptimizer:real:s\ncomm_wait:real:s")


class View:
    """What it printed: the row of each process, and the phases of the only one."""

    def __init__(self, printed):
        lines = printed.strip("\n").split("\n")
        assert lines[0] == "probing top: steps" and lines[3].split()[:4] == ["process", "tier", "step", "step"]
        assert all(len(line) <= 80 for line in lines), lines
        self.told, self.rows, self.phases = lines[2], {}, {}
        for line in lines[4:]:
            phase = re.match(r"  [a-z.] (\w+) +([\d.]+) %( +([\d.]+) ms)?", line)
            if line.startswith("    of it waits"):
                self.waits = float(line.split()[3]) / 100
            elif phase:
                self.phases[phase[1]] = float(phase[2]) / 100
            else:
                names = ["tier", "step", "ms", "items", "loss", "memory", "gpu"]
                ends = [13, 22, 31, 40, 49, 56, 61]
                starts = [8] + ends
                self.rows[line[:8].strip()] = dict(zip(names, [line[a:b].strip() for a, b in zip(starts, ends)]), bar=line[62:])


def shown(target, *options):
    return View(probing("-t", target, "top", "--view", "steps", *options).stdout)


def test_a_job_that_nothing_looks_into(loop):
    """Its share of each phase, the length of a step, and the number of the step.  A busy machine takes few samples: then for longer."""
    target = loop("plain")
    for delay in (3, 9, 27):
        before = report(target)["steps"]
        view = shown(target.pid, "--delay", str(delay))
        truth = report(target)
        try:
            shows_truth(view, before, truth, target)
        except AssertionError:
            if delay == 27:
                raise
        else:
            break


def shows_truth(view, before, truth, target):
    row = view.rows[str(target.pid)]
    assert row["tier"] == "0" and view.told.startswith("tier 0: sampled from outside, nothing loaded")
    assert before < int(row["step"]) <= truth["steps"]
    for phase in PHASES:
        error = (max(truth[phase], 0.01) * (1 - truth[phase]) / 200) ** 0.5
        assert abs(view.phases.get(phase, 0) - truth[phase]) <= 4 * error + 0.05, (phase, truth, view.phases)
    assert abs(sum(view.phases.values()) - 1) < 0.01
    assert re.match(r"[\d.]+[MG]$", row["memory"])
    first = {letter: row["bar"].count(letter) / len(row["bar"]) for letter in "dfbo."}
    assert abs(first["b"] - view.phases["backward"]) < 0.1 and len(row["bar"]) == 80 - 62


@pytest.fixture
def job(tmp_path):
    """Two live ranks, not of torch: (pids, write(rank, table, columns, rows))."""
    with two_ranks_with_tables(tmp_path / "data") as both:
        yield both


def now():
    with open("/proc/uptime") as uptime, open("/proc/stat") as stat:
        began = next(int(line.split()[1]) for line in stat if line.startswith("btime"))
        return began + float(uptime.read().split()[0])


def test_recorded_steps(job):
    """Means of the last 20; what the program logs stands beside them."""
    pids, write = job
    for rank in range(2):
        write(rank, "torch_step_timing", STEPS, [(now() - 5 + n * 0.1, 1000 + n, n, 0.1 * (rank + 1) if n >= 20 else 9.0, 0.01, 0.02, 0.04, 0.02, 0.005)
                                                 for n in range(40)])
        write(rank, "training_logs", "time:time\nepoch:integer\nstep:integer\nloss:real\ntokens_per_second:real\nother:text",
              [(now() - 5 + n * 0.1, 0, n, (2.5 - n * 0.01) * (1, 3e20)[rank], 4096.0 * (rank + 1), None) for n in range(40)])
    view = shown(pids[0], "--ranks")
    assert sorted(view.rows) == ["rank 0", "rank 1"] and view.told == "tier 1: PyTorch is traced, means of the last steps"
    zero, one = view.rows["rank 0"], view.rows["rank 1"]
    assert (zero["tier"], zero["step"], zero["ms"], zero["items"], zero["loss"]) == ("1", "1039", "100.0", "4096", "2.1100")
    assert (one["ms"], one["items"], one["loss"]) == ("200.0", "8192", "6.33e+20")  # it diverges, and keeps its column
    assert not view.phases, "the phases of one process only"
    assert zero["bar"] == "dd" + "fff" + "b" * 8 + "ooo" + "c" + "."
    alone = shown(pids[0])
    assert alone.phases == {"data": 0.1, "forward": 0.2, "backward": 0.4, "optimizer": 0.2, "communication": 0.05, "other": 0.05}


def test_a_program_without_steps(job):
    """It says that nothing counts them."""
    pids, _ = job
    view = shown(pids[0], "--delay", "0.5")
    row = view.rows["rank 0"]
    assert (row["tier"], row["step"], row["ms"]) == ("0", "", "") and "nothing counts steps" in view.told
    assert view.phases == {"other": 1.0}


def test_a_loss_that_changes_while_it_is_read(start, any_python):
    """It is shown as the program had it, or not at all: a number that is freed has the memory of another one next."""
    target = start(any_python, "torn_loss.py")
    shown_losses = [shown(target.pid, "--delay", "0.3").rows[str(target.pid)]["loss"] for _ in range(15)]
    assert set(shown_losses) <= {""} | {"{}.5000".format(n) for n in range(1, 8)} and set(shown_losses) != {""}
