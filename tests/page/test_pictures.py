"""A picture of each screen, on a real job, as serve/README.md shows it; and how fast it is there.

They are written into BUILDDIR/screenshots/serve; PROBING_PICTURES=DIR writes there instead (serve/pictures, to renew what is in git).
"""

import os
import signal

import pytest

from support.target import probing
from support.torch_python import torch_python

FOLDER = os.environ.get("PROBING_PICTURES") or os.path.join(os.environ["BUILDDIR"], "screenshots", "serve")
MOST = 100 * 1024


def picture(one, name):
    os.makedirs(FOLDER, exist_ok=True)
    one.page.set_viewport_size({"width": 920, "height": 540})
    one.page.wait_for_timeout(500)
    path = os.path.join(FOLDER, name + ".png")
    one.page.screenshot(path=path)
    assert 5000 < os.path.getsize(path) < MOST, name


def others(one, pids):
    """Only these processes: what else runs on the machine is nobody's business."""
    keep = [str(pid) for pid in pids]

    def only(route):
        answer = route.fetch()
        told = answer.json()
        told["processes"] = [row for row in told["processes"] if str(row["pid"]) in keep]
        route.fulfill(response=answer, json=told)

    one.page.route("**/api/v1/processes", only)
    one.page.reload()


def test_pictures_of_a_hang(job, serve, tab):
    hangs, healthy, tasks = job("hangs"), job("healthy"), job("tasks")
    one = tab(serve(), watched=(hangs.pid, healthy.pid, tasks.pid))
    others(one, (hangs.pid, healthy.pid, tasks.pid))
    one.page.wait_for_selector(".findings .high", timeout=60000)
    picture(one, "overview")
    one.open(hangs.pid, "stacks?locals=1")
    one.page.wait_for_selector(".locals")
    picture(one, "stacks")
    one.open(healthy.pid, "profile")
    one.until("samples in")
    one.page.wait_for_timeout(3000)
    picture(one, "profile")
    one.open(tasks.pid, "tasks")
    one.until("fetch")
    picture(one, "tasks")
    one.open(hangs.pid, "sql?sql=SELECT+func,+file,+lineno,+count(*)+AS+threads+FROM+python.backtrace+GROUP+BY+1,+2,+3")
    one.until("rows,")
    one.page.wait_for_timeout(1500)
    picture(one, "sql")
    one.open(hangs.pid, "console")
    one.until("probing serve --allow eval")
    picture(one, "console")
    one.open(hangs.pid, "settings")
    one.until("Settings of process")
    one.page.wait_for_timeout(1500)
    picture(one, "settings")


def test_pictures_of_a_leak(job, serve, tab):
    leaks = job("leaks")
    one = tab(serve(), "light", watched=(leaks.pid,))
    others(one, (leaks.pid,))
    one.open(leaks.pid, "memory")
    one.page.wait_for_selector("canvas")
    one.page.click("button:text('Compare from here on')")
    one.page.wait_for_timeout(8000)
    one.page.click("button:text('Look again')")
    one.page.wait_for_function("() => document.querySelector('[aria-label=\"Objects by type\"] tbody').innerText.includes('+')")
    picture(one, "memory")


def test_pictures_of_a_nan(job, serve, tab):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    nan = job("nan", "400", python=torch_python())
    one = tab(serve(), watched=(nan.pid,))
    others(one, (nan.pid,))
    one.open(nan.pid, "tensors?statistics=1")
    one.until("with NaN or Inf")
    picture(one, "tensors")
    one.open(nan.pid, "training")
    one.page.check("text=sample where the time of a step goes")
    one.until("Where the last second went")
    picture(one, "training")


def test_pictures_of_a_crash(job, serve, tab, tmp_path):
    """A dump is listed, opens as a target, and its screens are those of a process."""
    crashes = job("crashes", PROBING_CRASH_DIR=str(tmp_path))
    probing(crashes.pid, "inject", "-c", env=dict(os.environ, PROBING_CRASH_DIR=str(tmp_path)))
    crashes.send_signal(signal.SIGSEGV)
    crashes.wait(60)
    one = tab(serve(variables={"PROBING_CRASH_DIR": str(tmp_path)}))
    one.page.goto(one.page.url.split("#")[0] + "#/crashes")
    one.page.wait_for_selector("[aria-label='Crash dumps'] a")
    picture(one, "crashes")
    one.page.click("[aria-label='Crash dumps'] a")
    one.until("SIGSEGV")
    one.page.click("main a:text('Stacks and variables')")
    one.until("deep_inside")
