"""What the person sees first: which job is in trouble, what it is, where, since when; a healthy one is calm."""

import os
import re
import signal

import pytest

from support.target import probing
from support.torch_python import torch_python

CARD = ".job:has(h2:has-text('process {}'))"
WELL = ".well li:has-text('process {}')"

SAID = """([pid, text]) => [...document.querySelectorAll(".job")].some(job => job.querySelector("h2").innerText.includes(pid) &&
    [...job.querySelectorAll(".findings a")].some(one => one.innerText.replace(/[\\d.]+/g, "#") === text))"""


def without_numbers(text):
    return re.sub(r"[\d.]+", "#", text)


def test_hang(job, serve, tab):
    """Which process stands, where, since when, and why: without a word of documentation; the other one is well."""
    hangs, healthy = job("hangs"), job("healthy")
    one = tab(serve(), watched=(hangs.pid, healthy.pid))
    one.only((hangs.pid, healthy.pid))
    card = CARD.format(hangs.pid)
    one.page.wait_for_selector(card + ":has-text('it waits for something to come through a queue')", timeout=60000)
    told = one.text(card)
    assert "high" in told and "in load_batch" in told and "hangs.py:" in told and re.search(r"not moved for (1\d|[2-9]\d|\d+ min)", told), told
    assert re.search(r"since \d+:\d\d:\d\d", told) and "backtrace --native" in told, told
    one.page.wait_for_selector("h1.bad:text-is('1 of 2 processes is in trouble')")
    one.page.wait_for_selector(WELL.format(healthy.pid) + ":has-text('moves')")
    one.page.wait_for_function("() => document.querySelectorAll('main tr.standing').length === 1")
    one.page.click(card + " .findings a")
    one.until("unchanged for")
    one.page.wait_for_selector("h1:text-is('Stacks')")
    one.until("worker")
    assert "load_batch" in one.text()


def test_as_the_skills(job, serve, tab):
    """The findings are those of `skill run`, the worst first; each leads to what shows it."""
    slow, leak, healthy = job("planted", "slow"), job("planted", "leak"), job("planted", "healthy")
    jobs = {"slow": (slow, "Profile"), "leak": (leak, "Memory")}
    server = serve()
    one = tab(server, watched=(slow.pid, leak.pid, healthy.pid))
    one.only((slow.pid, leak.pid, healthy.pid))
    for skill, (planted, screen) in jobs.items():
        card = CARD.format(planted.pid)
        told = server.post("/api/v1/p/{}/skills/{}".format(planted.pid, skill), {}).json["findings"]
        worst = next(finding for finding in told if finding["severity"] != "info")
        one.page.wait_for_selector(card, timeout=120000)
        one.page.wait_for_function(SAID, arg=[str(planted.pid), without_numbers(worst["finding"])], timeout=120000)
        one.page.click(card + " .findings a >> nth=0")
        one.page.wait_for_selector("h1:text('{}')".format(screen))
        one.page.go_back()
    one.page.wait_for_selector(WELL.format(healthy.pid) + ":has-text('nothing found')", timeout=120000)
    one.page.click(WELL.format(healthy.pid) + " summary")
    one.page.wait_for_selector(WELL.format(healthy.pid) + ":has-text('the main thread moves')")
    assert one.page.locator(CARD.format(healthy.pid)).count() == 0


def test_nan(job, serve, tab):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    nan = job("nan", "3", python=torch_python())
    one = tab(serve(), watched=(nan.pid,))
    one.only((nan.pid,))
    card = CARD.format(nan.pid)
    one.page.wait_for_selector(card + ":has-text('have NaN or infinity; the first is 0.weight')", timeout=60000)
    one.page.click(card + " .findings a >> nth=0")
    one.until("with NaN or Inf; the first is 0.weight")


def test_stopped_and_crashed(job, serve, tab, tmp_path):
    """A stopped process says how it goes on; a crash of this hour stands among the jobs."""
    environment = {"PROBING_CRASH_DIR": str(tmp_path)}
    crashes, healthy = job("crashes", **environment), job("healthy")
    probing(crashes.pid, "inject", "-c", env=dict(os.environ, **environment))
    healthy.send_signal(signal.SIGSTOP)
    one = tab(serve(variables=environment), watched=(healthy.pid,))
    one.only((crashes.pid, healthy.pid))
    one.page.wait_for_selector(CARD.format(healthy.pid) + ":has-text('the process is stopped')", timeout=60000)
    crashes.send_signal(signal.SIGSEGV)
    crashes.wait(60)
    one.page.wait_for_selector(".job:has-text('process {} crashed'):has-text('SIGSEGV')".format(crashes.pid), timeout=60000)
    healthy.send_signal(signal.SIGCONT)
