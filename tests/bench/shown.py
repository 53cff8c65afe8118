"""Figures of the page: the first paint, and until stacks are shown."""

import os
import statistics
import subprocess
import sys

from served import serving
from support import first_load
from timing import HERE


def page_load(figures, options):
    """A fresh profile of Chromium on a process that hangs; skipped without Playwright or Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if not first_load.CHROMIUM:
        return
    hangs = subprocess.Popen([sys.executable, os.path.join(HERE, os.pardir, "page", "jobs", "hangs.py")], stdout=subprocess.PIPE)
    hangs.stdout.readline()
    with serving(job=False) as (server, _), sync_playwright() as driver:
        browser = first_load.launch(driver)
        told = [first_load.first_load(browser, server.line, hangs.pid, "threading.py") for _ in range(options.rounds)]
        browser.close()
    hangs.kill()
    hangs.communicate()
    middle = {name: 1e3 * statistics.median(one[name] for one in told) for name in told[0]}
    figures.bound("the page: first paint", middle["paint"], "ms", 300)
    figures.bound("the page: stacks shown", middle["stacks"], "ms", 600)
    figures.bound("the page: until then its thread computed", middle["computed"], "ms", 400)


PARTS = [page_load]
