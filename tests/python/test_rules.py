"""What PROBING's forms mean, without a process."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "python"))

import _probing_hook as _hook  # noqa: E402
import _probing_rules as _rules  # noqa: E402

LINES = [
    ("python train.py --lr 1", ("script", "train.py", ["--lr", "1"])),
    ("python -u -W ignore -Xdev -X importtime /a/train.py -m x", ("script", "/a/train.py", ["-m", "x"])),
    ("python -m pkg.train --lr 1", ("module", "pkg.train", ["--lr", "1"])),
    ("python -m pkg", ("module", "pkg", [])),
    ("python -Bum pkg.train -c x", ("module", "pkg.train", ["-c", "x"])),
    ("python -mpkg.train", ("module", "pkg.train", [])),
    ("python -Wonce -c pass a b", ("command", "pass", ["a", "b"])),
    ("python -cpass a", ("command", "pass", ["a"])),
    ("python --check-hash-based-pycs always x.py", ("script", "x.py", [])),
    ("python --help-all", ("other", "python", [])),
    ("python -", ("other", "-", [])),
    ("python - a", ("other", "-", ["a"])),
    ("python", ("other", "python", [])),
    ("python -i -", ("other", "-", [])),
    ("python -W", ("other", "python", [])),
    ("python -m", ("module", "", [])),
    ("", ("other", "", [])),
]


@pytest.mark.parametrize("line, meant", LINES, ids=[line for line, _ in LINES])
def test_the_program_of_a_command_line(line, meant):
    program = _rules.parse(line.split())
    assert (program.kind, program.name, program.args) == meant


SPAWNED = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"
TRACKER = "from multiprocessing.resource_tracker import main;main(4)"
FORKSERVER = "from multiprocessing.forkserver import main; main(3, 5, [])"

# value, command line: start, variable kept, forked children, script
DECISIONS = [
    ("0", ["x.py"], (False, True, False, None)),
    ("", ["x.py"], (False, True, False, None)),
    ("off", ["x.py"], (False, True, False, None)),
    ("1", ["x.py"], (True, False, False, None)),
    ("Followed", ["-m", "pkg"], (True, False, False, None)),
    (" true ", ["-c", "pass"], (True, False, False, None)),
    ("1", [], (True, False, False, None)),
    ("2", ["x.py"], (True, True, True, None)),
    ("nested", ["-c", SPAWNED, "--multiprocessing-fork"], (True, True, True, None)),
    ("2", ["-c", TRACKER], (False, True, False, None)),
    ("2", ["-c", FORKSERVER], (False, True, True, None)),
    ("2", ["-c", "import sys; " + FORKSERVER], (False, True, True, None)),
    ("1", ["-c", FORKSERVER], (False, True, False, None)),
    ("train.py", ["/a/b/train.py", "--lr"], (True, True, False, None)),
    ("train.py", ["/a/b/retrain.py"], (False, True, False, None)),
    ("train.py", ["/a/b/train.pyc"], (False, True, False, None)),
    ("train.py", ["x.py", "train.py"], (False, True, False, None)),
    ("train.py", ["-m", "pkg.train"], (True, True, False, None)),
    ("Train.py", ["Train.py"], (True, True, False, None)),
    ("regex:^train", ["/a/train.py"], (True, True, False, None)),
    ("regex:--lr", ["x.py", "--lr=1"], (True, True, False, None)),
    ("regex:x.py.*--lr 3", ["x.py", "--lr", "3"], (True, True, False, None)),
    ("regex:^pkg[.]train$", ["-m", "pkg.train", "--lr"], (True, True, False, None)),
    ("regex:nothing", ["x.py"], (False, True, False, None)),
    ("init:/s.py+1", ["x.py"], (True, False, False, "/s.py")),
    ("init:/s.py", ["x.py"], (True, False, False, "/s.py")),
    ("init:a+b.py+2", ["x.py"], (True, True, True, "a+b.py")),
    ("init:s.py+regex:x+", ["xx.py"], (True, True, False, "s.py")),
    ("init:s.py+0", ["x.py"], (False, True, False, "s.py")),
    # what only starts others is left alone, and the variable goes on to them
    ("1", ["-m", "torch.distributed.run", "--nproc-per-node=2", "x.py"], (False, True, False, None)),
    ("regex:x", ["/venv/bin/torchrun", "x.py"], (False, True, False, None)),
    ("1", ["/site-packages/torch/distributed/run.py", "x.py"], (False, True, False, None)),
    ("1", ["/venv/bin/probing", "list"], (False, True, False, None)),
    ("2", ["-m", "probing", "list"], (False, True, False, None)),
]


@pytest.mark.parametrize("value, words, meant", DECISIONS, ids=["{} {}".format(value, " ".join(words)[:30]) for value, words, _ in DECISIONS])
def test_decisions(value, words, meant):
    decision = _rules.decide(value, _rules.parse(["python"] + words))
    assert (decision.start, decision.keep, decision.forked, decision.init) == meant
    assert decision.complaint is None


@pytest.mark.parametrize("value", ["regex:(", "a/b.py"])
def test_wrong_values_start_nothing_and_say_so(value):
    decision = _rules.decide(value, _rules.parse(["python", "x.py"]))
    assert not decision.start and value in decision.complaint


@pytest.mark.parametrize("value, words", [(value, words) for value, words, _ in DECISIONS] + [
    ("regex:train[.]py$", ["-m", "pkg.train"]), ("regex:.*x.p", ["x.py"]), ("regex:python", []), ("regex:", ["x.py"]), ("regex:a|x", ["x.py"]), ("regex:q|zqz[.]py$", ["x.py"]),
    ("regex:q|(x)", ["x.py"]), ("regex:q[|]x", ["x.py"]),
    ("regex:a\\.*b", ["ab"]), ("regex:a\\\\.*b", ["a\\b"]), ("regex:(?i)X", ["x.py"]), ("regex:q", ["x.py"]), ("regex:q.*zqz", ["q"])])
def test_what_is_for_others_at_first_sight_is_so_by_the_rules(value, words, monkeypatch):
    line = ["python"] + words
    monkeypatch.setattr(sys, "orig_argv", line, raising=False)
    if not _hook._is_for_others(value):
        assert value not in ("0", "regex:q", "regex:q.*zqz", "regex:q|zqz[.]py$")
        return
    decision = _rules.decide(value, _rules.current())
    assert (decision.start, decision.keep, decision.forked, decision.complaint) == (False, True, False, None)
