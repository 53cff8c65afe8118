"""One job that is slow, one that leaks, one that goes NaN, one with tasks: each is seen on the screen for it."""

import json
import re
import signal
import socket
import time

import pytest

from serving import DEADLINE
from support.torch_python import torch_python


def test_flame_graph_grows(job, serve, tab):
    healthy = job("healthy")
    one = tab(serve(), watched=(healthy.pid,))
    one.open(healthy.pid, "profile")
    one.until("samples in")
    first = int(one.text("[role=status]").split()[0].replace(",", ""))
    one.page.wait_for_function("first => parseInt(document.querySelector('[role=status]').innerText.replace(',', '')) > first", arg=first)
    rows = one.page.eval_on_selector_all("[aria-label=Functions] tbody tr", "all => all.map(one => one.innerText.split(/\\t|\\n/).filter(Boolean))")
    assert any("genexpr" in row[2] or "compute" in row[2] for row in rows[:3]), rows[:4]
    own, total = (float(rows[0][i].split()[0]) for i in (0, 1))
    assert own <= total + 0.11
    one.page.focus("canvas.flame")
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("ArrowDown")
    one.page.wait_for_function("() => document.querySelector('.told').innerText.includes('100 %') || document.querySelector('.told').innerText.includes('samples')")
    one.page.fill("main input[type=search]", "compute")
    one.page.click("button:text('Pause')")
    one.until("paused")
    one.page.evaluate("""() => {
        window.told = [];
        const status = document.querySelector("[role=status]");
        new MutationObserver(() => told.push(status.innerText)).observe(status, { childList: true, characterData: true, subtree: true });
    }""")
    one.page.click("button:text('Begin anew')")
    one.page.wait_for_function("() => told.includes('sampling …') && told.at(-1).includes('samples in')")
    assert "paused" not in one.text("[role=status]")
    one.page.fill("main input[type=search]", "")
    one.page.wait_for_function("() => document.querySelector('[aria-label=Functions]').innerText.includes('train')")


TYPES = "[aria-label='Objects by type'] tbody tr"


def test_leak(job, serve, tab):
    """Memory grows on the curve, and the type that grew stands first."""
    leaks = job("leaks")
    one = tab(serve(), watched=(leaks.pid,))
    one.open(leaks.pid, "memory")
    one.page.wait_for_selector("canvas")
    one.page.click("button:text('Compare from here on')")
    one.page.wait_for_selector("[aria-label='Objects by type'] th:nth-child(5)")
    begun = time.monotonic()
    while not any("+" in row and ("Sample" in row or "dict" in row) for row in one.page.eval_on_selector_all(TYPES, "all => all.slice(0, 3).map(one => one.innerText)")):
        assert time.monotonic() < begun + 2 * DEADLINE, one.text()
        one.page.wait_for_timeout(500)
        one.page.click("button:text('Look again')")


@pytest.mark.parametrize("screen, text", [("tensors?statistics=1", "with NaN or Inf; the first is 0.weight"),
                                          ("training", "not recorded yet")])
def test_nan(job, serve, tab, screen, text):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    nan = job("nan", "3", python=torch_python())
    one = tab(serve(), watched=(nan.pid,))
    one.open(nan.pid, screen)
    one.until(text)


def test_tasks(job, serve, tab):
    """Tasks stand below the one that waits for them; a loop that waits for events is no alarm."""
    tasks = job("tasks")
    one = tab(serve(), watched=(tasks.pid,))
    one.only((tasks.pid,))
    one.open(tasks.pid, "tasks")
    one.until("fetch")
    one.page.wait_for_function("() => document.querySelectorAll('.tree > li > ul > li').length === 3")
    one.page.goto(one.page.url.split("#")[0] + "#/overview")
    one.page.wait_for_selector(".well li:has-text('process {}'):has-text('waits for events, for')".format(tasks.pid), timeout=120000)


def test_two_moments(job, serve, tab):
    """What appeared and what vanished between A and B."""
    healthy = job("healthy")
    one = tab(serve(), watched=(healthy.pid,))
    one.open(healthy.pid, "stacks")
    one.until("train")
    one.page.evaluate("""() => {
        const press = words => [...document.querySelectorAll("button")].find(one => one.innerText.startsWith(words)).click();
        press("Mark A");
        queueMicrotask(() => press("Compare with A")); // before the next look comes
    }""")
    one.until("Between A and B no stack has changed")
    for _ in range(60):
        one.page.click("button:text('Back to now')")
        one.page.click("button:text('Mark A')")
        one.page.wait_for_timeout(1200)
        one.page.click("button:text('Compare with A')")
        if "appeared" in one.text() and "vanished" in one.text():
            return
    raise AssertionError("nothing ever moved")


AGE = "least => [...document.querySelectorAll('summary .since')].some(one => parseFloat(/unchanged for ([\\d.]+) s/.exec(one.innerText)?.[1]) > least)"


def test_age_grows(job, serve, tab):
    """Where nothing moves the server says that all is the same; who stands since when is told all the same, and the slider goes on."""
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.open(hangs.pid, "stacks")
    for seconds in (0, 2, 4):
        one.page.wait_for_function(AGE, arg=seconds)
    one.page.wait_for_function("() => Number(document.querySelector('.slider input').max) > 3")


def test_freeze(job, serve, tab):
    """What came while the page was frozen is seen when it goes on, also where nothing comes behind it."""
    deep = job("deep", "2", "5")
    one = tab(serve(), watched=(deep.pid,))
    came = []
    one.page.on("websocket", lambda line: line.on("framereceived", lambda data: came.append(str(data))))
    for screen, before, after in (("profile?mode=wall", "enter_0_", "enter_2_"), ("stacks", "enter_2_", "enter_4_")):
        one.open(deep.pid, screen)
        one.until(before)
        one.page.click("button:text('Freeze')")
        deep.send_signal(signal.SIGUSR1)
        begun = time.monotonic()
        while not any(after in data for data in came):
            assert time.monotonic() < begun + DEADLINE
            one.page.wait_for_timeout(100)
        assert after not in one.text()
        one.page.click("button:text('Frozen')")
        one.until(after)


def test_account_begun_anew(job, serve, tab):
    """When a process has shown the server so many stacks that its account begins anew, who stands still stands since then as before."""
    deep = job("deep")
    server = serve()
    one = tab(server, watched=(deep.pid,))
    one.open(deep.pid, "stacks")
    one.until("unchanged for")
    begun = time.time()  # it stands since then at the latest

    def oldest():
        told = server.ask("/api/v1/p/{}/history".format(deep.pid)).json
        return told["moments"][0]["time"] if told["moments"] else 0

    sent = time.time()
    assert 0 < oldest() < sent
    deep.send_signal(signal.SIGUSR1)
    while oldest() < sent:
        assert time.time() < sent + DEADLINE
        time.sleep(0.2)
    fresh = tab(server, watched=(deep.pid,))
    fresh.open(deep.pid, "stacks?q=stand")
    fresh.until("unchanged for")
    told = re.search(r"unchanged for ([\d.]+) (s|min)", fresh.text("details.group"))
    assert float(told[1]) * (60 if told[2] == "min" else 1) > sent - begun - 3, fresh.text("details.group")
    one.page.wait_for_function("() => Number(document.querySelector('.slider input').max) > 3")  # the slider of the first tab goes on
    one.page.focus(".slider input")
    one.page.keyboard.press("Home")
    one.page.wait_for_selector("button:text('Back to now')")


def test_console(job, serve, tab):
    hangs = job("hangs")
    one = tab(serve("--allow", "eval"), watched=(hangs.pid,))
    one.open(hangs.pid, "console")
    one.page.wait_for_selector("textarea")
    one.page.fill("textarea", "import threading; sorted(t.name for t in threading.enumerate() if 'worker' in t.name)")
    one.page.press("textarea", "Enter")
    one.until("['worker 0', 'worker 1']")
    one.page.fill("textarea", "1/0")
    one.page.press("textarea", "Enter")
    one.until("ZeroDivisionError")


def test_debugger(job, serve, tab):
    """A button lets a debugger connect, shows what an editor needs to know, and ends it again."""
    hangs = job("hangs")
    one = tab(serve("--allow", "eval"), watched=(hangs.pid,))
    one.open(hangs.pid, "console")
    one.page.click("button:text('Let a debugger connect')")
    launch = json.loads(one.text("[aria-label=Debugger] pre"))
    socket.create_connection((launch["connect"]["host"], launch["connect"]["port"]), DEADLINE).close()
    assert launch["request"] == "attach" and launch["token"]
    one.page.click("button:text('End it')")
    one.page.wait_for_selector("button:text('Let a debugger connect')")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((launch["connect"]["host"], launch["connect"]["port"]), DEADLINE)


def test_console_says_how(job, serve, tab):
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.open(hangs.pid, "console")
    one.until("probing serve --allow eval")
