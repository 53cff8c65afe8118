"""`profile --mode memory`: the bytes that SQL has are in every format, and what a profile of some seconds is of."""

import html.parser
import json
import re
import shutil
import sqlite3
import subprocess

import pytest

from sampling import config, note, switch_on, tell
from support.protobuf import fields, packed
from support.target import DEADLINE, PROBING, die_with_parent, probing, query

COUNT = 5000


class Sampled:
    """A target that has allocated, and whose record does not change any more."""

    def __init__(self, start, python):
        self.target = start(python, "allocating.py")
        switch_on(self.target.pid)
        tell(self.target, "keep", COUNT, 1000)
        tell(self.target, "THREAD", "drop", COUNT, 2000)
        rows = query(self.target.pid, "SELECT function_name AS name, sum(allocated_bytes) AS allocated, sum(live_bytes) AS live,"
                                      " count(*) AS cells, sum(allocations) AS blocks FROM memory_allocations GROUP BY name")
        self.rows = {row["name"]: row for row in rows}

    def bytes(self, name, what="allocated"):
        return self.rows[name][what]

    def profile(self, path, *options):
        probing(self.target.pid, "profile", "--mode", "memory", "-o", path, *options, check=False)
        return path

    def about(self, name, found, what="allocated"):
        """Each cell is rounded."""
        assert abs(found - self.bytes(name, what)) <= self.rows[name]["cells"] + 1, (name, found, self.rows[name])


@pytest.fixture
def sampled(start, any_python):
    return Sampled(start, any_python)


def folded(path):
    """{function: bytes} by the innermost frame, of a collapsed profile."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, count = line.rsplit(" ", 1)
        name = stack.rsplit(";", 1)[-1].split(" (")[0]
        found[name] = found.get(name, 0) + int(count)
    return found


def test_many_rows_are_read_at_once(sampled, tmp_path):
    """What is the same in all rows is found once: a job that was sampled for an hour has tens of thousands."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-e", "trace=openat", "-o", trace, PROBING, str(sampled.target.pid), "query", "-f", "csv",
                           "SELECT count(*) FROM memory_allocations"], stdout=subprocess.PIPE, encoding="utf-8", check=False, timeout=DEADLINE)
    rows = int(done.stdout.split()[-1])
    assert rows > 5
    assert trace.read_text().count('"environ"') <= 4


def test_collapsed(sampled, tmp_path):
    allocated, live = folded(sampled.profile(tmp_path / "p.txt")), folded(sampled.profile(tmp_path / "l.txt", "--live"))
    for name in ("keeper", "dropper"):
        sampled.about(name, allocated[name])
    sampled.about("keeper", live["keeper"], "live")
    assert live.get("dropper", 0) == 0


def test_speedscope(sampled, tmp_path):
    told = json.loads(sampled.profile(tmp_path / "p.speedscope.json").read_text(encoding="utf-8"))
    frames, found = told["shared"]["frames"], {}
    assert len(told["profiles"]) == 2, "two threads"
    for one in told["profiles"]:
        assert one["unit"] == "bytes" and one["endValue"] == sum(one["weights"])
        for sample, weight in zip(one["samples"], one["weights"]):
            name = frames[sample[-1]]["name"]
            found[name] = found.get(name, 0) + weight
    for name in ("keeper", "dropper"):
        sampled.about(name, found[name])


@pytest.mark.parametrize("options, types", [((), ["alloc_objects", "alloc_space"]), (("--live",), ["inuse_objects", "inuse_space"])])
def test_pprof(sampled, tmp_path, options, types):
    whole = fields(sampled.profile(tmp_path / "p.pb", *options).read_bytes())
    texts = [text.decode() for text in whole[6]]
    assert [(texts[fields(one)[1][0]], texts[fields(one)[2][0]]) for one in whole[1]] == list(zip(types, ["count", "bytes"]))
    functions = {fields(one)[1][0]: texts[fields(one)[2][0]] for one in whole[5]}
    locations = {fields(one)[1][0]: functions[fields(fields(one)[4][0])[1][0]] for one in whole[4]}
    found, blocks = {}, {}
    for one in map(fields, whole[2]):
        count, size = packed(one[2][0])
        name = locations[packed(one[1][0])[0]]
        found[name], blocks[name] = found.get(name, 0) + size, blocks.get(name, 0) + count
    sampled.about("keeper", found["keeper"], "live" if options else "allocated")
    if not options:
        sampled.about("dropper", found["dropper"])
        assert abs(blocks["dropper"] - sampled.bytes("dropper", "blocks")) <= sampled.rows["dropper"]["cells"] + 1


def test_firefox(sampled, tmp_path):
    told = json.loads(sampled.profile(tmp_path / "p.firefox.json").read_text(encoding="utf-8"))
    found = {}
    for thread in told["threads"]:
        samples, texts = thread["samples"], thread["stringArray"]
        assert samples["weightType"] == "bytes" and samples["time"] == sorted(samples["time"])
        for stack, weight in zip(samples["stack"], samples["weight"]):
            function = thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]
            name = texts[thread["funcTable"]["name"][function]]
            found[name] = found.get(name, 0) + weight
    for name in ("keeper", "dropper"):
        sampled.about(name, found[name])


def test_chrome(sampled, tmp_path):
    """Within an interval the widths are shares of its bytes."""
    events = json.loads(sampled.profile(tmp_path / "p.trace.json").read_text(encoding="utf-8"))["traceEvents"]
    spans = {}
    for event in events:
        if event["ph"] == "X" and event["name"] in ("keeper", "dropper"):
            spans.setdefault(event["name"], []).append(event)
    assert set(spans) == {"keeper", "dropper"}
    assert {span["tid"] for span in spans["keeper"]}.isdisjoint(span["tid"] for span in spans["dropper"])


def test_sqlite_and_difference(sampled, tmp_path):
    path = sampled.profile(tmp_path / "p.db")
    with sqlite3.connect(str(path)) as saved:
        rows = saved.execute("SELECT f.name, sum(w.ns), sum(w.samples) FROM weights w JOIN stacks s ON s.id = w.stack"
                             " JOIN frames r ON r.id = s.frame JOIN functions f ON f.id = r.function GROUP BY f.name").fetchall()
    found = {name: size for name, size, _ in rows}
    for name in ("keeper", "dropper"):
        sampled.about(name, found[name])
    tell(sampled.target, "drop", COUNT, 2000)
    later = sampled.profile(tmp_path / "later.db")
    probing("diff", path, later, "-o", tmp_path / "diff.svg")
    assert "MiB" in (tmp_path / "diff.svg").read_text(encoding="utf-8")


class Text(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = ""
        self.feed(text)

    def handle_data(self, data):
        self.found += data


def test_pages(sampled, tmp_path):
    svg = sampled.profile(tmp_path / "p.svg").read_text(encoding="utf-8")
    assert '"unit":"bytes"' in svg and "keeper" in svg
    assert re.search(r"memory that was allocated, of [0-9.]+ s: [0-9.]+ MiB in \d+ blocks, estimated from \d+ samples", svg)
    live = sampled.profile(tmp_path / "l.svg", "--live").read_text(encoding="utf-8")
    assert re.search(r"memory that lives, of [0-9.]+ s: [0-9.]+ MiB \(one standard deviation [0-9.]+\)", live)
    page = Text(sampled.profile(tmp_path / "p.html").read_text(encoding="utf-8")).found
    assert "bytes(size)" in page


def test_some_seconds_of_one_that_is_sampled(sampled, tmp_path):
    """What was allocated before is not in it."""
    path = tmp_path / "p.txt"
    child = subprocess.Popen([PROBING, str(sampled.target.pid), "profile", "--mode", "memory", "-d", "3", "-o", str(path)],
                             stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
    seen = 0
    while child.poll() is None:
        tell(sampled.target, "drop", 500, 2000)
        seen += 1
    assert child.returncode == 0 and seen > 1
    found = folded(path)
    assert found["dropper"] > 0 and "keeper" not in found
    assert not note(sampled.target.pid), "it goes on"


def test_switched_on_and_off_for_it(start, any_python, tmp_path):
    target = start(any_python, "allocating.py")
    config(target.pid, "probing.memory.period=16KiB")
    child = subprocess.Popen([PROBING, str(target.pid), "profile", "--mode", "memory", "-d", "3", "-o", str(tmp_path / "p.txt")],
                             stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=die_with_parent)
    while child.poll() is None:
        tell(target, "drop", 500, 2000)
    told = child.communicate()[1]
    assert child.returncode == 0 and "estimated from" in told, told
    assert folded(tmp_path / "p.txt")["dropper"] > 0
    assert probing(target.pid, "config", "probing.memory.profile").stdout == "off\n"


def test_wrong_options(start, any_python, tmp_path):
    target = start(any_python, "allocating.py")
    for options, why in [(["--mode", "memory", "--native"], "without --native"), (["--mode", "memory", "-r", "10"], "without --rate"),
                         (["--live"], "--live goes with"), (["--mode", "memory", "--ranks"], "without --ranks")]:
        done = probing(target.pid, "profile", *options, "-o", tmp_path / "p.txt", check=False)
        assert done.returncode != 0 and why in done.stderr, (options, done.stderr)
    done = probing("profile", "--mode", "memory", "-o", tmp_path / "p.txt", "--", "python3", "-c", "0", check=False)
    assert done.returncode != 0 and "PROBING_MEMORY_PROFILE=on" in done.stderr
