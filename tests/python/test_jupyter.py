"""The page behind jupyter-server-proxy, in a real Jupyter server that finds the package's entry point.  ./bootstrap check has these."""

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

import package
from support.target import free_port
from support.waits import line_of, until

sys.path.append(os.path.join(package.SRCDIR, "tests", "serve"))
from serving import Server  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
TOKEN = "the-token-of-jupyter"
JUPYTER = os.environ.get("PROBING_MCP_PYTHON") or os.path.join(package.BUILDDIR, "venv", "bin", "python3")
HAS = "import importlib.util as u, sys; sys.exit(not (u.find_spec('jupyter_server_proxy') and u.find_spec('jupyter_server')))"


class Jupyter:
    """A server with the wheel on its path."""

    def __init__(self, folder, wheel):
        self.runtime = tempfile.mkdtemp(prefix="jupyter-")  # short: the path of a socket has 107 bytes
        self.port = free_port()
        site = os.path.join(folder, "site")
        package.unpack(wheel, site)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "PYTHON", "PROB"))}
        self.environment.update(PYTHONPATH=site, XDG_RUNTIME_DIR=self.runtime, HOME=folder, JUPYTER_CONFIG_DIR=folder, JUPYTER_DATA_DIR=folder,
                                JUPYTER_RUNTIME_DIR=folder, PROBING_STORE="off")
        self.log_path = os.path.join(folder, "jupyter.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [JUPYTER, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port={}".format(self.port),
                 "--ServerApp.port_retries=0", "--ServerApp.allow_remote_access=True", "--IdentityProvider.token=" + TOKEN, "--ServerApp.root_dir=" + folder,
                 "--ServerApp.jpserver_extensions={'jupyter_server_proxy': True}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, cwd=folder)
        try:
            until(self.answers)
        except BaseException:
            self.end()
            raise

    def answers(self):
        assert self.process.poll() is None, self.log()
        try:
            return self.ask("/api/status")[0] == 200
        except OSError:
            return False

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def ask(self, path, method="GET", body=None, token=TOKEN, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if token:
            headers["Authorization"] = "token " + token
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        told = answer.status, answer.read().decode()
        connection.close()
        return told

    def serving(self):
        """The pid of the server that has the lock."""
        return int(line_of(os.path.join(self.runtime, "probing", "serve.lock")))

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.runtime, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not os.path.exists(JUPYTER) or subprocess.run([JUPYTER, "-c", HAS]).returncode:
        pytest.skip("no Jupyter with jupyter-server-proxy (./bootstrap check has one)")
    if not os.path.exists(os.path.join(package.NATIVE, "probing-serve")):
        pytest.skip("configured --without-serve")
    return package.make_wheel(str(tmp_path_factory.mktemp("wheel")), os.path.join(package.NATIVE, "libprobe.so"))


@pytest.fixture
def jupyter(wheel, tmp_path):
    one = Jupyter(str(tmp_path), wheel)
    yield one
    one.end()


@pytest.fixture
def job(start, any_python):
    return start(any_python, "threads.py").settle()


def test_listed_and_served(jupyter, job):
    """JupyterLab's launcher has it; Jupyter's login is the only one, and lets look, not act."""
    status, told = jupyter.ask("/server-proxy/servers-info")
    [one] = [one for one in json.loads(told)["server_processes"] if one["name"] == "probing"]
    assert status == 200 and one["launcher_entry"]["title"] == "Probing" and one["launcher_entry"]["enabled"]
    assert jupyter.ask("/server-proxy/icon/probing")[1].startswith("<svg")
    assert jupyter.ask("/probing/", token="")[0] in (302, 403)
    status, index = jupyter.ask("/probing/")
    assert status == 200 and "<title>probing</title>" in index, jupyter.log()[-3000:]
    assert json.loads(jupyter.ask("/probing/api/v1")[1])["grants"] == ["look"]
    assert str(job.pid) in jupyter.ask("/probing/api/v1/processes")[1]
    status, stacks = jupyter.ask("/probing/api/v1/p/{}/stacks".format(job.pid), Host="hub.example")  # Jupyter knows its names
    assert status == 200 and "MainThread" in stacks
    body = json.dumps({"allow": "eval"})
    for path in ("tokens", "p/{}/inject".format(job.pid)):
        assert jupyter.ask("/probing/api/v1/" + path, "POST", body)[0] == 403
    query = json.dumps({"sql": "SELECT 1"})
    path = "/probing/api/v1/p/{}/query".format(job.pid)
    assert jupyter.ask(path, "POST", query)[0] == 200
    assert jupyter.ask(path, "POST", query, Origin="http://evil.example")[0] == 403
    with open(os.path.join(jupyter.runtime, "probing", "serve.log")) as log:
        assert TOKEN not in log.read()


def test_in_a_browser(jupyter, job):
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright (./bootstrap check has it)")
    if not CHROMIUM:
        pytest.skip("no Chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox", "--disable-gpu"], timeout=120000)
        page = browser.new_page()
        page.set_default_timeout(120000)
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto("http://127.0.0.1:{}/probing/?token={}".format(jupyter.port, TOKEN))
        page.click("main a:text('{} ·')".format(job.pid))
        page.wait_for_selector("ol.frames:has-text('threads.py')")  # live, by a WebSocket
        browser.close()
    assert not faults


def test_beside_a_server_of_the_user(wheel, tmp_path, job):
    """One that runs already is shown, and followed by one of Jupyter's own."""
    jupyter = Jupyter(str(tmp_path), wheel)
    try:
        other = Server("--unix", runtime=jupyter.runtime)
        path = "/probing/api/v1/processes"
        assert str(job.pid) in jupyter.ask(path)[1] and jupyter.serving() == other.pid
        assert other.end() == 0
        until(lambda: jupyter.serving() != other.pid)
        until(lambda: str(job.pid) in jupyter.ask(path)[1])
    finally:
        jupyter.end()
