"""A job on two hosts, which are namespaces: the page of a third shows its ranks, and on each screen who did not answer."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import Tab
from serving import Server
from support.first_load import CHROMIUM, launch
from support.target import DEADLINE, PROBING

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, os.pardir, "fleet"))
from bus import Bus, missing  # noqa: E402
from hosts import Hosts, can  # noqa: E402

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()),
              pytest.mark.skipif(not can(), reason="needs root, ip, and namespaces of network and processes")]
SIZE = 4


class Job:
    """Two hosts with two ranks and an agent each; the hub has the bus."""

    def __init__(self):
        self.hosts, self.bus, self.ranks = Hosts(2), Bus(), []
        self.at(self.hosts.hub, "cluster", "up")
        for rank in range(SIZE):
            self.ranks.append(subprocess.Popen(
                [*self.host(rank).enter, sys.executable, os.path.join(HERE, "jobs", "ranks.py")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(SIZE), PROBING_JOB="llama")))
            assert self.ranks[-1].stdout.readline() == b"ready\n"
        for host in self.hosts.all:
            self.at(host, "cluster", "attach")

    def host(self, rank):
        return self.hosts.all[rank // 2]

    def at(self, host, *words):
        done = subprocess.run([*host.enter, PROBING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8",
                              timeout=DEADLINE, env=dict(self.bus.environment, PROBING_STORE="off"))
        assert done.returncode == 0, done.stderr

    def end(self):
        for host in self.hosts.all:
            self.at(host, "cluster", "detach")
        self.at(self.hosts.hub, "cluster", "down")
        for one in self.ranks:
            one.kill()
        self.hosts.end()
        for one in self.ranks:
            one.wait(DEADLINE)
            one.stdout.close()
        shutil.rmtree(self.bus.home, ignore_errors=True)


@pytest.fixture
def job():
    one = Job()
    yield one
    one.end()


@pytest.fixture
def tab(job, tmp_path):
    """A tab of a browser that runs on the hub, as its server does."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright (tests/editors/setup.sh)")
    if not CHROMIUM:
        pytest.skip("no Chromium")
    with job.hosts.hub.network():
        server = Server(variables={"PROBING_CRASH_DIR": str(tmp_path / "crashes"), "PROBING_BUS": job.bus.folder, "HOME": job.bus.home})
        try:
            with playwright.sync_playwright() as driver:
                browser = launch(driver)
                yield Tab(browser, server, "light")
                browser.close()
        finally:
            status = server.end()
            server.remove()
    assert status == 0


def test_job(job, tab):
    """The verdict, a cell for each rank, all stacks in one tree; then a rank is gone."""
    tab.open("@llama", "overview")
    tab.page.wait_for_selector(".job.high:has-text('4 of 4 ranks answered') .findings li:first-child.high:has-text('rank 3 is in no collective')")
    assert "load_batch (ranks.py:" in tab.text(".job.high") and "node2" in tab.text(".job.high"), tab.text(".job.high")
    tab.page.wait_for_selector(".hosts section:nth-child(2):has-text('node2') .ranks li.standing:has-text('3')")
    assert tab.page.eval_on_selector_all(".ranks li b", "all => all.map(one => one.innerText)") == ["0", "1", "2", "3"]
    tab.open("@llama", "stacks")
    tab.page.wait_for_selector(".ranktree > li > .who:has-text('all 4 ranks')")
    tab.page.wait_for_selector(".ranktree .odd:has-text('rank 3')")
    tab.open("@llama", "sql?sql=SELECT+rank,+host+FROM+system.process+ORDER+BY+1")
    tab.until("4 rows")
    assert tab.page.eval_on_selector_all(".grid tbody tr", "all => all.map(one => one.innerText.trim().split(/\\s+/).slice(-1)[0])") == ["node1", "node1", "node2", "node2"]
    with open("/proc/{0}/task/{0}/children".format(job.ranks[1].pid)) as children:
        os.kill(int(children.read().split()[0]), signal.SIGKILL)  # not nsenter, which waits for it
    job.ranks[1].wait(DEADLINE)
    for screen in ("stacks", "sql?sql=SELECT+rank+FROM+system.process", "memory", "tasks"):
        tab.open("@llama", screen)
        tab.until("3 of 4 ranks answered")
