"""python.torch_trace and python.torch_step_timing: what the probe recorded is what the program did, step by step."""

import json
import os
import signal
import statistics
import subprocess

import pytest

from loops import ranks_of, report
from support import pythons
from support.injection import wait_until
from support.target import DEADLINE, PROBING, TARGETS, Target, probing, query
from support.torch_python import torch_python

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
RANKED = ("ddp", "fsdp")
BEFORE = 2  # steps of tests/targets/torch_programs.py that it does before it is ready


class Job:
    """A program of tests/targets/torch_programs.py, traced."""

    def __init__(self, shape, spec="rate=1", **variables):
        if not torch_python():
            pytest.skip("needs a Python with torch: PROBING_TORCH_PYTHON, or build/venv")
        launcher = [torch_python(), *TORCHRUN] if shape in RANKED else []
        python = pythons.Python(launcher, torch_python(), pythons.ask([torch_python()])[0], "torch")
        self.target = Target(python, "torch_programs.py", [shape], folder=TARGETS, variables=variables)
        self.pid = next(int(note.split()[1]) for note in self.target.notes if note.startswith("pid "))
        self.target.pid = self.pid
        if spec:
            self.config(spec)

    def config(self, spec):
        return probing("-t", self.pid, "config", "probing.torch.profiling=" + spec, check=False)

    def steps(self, count):
        """Do so many, and say what happened in each."""
        self.target.child.stdin.write("{}\n".format(count).encode())
        self.target.child.stdin.flush()
        while True:
            line = self.target.line()
            if line.startswith("["):
                return json.loads(line)

    def rows(self, where="1"):
        return query(self.pid, "SELECT * FROM python.torch_trace WHERE {} ORDER BY thread, local_step, seq".format(where))

    def timing(self):
        return query(self.pid, "SELECT * FROM python.torch_step_timing ORDER BY local_step")


@pytest.fixture
def job():
    started = []

    def begin(shape, spec="rate=1", **variables):
        started.append(Job(shape, spec, **variables))
        return started[-1]

    yield begin
    for one in started:
        one.target.end()


def events_of(rows, kinds):
    """As the program tells them: [what, name, depth, recompute]."""
    found = []
    for row in rows:
        if row["stage"] not in kinds:
            continue
        name = {"forward": row["module"], "optimizer": (row["optimizer"] or "").split("#")[0],
                "zero_grad": (row["optimizer"] or "").split("#")[0], "scope": row["operation_name"]}.get(row["stage"], "")
        forward = row["stage"] == "forward"
        found.append([row["stage"], name, row["depth"] if forward else 0, row["recompute"]])
    return found


def by_step(rows):
    found = {}
    for row in rows:
        found.setdefault(row["local_step"], []).append(row)
    return found


ONE_THREAD = ["plain", "gan", "accumulate", "checkpoint", "reentrant", "two_optimizers", "repeated", "lbfgs", "skipped", "generate", "pipeline"]


@pytest.mark.parametrize("shape", ONE_THREAD)
def test_each_step_has_what_the_program_did(job, shape):
    """Every call, in order.  The step during which recording began has no row of its own."""
    one = job(shape)
    one.steps(1)
    told = one.steps(4)
    one.config("off")
    steps = by_step(one.rows())
    timing = {row["local_step"]: row for row in one.timing()}
    for number, truth in enumerate(told, min(timing)):
        kinds = {what for what, *_ in truth["events"]}
        assert events_of(steps[number], kinds) == truth["events"], (shape, number)
        row = timing[number]
        assert row["micro_steps"] == truth["micro_steps"]
        if truth["optimizers"]:
            assert row["optimizer_class"] in truth["optimizers"] and row["sampled"] == 1
        parts = sum(row[name] for name in ("data", "forward", "backward", "optimizer", "comm_wait", "other"))
        assert parts == pytest.approx(row["step_duration_sec"])
        assert 0 < row["overhead"] < 0.5, row
        assert row["events"] >= len(truth["events"]), (row, truth)
    assert len(timing) == len(told)


def shown(target):
    return {row["table_name"] for row in query(target, "SHOW TABLES")}


def test_the_last_step(job, tmp_path):
    """It has a row also where nothing follows it: after a while, and when the program ends.  The next one has only what is its own."""
    one = job("plain", PROBING_DATA_DIR=str(tmp_path))
    one.steps(1)
    one.steps(4)
    wait_until(lambda: [row["local_step"] for row in one.timing()] == [1, 2, 3, 4])
    assert shown(one.pid) >= {"torch_trace", "torch_step_timing"} and "torch_names" not in shown(one.pid)
    one.steps(3)
    one.target.child.stdin.close()
    assert one.target.child.wait(DEADLINE) == 0
    folder, = tmp_path.glob("{}-*".format(one.pid))
    rows = query(str(folder), "SELECT * FROM python.torch_step_timing ORDER BY local_step")
    assert [row["local_step"] for row in rows] == list(range(1, 8))
    assert "torch_names" not in shown(str(folder))
    assert len({(row["events"], row["micro_steps"], row["updates"]) for row in rows}) == 1, rows
    for row in rows:
        assert row["forward"] + row["backward"] + row["optimizer"] < row["step_duration_sec"] and row["forward"] > 0


def test_labels(job):
    """The user's own scopes, in order among the rest, and as spans."""
    one = job("labels")
    one.steps(1)
    told = one.steps(3)
    one.config("off")
    steps = by_step(one.rows())
    for number, truth in enumerate(told, min(row["local_step"] for row in one.timing())):
        kinds = {what for what, *_ in truth["events"]}
        assert events_of(steps[number], kinds) == truth["events"]
    spans = query(one.pid, "SELECT name, duration, os_thread_id FROM python.spans WHERE attributes LIKE '%record_function%'")
    assert {row["name"] for row in spans} == {"outer label", "inner"} and {row["os_thread_id"] for row in spans} == {one.pid}
    assert all(0 < row["duration"] < 60 for row in spans)


def test_threads(job):
    """Each thread has its own calls, with depths of their own."""
    one = job("threads")
    one.steps(1)
    told = one.steps(2)
    one.config("off")
    steps = by_step(one.rows("stage = 'forward'"))
    for number, truth in enumerate(told, min(row["local_step"] for row in one.timing())):
        per_thread = {}
        for row in steps[number]:
            per_thread.setdefault(row["thread"], []).append([row["stage"], row["module"], row["depth"], row["recompute"]])
        assert len(per_thread) == 3
        forwards = [event for event in truth["events"] if event[0] == "forward"]
        for calls in per_thread.values():
            assert len(calls) * 3 == len(forwards) and all(call in forwards for call in calls)


def test_a_compiled_module_is_one_row(job):
    """Its inner modules are none, and recording changes nothing of it: no graph break, no recompilation, no warning."""
    one = job("compiled")
    one.steps(1)
    told = one.steps(3)
    one.config("off")
    steps = by_step(one.rows("stage = 'forward'"))
    for number, truth in enumerate(told, min(row["local_step"] for row in one.timing())):
        assert [(row["module"], row["depth"], row["operation_name"]) for row in steps[number]] == [("", 0, "OptimizedModule.forward")]
        assert truth["graphs"] == 1 and truth["breaks"] == 0


@pytest.mark.parametrize("shape", RANKED)
def test_two_ranks(job, shape):
    one = job(shape)
    one.steps(1)
    told = one.steps(3)
    one.config("off")
    rows = one.rows()
    assert {row["rank"] for row in rows} == {0} and {row["world_size"] for row in rows} == {2}
    steps = by_step(rows)
    first = min(row["local_step"] for row in one.timing())
    collectives = query(one.pid, "SELECT * FROM python.comm_collective ORDER BY timestamp")
    for number, truth in enumerate(told, first):
        forwards = [event for event in truth["events"] if event[0] == "forward"]
        found = events_of(steps[number], {"forward"})
        assert found == forwards, (found, forwards)
        ops = [row["op"] for row in collectives if row["local_step"] == number]
        if shape == "ddp":
            assert ops.count("all_reduce") >= 2, "DDP's own, and the program's"
        else:
            assert ops
    assert {row["backend"] for row in collectives} == {"gloo"}
    assert all(row["duration_ms"] > 0 and row["rank"] == 0 for row in collectives)
    known = [row for row in collectives if row["group"] is not None]
    assert len(known) >= 0.9 * len(collectives), "the recorder holds them, whatever a busy machine puts between its look and ours"
    for row in known:
        assert (row["group_size"], row["group_rank"], row["participate_ranks"]) == (2, 0, "[0, 1]"), row
    if shape == "ddp":
        waited = [row["comm_wait"] for row in one.timing()]
        assert all(wait > 0 for wait in waited[1:]), "for its own reductions, and the program's: {}".format(waited)
        totals = [row for row in known if row["op"] == "all_reduce" and row["tensor_shape"] == "[]"]
        assert totals and {(row["bytes"], row["tensor_dtype"]) for row in totals} == {(4, "Float")}
        gradients = [row for row in known if row["op"] == "all_reduce" and row["tensor_shape"] != "[]"]
        assert gradients and all(row["bytes"] == 4 * int(row["tensor_shape"].strip("[]")) for row in gradients), gradients
    for op in {row["op"] for row in collectives}:
        numbers = [row["seq"] for row in collectives if row["op"] == op]
        assert sorted(numbers) == list(range(len(numbers))), (op, numbers)


def test_a_job_that_starts_with_it(job):
    """No tool beside it: names and the anchor come by themselves, rows from the third step at the latest."""
    library = os.path.join(os.environ["BUILDDIR"], ".libs", "libprobe.so")
    one = job("gan", None, PROBING_TORCH_PROFILING="rate=1", PROBE="1", LD_PRELOAD=library)
    one.steps(3)
    wait_until(lambda: one.rows("module IS NOT NULL"))
    truth, = one.steps(1)
    one.config("off")
    last = max(row["local_step"] for row in one.timing())
    kinds = {what for what, *_ in truth["events"]}
    assert events_of(by_step(one.rows())[last], kinds) == truth["events"]
    assert {row["optimizer_class"] for row in one.timing() if row["local_step"] == last} == {"RMSprop"}


def test_a_crash_dump_has_the_rows(job, tmp_path):
    """The last ones, named, and the steps: the same as the live process told."""
    one = job("gan")
    one.steps(3)
    wait_until(lambda: one.rows("module IS NOT NULL"))
    told, steps = one.rows(), one.timing()
    probing("-t", one.pid, "config", "probing.crash=on", "probing.crash_dir={}".format(tmp_path), check=False)
    os.kill(one.pid, signal.SIGSEGV)
    wait_until(lambda: one.target.child.poll() is not None)
    (dump,) = tmp_path.glob("*.snap")
    kept = query(dump, "SELECT * FROM python.torch_trace ORDER BY thread, local_step, seq")
    assert len(kept) >= 10 and all(row in told for row in kept) and any(row["module"] for row in kept)
    assert query(dump, "SELECT * FROM python.torch_step_timing ORDER BY local_step") == steps


def test_two_events_a_call(job):
    """Upstream's two rows of a call: its begin and its end, each call's within the one around it."""
    one = job("checkpoint")
    one.steps(1)
    told = one.steps(3)
    one.config("off")
    calls = one.rows()
    events = query(one.pid, "SELECT * FROM python.torch_trace_events ORDER BY thread, timestamp")
    assert len(events) == 2 * len(calls)
    began = {(row["thread"], row["local_step"], row["seq"]): row for row in events if row["stage"].startswith("pre ")}
    ended = {(row["thread"], row["local_step"], row["seq"]): row for row in events if row["stage"].startswith("post ")}
    for call in calls:
        key = call["thread"], call["local_step"], call["seq"]
        word = {"optimizer": "step"}.get(call["stage"], call["stage"])
        assert [began[key]["stage"], ended[key]["stage"]] == ["pre " + word, "post " + word]
        assert began[key]["timestamp"] == call["timestamp"] and began[key]["duration"] == 0
        assert ended[key]["duration"] == call["duration"]
        assert ended[key]["timestamp"] == pytest.approx(call["timestamp"] + call["duration"], abs=2e-6)
        names = call["module"] if call["stage"] == "forward" else call["operation_name"]
        assert call["stage"] != "forward" or began[key]["module"] == ended[key]["module"] == names
        for column in ("rank", "global_step", "micro_step", "pid"):
            assert began[key][column] == ended[key][column] == call[column]
    inside = []
    for row in events:
        key = row["thread"], row["local_step"], row["seq"]
        if row["stage"].startswith("pre "):
            inside.append(key)
        else:
            assert inside.pop() == key, row
    assert not inside
    names = [row["module"] for row in events if row["stage"] == "pre forward" and row["local_step"] == calls[-1]["local_step"]]
    assert names == [name for what, name, *_ in told[-1]["events"] if what == "forward"]


CALLS = 18  # of a step of torch_loops.Model: itself, four blocks of four, its head


@pytest.mark.parametrize("name, root", [("transformers", "Classifier"), ("lightning", "Model")])
def test_trainers_of_frameworks(loop, name, root):
    """Steps, their numbers as the framework's log has them, and the phases that its own hooks measure."""
    if subprocess.run([torch_python() or "false", "-c", "import " + name], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no Python with torch and " + name)
    target = loop(name, "torch_frameworks.py")
    assert "probing.torch.profiling = rate=1" in probing("-t", target.pid, "config", "probing.torch.profiling=rate=1", check=False).stdout
    before = report(target)["steps"]
    wait_until(lambda: (query(target.pid, "SELECT max(global_step) AS n FROM python.torch_step_timing")[0]["n"] or 0) > before + 100, 240)
    truth = report(target)
    probing("-t", target.pid, "config", "probing.torch.profiling=off")
    rows = query(target.pid, "SELECT * FROM python.torch_step_timing WHERE global_step > {} AND global_step <= {}".format(before, truth["steps"]))
    assert len(rows) == truth["steps"] - before > 10
    assert {(row["micro_steps"], row["updates"], row["optimizer_class"], row["sampled"]) for row in rows} == {(1, 1, "AdamW", 1)}
    phases = ("data", "forward", "backward")
    spent = {phase: sum(row[phase] for row in rows) for phase in phases}
    for phase in phases:
        share, told = spent[phase] / sum(spent.values()), truth[phase] / sum(truth[each] for each in phases)
        assert share == pytest.approx(told, abs=0.05), (phase, spent, truth)
    assert all(row["optimizer"] > 0 for row in rows)
    inner = rows[len(rows) // 2]["local_step"]
    calls = query(target.pid, "SELECT * FROM python.torch_trace WHERE stage = 'forward' AND local_step = {} ORDER BY seq".format(inner))
    assert len(calls) == CALLS and calls[0]["operation_name"] == root + ".forward" and calls[0]["depth"] == 0
    assert [row["module"].rpartition("blocks.")[2] for row in calls[1:-1]] == [
        "{}{}".format(k, part) for k in range(4) for part in ("", ".norm", ".wide", ".narrow")]


def test_the_programs_number_is_found_later(job):
    """No step ends while somebody waits for the setting: the probe asks again, and all rows get their number."""
    one = job("plain")
    done = 0

    def numbers():
        nonlocal done
        done += len(one.steps(1))
        return [row["global_step"] for row in one.timing()]

    assert set(numbers() + numbers() + numbers()) <= {None}
    wait_until(lambda: None not in numbers(), 240)
    rows = one.timing()
    assert {row["global_step"] - row["local_step"] for row in rows} == {rows[0]["global_step"] - rows[0]["local_step"]}
    assert rows[-1]["global_step"] in (BEFORE + done - 1, BEFORE + done), (rows[-1], done)  # the last may go on


@pytest.mark.parametrize("ranked", [False, True], ids=["alone", "ranked"])
def test_a_local_counts(loop, ranked):
    """Where neither an optimizer nor a loader counts, as with SGD: the loop's own variable, as it is in that step, and not that of
    micro-batches.  All ranks of a job then have the same numbers."""
    target = loop("70", "torch_bare.py", ranked)
    pids = ranks_of(target) if ranked else [target.pid]
    lowest = []
    for pid in pids:
        assert probing("-t", pid, "config", "probing.torch.profiling=on,exprs=step@train", check=False).returncode == 0
    for pid in pids:
        counted = "SELECT global_step FROM python.torch_step_timing WHERE global_step IS NOT NULL"
        wait_until(lambda: len(query(pid, counted)) > 10, 120)
        both = query(pid, "SELECT t.global_step, number FROM python.torch_step_timing t JOIN python.variables USING (local_step) WHERE name = 'step'")
        assert len(both) > 10 and all(row["global_step"] == row["number"] for row in both), both
        lowest.append(query(pid, "SELECT min(global_step) AS n, max(micro_steps) AS m FROM python.torch_step_timing")[0])
    assert all(row["n"] > 70 and row["m"] == 2 for row in lowest), lowest


def test_which_rows_are_wanted(job):
    one = job("plain", "rate=0.5,depth=2,backward=off")
    one.steps(1)
    one.steps(8)
    one.config("off")
    timing, steps = one.timing(), by_step(one.rows())
    for row in timing:
        stages = {each["stage"] for each in steps[row["local_step"]]}
        assert ("forward" in stages) == bool(row["sampled"]), row
        assert {"optimizer", "zero_grad", "data"} <= stages and "backward" not in stages
    assert sum(row["sampled"] for row in timing) == len(timing) // 2
    forwards = one.rows("stage = 'forward'")
    assert {row["depth"] for row in forwards} == {0, 1} and {row["weight"] for row in forwards} == {2}


def test_what_is_not_done_is_refused_by_name(job):
    one = job("plain", None)
    for spec, key in (("tracepy=on", "tracepy=on"), ("on,sync=on", "sync=on"), ("shadow=4", "shadow"), ("sink=x", '"sink"')):
        done = one.config(spec)
        assert done.returncode == 2 and key in done.stderr, (spec, done)
    assert one.config("off").returncode == 0
    done = probing(one.pid, "query", "-f", "json", "SELECT * FROM python.torch_step_timing", check=False)
    assert done.stdout.strip() == "[]" and "recording of PyTorch is off" in done.stderr


def shadows_of(rows):
    return [row["is_shadow"] for row in rows]


@pytest.mark.parametrize("shape, has_rows", [("plain", False), ("generate", True)])
def test_shadow_steps(job, shape, has_rows):
    """Two of each five steps have no rows of modules; the medians are those of the steps, and the interval holds their difference."""
    one = job(shape, "rate=1,shadow=3:2")
    one.steps(70)  # without a backward the first 64 calls of a root only tell that they are the steps
    told = one.steps(200)
    one.config("off")
    timing, steps = one.timing(), by_step(one.rows("stage = 'forward'"))
    assert len(timing) >= len(told)
    steady = timing[-195:]
    places = [(row["global_step"] if row["global_step"] is not None else row["local_step"]) for row in steady]
    assert places == list(range(places[0], places[0] + len(places)))
    for first in range(-places[0] % 5, len(steady) - 5, 5):
        turn = shadows_of(steady[first:first + 5])
        assert turn in ([1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]), (first, shadows_of(steady))
    assert len({tuple(shadows_of(steady[first:first + 5])) for first in range(-places[0] % 5, len(steady) - 5, 5)}) == 4
    for row in steady:
        assert row["sampled"] == 1 - row["is_shadow"]
        calls = [call for call in steps.get(row["local_step"], []) if call["stage"] == "forward"]
        assert bool(calls) == bool(row["sampled"]), row
        assert has_rows or bool(row["forward"]) == bool(row["sampled"])
    for shadow, column in ((0, "shadow_normal"), (1, "shadow_baseline")):
        middle = statistics.median(row["step_duration_sec"] for row in timing if row["is_shadow"] == shadow)
        assert [row[column] for row in timing] == pytest.approx([middle] * len(timing))
    row = timing[0]
    assert row["shadow_low"] <= row["shadow_normal"] / row["shadow_baseline"] - 1 <= row["shadow_high"]


def chunks(events, begins, ends):
    """Events in pieces: a piece begins with one of begins, and behind one of ends."""
    found = [[]]
    for event in events:
        if event[:2] in begins or found[-1] and found[-1][-1][:2] in ends:
            found.append([])
        found[-1].append(event)
    return found


ENDINGS = [("gan", "optimizer:Adam", [], [["optimizer", "Adam"]], "Adam"), ("gan", "optimizer:RMSprop#0", [], [["optimizer", "RMSprop"]], "RMSprop"),
           ("plain", "data", [["data", ""]], [], "AdamW"), ("plain", "module:blocks.1.norm", [], [["forward", "blocks.1.norm"]], "AdamW"),
           ("plain", "module:LayerNorm", [], [["forward", "blocks.0.norm"], ["forward", "blocks.1.norm"]], None),
           ("labels", "label:inner", [["backward", ""]], [], "SGD"),
           ("plain", "torch_programs:step", [["data", ""]], [], "AdamW")]


@pytest.mark.parametrize("shape, setting, begins, ends, optimizer", ENDINGS)
def test_what_ends_a_step(job, shape, setting, begins, ends, optimizer):
    one = job(shape, None)
    assert probing("-t", one.pid, "config", "probing.torch.step=" + setting, check=False).returncode == 0
    assert one.config("rate=1").returncode == 0
    one.steps(2)
    told = one.steps(5)
    one.config("off")
    truth = chunks([event for step in told for event in step["events"]], begins, ends)
    kinds = {event[0] for piece in truth for event in piece}
    steps, timing = by_step(one.rows()), one.timing()
    found = [events_of(steps[row["local_step"]], kinds) for row in timing]
    wanted = truth[1:-1]
    assert len(wanted) >= 3 and any(found[at:at + len(wanted)] == wanted for at in range(len(found))), (wanted, found)
    for row in timing[1:]:
        assert optimizer is None or row["optimizer_class"] == optimizer
        parts = sum(row[name] for name in ("data", "forward", "backward", "optimizer", "comm_wait", "other"))
        assert parts == pytest.approx(row["step_duration_sec"])


def test_what_ends_a_step_is_changed_and_refused(job):
    one = job("gan")
    one.steps(4)
    before = len(one.timing())
    done = probing("-t", one.pid, "config", "probing.torch.step=optimizer:AdamW", check=False)
    assert done.returncode == 0 and "there is no optimizer of that name" in done.stderr, done
    one.steps(4)
    assert len(one.timing()) <= before + 1
    assert "no optimizer" not in probing("-t", one.pid, "config", "probing.torch.step=optimizer:Adam#0", check=False).stderr
    one.steps(4)
    assert {row["optimizer_class"] for row in one.timing()[before + 1:]} == {"Adam"}
    for value in ("optimizer:", "module:", "label:", "optimizer:A#x", "a b", "1x", "optimizer:#1"):
        done = probing("-t", one.pid, "config", "probing.torch.step=" + value, check=False)
        assert done.returncode == 2 and "probing.torch.step" in done.stderr, done
    done = probing("-t", one.pid, "config", "probing.torch.step=module:no.such", check=False)
    assert "no module has that name" in done.stderr, done
    assert "no module" not in probing("-t", one.pid, "config", "probing.torch.step=auto", check=False).stderr
    one.steps(3)
    assert one.timing()[-1]["optimizer_class"] == "RMSprop"


def test_torch_fx_and_export_undo_it_for_a_moment(job):
    """A step's end sees it and has a job arm again, which waits for the GIL and for the processor: some step has rows again."""
    def rows():
        return len(one.rows("stage = 'forward' AND depth = 0 AND module = ''"))

    def has_rows():
        before = rows()
        one.steps(1)
        return rows() > before

    one = job("traced")
    # torch.fx traces after the fourth step, torch.export after the eighth.
    told = one.steps(4)
    assert rows() == len(told)
    wait_until(has_rows)
    one.steps(8)
    wait_until(has_rows)
    one.config("off")


def shows_what_is_kept(file, pids):
    """top --view steps: a row of each rank, the means of its last 20 steps; its other views need a live process."""
    done = probing("-t", file, "top", "--view", "steps")
    lines = done.stdout.splitlines()
    assert lines[0] == "probing top: steps" and lines[2].startswith("tier 1, kept: means of the last steps, until 20"), lines
    rows = [line.split() for line in lines[4:6]]
    timing = query(file, "SELECT rank, max(coalesce(global_step, local_step)) AS step FROM python.torch_step_timing GROUP BY rank ORDER BY rank")
    assert [row[:4] for row in rows] == [["rank", str(one["rank"]), "1", str(one["step"])] for one in timing] and len(pids) == len(rows)
    mean, = query(file, "SELECT avg(s) * 1e3 AS ms FROM (SELECT step_duration_sec AS s FROM python.torch_step_timing WHERE rank = 0 "
                  "ORDER BY timestamp DESC LIMIT 20)")
    assert float(rows[0][4]) == pytest.approx(mean["ms"], rel=0.01)
    for refused in (("top",), ("top", "--view", "threads")):
        done = probing("-t", file, *refused, check=False)
        assert done.returncode == 2 and "is a file of the store" in done.stderr and "top --view steps" in done.stderr


def test_ranks_in_the_store(loop, tmp_path, monkeypatch):
    """One file for the job: each row is of its own rank, with that rank's names."""
    for variable in ("PROBING_DATA_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    target = loop("ddp")
    pids = ranks_of(target)
    for pid in pids:
        probing(pid, "config", "probing.torch.profiling=on", check=False)
    for pid in pids:
        for table, column in (("torch_step_timing", "global_step"), ("torch_trace", "module"), ("comm_collective", "op")):
            wait_until(lambda pid=pid, table=table, column=column: query(
                pid, "SELECT count({}) AS n FROM python.{}".format(column, table))[0]["n"] >= 5)
    probing("collect", "--once", check=False)
    (file,) = (tmp_path / "probing" / "store").glob("*.db")
    shows_what_is_kept(file, pids)
    assert "of 2 processes" in probing("-t", file, "export", "-o", tmp_path / "steps.pftrace", check=False).stderr
    for table, column in (("torch_step_timing", "global_step"), ("torch_trace", "module"), ("comm_collective", "op")):
        rows = query(file, "SELECT pid, rank, count({}) AS known FROM python.{} GROUP BY pid, rank ORDER BY rank".format(column, table))
        assert sorted(row["pid"] for row in rows) == sorted(pids) and [row["rank"] for row in rows] == [0, 1], (table, rows)
        assert all(row["known"] for row in rows), (table, rows)


def test_later_beginnings_write_no_rows_of_their_own(job, tmp_path, monkeypatch):
    """What recording costs is measured when it begins for the first time; again, its rows would push out the user's."""
    for variable in ("PROBING_DATA_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    one = job("plain")
    one.steps(3)
    one.config("off")
    assert int(probing("collect", "--once", check=False).stdout.split()[0]) > 0
    for _ in range(3):
        one.config("rate=1")
        one.config("off")
    assert int(probing("collect", "--once", check=False).stdout.split()[0]) < 1000


def test_an_export_waits_for_the_first_step(job, tmp_path):
    """Whoever turns recording on and exports at once: the step under way is not recorded, and the next one is waited for."""
    one, path = job("plain"), tmp_path / "steps.json"
    with subprocess.Popen([PROBING, str(one.pid), "export", "-o", str(path)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8") as export:
        try:
            assert "waiting for the first step" in export.stderr.readline()
            one.steps(3)
            assert export.wait(DEADLINE) == 0, export.stderr.read()
        finally:
            export.kill()
    assert json.loads(path.read_text())["traceEvents"]
