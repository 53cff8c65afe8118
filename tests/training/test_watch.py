"""Watched variables in the probe: each row has what the program had then, on every CPython found, and nothing is left behind."""

import json
import os
import shutil
import subprocess
import time

import pytest

from support import pythons
from support.target import DEADLINE, PROBING, SRCDIR, TARGETS, Target, probing, query
from support.torch_python import torch_python

LIBRARY = os.path.join(os.environ.get("BUILDDIR", "."), ".libs", "libprobe.so")
EXPRS = ("call@work,loss@work,out['loss']@work,out[\"nested\"][1][0]@work,out['a,b']@work,text@work,good@work,big@work,negative@work,"
         "nothing@work,box@work,self.rate@work,self.plain['total']@work,sometimes@work,missing@work,self.nobody@work")
NOT_THEN = " when it is read: at its return, at the end of the backward, at the end of the step (is it deleted before?)"
RIGHT = {
    "loss": lambda call: (repr(call * 0.25), call * 0.25, "float"),
    "out['loss']": lambda call: (str(-call), -call, "int"),
    'out["nested"][1][0]': lambda call: (str(call), call, "int"),
    "out['a,b']": lambda call: (str(call + 1), call + 1, "int"),
    "text": lambda call: ("'call %d \u00e9'" % call, None, "str"),
    "good": lambda call: (str(call % 2 == 0), call % 2 == 0, "bool"),
    "big": lambda call: (str(call << 70), float(call << 70), "int"),
    "negative": lambda call: (str(-call), -call, "int"),
    "nothing": lambda call: ("None", None, "NoneType"),
    "box": lambda call: (None, None, "__main__.Box"),
    "self.rate": lambda call: (repr(1.0 / call), 1.0 / call, "float"),
    "self.plain['total']": lambda call: (str(call), call, "int"),
    "sometimes": lambda call: (str(call), call, "int") if call % 3 else (None, None, None),
    "missing": lambda call: (None, None, None),
    "self.nobody": lambda call: (None, None, None),
}


def config(pid, *words, **more):
    return probing("-t", pid, "config", *words, check=False, **more)


def watch(pid, exprs):
    done = config(pid, "probing.torch.exprs=" + exprs)
    assert done.returncode == 0, done.stderr
    return done


def rows_of(pid, least, where="1"):
    """The first rows, at least so many, in order of time, and all that have the time of each; they come by and by.  Beside much other
    work there may be hundreds of thousands, and a statement has 30 s: not all of them are asked for."""
    most = 10 * least
    until = time.monotonic() + DEADLINE
    while True:
        done = probing("-t", pid, "query", "-f", "csv", "SELECT count(*) FROM python.variables WHERE " + where, check=False)
        assert done.returncode == 0, done
        if int(done.stdout.split()[1]) >= least:
            done = probing("-t", pid, "query", "-f", "json",
                           "SELECT * FROM python.variables WHERE {} ORDER BY timestamp LIMIT {}".format(where, most), check=False)
            assert done.returncode == 0, done.stderr
            rows = json.loads(done.stdout)
            return rows if len(rows) < most else [row for row in rows if row["timestamp"] < rows[-1]["timestamp"]]
        assert time.monotonic() < until, done
        time.sleep(0.05)  # rows have no event


def ask(target, expression):
    target.child.stdin.write(expression.encode() + b"\n")
    target.child.stdin.flush()
    return target.line()


def hooks(target):
    """What of ours is in the interpreter."""
    if target.python.version >= (3, 12):
        return ask(target, "sorted(filter(None, map(sys.monitoring.get_tool, range(6))))")
    return ask(target, "evaluator()")


def test_values_are_those_of_their_call(start, python):
    target = start(python, "watched_calls.py")
    watch(target.pid, EXPRS)
    rows = rows_of(target.pid, 800)
    calls = {}
    for row in rows:
        calls.setdefault(row["timestamp"], {})[row["name"]] = row
    numbers = []
    for call in calls.values():
        if "call" not in call:  # the function of the same name
            assert all(row["type"] is None for row in call.values())
            continue
        if call["call"]["type"] is None:
            continue
        number = int(call["call"]["number"])
        numbers.append(number)
        for name, row in call.items():
            if name != "call":
                assert (row["value"], row["number"], row["type"]) == RIGHT[name](number), row
            assert row["func"] == "work" and row["pid"] == target.pid and (python.container or row["thread"] == target.pid)
            assert row["step"] is None and row["local_step"] is None
    # Each call once, none left out.
    assert len(numbers) >= 20 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_which_function(start, python):
    """By module, and by qualified name where the version has one; generators count when they yield."""
    target = start(python, "watched_calls.py")
    watch(target.pid, "call@watched_calls:work,number@numbers,call@elsewhere:again")
    rows = rows_of(target.pid, 50)
    assert {row["func"] for row in rows} == {"work", "numbers"}
    if python.version >= (3, 11):
        watch(target.pid, "call@Trainer.work,call_too@again.<locals>.work")
        since = time.time()
        rows = rows_of(target.pid, 50, "timestamp > {} AND number IS NOT NULL".format(since))
        assert {row["name"] for row in rows} == {"call", "call_too"}
        assert {row["func"] for row in rows} == {"Trainer.work", "again.<locals>.work"}


def test_nothing_is_left(start, python):
    """Off, on again, another list, detached: rows stop, and the interpreter has nothing of ours."""
    target = start(python, "watched_calls.py")
    before = hooks(target)
    watch(target.pid, "call@work")
    rows_of(target.pid, 10)
    if python.version >= (3, 12):
        assert hooks(target) == "['probing watch']"
    watch(target.pid, "loss@work")
    rows_of(target.pid, 10, "name = 'loss'")
    watch(target.pid, "")
    until = time.monotonic() + DEADLINE
    while python.version >= (3, 12) and hooks(target) != before:
        assert time.monotonic() < until
        time.sleep(0.01)
    last, count = -1, 0
    while count != last:  # the job that takes it out has no event of its own
        assert time.monotonic() < until
        last = count
        time.sleep(0.2)
        count = query(target.pid, "SELECT count(*) AS n FROM python.variables")[0]["n"]
    watch(target.pid, "call@work")
    rows_of(target.pid, count + 5)
    assert probing("-t", target.pid, "detach", check=False).returncode == 0
    assert hooks(target) == before
    assert int(ask(target, "calls")) < int(ask(target, "time.sleep(0.1) or calls"))  # it goes on


def test_a_name_is_looked_for_in_few_calls(start, any_python, tmp_path):
    """Thousands of functions have names: they are read together."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    target = start(any_python, "watched_calls.py")
    trace = str(tmp_path / "trace")
    done = subprocess.run(["strace", "-f", "-e", "trace=process_vm_readv", "-o", trace, PROBING, "-t", str(target.pid), "config",
                           "probing.torch.exprs=x@wrk"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True, timeout=DEADLINE)
    assert done.returncode == 0 and "no function wrk is there yet; near: work" in done.stderr, done.stderr
    functions, = query(target.pid, "SELECT count AS n FROM python.objects WHERE type = 'function'")
    with open(trace) as file:
        calls = sum("process_vm_readv(" in line for line in file)
    assert functions["n"] > 500 and 0 < calls < functions["n"], (calls, functions)  # there were five of each; what changes meanwhile is read again


def test_a_function_that_is_never_called(start, any_python):
    target = start(any_python, "watched_calls.py")
    told = watch(target.pid, "call@work,x@never,x@wrk,call@Trainer.worx" if any_python.version >= (3, 11) else "call@work,x@never,x@wrk").stderr
    assert "no function wrk is there yet; near: work" in told and "no function never is there yet" in told and "function work" not in told
    assert any_python.version < (3, 11) or "no function Trainer.worx is there yet; near: Trainer.work" in told
    watch(target.pid, "call@work,x@never")
    until = time.monotonic() + DEADLINE
    while True:
        done = probing("-t", target.pid, "query", "-f", "csv", "SELECT count(*) FROM python.variables", check=False)
        # Nearly always it is in work, not always.
        if done.stdout != "count(*)\n0\n" and done.stderr == "probing: note: no call of never has been seen yet; the main thread is in: work\n":
            break
        assert done.returncode == 0 and time.monotonic() < until, done
    watch(target.pid, "missing@work,call@work")
    until = time.monotonic() + DEADLINE
    while True:
        done = probing("-t", target.pid, "query", "-f", "csv", "SELECT count(*) FROM python.variables", check=False)
        if "never" not in done.stderr:
            break
        assert done.returncode == 0 and time.monotonic() < until, done
    assert done.stderr == "probing: note: no call of work has had missing{}\n".format(NOT_THEN)
    watch(target.pid, "call@work,box@work,out@work,self.nobody@work,out['loss'][0]@work,out['gone']@work,nothing@work,text@work,missing@work")
    until = time.monotonic() + DEADLINE
    notes = set()
    while len(notes) != 6 and time.monotonic() < until:
        done = probing("-t", target.pid, "query", "-f", "csv", "SELECT count(*) FROM python.variables", check=False)
        notes = set(done.stderr.splitlines())
    assert notes == {"probing: note: " + line for line in (
        "box@work has no value: it is of type __main__.Box",
        "out@work has no value: it is of type dict",
        "self.nobody@work has no value: self is of type __main__.Trainer, in which .nobody is not found",
        "out['loss'][0]@work has no value: out['loss'] is of type int, in which [0] is not found",
        "out['gone']@work has no value: out is of type dict, in which ['gone'] is not found",
        "no call of work has had missing" + NOT_THEN)}, done.stderr
    told = config(target.pid, "probing.torch.profiling=on,rate=0.5,exprs=call@work,vars=x@wrk")
    assert "no function wrk is there yet; near: work" in told.stderr and "function work" not in told.stderr


MADE_ANEW = '''
import sys, time
kinds = ["def work(number):\\n    loss = number\\n    other = -1\\n    third = -2\\n    return loss + other\\n",
         "def work(number):\\n    other = -1\\n    third = -2\\n    loss = number\\n    return loss + other\\n"]
names, number, places = {}, 0, set()
while True:
    for kind in kinds:
        exec(kind, names)
        places.add(id(names["work"].__code__))
        for _ in range(3):
            number += 1
            names["work"](number)
        del names["work"]
    if number == 600:
        assert len(places) < 20, "code objects have the addresses of those that are gone"
        print("ready", flush=True)
    time.sleep(0.001)
'''


def test_a_function_that_is_made_anew(tmp_path, python):
    """Its code has the address of the one before, and its variables stand elsewhere."""
    if python.root:
        pytest.skip("the program is outside of its folder")
    (tmp_path / "anew.py").write_text(MADE_ANEW)
    target = Target(python, "anew.py", [], folder=str(tmp_path))
    try:
        watch(target.pid, "loss@work,third@work")
        rows = rows_of(target.pid, 400, "number IS NOT NULL")
    finally:
        target.end()
    assert {row["number"] for row in rows if row["name"] == "third"} == {-2}
    losses = [int(row["number"]) for row in rows if row["name"] == "loss"]
    assert len(losses) > 100 and losses == list(range(losses[0], losses[0] + len(losses)))


@pytest.mark.parametrize("key, value, named", [
    ("probing.torch.exprs", "loss", '"loss" cannot be watched'), ("probing.torch.exprs", "a+b@f", "attributes, keys and indices"),
    ("probing.torch.profiling", "on,ratee=1", '"ratee"'), ("probing.torch.profiling", "on,exprs=loss", '"loss"'),
    ("probing.torch.profiling", "on,depth=x", "depth")])
def test_a_bad_spec_changes_nothing(start, any_python, key, value, named):
    target = start(any_python, "watched_calls.py")
    watch(target.pid, "call@work")
    done = config(target.pid, "{}={}".format(key, value))
    assert done.returncode != 0 and named in done.stderr, done
    assert config(target.pid, "probing.torch.exprs").stdout == "call@work\n"
    assert config(target.pid, "probing.torch.profiling").stdout == "on\n"  # by the variables alone
    assert watch(target.pid, "").stdout == "probing.torch.exprs = \n"
    assert config(target.pid, "probing.torch.profiling").stdout == "off\n"
    assert config(target.pid, "probing.torch.profiling=off").returncode == 0
    assert "nothing is watched until it is on" in watch(target.pid, "call@work").stderr


def test_from_the_start(any_python):
    """PROBE_TORCH_EXPRS alone turns it on, before Python runs."""
    if any_python.root:
        pytest.skip("the library is outside of its folder")
    target = Target(any_python, "watched_calls.py", variables={"LD_PRELOAD": LIBRARY, "PROBE_TORCH_EXPRS": "call@work,loss@work"})
    try:
        rows = rows_of(target.pid, 20, "name = 'loss' AND number IS NOT NULL")
        assert rows[-1]["number"] > rows[0]["number"] > 0
    finally:
        target.end()


ENDING = """
import sys, threading
class Late:
    def __del__(self):  # runs for the first time while the interpreter ends
        print("late", flush=True)
late = Late()
def work(number):
    loss = number * 2
    return loss
def go_on():
    number, ready = 0, False
    while not over:
        number = work(number + 1) % 100
        if not ready:
            ready = print("ready", flush=True) is None
over = []
threading.Thread(target=lambda: [sys.stdin.read(), over.append(1)], daemon=True).start()
go_on()
"""


def test_a_program_that_ends_says_nothing_of_it(tmp_path, python):
    """Its last functions begin when the interpreter has been taken down already."""
    if python.root:
        pytest.skip("the program is outside of its folder")
    (tmp_path / "ending.py").write_text(ENDING)
    child = subprocess.Popen(python.command(str(tmp_path / "ending.py")), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, encoding="utf-8")
    try:
        assert child.stdout.readline() == "ready\n"
        watch(child.pid, "loss@work")
        rows_of(child.pid, 10, "number IS NOT NULL")
        assert child.communicate(timeout=DEADLINE) == ("late\n", "") and child.returncode == 0
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


# ---- steps, with PyTorch ----

STEPS = """
import sys, threading, time, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
class Module:
    def training_step(self, number):
        self.loss = (model(torch.ones(2, 4)) * 0).sum() + number
        acc1 = number * 2
        out = {"loss": self.loss}
        return self.loss
class Strategy:  # as Lightning's: another self, and it returns last
    def __init__(self, module):
        self.module = module
    def training_step(self, number):
        return self.module.training_step(number)
module = Strategy(Module())
log = []
threading.Thread(target=lambda: [print(eval(line), flush=True) for line in sys.stdin], daemon=True).start()
def train():
    number = 0
    for epoch in range(1 << 40):
        for _ in range(10):
            number += 1
            loss = module.training_step(number)
            loss.backward()
            rate = optimizer.param_groups[0]["lr"]
            optimizer.step()
            scheduler.step()
            log.append((time.time(), number, epoch, rate))
            optimizer.zero_grad()
            time.sleep(0.002)
            if number == 3:
                print("ready", flush=True)
train()
"""
LOGS = "SELECT epoch, avg(loss), min(loss), count(*) AS steps FROM training_logs GROUP BY epoch ORDER BY epoch"


@pytest.fixture
def steps(tmp_path):
    if not torch_python():
        pytest.skip("no Python with torch")
    started = []

    def begin(text=STEPS, variables=None):
        (tmp_path / "steps.py").write_text(text)
        python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
        started.append(Target(python, "steps.py", [], folder=str(tmp_path), variables=variables))
        return started[-1]

    yield begin
    for target in started:
        target.end()


def test_each_step_once(steps):
    """A function that stays, one that has left by the optimizer's step, attributes and keys: all are of their step."""
    target = steps()
    watch(target.pid, "number@train,loss@train,epoch@train,acc1@training_step,self.loss@training_step,out['loss']@training_step,gone@train")
    rows = rows_of(target.pid, 500, "local_step > 0")
    of = {}
    for row in rows:
        assert row["name"] not in of.setdefault(row["local_step"], {}), row  # once
        of[row["local_step"]][row["name"]] = row
    first, last = min(of) + 1, max(of)  # the first one may have begun before
    for step in range(first, last):
        numbers = {name: row["number"] for name, row in of[step].items()}
        number = of[first]["number"]["number"] + step - first
        assert numbers == {"number": number, "loss": number, "epoch": (number - 1) // 10, "acc1": 2 * number, "self.loss": number,
                           "out['loss']": number, "gone": None}, (step, numbers)
        assert of[step]["loss"]["type"] == "torch.Tensor" and of[step]["loss"]["func"] == "train"
        assert of[step]["loss"]["micro_step"] == 1
    done = probing("-t", target.pid, "query", "-f", "json", "SELECT v.timestamp - t.timestamp AS late FROM python.variables v "
                   "JOIN python.torch_step_timing t ON v.local_step = t.local_step WHERE v.local_step > 0", check=False)
    assert done.stderr == "probing: note: no call of train has had gone{}\n".format(NOT_THEN)
    timed = json.loads(done.stdout)
    # All but those between whose two clocks the program lost its processor.
    assert len(timed) > 100 and sum(abs(row["late"]) < 0.05 for row in timed) > 0.5 * len(timed)


# An optimizer's step, at whose end PyTorch has no GIL, is all that is ever looked at.
NO_BACKWARD = """
import sys, threading, time, torch
weight = torch.nn.Parameter(torch.zeros(4))
weight.grad = torch.ones(4)
optimizer = torch.optim.SGD([weight], lr=0.5)
threading.Thread(target=sys.stdin.read, daemon=True).start()
def train():
    number = 0
    while True:
        number += 1
        loss = torch.tensor(number * 0.5)
        optimizer.step()
        time.sleep(0.002)
        if number == 3:
            print("ready", flush=True)
train()
"""


def test_nothing_of_python_is_called_without_the_gil(steps):
    """CPython's debug allocators end the program that does; 3.12 and newer end without them."""
    target = steps(NO_BACKWARD, variables={"PYTHONMALLOC": "debug"})
    watch(target.pid, "loss@train,number@train")
    rows = rows_of(target.pid, 20, "name = 'loss' AND number IS NOT NULL")
    assert all(row["number"] > 0 and row["type"] == "torch.Tensor" for row in rows)
    assert probing("-t", target.pid, "config", "probing.torch.exprs").returncode == 0


def test_of_a_process_that_is_gone(start, any_python):
    """What its ring has, and no look at its stack for what was never seen."""
    target = start(any_python, "watched_loop.py")
    watch(target.pid, "gone@never")
    target.end()
    done = probing("-t", target.pid, "query", "SELECT count(*) FROM python.variables", check=False)
    assert (done.returncode, done.stdout) == (0, "count(*)\n       0\n(1 row)\n"), done
    assert "probing: note: no call of never has been seen\n" in done.stderr


def test_training_logs(steps):
    """Epoch, loss and learning rate of each step, though only the loss is watched."""
    target = steps()
    watch(target.pid, "loss@train")
    rows_of(target.pid, 60, "local_step > 0")
    told = {number: (epoch, rate) for _, number, epoch, rate in eval(ask(target, "log"))}
    rows = query(target.pid, "SELECT * FROM training_logs WHERE local_step > 0 ORDER BY time")
    seen = 0
    for row in rows:
        if int(row["loss"]) in told:
            assert (row["epoch"], row["lr"]) == told[int(row["loss"])], row
            seen += 1
    assert seen >= 50
    epochs = query(target.pid, LOGS)
    assert [row["epoch"] for row in epochs] == [epochs[0]["epoch"] + number for number in range(len(epochs))]
    assert all(row["steps"] == 10 for row in epochs[1:-1]) and len(epochs) >= 4


# What comes to the place of an optimizer that is gone looks like one, up to the place of its dict.
GONE = """
import gc, struct, weakref
nowhere, kind = 0x6b6b6b6b6b6b6b6b, id(torch.optim.SGD)
words = [nowhere, nowhere, nowhere, kind, 1, kind] + 64 * [nowhere]
look_alike = struct.pack("{}Q".format(len(words)), *words)[:torch.optim.SGD.__basicsize__ + 31]
instead = []
gc.freeze()  # a collection is of the loop's own objects
"""


@pytest.mark.parametrize("each", [1, 10])
def test_an_optimizer_that_is_made_anew(steps, each):
    """Each row has the rate of its own one; none is kept alive, and no reference is left."""
    anew = STEPS.replace("        for _ in range(10):", """        global optimizer
        kept, optimizer = weakref.ref(optimizer), None
        gc.collect()
        assert kept() is None or number < 10
        instead[:] = [bytearray(look_alike) for _ in range(64)]
        optimizer = torch.optim.SGD(model.parameters(), lr=1 / (1 + epoch))
        for _ in range({}):""".format(each)).replace("log = []", GONE + "log = []").replace("            scheduler.step()\n", "").replace(
            "\nscheduler =", "\n_ = lambda *_: None #")
    target = steps(anew)
    watch(target.pid, "loss@train")
    rows_of(target.pid, 100, "local_step > 0")
    told = {number: rate for _, number, _, rate in eval(ask(target, "log"))}
    rows = query(target.pid, "SELECT loss, lr FROM training_logs WHERE local_step > 0")
    with_rate = [row for row in rows if row["lr"] is not None and int(row["loss"]) in told]
    assert len(with_rate) >= 60 and all(row["lr"] == told[int(row["loss"])] for row in with_rate), with_rate
    watch(target.pid, "")
    until = time.monotonic() + DEADLINE
    while any(int(ask(target, "weakref.getweakrefcount(optimizer) if optimizer else 0")) for _ in range(5)):
        assert time.monotonic() < until


# A collection at whatever is allocated then; its finalizer runs a watched function.
GARBAGE = """
import gc, itertools
nearly = itertools.count()
seen = 0
def look_back():
    global seen
    seen += 1
    return seen
class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        look_back()
        Cycle()
def late(_):  # in a backward, near its end
    Cycle()
    gc.set_threshold(max(1, gc.get_count()[0] - 2 + next(nearly) % 8))
"""


def test_an_optimizer_whose_reference_runs_the_collector(steps):
    """Where CPython collects at an allocation (up to 3.11), the program's code runs within it: nothing of ours is held then."""
    anew = STEPS.replace("        for _ in range(10):", """        global optimizer
        optimizer = torch.optim.SGD(model.parameters(), lr=1 / (1 + epoch))
        for _ in range(2):""").replace("            scheduler.step()\n", "").replace("\nscheduler =", "\n_ = lambda *_: None #").replace(
            "            loss.backward()", "            loss.backward(), gc.set_threshold(700)").replace(
                "log = []", GARBAGE + "model.weight.register_hook(late)\nlog = []")
    target = steps(anew)
    watch(target.pid, "loss@train,seen@look_back")
    rows_of(target.pid, 400, "local_step > 0 AND name = 'loss'")
    assert int(ask(target, "seen")) > 100
    rows = query(target.pid, "SELECT lr FROM training_logs WHERE local_step > 0")
    assert sum(row["lr"] is not None for row in rows) > 100


def test_a_program_that_logs_itself_wins(steps):
    target = steps("import sys; sys.path.insert(0, {!r}); import probing\n".format(os.path.join(SRCDIR, "python")) + STEPS.replace(
        "optimizer.zero_grad()", "optimizer.zero_grad(); probing.log(loss=number * 7.0, epoch=epoch) if number > 200 else None"))
    watch(target.pid, "loss@train")
    until = time.monotonic() + DEADLINE
    while True:
        rows = query(target.pid, "SELECT loss, epoch FROM training_logs WHERE epoch IS NOT NULL")
        if len(rows) > 20 and all(row["loss"] % 7 == 0 for row in rows):
            break
        assert time.monotonic() < until, rows[-3:]


# ---- trainers of frameworks, and whose variable it is ----


@pytest.fixture
def trainer():
    """trainer(shape): tests/targets/torch_watched.py."""
    if not torch_python():
        pytest.skip("no Python with torch")
    started = []

    def begin(shape):
        if shape in ("transformers", "lightning") and subprocess.run([torch_python(), "-c", "import " + shape], stderr=subprocess.DEVNULL).returncode:
            pytest.skip("no Python with torch and " + shape)
        python = pythons.Python([], torch_python(), pythons.ask([torch_python()])[0], "torch")
        started.append(Target(python, "torch_watched.py", [shape], folder=TARGETS))
        return started[-1]

    yield begin
    for target in started:
        target.end()


def losses_of(rows):
    """{local_step: loss}, each once."""
    found = {}
    for row in rows:
        assert row["local_step"] not in found, row
        found[row["local_step"]] = row["number"]
    return found


def follow(rows, told):
    """The losses of the steps are the program's own, one after the other."""
    found = losses_of(rows)
    first, last = min(found) + 1, max(found)
    losses = [loss for loss, _ in told]
    at = losses.index(found[first])
    assert [found.get(step) for step in range(first, last)] == losses[at:at + last - first], (first, last)
    return last - first


@pytest.mark.parametrize("shape, func", [
    ("transformers", "training_step"), ("lightning", "training_step"), ("function", "in_a_function"), ("module", "<module>"), ("wrapped", "wrapped"),
    ("inference", "inference")])
def test_the_loss_of_a_trainer(trainer, shape, func):
    """By the function's name, and as that of whoever calls backward or the optimizer."""
    target = trainer(shape)
    watch(target.pid, "loss@{},loss@".format(func))
    rows = rows_of(target.pid, 80, "local_step > 0 AND func IS NOT NULL")
    told = eval(ask(target, "told"))
    by_name = [row for row in rows if row["func"] == func]
    by_caller = [row for row in rows if row not in by_name] if shape in ("transformers", "lightning") else by_name[1::2]
    if shape not in ("transformers", "lightning"):
        assert [row["number"] for row in by_name[0::2]] == [row["number"] for row in by_caller], "a row of each, of the same function"
        by_name = by_name[0::2]
    assert follow(by_name, told) >= 20 and follow(by_caller, told) >= 20
    assert {row["func"] for row in by_caller} == ({"backward"} if shape in ("transformers", "lightning") else {func})
    epochs = query(target.pid, LOGS.replace("training_logs", "training_logs WHERE local_step > 0"))
    assert len(epochs) >= 3, epochs
    assert [row["epoch"] for row in epochs] == [epochs[0]["epoch"] + number for number in range(len(epochs))]
    assert all(row["steps"] == 10 for row in epochs[1:-1])
    if shape not in ("transformers", "lightning"):
        return
    # The function alone: its self knows the framework's epoch.  Lightning calls it from another one of that name, which has another self.
    watch(target.pid, "loss@" + func)
    since = time.time()
    rows_of(target.pid, 40, "timestamp > {} AND local_step > 0".format(since))
    logs = query(target.pid, "SELECT epoch FROM training_logs WHERE time > {} AND loss IS NOT NULL ORDER BY time".format(since))[5:]
    assert None not in [row["epoch"] for row in logs] and len({row["epoch"] for row in logs}) >= 2, logs


@pytest.mark.parametrize("shape, func", [("function", "in_a_function"), ("returned", "returned")])
def test_the_step_of_a_loss(trainer, shape, func):
    """A row's loss is that of the row's step, as the program counts it, also where the loop names it when the step is over."""
    target = trainer(shape)
    watch(target.pid, "loss@{0},epoch@{0},loss@".format(func))
    rows = rows_of(target.pid, 80, "step IS NOT NULL AND local_step > 0")
    told = eval(ask(target, "told"))
    compared = [(row["number"], told[row["step"] - 1][row["name"] == "epoch"]) for row in rows if row["step"] <= len(told) and row["func"] == func]
    assert len(compared) >= 50 and {row["name"] for row in rows} >= {"loss", "epoch"}
    assert [one for one, other in compared] == [other for one, other in compared]
    steps = [row["step"] for row in rows if row["name"] == "epoch"]
    assert steps == list(range(steps[0], steps[0] + len(steps)))
