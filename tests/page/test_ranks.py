"""The ranks of a job in one tree: the one that is elsewhere is seen at once."""

import pytest

SIZE = 4


@pytest.fixture
def ranks(job):
    return [job("ranks", RANK=str(rank), WORLD_SIZE=str(SIZE)) for rank in range(SIZE)]


def test_odd_rank(ranks, serve, tab):
    pids = [one.pid for one in ranks]
    one = tab(serve(), watched=pids)
    one.only(pids)
    one.page.wait_for_selector(".ranks li:nth-child({})".format(SIZE))
    assert one.page.eval_on_selector_all(".ranks b", "all => all.map(one => one.innerText)") == ["0", "1", "2", "3"]
    one.page.click("a:text('their stacks in one tree')")
    one.until("4 of 4 ranks answered")  # they are looked at one after another
    one.page.wait_for_selector("[aria-label='Where the ranks are'] li.high:has-text('unchanged for')")
    first, second = (one.page.eval_on_selector_all("[aria-label='Where the ranks are'] li", "all => all.map(one => one.innerText)"))
    assert "rank 3" in first and "load_batch" in first and "ranks.py:" in first, first
    assert "ranks 0–2" in second and "all_reduce" in second, second
    root = one.text(".ranktree > li > .who")
    assert root.startswith("all 4 ranks"), root
    odd = one.text(".ranktree .odd")
    assert odd.startswith("rank 3") and "load_batch" in odd and "all_reduce" not in odd, odd
    ranks[1].kill()
    ranks[1].wait()
    one.until("3 of 3 ranks answered")


def test_overview(ranks, serve, tab):
    """Of ranks that stand at the same place one card tells, and the odd one comes first."""
    pids = [one.pid for one in ranks]
    one = tab(serve(), watched=pids)
    one.page.route("**/skills/*", lambda route: route.fulfill(json={"findings": []}))  # what the page sees by itself
    one.only(pids)
    one.page.wait_for_selector(".job h2:has-text('ranks 0–2')", timeout=90000)
    one.page.wait_for_function("() => [...document.querySelectorAll('.job h2 a')].map(one => one.innerText).filter(one => one[0] !== '@').join() === 'rank 3,ranks 0–2'")
    one.page.wait_for_selector("h1:has-text('4 of 4 processes are in trouble')")
    one.page.wait_for_selector(".job:has-text('load_batch')")
    one.page.wait_for_selector("main > .job:nth-child(2) h2:has-text('@launcher-'):has-text('hangs')")  # the verdict on the job, first


def test_by_line(ranks, serve, tab):
    """Apart by line, ranks in one function part; at rest all of them are where they were."""
    one = tab(serve(), watched=[one.pid for one in ranks])
    one.open(ranks[0].pid, "stacks?ranks=1")
    one.page.wait_for_selector(".ranktree .odd")
    one.page.wait_for_function("() => document.querySelectorAll('.ranktree > li > ul > li').length === 2")
    one.page.check("text=apart by line")
    one.page.wait_for_function("() => location.hash.includes('lines=1')")
    assert "train" in one.text(".ranktree")
    one.page.uncheck("text=all 4 ranks in one tree")
    one.page.wait_for_selector("details.group:has-text('all_reduce')")
