"""Tools that check every file of a language.  Their settings: .clang-format, and pyproject.toml for the others."""

import os
import re

from tree import BUILDDIR, named, read, run, tool

GENERATED = ("inject/enter/stub/x86_64.h", "inject/enter/stub/aarch64.h")


def test_clang_format():
    run(tool("clang-format"), "--dry-run", "-Werror", *(path for path in named(".c", ".h") if path not in GENERATED))


def test_conditions_wait_by_the_clock_that_nobody_sets():
    """base/clock.h makes every condition: libc's own initializers have it wait by the epoch's clock, which may be set meanwhile."""
    found = []
    for path in named(".c", ".h"):
        if path.startswith("tests/") or path == "lib/base/clock.h":
            continue
        text = read(path)
        found += ["{}: {}".format(path, one) for one in re.findall(r"PTHREAD_COND_INITIALIZER|\bpthread_cond_init\b", text)]
        if re.search(r"^static pthread_cond_t|^static struct \w*\s*\{[^}]*\bpthread_cond_t \w", text, re.M) and "PRB_CLOCK_COND(" not in text:
            found.append(path + ": a condition that nobody makes")
    assert not found, "\n".join(found)


def test_ruff():
    run(tool("ruff"), "check", "--no-cache", "--output-format", "concise", *named(".py"))


def test_mypy():
    run(tool("mypy"), "--cache-dir", os.path.join(BUILDDIR, "lint", "mypy"))


def test_codespell():
    run(tool("codespell"), *(path for path in named("") if "/corpus/" not in path and "/vendor/" not in path))


def test_shellcheck():
    scripts = [path for path in named(".sh", "bootstrap", "/run") if read(path).startswith("#!/bin/sh")]
    assert len(scripts) > 5
    run(tool("shellcheck"), "--severity=warning", *scripts)
