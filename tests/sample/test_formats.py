"""Each format read back by a reader that shares nothing with its writer."""

import html.parser
import json
import re
import sqlite3
import xml.etree.ElementTree

import pytest

from profiles import function, profile, shares, spent, truth
from support import timeline
from support.protobuf import fields, packed

NAMES = ["sixty", "thirty", "ten"]


@pytest.fixture
def sampled(start, any_python, tmp_path):
    """sampled(name, options): the path of a profile of shares.py, all threads."""
    def take(name, *options):
        target = start(any_python, "shares.py", "wall")
        for seconds in (2, 4, 8, 16, 32):
            before, _ = spent(target)
            told = profile(target.pid, tmp_path / name, "--idle", *options, seconds=seconds)
            take.truth = truth(target, before)  # of the same time: load comes and goes
            if told.samples >= 150:
                break
        return tmp_path / name
    return take


def about(found, truth):
    """The shares of some hundred samples, about as they are."""
    assert all(abs(found[name] - truth[name]) < 0.1 for name in NAMES), (found, truth)


def test_collapsed(sampled):
    about(shares(sampled("p.txt"), NAMES), sampled.truth)


def test_speedscope(sampled):
    """As its schema says: frames by index, a weight for each sample."""
    told = json.loads(sampled("p.speedscope.json").read_text(encoding="utf-8"))
    assert told["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = told["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    spent = dict.fromkeys(NAMES, 0.0)
    for one in told["profiles"]:
        assert one["type"] == "sampled" and one["unit"] == "seconds"
        assert len(one["samples"]) == len(one["weights"]) > 0
        assert abs(sum(one["weights"]) - (one["endValue"] - one["startValue"])) < 1e-3
        for sample, weight in zip(one["samples"], one["weights"]):
            for name in {frames[index]["name"] for index in sample} & set(NAMES):
                spent[name] += weight
    about({name: spent[name] / sum(spent.values()) for name in NAMES}, sampled.truth)


def test_pprof(sampled):
    """By profile.proto: every id is defined, the first string is empty, the leaf comes first."""
    whole = fields(sampled("p.pb").read_bytes())
    texts = [text.decode() for text in whole[6]]
    assert texts[0] == ""
    types = [tuple(texts[fields(one)[n][0]] for n in (1, 2)) for one in whole[1]]
    assert types == [("samples", "count"), ("time", "nanoseconds")]
    functions = {one[1][0]: texts[one[2][0]] for one in map(fields, whole[5])}
    mappings = {fields(one)[1][0] for one in whole[3]}
    locations = {}
    for one in map(fields, whole[4]):
        assert one[2][0] in mappings
        locations[one[1][0]] = functions[fields(one[4][0])[1][0]]
    found = dict.fromkeys(NAMES, 0)
    for one in map(fields, whole[2]):
        names = [locations[number] for number in packed(one[1][0])]
        assert names[-1] == "<module>"
        samples, ns = packed(one[2][0])
        assert ns == samples * 10 ** 7
        for name in set(names) & set(NAMES):
            found[name] += samples
    about({name: found[name] / sum(found.values()) for name in NAMES}, sampled.truth)


def test_chrome(sampled):
    """Complete events that nest: those of a thread overlap only when one holds the other."""
    events = json.loads(sampled("p.trace.json").read_text(encoding="utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {"process_name", "thread_name"} <= {event["name"] for event in events if event["ph"] == "M"}
    spans.sort(key=lambda event: (event["tid"], event["ts"], -event["dur"]))
    open_ends, tid = [], None
    for span in spans:
        if span["tid"] != tid:
            open_ends, tid = [], span["tid"]
        while open_ends and open_ends[-1] <= span["ts"] + 0.002:
            open_ends.pop()
        assert not open_ends or span["ts"] + span["dur"] <= open_ends[-1] + 0.002, span
        open_ends.append(span["ts"] + span["dur"])
    spent = {name: sum(span["dur"] for span in spans if span["name"] == name) for name in NAMES}
    about({name: spent[name] / sum(spent.values()) for name in NAMES}, sampled.truth)


def test_perfetto(sampled):
    """Calls of threads, within each other as they were made: an inner one begins and ends within the one around it."""
    (_, tracks), = timeline.read(sampled("p.pftrace")).items()
    calls = next(found for found in tracks.values() if {"sixty", "thirty"} <= {one.name for one in found})
    assert calls[0].name == "<module>" and calls[0].depth == 0 and calls[0].notes["file"].endswith("shares.py")
    spent = {name: sum(one.end - one.begin for one in calls if one.name == name) for name in NAMES}
    about({name: spent[name] / sum(spent.values()) for name in NAMES}, sampled.truth)
    assert all(one.depth > 0 and one.notes["samples"] > 0 for one in calls if one.name in NAMES)


def test_firefox(sampled):
    """Every column of a table has its length, every index its entry."""
    told = json.loads(sampled("p.firefox.json").read_text(encoding="utf-8"))
    assert told["meta"]["preprocessedProfileVersion"] == 48 and told["threads"]
    for thread in told["threads"]:
        for name in ("samples", "stackTable", "frameTable", "funcTable"):
            table = thread[name]
            assert {len(column) for column in table.values() if isinstance(column, list)} == {table["length"]}, name
        stack, frame, func = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        assert all(index < stack["length"] for index in thread["samples"]["stack"])
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
        assert all(prefix is None or prefix < i for i, prefix in enumerate(stack["prefix"]))
        assert all(index < frame["length"] for index in stack["frame"])
        assert all(index < func["length"] for index in frame["func"])
        names = {thread["stringArray"][index] for index in func["name"]}
        assert set(NAMES) <= names
        assert all(category < len(told["meta"]["categories"]) for category in stack["category"])


def test_sqlite(sampled):
    with sqlite3.connect(str(sampled("p.db"))) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        samples = db.execute("SELECT sum(samples) FROM weights").fetchone()
        assert samples == db.execute("SELECT sum(samples) FROM stays").fetchone() and samples[0] > 20


class Rows(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.cell = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
        self.cell = tag in ("td", "pre") or self.cell

    def handle_endtag(self, tag):
        self.cell = self.cell and tag != "td"

    def handle_data(self, data):
        if self.cell and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_heatmap(sampled):
    """The line of the file that calls sixty has its share of the total."""
    parser = Rows()
    parser.feed(sampled("p.html", "--source", "shares.py").read_text(encoding="utf-8"))
    line = next(row for row in parser.rows if row and 'sixty(kind)' in row[-1] and "+=" in row[-1])
    assert abs(float(line[1].split()[0]) - 100 * sampled.truth["sixty"]) < 10, line


def test_flamegraph(sampled):
    """A file by itself: XML, nothing fetched, and what it draws without a script are the known shares."""
    text = sampled("p.svg").read_text(encoding="utf-8")
    root = xml.etree.ElementTree.fromstring(text)
    assert not re.search(r'(?:src|href)="(?!#)', text) and "http" not in re.sub(r"http://www\.w3\.org/[\w/]+", "", text)
    titles = [one.text for one in root.iter("{http://www.w3.org/2000/svg}title")]
    found = {name: sum(float(title.rsplit(" ", 2)[1]) for title in titles if function(title) == name) / 100
             for name in NAMES}
    about(found, sampled.truth)
    assert "dropped" in text and "rejected" in text


def test_every_format_is_told(any_python):
    """The formats of the help are those that a wrong name lists."""
    from support.target import probing
    told = probing("-t", "1", "profile", "--format", "nothing", check=False)
    assert told.returncode == 2 and "speedscope" in told.stderr and "firefox" in told.stderr
