"""Names that a target chose to hurt: no output becomes markup, escape sequences or something that its readers refuse."""

import html.parser
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import xml.etree.ElementTree

import pytest

from profiles import profile, sampling
from support.target import DEADLINE, PROBING, probing

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(start, any_python):
    return start(any_python, "hostile_names.py", "", "\udcff")


def harmless(text):
    found = CONTROL.search(text)
    assert not found, ascii(text[max(0, found.start() - 80):found.end() + 20])


@pytest.mark.parametrize("options", [[], ["--threads"], ["--inverted"], ["-F", "--full-filenames"]])
def test_svg(hostile, tmp_path, options):
    profile(hostile.pid, tmp_path / "p.svg", "--idle", *options)
    root = xml.etree.ElementTree.parse(str(tmp_path / "p.svg")).getroot()
    scripts = [one for one in root.iter() if one.tag.endswith("script")]
    assert len(scripts) == 2
    json.loads(next(one for one in scripts if one.get("id") == "data").text)
    assert "nasty" in "".join(root.itertext())


def test_svg_of_deep_stacks(tmp_path):
    """A browser draws what is 50,000 frames deep: its script calls nothing so deep."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        pytest.skip("no Chromium")
    (tmp_path / "deep.txt").write_text(";".join("f{}".format(i) for i in range(50000)) + " 3\n")
    probing("diff", tmp_path / "deep.txt", tmp_path / "deep.txt", "-o", tmp_path / "deep.svg")
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir={}".format(tmp_path / "user"),
                           "--dump-dom", (tmp_path / "deep.svg").as_uri()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="utf-8", timeout=240)
    assert "f3999: 3 samples, 100.00 %" in done.stdout  # as the script words it


class Tags(html.parser.HTMLParser):
    """The elements of a page."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)


def test_page(hostile, tmp_path):
    profile(hostile.pid, tmp_path / "p.html")
    tags = Tags()
    tags.feed((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert "script" not in tags.found and "table" in tags.found


@pytest.mark.parametrize("name", ["p.speedscope.json", "p.trace.json", "p.firefox.json"])
def test_json(hostile, tmp_path, name):
    profile(hostile.pid, tmp_path / name, "--idle", "--threads")
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "nasty" in json.dumps(json.loads(text)) and "</script" not in text


def test_collapsed(hostile, tmp_path):
    profile(hostile.pid, tmp_path / "p.txt", "--idle", "--threads")
    text = (tmp_path / "p.txt").read_text(encoding="utf-8")
    assert "nasty" in text
    harmless(text)
    assert all(re.fullmatch(r".+ \d+", line) for line in text.rstrip("\n").split("\n"))


def test_pprof_and_sqlite_are_text(hostile, tmp_path):
    """Strings of a protocol buffer must be UTF-8."""
    profile(hostile.pid, tmp_path / "p.pb", "--idle", "--threads")
    data = (tmp_path / "p.pb").read_bytes()
    at = data.index(b"nasty")
    end = data.index(b"\x32", at)  # the next string of the table
    data[at:end].decode("utf-8")
    profile(hostile.pid, tmp_path / "p.db", "--idle")
    names = [row[0] for row in sqlite3.connect(str(tmp_path / "p.db")).execute("SELECT qualname FROM functions")]
    assert any(name and name.startswith("nasty") for name in names)


@pytest.mark.parametrize("command", [["top", "--count", "1", "--idle"], ["top", "--count", "1", "--view", "threads"],
                                     ["tasks"], ["tasks", "--tree"], ["tasks", "--json"]])
def test_terminal(hostile, command):
    told = probing("-t", hostile.pid, *command).stdout
    assert told
    harmless(told)


def test_file_that_is_no_file(start, any_python, tmp_path):
    """A heat map reads source files: it waits for no pipe and reads no device to its end."""
    fifo = tmp_path / "fifo.py"
    os.mkfifo(str(fifo))
    for path in (fifo, "/dev/zero"):
        target = start(any_python, "hostile_names.py", path)
        profile(target.pid, tmp_path / "p.html", "--source", path)
        assert "cannot be read here" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_link_in_the_way(start, any_python, tmp_path):
    """The file that is written beside the wanted one is made new: a link planted under its name is not followed."""
    target = start(any_python, "shares.py", "gil")
    victim = tmp_path / "victim"
    for name in ("p.txt", "p.db"):
        victim.write_text("precious")
        command = subprocess.Popen([PROBING, "-t", str(target.pid), "profile", "-o", str(tmp_path / name)],
                                   stderr=subprocess.PIPE, encoding="utf-8")
        sampling(target.pid, command)
        (tmp_path / "{}.{}.new".format(name, command.pid)).symlink_to(victim)
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=DEADLINE)
        assert command.returncode == 0, said
        assert victim.read_text() == "precious"
        assert (tmp_path / name).stat().st_size and not (tmp_path / name).is_symlink()
