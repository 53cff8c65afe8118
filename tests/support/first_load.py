"""The page of `probing serve` in a fresh profile of Chromium: how long until it is painted and shows stacks, and what that computes."""

import os
import shutil

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


def launch(driver):
    return driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox", "--disable-gpu"])


def first_load(browser, address, pid, words):
    """Of the page at that address, until it shows process pid and words: paint, stacks (s), computed (s of CPU of its thread)."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    account = context.new_cdp_session(page)
    account.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(address, wait_until="commit")
    page.wait_for_selector("main a:text('{} ·')".format(pid))
    page.wait_for_function("words => document.querySelector('main').innerText.includes(words)", arg=words)
    told = {one["name"]: one["value"] for one in account.send("Performance.getMetrics")["metrics"]}
    paint, stacks = page.evaluate("[performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000, performance.now() / 1000]")
    context.close()
    return {"paint": paint, "stacks": stacks, "computed": told["TaskDuration"]}
