"""Notebooks: the magics, and the kernel that evaluates in another process.  Needs ipykernel and nbclient (./bootstrap check has them;
PROBING_MCP_PYTHON names a Python that does)."""

import functools
import json
import os
import subprocess
import sys

import pytest

PROBING = os.environ["PROBING"]
PACKAGE = os.path.join(os.environ["SRCDIR"], "python")

RUN = """
import sys, nbformat, json
from nbclient import NotebookClient
cells = json.load(sys.stdin)
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(book, kernel_name=sys.argv[1], timeout=200, startup_timeout=200, allow_errors=True).execute()
print(json.dumps([cell.outputs for cell in book.cells]))
"""


@functools.lru_cache(maxsize=None)
def notebook_python():
    for path in (os.environ.get("PROBING_MCP_PYTHON"), os.path.join(os.environ.get("BUILDDIR", "."), "venv", "bin", "python3"), sys.executable):
        if path and os.path.exists(path):
            code = "import importlib.util as u, sys; sys.exit(not (u.find_spec('nbclient') and u.find_spec('ipykernel')))"
            if subprocess.run([path, "-c", code]).returncode == 0:
                return path
    return None


@pytest.fixture
def notebook(tmp_path):
    """notebook(kernel, *cells): each cell's text, by stream and result."""
    python = notebook_python()
    if not python:
        pytest.skip("no Python with nbclient and ipykernel (./bootstrap check has one)")
    path = os.pathsep.join([os.path.dirname(PROBING), os.path.dirname(python), os.environ["PATH"]])
    environment = dict(os.environ, PYTHONPATH=PACKAGE, PATH=path, JUPYTER_DATA_DIR=str(tmp_path / "jupyter"), IPYTHONDIR=str(tmp_path / "ipython"))

    def run(kernel, *cells):
        if kernel == "probing":
            told = subprocess.run([PROBING, "kernel", "install"], env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
            assert str(tmp_path / "jupyter" / "kernels" / "probing") in told
        done = subprocess.run([python, "-c", RUN, kernel], input=json.dumps(cells), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              env=environment, timeout=280)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return run


@pytest.fixture
def job(start, any_python):
    return start(any_python, "threads.py").settle()


def text(outputs):
    return "".join(one.get("text") or one.get("data", {}).get("text/plain", "") or "\n".join(one.get("traceback", [])) for one in outputs)


def test_magics(notebook, job):
    told = notebook("python3", "%load_ext probing", "%%probing {}\nimport os\nprint('in', os.getpid())".format(job.pid),
                    "rows = %probing_query {} SELECT pid, 'a<b' AS x FROM system.process\nrows".format(job.pid), "%%probing {}\n1 / 0".format(job.pid),
                    "%probing_query 0 SELECT 1")
    assert not text(told[0])
    assert "in {}\n".format(job.pid) in text(told[1])
    assert str(job.pid) in text(told[2]) and "a&lt;b" in told[2][0]["data"]["text/html"]
    assert "ZeroDivisionError" in text(told[3])
    assert "ProbeError" in text(told[4])


def test_kernel(notebook, job):
    told = notebook("probing", "1 + 1", "%attach {}".format(job.pid), "x = 6", "print('out')\nx * 7", "%query SELECT count(*) AS n FROM python.threads", "%bt",
                    "raise KeyError('k')", "%attach 0")
    assert "no process is attached" in text(told[0])
    assert text(told[1]).startswith("process {}, Python 3.".format(job.pid))
    assert "out\n" in text(told[3]) and "42" in text(told[3])
    assert "n" in text(told[4]) and "innermost" not in text(told[4])
    assert "thread_name" in text(told[5]) and "<table" in told[5][0]["data"]["text/html"]
    assert "KeyError" in text(told[6]) and "probing" in text(told[7])


def test_interrupt(job):
    """A SIGINT to the kernel's process ends the code there."""
    python = notebook_python()
    if not python:
        pytest.skip("no Python with ipykernel")
    code = ("import signal, sys; sys.path.insert(0, {!r})\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background of a shell ignores it\n"
            "from probing_c._notebook import evaluate\nprint('ready', flush=True)\n"
            "status = evaluate({!r}, 'import time; print(\\'runs\\')\\nwhile True: time.sleep(0.01)', lambda stream, text: print(text, end='', flush=True))\nprint('status', status)\n").format(PACKAGE, str(job.pid))
    environment = dict(os.environ, PATH=os.path.dirname(PROBING) + os.pathsep + os.environ["PATH"])
    child = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, env=environment, encoding="utf-8")
    try:
        assert child.stdout.readline() == "ready\n"
        assert "runs\n" in iter(child.stdout.readline, "")  # notes come before
        child.send_signal(2)
        assert "KeyboardInterrupt" in child.communicate(timeout=120)[0]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
