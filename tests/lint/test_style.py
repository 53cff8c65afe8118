"""Tools that check every file of a language.  Their settings: .clang-format, and pyproject.toml for the others."""

import os

from tree import BUILDDIR, named, read, run, tool

GENERATED = ("inject/enter/stub/x86_64.h", "inject/enter/stub/aarch64.h")


def test_clang_format():
    run(tool("clang-format"), "--dry-run", "-Werror", *(path for path in named(".c", ".h") if path not in GENERATED))


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
