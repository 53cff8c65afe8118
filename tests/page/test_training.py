"""The Training screen: what is not recorded can be turned on from it; charts of steps, phases, loss, rates; now and in the past."""

import os
import subprocess

import pytest

from support.target import TARGETS, probing
from support.torch_python import torch_python

RECORDED = "h2:text-is('{}') ~ .chart canvas"


@pytest.fixture
def trains(job):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    return lambda *words, **more: job("trains", *words, python=torch_python(), **more)


def charts(one, *names):
    for name in names:
        one.page.wait_for_selector(RECORDED.format(name), timeout=60000)


def test_turned_on(trains, serve, tab):
    """From nothing to charts by one button; each chart has values, and the slider shows minutes that went by."""
    trainer = trains()
    one = tab(serve("--allow", "control"), watched=(trainer.pid,))
    one.open(trainer.pid, "training")
    one.until("not recorded yet")
    charts(one, "Memory", "CPU")  # there without any recording
    one.page.click("button:text('Record training')")
    charts(one, "Time of a step", "What a step goes into", "loss", "Steps a second")
    one.page.wait_for_selector("h2:text('Longest steps')")
    one.page.wait_for_selector("[aria-label^='Phases of a step']" + "".join("[aria-label*={}]".format(name) for name in ("data", "forward", "backward", "optimizer")))
    one.page.wait_for_selector("[aria-label='Longest steps'] tbody tr:has-text('ms')")
    one.page.wait_for_function("() => !document.querySelector('input[type=range]').disabled")
    one.page.focus("input[type=range]")
    one.page.keyboard.press("Home")
    one.page.wait_for_selector("button:text('Back to now')")
    assert one.text(".moments").startswith("Show") and "until" in one.text(".moments")
    one.page.click("button:text('Back to now')")
    charts(one, "Time of a step")
    one.page.goto(one.page.url.split("#")[0] + "#/overview")  # where the server's own account has the step
    cell = "main tr:has(a:text('{} ·')) td[data-name=Step]".format(trainer.pid)
    one.page.wait_for_selector(cell + ":not(:empty)")
    step = int(one.text(cell))
    one.page.wait_for_function("step => [...document.querySelectorAll('td[data-name=Step]')].some(one => Number(one.innerText) > step)", arg=step)


def test_says_how(trains, serve, tab):
    """Without the grant: the command, and how to get the button."""
    trainer = trains()
    one = tab(serve(), watched=(trainer.pid,))
    one.open(trainer.pid, "training")
    one.until("probing {} config probing.torch.profiling=on,exprs=loss@".format(trainer.pid))
    assert "probing serve --url --allow control" in one.text() and one.page.locator("button:text('Record training')").count() == 0


def test_logged(trains, serve, tab):
    """What the program logs by itself: loss, and tokens each second."""
    trainer = trains("log", PYTHONPATH=os.path.join(os.environ["SRCDIR"], "python"))
    probing(trainer.pid, "inject")
    one = tab(serve(), watched=(trainer.pid,))
    one.open(trainer.pid, "training")
    charts(one, "loss", "tokens", "Time of a step", "tokens a second")
    one.page.wait_for_function("""() => {
        const told = document.querySelector("[aria-label^='tokens a second']").getAttribute("aria-label");
        return Number(told.split(" ").pop().replaceAll(",", "")) > 500;
    }""")  # of the last second, in which a job on a busy machine may have logged nothing


@pytest.fixture
def late_rank():
    """Two ranks over gloo, of which rank 1 comes 30 ms later to each all_reduce; their pids."""
    if not torch_python():
        pytest.skip("needs a Python with torch")
    job = subprocess.Popen([torch_python(), os.path.join(TARGETS, "collectives.py"), "2", "1", "30"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    pids = [int(word) for word in job.stdout.readline().split()[1:]]
    assert job.stdout.readline() == "ready\n"
    yield pids
    job.kill()
    job.communicate()


def test_collectives(late_rank, serve, tab):
    """Of a real job of two ranks: how long each collective takes, and who makes the others wait."""
    server = serve("--allow", "control")
    one = tab(server, watched=late_rank)
    for pid in reversed(late_rank):
        one.open(pid, "training")
        one.page.click("button:text('Record training')")
        charts(one, "all_reduce")
    one.page.wait_for_selector("[aria-label='Ranks that came last'] tbody tr:first-child td:has-text('1')", timeout=60000)
    first = one.page.eval_on_selector_all("[aria-label='Ranks that came last'] tbody tr:first-child td", "all => all.map(one => one.innerText)")
    waited, unit = first[2].split()
    assert first[0] == "1" and (unit != "ms" or float(waited) > 15), first
    assert "not recorded yet" not in one.text()
