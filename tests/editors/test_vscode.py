"""The real VS Code debugs examples/train.py: with the extension of editors/vscode, and with the stock `debugpy` attach.

Screenshots stay in BUILDDIR/screenshots.
"""

import glob
import json
import os
import subprocess

import pytest

import training
from torch_python import torch_python
from workbench import CodeServer, Workbench

pytest.importorskip("playwright.sync_api", reason="needs Playwright (tests/editors/setup.sh)")
from playwright.sync_api import sync_playwright  # noqa: E402
from workbench import CHROMIUM  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILDDIR, PROBING = os.environ.get("BUILDDIR", "."), os.environ.get("PROBING", "probing")
LINE = training.line_of(training.LINE_TEXT)


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not os.path.exists(path):
        pytest.skip("no Chromium")
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=path, headless=True, args=CHROMIUM)
        yield one
        one.close()


@pytest.fixture
def editor(browser, tmp_path, pictures, job, request):
    """editor(configuration, *extensions): VS Code in the job's folder with one entry in its launch.json."""
    if not os.path.exists(os.path.join(os.environ["PROBING_EDITORS"], ".ready")):
        pytest.skip("no code-server: tests/editors/setup.sh was not run, or could not")
    opened = []

    def begin(configuration, *extensions):
        folder = os.path.dirname(job.path)
        os.makedirs(os.path.join(folder, ".vscode"))
        with open(os.path.join(folder, ".vscode", "launch.json"), "w") as out:
            json.dump({"version": "0.2.0", "configurations": [configuration]}, out)
        opened.append(CodeServer(tmp_path / "server", folder, extensions, {"probing.path": PROBING}))
        opened.append(Workbench(browser, opened[0], pictures))
        return opened[1]

    yield begin
    if len(opened) == 2:
        opened[1].picture(request.node.name + "-last")
    for one in reversed(opened):
        one.close()


def vsix():
    found = glob.glob(os.path.join(BUILDDIR, "probing-*.vsix"))
    if not found:
        pytest.skip("no .vsix: `make vsix` was not run, or could not")
    return found[0]


def break_look_step(code, name):
    """From a stop in the training loop: locals, a step, an evaluation, on to the next stop."""
    code.stopped_in("train_step", LINE)
    assert "float32 [8, 32, 101]" in code.variable("scores")
    code.picture(name + "-stopped")
    code.press("F10")
    code.stopped_in("train_step", LINE + 1)
    code.variable("loss")
    code.evaluate("list(scores.shape)", "[8, 32, 101]")
    code.picture(name + "-stepped")
    code.press("F5")
    code.stopped_in("train_step", LINE)


def leave(code, job, before):
    """Disconnect at a stop: the job goes on, as fast as before."""
    code.until("the job to stand", job.stands_still)  # its stopped thread answers what VS Code asks first
    code.press("Shift+F5")
    code.ended()
    job.moves()
    assert job.cost() < 1.2 * before


def test_extension(editor, job):
    before = job.cost()
    code = editor({"name": "Attach", "type": "probing", "request": "attach", "processId": "${command:pickProcess}"}, vsix())
    code.open("train.py", LINE)
    code.toggle_breakpoint()
    code.press("F5")
    code.pick("pid {} ".format(job.pid))
    break_look_step(code, "extension")

    code.row("debug-variables", "scores").click(button="right")
    code.page.get_by_role("menuitem", name="View Tensor or Array").click()
    panel = code.view("#facts")
    code.until("the facts", lambda: "float32 [8, 32, 101]" in panel.locator("#facts").inner_text())
    assert panel.locator("#table tr").count() == 25  # a head and 24 rows of 32
    first = panel.locator("#table td").first.inner_text()
    assert abs(float(first)) < 100
    panel.locator("#down").click()
    code.until("the second page", lambda: "rows 24–31 of 32" in panel.locator("#window").inner_text())
    assert "all 25856" in panel.locator("#statistics").inner_text()
    panel.locator("#index input").fill("5")
    panel.locator("#index input").press("Enter")
    code.until("another batch", lambda: panel.locator("#table td").first.inner_text() != first)
    code.picture("extension-tensor")
    leave(code, job, before)
    assert job.child.poll() is None


def test_commands(editor, job):
    """Stacks, SQL and loading the probe, without debugging."""
    code = editor({"name": "Attach", "type": "probing", "request": "attach"}, vsix())
    code.open("train.py", LINE)

    def of_the_job(title):
        code.command(title)
        code.pick("pid {} ".format(job.pid))

    of_the_job("Probing: Show the Stacks of a Process")
    code.until("the stacks", lambda: "Process {}:".format(job.pid) in code.text())
    code.picture("commands-stacks")
    of_the_job("Probing: Query a Process with SQL")
    box = code.page.locator(".quick-input-widget input").first
    code.until("the SQL", lambda: "SELECT" in box.input_value())
    box.fill("SELECT 6 * 7 AS answer, '<b>' AS text, NULL AS absent")
    code.press("Enter")
    panel = code.view("table td")
    assert panel.locator("th").all_inner_texts() == ["answer", "text", "absent"]
    assert panel.locator("td").all_inner_texts() == ["42", "<b>", "NULL"]
    code.picture("commands-query")
    of_the_job("Probing: Load the Probe into a Process")
    code.until("the notification", lambda: "loaded in" in code.page.locator(".notifications-toasts").inner_text())
    code.picture("commands-inject")
    job.moves()


def test_snapshot(editor, job, tmp_path):
    """A snapshot of the job, looked at when the job is no more."""
    file = str(tmp_path / "job.snapshot")
    subprocess.run([PROBING, str(job.pid), "snapshot", file, "--locals"], check=True, stdout=subprocess.DEVNULL, timeout=60)
    job.close()
    code = editor({"name": "Look", "type": "probing", "request": "attach", "snapshot": file}, vsix())
    code.open("train.py", LINE)
    code.press("F5")
    code.command("View: Show Run and Debug")
    code.stopped_in("train", thread="MainThread")
    code.picture("snapshot")
    code.press("Shift+F5")
    code.ended()


def test_launch(editor, job):
    """A program started by VS Code, which ends with the session."""
    code = editor({"name": "Launch", "type": "probing", "request": "launch", "program": "${workspaceFolder}/train.py",
                   "python": torch_python(), "args": ["--workers", "0", "--threads", "1"]}, vsix())

    def launched():
        listed = subprocess.run([PROBING, "list", "--json"], check=True, stdout=subprocess.PIPE, timeout=60)
        return [one for one in json.loads(listed.stdout.decode()) if job.path in one["command"] and one["pid"] != job.pid]

    code.open("train.py", LINE)
    code.toggle_breakpoint()
    code.press("F5")
    code.stopped_in("train_step", LINE)
    assert len(launched()) == 1
    code.picture("launched")
    code.press("Shift+F5")
    code.until("the end of the program", lambda: not launched())
    assert job.child.poll() is None


def test_stock_attach(editor, job, listen):
    """type debugpy, connect: no extension of ours, VS Code talks to `probing debug --listen`."""
    before = job.cost()
    connect = {"host": "127.0.0.1", "port": listen()}
    code = editor({"name": "Attach", "type": "debugpy", "request": "attach", "connect": connect},
                  os.path.join(HERE, "debugpy_client"))
    code.open("train.py", LINE)
    code.toggle_breakpoint()
    code.press("F5")
    break_look_step(code, "stock")
    leave(code, job, before)
    assert job.child.poll() is None
