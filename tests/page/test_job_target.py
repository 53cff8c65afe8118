"""A job as the target: the verdict first, a cell for each rank, all stacks in one tree, SQL over all ranks; who did not answer is said."""

import os
import signal

import pytest

from support.target import SRCDIR, probing
from test_everywhere import AXE, violations

SIZE = 4

# All ranks in order, the last in another colour than the others.
CELLS = """() => {
    const all = [...document.querySelectorAll(".ranks li")].map(one => [one.querySelector("b").innerText, one.className.split(" ")[0]]);
    const [[, odd], ...others] = [...all].reverse();
    return all.map(([rank]) => rank).join() === "0,1,2,3" && new Set(others.map(([, colour]) => colour)).size === 1 && odd !== others[0][1];
}"""


@pytest.fixture
def ranks(job):
    name = "page-{}".format(os.getpid())
    return "@" + name, [job("ranks", RANK=str(rank), WORLD_SIZE=str(SIZE), PROBING_JOB=name) for rank in range(SIZE)]


def check_screen(one):
    assert not os.path.exists(AXE) or violations(one.page) == [], one.page.url
    assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, one.page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_job(ranks, serve, tab, scheme):
    name, processes = ranks
    one = tab(serve(), scheme)
    one.only([process.pid for process in processes])
    one.open(name, "overview")
    one.page.wait_for_selector(".job.high:has-text('4 of 4 ranks answered') .findings li:first-child.high:has-text('rank 3 is in no collective')")
    assert one.text("h1") == name + " hangs" and "hangs" in one.text("header .chip")
    told = one.text(".job.high")
    assert "load_batch (ranks.py:" in told and "ranks 0–2" in told, told
    one.page.wait_for_selector(".ranks li:nth-child({}).standing".format(SIZE))
    one.page.wait_for_selector(".ranks li:first-child:has-text('wait')")
    one.page.wait_for_function(CELLS)
    check_screen(one)
    one.page.click(".job.high .findings li:first-child a")
    one.until_at("/p/{}.".format(processes[3].pid))
    one.until("load_batch")
    one.open(name, "overview")
    one.page.click("a:text('their stacks in one tree')")
    one.page.wait_for_selector(".ranktree > li > .who:has-text('all 4 ranks')")
    one.page.wait_for_selector(".ranktree .odd:has-text('rank 3')")
    check_screen(one)
    one.open(name, "sql?sql=SELECT+rank,+count(*)+AS+n+FROM+system.process+GROUP+BY+1+ORDER+BY+1")
    one.until("4 rows")
    assert one.page.eval_on_selector_all(".grid td:first-child", "all => all.map(one => one.innerText)") == ["0", "1", "2", "3"]
    one.until("4 of 4 ranks answered")
    check_screen(one)
    one.open(name, "crashes")
    one.page.wait_for_selector("main:has-text('4 of 4 ranks answered'):has-text('No rank has left a crash dump')")
    check_screen(one)
    one.open(name, "tensors")
    one.until("Which rank of " + name)
    check_screen(one)
    one.page.click("main a:text('rank 2')")
    one.page.wait_for_selector("h1:text('Tensors')")
    one.open(name, "profile")
    one.page.click("button:text('Show where they wait')")
    one.page.wait_for_selector("[aria-label='Time of the ranks'] tbody tr:first-child:has-text('3')")  # the odd one first
    one.page.wait_for_selector("h2:has-text('1 of 4 elsewhere than most')")
    check_screen(one)
    one.page.goto(one.page.url.split("#")[0] + "#/overview")
    one.page.wait_for_selector("h1:has-text('{} hangs; ')".format(name))
    assert one.page.eval_on_selector("main .job", "one => one.ariaLabel") == "Job " + name[1:]
    processes[1].kill()
    processes[1].wait()
    one.open(name, "stacks")
    one.until("3 of 4 ranks answered")
    assert "1" in one.text(".covered .bad")


def test_findings(ranks, serve, tab):
    """What the skills find in the ranks, as the command says it: whose it is, the worst first; which ranks were looked at is said."""
    name, processes = ranks
    os.kill(processes[1].pid, signal.SIGSTOP)
    one = tab(serve())
    one.only([process.pid for process in processes])
    one.open(name, "overview")
    one.page.wait_for_selector("[aria-label='Findings'] li.high:first-child:has-text('rank 1: the process is stopped')")
    one.page.wait_for_selector("[aria-label='Findings'] .next:has-text('kill -CONT {}')".format(processes[1].pid))
    one.page.click("summary:has-text('worth knowing')")
    one.page.wait_for_selector("[aria-label='Worth knowing'] li.info:has-text('ranks 0, 2, 3: it runs')")
    check_screen(one)
    os.kill(processes[1].pid, signal.SIGCONT)
    processes[0].kill()
    processes[0].wait()
    one.page.click("button:text('Look again')")
    one.page.wait_for_selector("[aria-label='What the skills find'] .covered:has-text('3 of 4 ranks answered'):has-text('0')")
    one.page.click("[aria-label='Worth knowing'] a:has-text('it runs')")
    one.page.wait_for_selector("h1:text('Stacks of {}')".format(name))


def test_beside_each_other(job, serve, tab):
    """Training, Profile and Memory of a job: a row for each rank, and one flame graph of all."""
    name = "beside-{}".format(os.getpid())
    processes = [job("steps", RANK=str(rank), WORLD_SIZE="2", PROBING_JOB=name, PYTHONPATH=os.path.join(SRCDIR, "python")) for rank in range(2)]
    for process in processes:
        probing(process.pid, "inject")
    one = tab(serve())
    one.only([process.pid for process in processes])
    for screen, table in (("training", "Steps of the ranks"), ("memory", "Memory of the ranks"), ("profile", "Time of the ranks")):
        one.open("@" + name, screen)
        one.page.wait_for_function("""table => [...document.querySelectorAll(`[aria-label="${table}"] tbody tr`)].map(one => one.cells[0].innerText).sort().join() === "0,1" """,
                                   arg=table)
        one.until("2 of 2 ranks answered")
        check_screen(one)
    one.page.wait_for_selector("[aria-label=Functions]:has-text('train')")
    one.page.click("[aria-label='Time of the ranks'] button:text('1')")
    one.until("shown: rank 1")
