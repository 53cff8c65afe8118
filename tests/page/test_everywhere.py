"""What holds on every screen: no message on the console, axe finds nothing, nothing scrolls sideways, the keyboard suffices."""

import os

import pytest

TOOLS = os.environ.get("PROBING_EDITORS", os.path.join(os.environ["BUILDDIR"], "editors"))
AXE = os.path.join(TOOLS, "lint", "node_modules", "axe-core", "axe.min.js")
SCREENS = ["overview", "stacks?locals=1&native=1", "stacks?threads=1", "profile", "training", "memory", "tensors?statistics=1", "crashes",
           "sql?sql=SELECT+func,+lineno+FROM+python.backtrace", "tasks", "console", "settings"]

# What is asked for is there, and each chart is drawn.
SETTLED = """() => !/looking …|asking the server|sampling …/.test(document.querySelector("main").innerText) &&
    [...document.querySelectorAll(".chart")].every(one => one.querySelector("canvas"))"""


def violations(page):
    """What axe calls wrong, as text: rule, element."""
    with open(AXE) as file:
        page.evaluate(file.read())
    found = page.evaluate("axe.run()")
    return ["{}: {}".format(one["id"], node["html"][:200]) for one in found["violations"] for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen(job, serve, tab, scheme):
    if not os.path.exists(AXE):
        pytest.skip("no axe-core: tests/editors/setup.sh installs it")
    hangs, healthy = job("hangs"), job("healthy")
    server = serve("--allow", "control,eval") if scheme == "dark" else serve()
    one = tab(server, scheme, watched=(hangs.pid, healthy.pid))
    for screen in SCREENS:
        one.open(hangs.pid if "stacks" in screen else healthy.pid, screen)
        one.page.wait_for_selector("main.{} h1".format(screen.split("?")[0]))
        one.page.wait_for_function(SETTLED)
        assert violations(one.page) == [], screen
        assert one.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, screen


def test_keyboard(job, serve, tab):
    """g and a letter, the palette, Space, the filter, j and Enter: no pointer is needed."""
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.only((hangs.pid,))  # no other one has this number in its name
    press = one.page.keyboard.press
    press("Control+k")
    one.page.keyboard.type(str(hangs.pid))
    press("Enter")
    one.page.wait_for_selector("h1:text-is('Stacks')")  # the overview shows the function, too
    one.until("load_batch")
    one.until_at("/p/{}.".format(hangs.pid))
    press("j")
    press("Enter")
    one.page.wait_for_function("() => document.activeElement.parentElement.open === false")
    press("/")
    one.page.keyboard.type("worker")
    one.page.wait_for_function("() => !document.querySelector('main').innerText.includes('load_batch')")
    press("Escape")
    one.page.evaluate("document.activeElement.blur()")
    press("Space")
    one.page.wait_for_selector("button[aria-pressed=true]:text('Frozen')")
    press("Space")
    press("?")
    one.page.wait_for_selector("dialog[open] kbd")
    press("Escape")
    one.page.wait_for_selector("dialog", state="detached")
    one.page.evaluate("for (const key of 'gq') dispatchEvent(new KeyboardEvent('keydown', { key }))")  # within 1.5 s
    one.page.wait_for_selector("h1:text('SQL')")


def test_first_keys(job, serve, tab):
    """What is typed right behind Ctrl-K is the palette's, and its Enter waits for the list of processes that is on its way."""
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    asked, holds = [], True
    one.page.route("**/api/v1/processes", lambda route: asked.append(route) if holds else route.continue_())
    one.page.reload()
    focused = """async () => {
        dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
        await null; // before any other event, and any picture
        return document.activeElement.tagName;
    }"""
    assert one.page.evaluate(focused) == "INPUT"
    one.page.keyboard.type("{} ·".format(hangs.pid))
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".palette:has-text('when it is there')")
    holds = False
    for route in asked:
        route.continue_()
    one.page.wait_for_selector("h1:text-is('Stacks')")
    one.until_at("/p/{}.".format(hangs.pid))


def test_deep_link(job, serve, tab):
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.open(hangs.pid, "stacks?threads=1&q=worker%201")
    one.until("worker 1")
    one.page.reload()
    one.until("worker 1")
    assert "worker 0" not in one.text() and one.page.input_value("main input[type=search]") == "worker 1"


def test_an_address_that_changes_at_once(job, serve, tab):
    """A link that is followed before the first picture is drawn."""
    hangs = job("hangs")
    one = tab(serve(), watched=(hangs.pid,))
    one.page.add_init_script("document.addEventListener('DOMContentLoaded', () => {{ location.hash = '#/p/{}/stacks' }})".format(hangs.pid))
    one.page.reload()
    one.until("load_batch")
    one.page.wait_for_selector("h1:text-is('Stacks')")


def test_process_ends(job, serve, tab):
    hangs = job("hangs")
    one = tab(serve())
    one.open(hangs.pid, "stacks")
    one.until("load_batch")
    hangs.kill()
    hangs.wait()
    one.page.wait_for_selector("header .chip:text('ended')")
    one.page.goto(one.page.url.split("#")[0] + "#/overview")
    one.until("Ended while you looked")


def test_server_ends_and_comes_back(job, serve, browser, tmp_path):
    """The page says so in words, dims, and goes on by itself; the browser logs what it cannot reach, so no tab fixture."""
    hangs = job("hangs")
    token = tmp_path / "token"
    token.write_text("a-token-of-this-test\n")
    first = serve("--token-file", str(token))
    page = browser.new_page()
    page.goto(first.line)
    page.wait_for_selector("main a:text('{} ·')".format(hangs.pid))
    first.end()
    page.wait_for_selector(".banner:text('The server has not answered since')")
    serve("--token-file", str(token), "--address", "127.0.0.1:{}".format(first.port), runtime=first.runtime)
    page.wait_for_selector(".banner", state="detached")
    page.close()
