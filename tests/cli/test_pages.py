"""The README files: what they print, the paths and links they name, and every command that they show.

A block of commands is ```sh (run by bash), ```gdb (by gdb, attached to a job) or ```python.  PID is a running examples/train.py.
On the line before a block, `<!-- not run: why -->` is for one that cannot run here, and `<!-- until: text -->` for one that serves: it
is ended when it has printed that text.
"""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

import pages
from support.torch_python import torch_python

SRCDIR = os.path.abspath(pages.SRCDIR)
BUILDDIR = os.environ.get("BUILDDIR", ".")
DEADLINE = 240  # seconds for a block
BLOCK = re.compile(r"(?:<!-- (?:not run: ([^\n]*)|until: ([^\n]*)) -->\n)?^```(sh|gdb|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOLDERS = ("cli", "dap", "editors", "examples", "fleet", "gdb", "inject", "lib", "packaging", "python", "tests")


def blocks():
    for page in pages.pages():
        for at, found in enumerate(BLOCK.finditer(pages.read(page))):
            why, until, language, text = found.groups()
            mark = pytest.mark.skip(reason=why) if why else ()
            yield pytest.param(page, language, text, until, id=f"{page}-{at + 1}", marks=mark)


def anchors(text):
    """The names that GitHub gives to headings."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", pages.pages())
def test_printed(page):
    text = pages.read(page)
    assert text == pages.renewed(text), "`make docs` prints it anew"


@pytest.mark.parametrize("page", pages.pages())
def test_links(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", pages.read(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        assert os.path.exists(os.path.join(SRCDIR, target)), link
        assert not anchor or anchor in anchors(pages.read(target)), link


@pytest.mark.parametrize("page", pages.pages())
def test_paths(page):
    """A path in backquotes that begins at a folder of the tree is there."""
    for path in re.findall(r"`((?:{})/[\w./-]*)`".format("|".join(FOLDERS)), pages.read(page)):
        assert os.path.exists(os.path.join(SRCDIR, path)), path


@pytest.mark.parametrize("page", pages.pages())
def test_length(page):
    lines = pages.read(page).count("\n")
    assert lines <= (250 if page == "README.md" else 200) or page in ("CHANGES.md", os.path.join("tests", "bench", "README.md"))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """places(page): a folder for each page, with `examples`; the environment, where python has torch and probing is ours."""
    if not torch_python():
        pytest.skip("no Python with torch (./bootstrap check installs one)")
    programs = tmp_path_factory.mktemp("programs")
    (programs / "probing").symlink_to(os.path.abspath(pages.PROBING))
    (programs / "python").write_text(f'#!/bin/sh\nexec "{torch_python()}" "$@"\n')
    (programs / "python").chmod(0o755)
    site = programs / "site"
    for name in ("probing", "probing_c"):
        shutil.copytree(os.path.join(SRCDIR, "python", name), str(site / name))
    (site / "probing_c" / "native").symlink_to(os.path.abspath(os.path.join(BUILDDIR, "python", "native")))
    paths = [str(programs), os.path.dirname(torch_python()), os.environ["PATH"]]
    environment = dict(os.environ, PATH=os.pathsep.join(paths), PYTHONPATH=str(site), XDG_STATE_HOME=str(programs))
    made = {}

    def place(page):
        if page not in made:
            made[page] = tmp_path_factory.mktemp("page")
            for name in ("examples", "tests", "lib"):
                (made[page] / name).symlink_to(os.path.join(SRCDIR, name))
        return made[page], environment

    return place


@pytest.fixture(scope="module")
def job(places):
    """job(option...): the pid of an examples/train.py with these options, one for all that ask for the same."""
    folder, environment = places("")
    jobs = {}

    def start(*options):
        if options not in jobs:
            jobs[options] = child = subprocess.Popen(["python", "examples/train.py", *options], cwd=folder, env=environment,
                                                     stdout=subprocess.PIPE)
            while child.poll() is None and not child.stdout.readline().startswith(b"ready"):
                pass
        return jobs[options].pid

    yield start
    for child in jobs.values():
        child.terminate()
        child.communicate(timeout=DEADLINE)


def run(command, folder, environment, until=None):
    """Its output, when it ended or has printed `until`; whatever it left running is ended."""
    said, end = folder / "said", time.monotonic() + DEADLINE
    with open(said, "wb") as out, subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=subprocess.STDOUT, start_new_session=True) as child:
        try:
            while child.poll() is None and not (until and until in said.read_text(errors="replace")):
                assert time.monotonic() < end, said.read_text(errors="replace")
                time.sleep(0.05)
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    text = said.read_text(errors="replace")
    assert until in text if until else child.returncode == 0, text
    return text


@pytest.mark.parametrize("page, language, text, until", list(blocks()))
def test_commands(page, language, text, until, job, places):
    folder, environment = places(page)
    pid = job("--pause", "600") if language == "gdb" else job()  # gdb's is stopped where the page says
    text = re.sub(r"\bPID\b", str(pid), text)
    if language == "sh":
        run(["bash", "-e", "-o", "pipefail", "-c", text], folder, environment, until)
    elif language == "python":
        run(["python", "-c", text], folder, environment)
    else:
        (folder / "commands").write_text(text + "echo all of it ran\\n\n")
        plugin = os.path.join(SRCDIR, "gdb", "probing-gdb.py")
        command = ["gdb", "-nx", "-q", "-batch", "-p", str(pid), "-ex", "source " + plugin, "-x", "commands"]
        assert "all of it ran" in run(command, folder, environment)
