"""What the page is made of: js is what the compiler makes of src, parts from npm are unmodified, no text is taken for markup."""

import glob
import hashlib
import os
import re
import shutil
import subprocess

import pytest

PAGE = os.path.join(os.environ["SRCDIR"], "serve", "page")
TOOLS = os.environ.get("PROBING_EDITORS", os.path.join(os.environ["BUILDDIR"], "editors"))
TSC = os.path.join(TOOLS, "lint", "node_modules", "typescript", "bin", "tsc")
NODE = shutil.which("node") or os.path.join(TOOLS, "node", "bin", "node")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def test_compiled(tmp_path):
    if not os.path.exists(TSC) or not os.path.exists(NODE):
        pytest.skip("no TypeScript: tests/editors/setup.sh installs it")
    shutil.copytree(os.path.join(PAGE, "src"), str(tmp_path / "src"))
    shutil.copy(os.path.join(PAGE, "tsconfig.json"), str(tmp_path))
    done = subprocess.run([NODE, TSC, "-p", str(tmp_path)], stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    made = {os.path.basename(path): content(path) for path in glob.glob(str(tmp_path / "js" / "*.js"))}
    kept = {os.path.basename(path): content(path) for path in glob.glob(os.path.join(PAGE, "js", "*.js"))}
    assert made == kept, "serve/page/js is not what `tsc -p serve/page` makes"


def test_vendored():
    vendor = os.path.join(PAGE, "vendor")
    told = [line.split() for line in content(os.path.join(vendor, "VENDOR")).decode().splitlines() if line[0] != "#"]
    files = {words[1]: words[3] for words in told if words[0] == "file"}
    assert {name: hashlib.sha256(content(os.path.join(vendor, name))).hexdigest() for name in files} == files
    assert set(os.listdir(vendor)) == set(files) | {"VENDOR"}
    assert all(re.match(r"sha512-[A-Za-z0-9+/]{86}==$", words[4]) for words in told if words[0] == "package")


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(PAGE, "src", "*"))), ids=os.path.basename)
def test_no_markup(path):
    """Neither markup from text nor code from text, neither an address elsewhere."""
    found = re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|dangerously|\beval\(|new Function|srcdoc|javascript:|https?://",
                       content(path).decode())
    assert not found


def test_page_has_no_inline_script():
    index = content(os.path.join(PAGE, "index.html")).decode()
    assert re.findall(r"<script[^>]*>([^<]*)</script>", index) == [""]
    assert not re.search(r"<style|\bstyle=|\son\w+=", index)
