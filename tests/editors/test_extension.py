"""The VS Code extension without an editor: its parts (units.js), what its package holds, and that it names what exists."""

import glob
import json
import os
import re
import struct
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
                          env=dict(os.environ, OUT=str(tmp_path / "extension" / "out")), timeout=240)
    assert done.returncode == 0, done.stdout.decode()
    assert b"pass 9" in done.stdout


def test_package(package, about):
    names = package.namelist()
    assert "extension/" + about["main"][2:] in names
    assert "extension/" + about["icon"] in names
    for step in about["contributes"]["walkthroughs"][0]["steps"]:
        assert "extension/" + step["media"]["markdown"] in names
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".map"))]
    assert "dependencies" not in about
    assert about["version"] in package.read("extension.vsixmanifest").decode()
    assert {"extension/LICENSE.txt", "extension/README.md"} <= set(names)
    assert package.read("extension/media/icon.png")[16:24] == struct.pack(">II", 128, 128)
    assert sum(one.compress_size for one in package.infolist()) < 64 << 10


def test_needs_no_network(package):
    """Nothing that it runs or shows is fetched from anywhere, and nothing is required but VS Code and node."""
    for name in package.namelist():
        if name.endswith((".js", ".css")):
            text = package.read(name).decode()
            assert "http:" not in text and "https:" not in text, name
            for wanted in re.findall(r"require\(.(.*?).\)", text):
                assert wanted == "vscode" or wanted.startswith(("node:", "./", "../")), (name, wanted)


def test_arguments(about):
    """VS Code underlines what the extension does not name: all that dap/README.md does."""
    with open(os.path.join(SRCDIR, "dap", "README.md"), encoding="utf-8") as text:
        section = text.read().partition("**What attach takes**")[2]
    rows, launch = section.partition("`launch` takes")[::2]
    known = about["contributes"]["debuggers"][0]["configurationAttributes"]
    told = set(re.findall(r"`(\w+)`", rows.partition("|---|---|")[0]))
    told.update(name for row in re.findall(r"^\|(.*?)\|", rows, re.MULTILINE) for name in re.findall(r"`(\w+)`", row))
    assert len(told) > 15 and told <= set(known["attach"]["properties"])
    assert set(re.findall(r"`(\w+)`", launch.partition("\n")[0])) <= set(known["launch"]["properties"])


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
