"""The real VS Code debugs examples/train.py: with the extension of editors/vscode, and with the stock `debugpy` attach.

Screenshots stay in BUILDDIR/screenshots, and the job's speed beside them.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import training
from codeserver import CLEAN_KEY, DEADLINE, CodeServer
from support.torch_python import torch_python
from workbench import CHROMIUM, CONTRAST, Workbench

pytest.importorskip("playwright.sync_api", reason="needs Playwright (tests/editors/setup.sh)")
from playwright.sync_api import sync_playwright  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILDDIR, PROBING = os.environ.get("BUILDDIR", "."), os.environ.get("PROBING", "probing")
LINE = training.line_of(training.LINE_TEXT)
# folders of extensions that know the type debugpy: the Python Debugger itself, where somebody has it
STOCK = os.environ.get("PROBING_PYTHON_DEBUGGER", os.path.join(HERE, "debugpy_client")).split(os.pathsep)


class Windows:
    """One browser; a server for each set of extensions; one window, which a failed test does not leave to the next."""

    def __init__(self, browser, folder):
        self.context, self.folder = browser.new_context(viewport={"width": 1600, "height": 1000}), folder
        self.servers, self.window = {}, None

    def server(self, extensions):
        if extensions not in self.servers:
            self.servers[extensions] = CodeServer(self.folder(), extensions, {"probing.path": PROBING})
        return self.servers[extensions]

    def open(self, project, extensions, configuration, pictures):
        server = self.server(extensions)
        if self.window and self.window.server is not server:
            self.shut()
        if not self.window:
            self.window = Workbench(self.context, server, project, pictures)
        self.window.begin(configuration)
        return self.window

    def shut(self):
        window, self.window = self.window, None
        window.close()

    def close(self):
        if self.window:
            self.shut()
        for one in self.servers.values():
            one.close()


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not os.path.exists(path):
        pytest.skip("no Chromium")
    if not os.path.exists(os.path.join(os.environ["PROBING_EDITORS"], ".ready")):
        pytest.skip("no code-server: tests/editors/setup.sh was not run, or could not")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=CHROMIUM, timeout=DEADLINE * 1000)
        one = Windows(browser, lambda: tmp_path_factory.mktemp("server"))
        yield one
        one.close()
        browser.close()


@pytest.fixture
def editor(windows, project, pictures, request):
    """editor(configuration, *extensions): a window in the project's folder with that one entry in launch.json."""
    def begin(configuration, *extensions):
        return windows.open(project, extensions, dict({"name": request.node.name, "request": "attach"}, **configuration), pictures)

    yield begin
    failed = getattr(request.node, "failed", True)
    if windows.window:
        windows.window.keep(request.node.name, failed)
        if failed:
            windows.shut()


@pytest.fixture
def plain(project):
    one = training.Plain(sys.executable, project)
    yield one
    one.close()


def vsix():
    found = glob.glob(os.path.join(BUILDDIR, "probing-*.vsix"))
    if not found:
        pytest.skip("no .vsix: `make vsix` was not run, or could not")
    return found[0]


def processes():
    """What `probing list` knows."""
    listed = subprocess.run([PROBING, "list", "--json"], check=True, stdout=subprocess.PIPE, timeout=DEADLINE)
    return json.loads(listed.stdout.decode())


def begin(code, program="train.py", line=LINE):
    """Open the program, set a breakpoint in its loop, press F5."""
    code.open(program, line)
    code.toggle_breakpoint()
    code.press("F5")


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
    code.no_variable("loss")
    code.stopped_in("train_step", LINE)


def leave(code, job):
    """Disconnect at a stop: the job goes on."""
    code.press("Shift+F5")
    code.ended()
    job.moves()


@pytest.fixture(scope="module")
def usual(job):
    """What a step of the job takes before anybody came."""
    return job.measure()


def full_speed(job, usual, pictures, name):
    after = job.regains(usual)
    with open(os.path.join(pictures, name + "-speed.txt"), "w") as out:
        out.write("{1:.1f} steps/s before, {3:.1f} after; {0:.3f} ms of processor a step before, {2:.3f} after\n".format(
            usual[0] / 1e6, usual[1], after[0] / 1e6, after[1]))
    assert job.child.poll() is None


def look_at_tensor(code):
    """The tensor view of scores: values with paging, heat map, histogram, in a light and a dark theme."""
    code.choose("debug-variables", "scores", "View Tensor or Array")
    panel = code.view("h3:has-text('scores')")
    code.until("the facts", lambda: "float32 [8, 32, 101]" in panel.locator("#facts").inner_text())
    assert panel.locator("#table tr").count() == 17  # a head and 16 rows of 32
    first = panel.locator("#table td").first.inner_text()
    assert abs(float(first)) < 100
    panel.locator("#down").click()
    code.until("the second page", lambda: "rows 16–31 of 32" in panel.locator("#window").inner_text())
    assert panel.locator("#counted").inner_text() == "Histogram of all 25856"
    panel.locator("#index input").fill("5")
    panel.locator("#index input").press("Enter")
    code.until("another batch", lambda: panel.locator("#table td").first.inner_text() != first)
    code.until("its picture", lambda: panel.locator("#plane").inner_text() == "Heat map of [5, :, :]")
    panel.locator("#heat").click(position={"x": 200, "y": 10})
    code.until("the place that was clicked", lambda: "rows 1–16 of 32, columns 50–" in panel.locator("#window").inner_text())
    for theme in ("light", "dark"):
        code.theme(panel, theme)
        for part in ("h3", "#facts", "#window", "#table th >> nth=3", "#table td >> nth=3", "#left", "#plane", "#low", "#statistics"):
            assert panel.locator(part).evaluate(CONTRAST) >= 4.5, (theme, part)
        ink = panel.locator("#histogram").evaluate(
            "one => [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data].filter((v, i) => i % 4 == 3 && v).length")
        assert ink > 1000
        wide = panel.locator("body").evaluate("body => body.scrollWidth - window.innerWidth")
        assert wide <= 0  # what does not fit scrolls by itself
        panel.locator("h3").scroll_into_view_if_needed()
        code.picture("extension-tensor-" + theme)
        panel.locator("#statistics").scroll_into_view_if_needed()
        code.picture("extension-charts-" + theme)
    return panel


def test_extension(editor, job, usual, pictures):
    code = editor({"type": "probing", "processId": "${command:pickProcess}"}, vsix())
    begin(code)
    box = code.box()
    box.fill("pid {} ".format(job.pid))
    [row] = code.until("one process", lambda: len(code.picks()) == 1 and code.picks())
    assert "rank 1/2 · train.py" in row and "train.py --workers 0" in row and "MiB" in row
    code.picture("extension-picker")
    code.press("Enter")
    break_look_step(code, "extension")
    panel = look_at_tensor(code)
    code.press("F1")
    code.pick(">Debug: Step Over")
    code.stopped_in("train_step", LINE + 1)
    code.until("the view to follow", lambda: panel.locator("#note").inner_text() == "")
    code.command("Probing: View Tensor or Array of an Expression")
    code.answer("scores[0, :4] * float('nan')", "View a tensor or array")
    other = code.view("h3:has-text('scores[0, :4]')")
    code.until("its facts", lambda: "float32 [4, 101]" in other.locator("#facts").inner_text())
    assert "404 NaN" in other.locator("#statistics").inner_text() and other.locator("#odd").inner_text() == "■ not finite: 404"
    assert other.locator("#low").inner_text() == "–" and other.locator("td.odd").first.evaluate(CONTRAST) >= 4.5
    code.picture("extension-nan")
    leave(code, job)
    code.until("the note", lambda: "the session has ended" in panel.locator("#note").inner_text())
    full_speed(job, usual, pictures, "extension")


def test_commands(editor, job):
    """Stacks, SQL and loading the probe, without debugging; the walkthrough."""
    code = editor({"type": "probing"}, vsix())
    code.open("train.py", LINE)

    def of_the_job(title):
        """A page that is still drawn (the walkthrough's) may take the focus, and a list closes without it: then again."""
        def picked():
            code.press("Escape")
            code.command(title)
            code.pick("pid {} ".format(job.pid), "Attach to a Python process", seconds=DEADLINE / 4)
            return True

        code.until(title, picked)

    of_the_job("Probing: Show the Stacks of a Process")
    code.until("the stacks", lambda: "Process {}:".format(job.pid) in code.text())
    code.picture("commands-stacks")
    of_the_job("Probing: Query a Process with SQL")
    box = code.box("SQL about process")
    code.until("the SQL", lambda: "SELECT" in box.input_value())
    code.answer("SELECT 6 * 7 AS answer, '<b>' AS text, NULL AS absent")
    panel = code.view("table td")
    assert panel.locator("th").all_inner_texts() == ["answer", "text", "absent"]
    assert panel.locator("td").all_inner_texts() == ["42", "<b>", "NULL"]
    code.picture("commands-query")
    of_the_job("Probing: Load the Probe into a Process")
    wanted = "Probing: process {}: ".format(job.pid)  # a test before may have left the probe there
    code.until("the notification", lambda: any(text.startswith(wanted) for text in code.told()))
    [listed] = [one for one in processes() if one["pid"] == job.pid]
    assert listed["has_probe"]
    code.picture("commands-inject")
    code.command("Welcome: Open Walkthrough")
    code.pick("Debug a training job that already runs")
    steps = code.page.locator(".gettingStartedContainer")
    code.until("the walkthrough", lambda: "Break in the training loop" in steps.inner_text())
    assert all(text in steps.inner_text() for text in ("Get the probing command", "Look at a tensor", "Leave"))
    code.picture("commands-walkthrough")

    def attached():
        """The walkthrough's page may take the Enter, too."""
        of_the_job("Probing: Attach to a Python Process")
        return code.debug_view(DEADLINE / 4)

    code.until("a session of the job", attached)
    code.press("F6")
    code.stopped_in("train")
    leave(code, job)


@pytest.fixture
def layered(project):
    """A program that waits 40 frames within a library."""
    path = shutil.copy(os.path.join(training.SRCDIR, "tests", "targets", "layered.py"), str(project))
    child = subprocess.Popen([sys.executable, path, "40"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    yield child
    child.kill()
    child.communicate()


def test_pause_within_a_library(editor, layered):
    """VS Code asks for 20 frames and makes one row of the library's: the program's own are there all the same, and shown."""
    code = editor({"type": "probing", "processId": layered.pid}, vsix())
    code.open("layered.py", 1)
    code.press("F5")
    code.debug_view()
    code.press("F6")
    code.stopped_in("train")
    code.variable("layers")
    code.picture("paused-within-a-library")
    assert any("More Stack Frames" in row for row in code.stack())
    code.press("Shift+F5")
    code.ended()
    assert layered.poll() is None


def test_token(editor, job, listen, tmp_path):
    """By an address that is not loopback's, with a token: asked for, refused when wrong, then kept."""
    secret = tmp_path / "token"
    secret.write_text("the right token of a test")
    secret.chmod(0o600)
    port = listen("--token-file", str(secret))
    code = editor({"type": "probing", "address": "0.0.0.0:{}".format(port)}, vsix())
    begin(code)
    code.answer("the wrong token of a test", "Token of 0.0.0.0")
    code.dialog("the token is wrong")
    code.press("F5")
    code.answer("the right token of a test", "Token of 0.0.0.0")
    code.stopped_in("train_step", LINE)
    leave(code, job)
    code.press("F5")
    code.stopped_in("train_step", LINE)
    code.picture("token")
    leave(code, job)


def test_socket(editor, job, listen, tmp_path):
    path = str(tmp_path / "debug.sock")
    listen(path=path)
    code = editor({"type": "probing", "address": path}, vsix())
    begin(code)
    code.stopped_in("train_step", LINE)
    assert "float32 [8, 32, 101]" in code.variable("scores")
    code.picture("socket")
    leave(code, job)


@pytest.mark.parametrize("kind", ["core", "snapshot"])
def test_post_mortem(editor, plain, tmp_path, kind):
    """A core or a snapshot of a job, looked at when the job is no more."""
    file = str(tmp_path / "job")
    if kind == "snapshot":
        command = [PROBING, str(plain.pid), "snapshot", file, "--locals", "--stop"]
    elif shutil.which("gcore"):
        command = ["gcore", "-o", file, str(plain.pid)]
        file += ".{}".format(plain.pid)
    else:
        pytest.skip("needs gdb's gcore")
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DEADLINE)
    plain.close()
    code = editor({"type": "probing", "snapshot": file}, vsix())
    code.open(plain.PROGRAM, 1)
    if kind == "core":
        code.command("Probing: Open a Core or Snapshot")
        code.file(file, "A core file or a snapshot")
    else:
        code.press("F5")
    code.debug_view()
    code.stopped_in("train", thread="MainThread")
    code.select_frame("train")
    code.variable("step")
    code.picture(kind)
    code.press("Shift+F5")
    code.ended()


def crashed(project, folder):
    """The dump that examples/crash.py leaves, which follows a bad pointer; the program is no more."""
    python = torch_python()
    if python is None:
        pytest.skip("no Python with torch (./bootstrap check installs one)")
    job = subprocess.Popen([python, training.copied("crash.py", project), "--wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"), start_new_session=True)
    try:
        assert job.stdout.readline().startswith(b"ready ")
        subprocess.run([PROBING, str(job.pid), "inject", "-c", "-D", "probing.crash_dir={}".format(folder)], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DEADLINE)
        job.communicate(b"\n", timeout=DEADLINE)
    finally:
        job.kill()
        job.wait()
    [dump] = glob.glob(os.path.join(str(folder), "crash-*.snap"))
    return dump


def test_crash_dump(editor, project, tmp_path):
    """A crash dump by its name in launch.json: the stack at the crash, tensors among its variables, nothing runs."""
    program, file = "crash.py", crashed(project, tmp_path)
    code = editor({"type": "probing", "core": file}, vsix())
    code.open(program, training.line_of("ctypes.memset", program))
    code.press("F5")
    code.debug_view()
    code.stopped_in("fused_kernel", training.line_of("ctypes.memset", program), thread="MainThread")
    assert "float32 [32, 10]" in code.variable("logits")
    code.select_frame("train_step")
    assert "float32 [32, 64]" in code.variable("batch")
    code.picture("crash-dump")
    code.evaluate("batch.sum()", "no code can run here")
    code.picture("crash-dump-evaluate")
    code.press("Shift+F5")
    code.ended()


def shown_page(code):
    """The frame of the panel with the page, once it is there."""
    code.command("Probing: Show the Page")
    return code.view("nav.rail")


def test_page(editor, job):
    """The page in a panel finds the job and its stack; from there to the source, to a session, and back after the window was loaded again."""
    code = editor({"type": "probing"}, vsix())
    page = shown_page(code)
    row = page.locator("main tr", has_text="{} · rank 1".format(job.pid))
    code.until("the job", lambda: row.count() and "train" in row.inner_text(), frame=page)
    row.locator("a").first.click()
    frame = page.locator("ol.frames li", has_text="<module>")
    code.until("its stack", lambda: page.locator("h1").inner_text() == "Stacks" and "train.py:" in frame.inner_text(), frame=page)
    code.picture("page-stacks")
    place = re.search(r"train\.py:(\d+)", frame.inner_text()).group(1)
    frame.locator("button.opens").click()
    code.until("the source", lambda: "Ln {},".format(place) in code.page.locator("#status\\.editor\\.selection").inner_text())
    code.open("train.py", LINE)
    code.toggle_breakpoint()
    page.get_by_role("button", name="Debug rank 1").click()
    code.stopped_in("train_step", LINE)
    code.until("the stop on the page", lambda: "train_step" in page.locator("main").inner_text(), frame=page)
    code.picture("page-session")
    leave(code, job)
    server = code.server.serving()
    with code.page.expect_navigation():  # by a command: a window that is torn away loses what it has not yet written
        code.command("Developer: Reload Window")
    page = code.view("nav.rail")
    code.until("the same screen", lambda: page.locator("h1").inner_text() == "Stacks" and page.locator("ol.frames li", has_text="train.py:").count(), frame=page)
    assert server and code.server.serving() == server
    os.kill(server, 9)
    code.until("another server", lambda: code.server.serving() not in (0, server) and not page.locator(".banner").count(), frame=page)


def test_page_runs_code_when_allowed(editor, job):
    code = editor({"type": "probing"}, vsix())
    page = shown_page(code)
    page.locator("main a", has_text=str(job.pid)).first.click()
    page.locator("nav.rail a[href*='/p/']", has_text="Console").click()  # of the process, once it is chosen
    page.get_by_role("button", name="Let this panel").click()
    box = code.page.locator(".monaco-dialog-box")
    code.until("the question", lambda: "Let this panel act" in box.inner_text())
    box.get_by_role("button", name="Allow").click()
    page.locator("textarea.code").fill("6 * 7")
    page.locator("textarea.code").press("Enter")
    code.until("the value", lambda: "42" in page.locator(".output").inner_text(), frame=page)


def test_page_of_a_dump(editor, project):
    """A crash dump on the page, and a session of it."""
    code = editor({"type": "probing"}, vsix())
    crashed(project, code.server.crashes)
    page = shown_page(code)
    page.locator("nav.rail a", has_text="Crashes").click()
    page.locator("[aria-label='Crash dumps'] a").first.click()
    page.get_by_role("button", name="Debug this file").click()
    code.debug_view()
    code.stopped_in("fused_kernel", training.line_of("ctypes.memset", "crash.py"), thread="MainThread")
    code.picture("page-dump")
    code.press("Shift+F5")
    code.ended()


def test_page_that_the_editor_does_not_load(editor):
    """VS Code loads the files of a panel's frame by a service worker, and where that fails says so nowhere: the extension opens another frame."""
    code = editor({"type": "probing"}, vsix())
    shown_page(code)
    code.press(CLEAN_KEY)
    code.until("the panel's end", lambda: not code.tabs())
    [script] = glob.glob(os.path.join(code.server.storage(), "page", "*", "main.js"))
    os.rename(script, script + ".away")
    try:
        code.command("Probing: Show the Page")
        empty = code.view("#page:empty")
    finally:
        os.rename(script + ".away", script)
    code.view("nav.rail")
    assert empty.is_detached() and len(code.tabs()) == 1


@pytest.mark.parametrize("console", ["internalConsole", "integratedTerminal"])
def test_launch(editor, project, console):
    """A program started by VS Code, by itself or in its terminal, which ends with the session."""
    program = training.Plain.PROGRAM
    path = training.copied(program, project)
    code = editor({"type": "probing", "request": "launch", "program": "${workspaceFolder}/" + program, "python": sys.executable,
                   "args": ["--workers", "1"], "console": console}, vsix())

    def launched():
        return [one for one in processes() if path in one["command"]]

    line = training.line_of("return sum(losses)", program)
    begin(code, program, line)
    code.stopped_in("train_step", line)
    assert launched()
    code.picture("launched-" + console)
    code.press("Shift+F5")
    code.until("the end of the program", lambda: not launched())


def test_child_of_a_launched_program(editor, project):
    """A breakpoint in the first line of a worker: VS Code opens a session for it while it waits, with no setting."""
    (project / "workers.py").write_text(
        "import multiprocessing\n\n\ndef work(item):\n    squared = item * item\n    return squared\n\n\n"
        "if __name__ == '__main__':\n    multiprocessing.get_context('fork').Process(target=work, args=(7,)).start()\n")
    code = editor({"type": "probing", "request": "launch", "program": "${workspaceFolder}/workers.py", "python": sys.executable}, vsix())
    begin(code, "workers.py", 5)
    code.stopped_in("work", 5)
    assert "7" in code.variable("item")
    code.picture("child-of-launched")
    code.press("F5")
    code.ended()


@pytest.fixture
def stock(windows):
    """The folders of its extensions; their server begins before the test's own time does."""
    windows.server(tuple(STOCK))
    return STOCK


def test_stock_attach(editor, stock, job, usual, listen, pictures):
    """type debugpy, connect: no extension of ours, VS Code talks to `probing debug --listen`."""
    code = editor({"type": "debugpy", "connect": {"host": "127.0.0.1", "port": listen()}, "justMyCode": False}, *stock)
    begin(code)
    break_look_step(code, "stock")
    leave(code, job)
    full_speed(job, usual, pictures, "stock")
