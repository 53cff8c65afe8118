"""A tensor's values as a heat map: NaN marked, each cell told, by pointer and by keys."""

import pytest

from support.torch_python import torch_python

JOB = """
import threading
import numpy, torch
def work():
    grid = torch.arange(-12.0, 12.0).reshape(4, 6); grid[2, 3] = float("nan"); grid[0, 0] = float("inf")
    deep = numpy.arange(2 * 3 * 5 * 7, dtype=float).reshape(2, 3, 5, 7)
    print("ready", flush=True)
    threading.Event().wait()
work()
"""

COLOURS = """places => {
    const canvas = document.querySelector("canvas.heat"), { width, height } = canvas;
    const all = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    return places.map(([row, column]) => { const at = 4 * (Math.floor(height * row / 4) * width + Math.floor(width * column / 6)); return [...all.slice(at, at + 3)]; });
}"""


@pytest.fixture
def shown(job, serve, tab, tmp_path):
    if not torch_python():
        pytest.skip("needs a Python with torch")
    (tmp_path / "arrays.py").write_text(JOB)
    arrays = job(str(tmp_path / "arrays"), python=torch_python())
    one = tab(serve(), watched=(arrays.pid,))
    one.open(arrays.pid, "tensors")
    one.page.wait_for_selector("[aria-label='Arrays and tensors in variables'] button:text('grid')")
    return one


def test_cells(shown):
    page = shown.page
    page.click("button:text('grid')")
    page.wait_for_selector("canvas.heat")
    page.wait_for_selector("h2:text('Values')")

    def told(row, column):
        box = page.locator("canvas.heat").bounding_box()  # what is drawn above may move it
        page.mouse.move(box["x"] + box["width"] * (column + 0.5) / 6, box["y"] + box["height"] * (row + 0.5) / 4)
        page.wait_for_function("text => document.querySelector('.told').innerText.startsWith(text)", arg="[{}, {}]".format(row, column))
        return shown.text(".told")

    assert told(1, 2) == "[1, 2] = -4" and told(3, 5) == "[3, 5] = 11"
    assert told(2, 3) == "[2, 3] = NaN" and told(0, 0) == "[0, 0] = infinite"
    page.mouse.move(0, 0)
    nan, infinite, low, high = page.evaluate(COLOURS, [[2.15, 3.15], [0.15, 0.15], [0.5, 1.5], [3.5, 5.5]])
    assert nan == [0xd0, 0, 0x8f] and infinite == [0xf2, 0xc4, 0]
    assert low[2] > low[0] and high[0] > high[2], "below zero is blue, above orange: {} {}".format(low, high)
    page.click("button:text('Next NaN or infinity')")
    page.wait_for_function("() => document.activeElement.tagName === 'CANVAS'")
    assert "NaN" in shown.text(".told") or "infinite" in shown.text(".told")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert shown.text(".told").startswith("[")
    page.wait_for_selector(".tensor .locals:has-text('min')")
    page.wait_for_selector(".tensor .chart canvas")


def test_slices(shown):
    page = shown.page
    page.click("button:text('deep')")
    page.wait_for_selector("canvas.heat")
    page.focus("canvas.heat")
    page.keyboard.press("ArrowDown")
    shown.until("[0, 0] = 0", ".told")
    page.fill("label:has-text('dimension 0') input", "1")
    page.fill("label:has-text('dimension 1') input", "2")
    shown.until("[0, 0] = 175", ".told")
    assert "5 × 7" in shown.text()
