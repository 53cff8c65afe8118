"""Jobs to look at, a server, and Chromium with the page; what the browser has to say against the page fails the test."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "serve"))
from serving import Server  # noqa: E402
from support.first_load import CHROMIUM, launch  # noqa: E402

SIZES = {"light": {"width": 1366, "height": 768}, "dark": {"width": 390, "height": 844}}


@pytest.fixture
def job(any_python):
    """job(name, *words, python=): a job of this folder ("planted": that of tests/skills) that says it is ready; ended with the test."""
    started = []

    def begin(name, *words, python=None, **variables):
        path = os.path.join(HERE, os.pardir, "skills", "job.py") if name == "planted" else os.path.join(HERE, "jobs", name + ".py")
        command = [python or any_python.executable, path, *words]
        one = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8", env=dict(os.environ, **variables))
        started.append(one)
        assert one.stdout.readline() == "ready\n"
        return one

    yield begin
    for one in started:
        one.kill()
        one.communicate()


@pytest.fixture
def serve(tmp_path):
    """serve(*options): a server, of which this machine's crash dumps are no concern."""
    started = []

    def begin(*options, variables=None, **more):
        variables = dict({"PROBING_CRASH_DIR": str(tmp_path / "crashes")}, **(variables or {}))
        started.append(Server(*options, variables=variables, **more))
        return started[-1]

    yield begin
    for one in started:
        status = one.end()
        one.remove()
        assert status == 0


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright (tests/editors/setup.sh)")
    if not CHROMIUM:
        pytest.skip("no Chromium")
    with playwright.sync_playwright() as driver:
        one = launch(driver)
        yield one
        one.close()


class Tab:
    """A tab of the browser that shows a server's page."""

    def __init__(self, browser, server, scheme):
        self.server = server
        self.page = browser.new_page(viewport=SIZES[scheme], color_scheme=scheme)
        self.page.set_default_timeout(120000)  # for what hangs, not for a slow machine
        self.faults = []
        self.page.on("pageerror", lambda error: self.faults.append("error: {}".format(error)))
        self.page.on("console", self.heard)
        self.page.goto(server.line)
        self.page.wait_for_selector("main h1")

    def heard(self, message):
        where = str(message.location.get("url", ""))
        others = "/api/v1/p/" in where and not any("/{}.".format(pid) in where for pid in self.watched)
        if not others:  # of this machine's other processes some may end at any time
            self.faults.append("{}: {} {}".format(message.type, message.text, where))

    watched = ()

    def open(self, pid, screen):
        """A screen of a process, by its address."""
        self.page.goto("http://{}:{}/#/p/{}/{}".format(self.server.host, self.server.port, pid, screen))

    def only(self, pids):
        """Show only these processes, and jobs of them: what else runs on the machine is nobody's business."""
        pids = set(pids)

        def some(route):
            answer = route.fetch()
            told = answer.json()
            told["processes"] = [row for row in told["processes"] if row["pid"] in pids]
            route.fulfill(response=answer, json=told)

        def some_jobs(route):
            answer = route.fetch()
            told = answer.json()
            told["jobs"] = [one for one in told["jobs"] if pids & {rank["pid"] for rank in one["ranks"]}]
            route.fulfill(response=answer, json=told)

        self.page.route("**/api/v1/processes", some)
        self.page.route("**/api/v1/jobs", some_jobs)
        self.page.reload()

    def text(self, selector="main"):
        return self.page.inner_text(selector)

    def until_at(self, words):
        """Until the address has these words."""
        self.page.wait_for_function("words => location.hash.includes(words)", arg=words)

    def until(self, text, selector="main"):
        self.page.wait_for_function("([selector, text]) => document.querySelector(selector)?.innerText.includes(text)", arg=[selector, text])


@pytest.fixture
def tab(browser, job, serve):
    """tab(server, scheme="light"): the page in a tab of its own; neither a message on the console nor an error by the end."""
    opened = []

    def begin(server, scheme="light", watched=()):
        opened.append(Tab(browser, server, scheme))
        opened[-1].watched = watched
        return opened[-1]

    yield begin
    for one in opened:
        one.page.unroute_all(behavior="ignoreErrors")
        one.page.close()
    assert [fault for one in opened for fault in one.faults] == []
