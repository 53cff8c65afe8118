"""The VS Code extension without an editor: its parts (units.js), what its package holds, and that it names what exists."""

import glob
import json
import os
import re
import subprocess
import zipfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.environ.get("SRCDIR", os.path.join(HERE, "..", ".."))
BUILDDIR = os.environ.get("BUILDDIR", ".")
FOLDER = os.path.join(SRCDIR, "editors", "vscode")


@pytest.fixture(scope="module")
def package():
    found = glob.glob(os.path.join(BUILDDIR, "probing-*.vsix"))
    if not found:
        pytest.skip("no .vsix: `make vsix` was not run, or could not")
    with zipfile.ZipFile(found[0]) as archive:
        yield archive


@pytest.fixture(scope="module")
def about():
    with open(os.path.join(FOLDER, "package.json"), encoding="utf-8") as text:
        return json.load(text)


def test_units(package, tmp_path):
    node = os.path.join(os.environ["PROBING_EDITORS"], "node", "bin", "node")
    if not os.path.exists(node):
        pytest.skip("no node: tests/editors/setup.sh was not run, or could not")
    package.extractall(str(tmp_path))
    done = subprocess.run([node, "--test", os.path.join(HERE, "units.js")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, OUT=str(tmp_path / "extension" / "out")), timeout=60)
    assert done.returncode == 0, done.stdout.decode()
    assert b"pass 5" in done.stdout


def test_package(package, about):
    names = package.namelist()
    assert "extension/" + about["main"][2:] in names
    assert "extension/" + about["icon"] in names
    for step in about["contributes"]["walkthroughs"][0]["steps"]:
        assert "extension/" + step["media"]["markdown"] in names
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".map"))]
    assert "dependencies" not in about
    assert about["version"] in package.read("extension.vsixmanifest").decode()


def test_commands_exist(about):
    sources = ""
    for path in glob.glob(os.path.join(FOLDER, "src", "**", "*.ts"), recursive=True):
        with open(path, encoding="utf-8") as text:
            sources += text.read()
    registered = set(re.findall(r"(?:registerCommand|\bcommand)\('(probing\.\w+)'", sources))
    contributed = {one["command"] for one in about["contributes"]["commands"]}
    assert contributed | {"probing.pickProcess"} == registered
    for menu in about["contributes"]["menus"].values():
        assert {one["command"] for one in menu} <= contributed


def test_version(about):
    with open(os.path.join(SRCDIR, "configure.ac")) as text:
        assert "AC_INIT([probing], [{}])".format(about["version"]) in text.read()
