"""The page in Chromium, on real jobs."""

import time


def test_rail_and_token(serve, tab, job):
    watched = job("hangs")
    server = serve()
    one = tab(server, watched=(watched.pid,))
    names = one.page.eval_on_selector_all("nav.rail a", "all => all.map(one => one.innerText.split('\\n').pop())")
    assert names == ["Overview", "Stacks", "Profile", "Training", "Memory", "Tensors", "Crashes", "SQL", "Tasks", "Console", "Settings"]
    assert "token" not in one.page.url and server.token not in one.page.url
    one.page.reload()
    one.until("process")
    fresh = one.page.context.browser.new_page()
    fresh.goto("http://{}:{}/".format(server.host, server.port))
    fresh.wait_for_selector("pre:text('probing serve --url')")
    fresh.close()


def test_without_a_token(serve, tab, job):
    """A server that asks for none (`--no-token`) shows its page."""
    hangs = job("hangs")
    one = tab(serve("--no-token"), watched=(hangs.pid,))
    one.page.wait_for_selector("main a:text('{} ·')".format(hangs.pid))
    one.open(hangs.pid, "stacks")
    one.until("load_batch")  # live data come, too


def test_warning(serve, tab, job):
    """What the server says of how it is reached stands on each screen."""
    hangs = job("hangs")
    one = tab(serve("--address", "0.0.0.0:0"), watched=(hangs.pid,))
    for screen in ("overview", "stacks"):
        one.open(hangs.pid, screen)
        one.page.wait_for_selector("main .banner:has-text('nothing encrypts')")


def test_expected_errors_are_silent(serve, tab, job):
    """A tensor that is not there any more, a process that ended: the page says so, and the browser writes nothing on its console."""
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.open(hangs.pid, "stacks")
    one.until("load_batch")
    told = one.page.evaluate("""async pid => {
        const { askJson, at } = await import(document.querySelector("script[src]").src.replace("main.js", "net.js"));
        return askJson(at(pid, "tensor/4096")).catch(error => [error.status, error.message]);
    }""", str(hangs.pid))
    assert told[0] == 422 and told[1], told
    hangs.kill()
    hangs.wait()
    one.page.wait_for_selector("main .trouble")


def test_sql(job, serve, tab):
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.open(hangs.pid, "sql")
    one.page.wait_for_selector(".schema button:text('python.backtrace')")
    one.page.fill("textarea", "SELECT thread_name FROM python.threads ORDER BY 1")
    one.page.keyboard.press("Control+Enter")
    one.until("3 rows")
    assert one.page.eval_on_selector_all(".grid td", "all => all.map(one => one.innerText)") == ["MainThread", "worker 0", "worker 1"]
    one.until_at("sql=SELECT")


def test_hostile_names(job, serve, tab):
    nasty = "<img src=x onerror='document.owned=1'>"
    hostile = job("hostile", nasty)
    one = tab(serve(), watched=(hostile.pid,))
    one.until(nasty)
    for screen in ("stacks?locals=1", "stacks?threads=1", "profile", "memory", "tasks", "sql", "settings"):
        one.open(hostile.pid, screen)
        one.page.wait_for_selector("main h1")
        if screen.startswith("stacks"):
            one.until("f<img src=x")
            assert "\u202e" not in one.text() and "\x1b" not in one.text() and "\\u202e" in one.text()
        time.sleep(0.3)
        assert one.page.evaluate("[document.owned, document.querySelectorAll('main img').length]") == [None, 0]
