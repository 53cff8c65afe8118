"""The VS Code extension: ESLint with the rules of eslint.config.mjs, and TypeScript's compiler."""

import os
import shutil
import subprocess

import pytest

from tree import BUILDDIR, SRCDIR

TOOLS = os.environ.get("PROBING_EDITORS", os.path.join(BUILDDIR, "editors"))
MODULES = os.path.join(TOOLS, "lint", "node_modules")


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """check(module, words...): run a program of node in a copy of the extension; it must find nothing."""
    if not os.path.exists(MODULES):
        pytest.skip("no {}: tests/editors/setup.sh installs it".format(MODULES))
    folder = str(tmp_path_factory.mktemp("extension"))
    for name in ("src", "package.json", "tsconfig.json", "eslint.config.mjs"):
        path = os.path.join(SRCDIR, "editors", "vscode", name)
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(folder, name))
    os.symlink(MODULES, os.path.join(folder, "node_modules"))

    def run(module, *words):
        command = [os.path.join(TOOLS, "node", "bin", "node"), os.path.join(MODULES, *module.split("/")), *words]
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280)
        assert done.returncode == 0, done.stdout.decode()

    return run


def test_eslint(check):
    check("eslint/bin/eslint.js", "--max-warnings", "0", "src")


@pytest.mark.parametrize("project", [".", "src/webview"])
def test_compiles(check, project):
    check("typescript/bin/tsc", "--noEmit", "-p", project)
