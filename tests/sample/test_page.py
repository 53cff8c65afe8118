"""The flame graph in Chromium: zoom by a click, search, one thread, innermost first."""

import os
import re
import shutil
import subprocess

import pytest

from profiles import profile
from support.target import probing

pytest.importorskip("playwright.sync_api", reason="needs Playwright (tests/editors/setup.sh)")
from playwright.sync_api import sync_playwright  # noqa: E402

WAIT_MS = 120000
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


@pytest.fixture
def page():
    if not CHROMIUM:
        pytest.skip("no Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True,
                                             args=["--no-sandbox", "--disable-gpu"], timeout=WAIT_MS)
        one = browser.new_page(viewport={"width": 1240, "height": 700})
        one.set_default_timeout(WAIT_MS)
        one.faults = []
        one.on("pageerror", lambda error: one.faults.append(str(error)))
        yield one
        assert not one.faults
        browser.close()


def frames(page):
    return page.eval_on_selector_all("#stage .frame:not(.faded) title", "all => all.map(one => one.textContent)")


def test_flame_graph(start, any_python, tmp_path, page):
    target = start(any_python, "shares.py", "gil")
    profile(target.pid, tmp_path / "p.svg", "--idle", seconds=2, least=100)
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
    assert re.search(r"shares.py gil, process {}, 20\d\d-".format(target.pid), page.title()), page.title()
    page.fill("#search", "sixty(")
    assert page.text_content("#status").startswith("not a regular expression: ")
    page.fill("#search", "sixty|thirty")
    assert page.text_content("#status").startswith("found: ")
    page.fill("#search", "")
    page.check("#inverted")
    assert {one.split(" (")[0] for one in frames(page)[1:] if ": 100" not in one} and frames(page) != whole
    page.uncheck("#inverted")
    page.select_option("#only", index=1)
    assert frames(page)[0].startswith("all: ")
    assert len(page.screenshot()) > 5000
    for width in (1600, 700):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_function("width => document.documentElement.getAttribute('viewBox').startsWith(`0 0 ${width} `)",
                               arg=width)
        rectangle = page.eval_on_selector("#stage .frame rect", "one => one.getBoundingClientRect().width")
        assert width - 2 < rectangle <= width


MODEL = "import json\n" + "\n" * 200 + "def encode(): json.dumps([list(range(99))] * 99, indent=1)\n" + "\n" * 200
TRAIN = "import model\nprint(1, flush=True)\nwhile True:\n    model.encode()\n"


def test_heatmap(page, any_python, tmp_path):
    """It opens at the hottest line of the program's own file; the index leads to the others."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(TRAIN)
    target = subprocess.Popen([any_python.executable, str(tmp_path / "train.py")], stdout=subprocess.PIPE)
    try:
        target.stdout.readline()
        profile(target.pid, tmp_path / "p.html", least=60)
        profile(target.pid, tmp_path / "train.html", "--source", "train.py", least=60)
    finally:
        target.kill()
        target.communicate()
    page.goto((tmp_path / "p.html").as_uri())
    files = page.eval_on_selector_all("nav a", "all => all.map(one => one.textContent)")
    assert {"model.py", "train.py"} == {os.path.basename(name) for name in files[:2]}, files
    assert any(name.endswith("json/encoder.py") for name in files[2:]), files
    seen = "one => { const at = document.querySelector(one).getBoundingClientRect(); return at.top > 0 && at.bottom < 700; }"
    page.wait_for_function(seen, arg="[autofocus]")
    page.goto((tmp_path / "train.html").as_uri())
    assert page.text_content("h1").endswith("train.py")
    page.click("nav a:text('model.py')")
    page.wait_for_function(seen, arg="tr:target")
    assert "json.dumps" in page.text_content("tr:target") and page.text_content("tr:target .n") == "202"


def contrast(page):
    """The least contrast of a frame's text with what it stands on (WCAG 2.1, relative luminance)."""
    return page.evaluate("""() => {
        const part = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        const light = text => { const [r, g, b] = text.match(/\\d+/g).map(Number);
                                return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
        return Math.min(...[...document.querySelectorAll("#stage .frame")].filter(one => one.querySelector("text"))
            .map(one => (light(getComputedStyle(one.querySelector("rect")).fill) + 0.05)
                        / (light(getComputedStyle(one.querySelector("text")).fill) + 0.05)));
    }""")


def test_difference(page, tmp_path):
    (tmp_path / "a.txt").write_text("main;only_before 90\nmain;both 10\n")
    (tmp_path / "b.txt").write_text("main;only_after 90\nmain;both 10\nmain;only_before 1\n")
    probing("diff", tmp_path / "a.txt", tmp_path / "b.txt", "-o", tmp_path / "d.svg")
    page.goto((tmp_path / "d.svg").as_uri())
    assert "a.txt" in page.title() and "b.txt" in page.title()
    assert re.match(r"before: 100 samples.*; after: 101 samples", page.text_content("#status"))
    assert contrast(page) >= 4.5
