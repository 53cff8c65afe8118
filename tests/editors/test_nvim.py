"""Neovim with the file of editors/nvim-dap: what it configures; and a session with nvim-dap itself, where PROBING_NVIM_DAP is its folder."""

import json
import os
import shutil
import subprocess

import pytest

import training

HERE = os.path.dirname(os.path.abspath(__file__))
PROBING = os.environ.get("PROBING", "probing")
LINE = training.line_of(training.LINE_TEXT)


def neovim(part, **variables):
    if not shutil.which("nvim"):
        pytest.skip("needs Neovim")
    folder = os.path.join(training.SRCDIR, "editors", "nvim-dap")
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "luafile " + os.path.join(HERE, "nvim_session.lua")],
        env=dict(os.environ, PART=part, CONFIGURATION=folder, PROBING=PROBING, **variables),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280)
    seen = done.stdout.decode().splitlines()
    assert done.returncode == 0, (seen, done.stderr.decode()[-3000:])
    return seen


def test_configuration(job):
    seen = [line.partition(" ")[::2] for line in neovim("configured", PID=str(job.pid))]
    assert [kind for kind, _ in seen] == ["offered"] + 3 * ["configuration", "adapter"]
    assert seen[0][1].startswith("{}  rank 1  ".format(job.pid)) and "train.py" in seen[0][1]
    by_pid, spawned, by_port, server, launch, _ = [json.loads(text) for _, text in seen[1:]]
    assert by_pid["processId"] == job.pid and launch["program"] == "${file}"
    assert [one["request"] for one in (by_pid, by_port, launch)] == ["attach", "attach", "launch"]
    assert spawned == {"type": "executable", "command": PROBING, "args": ["dap"]}
    assert server == {"type": "server", "host": "127.0.0.1", "port": by_port["connect"]["port"]}


def test_session(job, listen):
    folder = os.environ.get("PROBING_NVIM_DAP")
    if not folder:
        pytest.skip("needs nvim-dap: PROBING_NVIM_DAP")
    before = job.measure()
    seen = neovim("session", NVIM_DAP=folder, PORT=str(listen()), LINE=str(LINE), FILE=job.path, VARIABLE="scores")
    assert seen[0].startswith("stopped in ") and "train_step" in seen[0]
    assert seen[1].startswith("value ") and "float32 [8, 32, 101]" in seen[1]
    assert seen[2:] == ["stepped", "left"]
    job.moves()
    job.regains(before)
