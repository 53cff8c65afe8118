"""A picture of each screen, on a real job, as serve/README.md shows it; and how fast it is there.

They are written into BUILDDIR/screenshots/serve; PROBING_PICTURES=DIR writes there instead (serve/pictures, to renew what is in git).
"""

import os
import signal
import subprocess

import pytest

from support.target import TARGETS, probing
from support.torch_python import torch_python

FOLDER = os.environ.get("PROBING_PICTURES") or os.path.join(os.environ["BUILDDIR"], "screenshots", "serve")
MOST = 120 * 1024


def picture(one, name):
    os.makedirs(FOLDER, exist_ok=True)
    one.page.set_viewport_size({"width": 920, "height": 540})
    one.page.wait_for_timeout(500)
    path = os.path.join(FOLDER, name + ".png")
    one.page.screenshot(path=path)
    assert 5000 < os.path.getsize(path) < MOST, name


def test_pictures_of_a_hang(job, serve, tab):
    hangs, slow, healthy, tasks = job("hangs"), job("planted", "slow"), job("healthy"), job("tasks")
    pids = [started.pid for started in (hangs, slow, healthy, tasks)]
    one = tab(serve(), watched=pids)
    one.only(pids)
    one.page.wait_for_selector(".job:has-text('queue')", timeout=60000)
    one.page.wait_for_selector(".job:has-text('process {}'):has-text('getting data')".format(slow.pid), timeout=120000)
    one.page.wait_for_selector(".well li:has-text('nothing found')", timeout=120000)
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
    one.only((leaks.pid,))
    one.open(leaks.pid, "memory")
    one.page.wait_for_selector("canvas")
    one.page.click("button:text('Compare from here on')")
    one.page.wait_for_timeout(8000)
    one.page.click("button:text('Look again')")
    one.page.wait_for_function("() => document.querySelector('[aria-label=\"Objects by type\"] tbody').innerText.includes('+')")
    picture(one, "memory")


NAN = """
import threading, torch
from torch import nn
def work():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 4))
    with torch.no_grad():
        model[0].weight[3, 20:26] = float("nan"); model[0].weight[17, 5] = float("inf")
    print("ready", flush=True)
    threading.Event().wait()
work()
"""


def test_pictures_of_a_nan(job, serve, tab, tmp_path):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    (tmp_path / "model.py").write_text(NAN)
    nan = job(str(tmp_path / "model"), python=torch_python())
    one = tab(serve(), watched=(nan.pid,))
    one.only((nan.pid,))
    one.open(nan.pid, "tensors?statistics=1")
    one.until("with NaN or Inf")
    one.page.click("button:text('Show where')")
    one.page.wait_for_selector("canvas.heat")
    one.page.click("button:text('Next NaN or infinity')")
    picture(one, "tensors")


def test_pictures_of_training(job, serve, tab):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    trains = job("trains", python=torch_python())
    one = tab(serve("--allow", "control"), watched=(trains.pid,))
    one.only((trains.pid,))
    one.open(trains.pid, "training")
    one.page.click("button:text('Record training')")
    one.page.select_option(".moments select", "60")
    one.page.wait_for_selector("h2:text('loss') ~ .chart canvas", timeout=60000)
    one.page.wait_for_timeout(20000)
    picture(one, "training")


def test_pictures_of_ranks(job, serve, tab):
    ranks = [job("ranks", RANK=str(rank), WORLD_SIZE="4") for rank in range(4)]
    pids = [started.pid for started in ranks]
    one = tab(serve(), watched=pids)
    one.only(pids)
    one.open(pids[0], "stacks?ranks=1")
    one.page.wait_for_selector("[aria-label='Where the ranks are'] li.high", timeout=60000)
    picture(one, "ranks")


@pytest.fixture
def gloo_job():
    """Four ranks over gloo, tensor and data parallel: rank 3 reads a shard for ever; the name of the job, and their pids."""
    if not torch_python():
        pytest.skip("needs a Python with torch")
    name = "llama-{}".format(os.getpid())
    jobs = subprocess.Popen([torch_python(), os.path.join(TARGETS, "hang_jobs.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    assert jobs.stdout.readline() == "ready\n"
    jobs.stdin.write("tensor 3 {}\n".format(name))
    jobs.stdin.flush()
    yield name, [int(word) for word in jobs.stdout.readline().split()[1:]]
    jobs.communicate()


def test_pictures_of_a_job(gloo_job, serve, tab):
    name, pids = gloo_job
    one = tab(serve(), watched=pids)
    one.only(pids)
    one.open("@" + name, "overview")
    one.page.wait_for_selector(".job .findings li:has-text('3 ranks wait for it')", timeout=60000)
    one.page.wait_for_selector(".ranks li:nth-child(4).standing:has-text('read_shard')")
    one.page.wait_for_function("() => [...document.querySelectorAll('.ranks li.standing b')].map(one => one.innerText).join() === '3'")
    one.page.wait_for_selector(".job:has-text('all_reduce'):has-text('4 of 4 ranks answered')")
    picture(one, "job")


def test_pictures_of_a_crash(job, serve, tab, tmp_path):
    """A dump is listed, opens as a target, and its screens are those of a process."""
    crashes = job("crashes", PROBING_CRASH_DIR=str(tmp_path))
    probing(crashes.pid, "inject", "-c", env=dict(os.environ, PROBING_CRASH_DIR=str(tmp_path)))
    crashes.send_signal(signal.SIGSEGV)
    crashes.wait(60)
    one = tab(serve(variables={"PROBING_CRASH_DIR": str(tmp_path)}))
    one.page.goto(one.page.url.split("#")[0] + "#/crashes")
    one.page.wait_for_selector("[aria-label='Crash dumps'] a")
    one.page.click("[aria-label='Crash dumps'] a")
    one.until("SIGSEGV")
    one.until("deep_inside")
    picture(one, "crashes")
    one.page.click("main a:text('all crashes')")
    one.page.click("main a:text('Ask in SQL')")
    one.until("1 row,")
    assert "SIGSEGV" in one.text(".grid")
    one.page.go_back()
    one.page.click("[aria-label='Crash dumps'] a")
    one.page.click("main a:text('All stacks and variables')")
    one.page.wait_for_selector("h1:text('Stacks')")
    one.until("deep_inside")
