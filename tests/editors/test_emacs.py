"""Emacs with dape, from the newer root folder, debugs examples/train.py by the configuration in editors/dape."""

import os
import shutil
import subprocess

import training

HERE = os.path.dirname(os.path.abspath(__file__))
LINE = training.line_of(training.LINE_TEXT)


def test_compiles(newer_root):
    """Without a warning, beside dape."""
    inner = "/tmp/probing-compile-{}".format(os.getpid())
    outside = newer_root.path + inner
    os.makedirs(outside)
    try:
        shutil.copy(os.path.join(training.SRCDIR, "editors", "dape", "probing.el"), outside)
        done = subprocess.run(
            newer_root.command("emacs", "-batch", "-f", "package-initialize", "--eval", "(setq byte-compile-error-on-warn t)",
                               "-f", "batch-byte-compile", inner + "/probing.el"),
            env=newer_root.variables(inner), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        assert done.returncode == 0, done.stdout.decode()
        assert os.path.exists(outside + "/probing.elc")
    finally:
        shutil.rmtree(outside, ignore_errors=True)


def test_dape(job, listen, newer_root):
    before = job.measure()
    inner = "/tmp/probing-dape-{}".format(os.getpid())
    outside = newer_root.path + inner
    os.makedirs(outside)
    try:
        for file in (job.path, os.path.join(HERE, "dape_session.el"),
                     os.path.join(training.SRCDIR, "editors", "dape", "probing.el")):
            shutil.copy(file, outside)
        variables = newer_root.variables(
            inner, PORT=str(listen()), LINE=str(LINE), FILE=inner + "/train.py", REMOTE=os.path.dirname(job.path),
            CONFIGURATION=inner + "/probing.el", VARIABLE="scores", EXPRESSION="list(scores.shape)", ANSWER="[8, 32, 101]")
        done = subprocess.run(newer_root.command("emacs", "-batch", "-l", inner + "/dape_session.el", "-f", "session"),
                              env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280)
    finally:
        shutil.rmtree(outside, ignore_errors=True)
    seen = done.stdout.decode().splitlines()
    assert done.returncode == 0, (seen, done.stderr.decode()[-3000:])
    assert seen[0].startswith("stopped in ") and "train_step" in seen[0]
    assert seen[1].startswith("value ") and "float32 [8, 32, 101]" in seen[1]
    assert seen[2:] == ["evaluated", "stepped", "left"]
    job.moves()
    job.regains(before)
