"""The flame graph in Chromium: zoom by a click, search, one thread, innermost first."""

import os
import shutil

import pytest

from profiles import profile

pytest.importorskip("playwright.sync_api", reason="needs Playwright (tests/editors/setup.sh)")
from playwright.sync_api import sync_playwright  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


@pytest.fixture
def page():
    if not CHROMIUM:
        pytest.skip("no Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True,
                                             args=["--no-sandbox", "--disable-gpu"])
        one = browser.new_page(viewport={"width": 1240, "height": 700})
        one.faults = []
        one.on("pageerror", lambda error: one.faults.append(str(error)))
        yield one
        assert not one.faults
        browser.close()


def frames(page):
    return page.eval_on_selector_all("#stage .frame:not(.faded) title", "all => all.map(one => one.textContent)")


def test_flame_graph(start, any_python, tmp_path, page):
    target = start(any_python, "shares.py", "gil")
    profile(target.pid, tmp_path / "p.svg", "--idle", seconds=2)
    page.goto((tmp_path / "p.svg").as_uri())
    whole = frames(page)
    assert whole[0].startswith("all: ") and any(one.startswith("thirty ") for one in whole)
    page.evaluate("""() => [...document.querySelectorAll("#stage .frame")].find(one =>
        one.querySelector("title").textContent.startsWith("thirty "))
        .dispatchEvent(new MouseEvent("click", {bubbles: true}))""")
    zoomed = frames(page)
    assert zoomed[0].startswith("thirty ") and not any(one.startswith("sixty ") for one in zoomed)
    page.keyboard.press("Escape")
    assert frames(page) == whole
    page.fill("#search", "sixty|thirty")
    assert page.text_content("#status").startswith("found: ")
    page.fill("#search", "")
    page.check("#inverted")
    assert {one.split(" (")[0] for one in frames(page)[1:] if ": 100" not in one} and frames(page) != whole
    page.uncheck("#inverted")
    page.select_option("#only", index=1)
    assert frames(page)[0].startswith("all: ")
    assert len(page.screenshot()) > 5000
