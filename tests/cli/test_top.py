"""probing top: on a terminal of its own, driven by keys; and as plain lines."""

import os
import re
import subprocess
import sys

import pytest

from screen import Screen

PROBING = os.environ["PROBING"]
TARGETS = os.path.join(os.environ["SRCDIR"], "tests", "targets")


@pytest.fixture(scope="module")
def watched():
    target = subprocess.Popen([sys.executable, os.path.join(TARGETS, "watched.py")], stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    yield target.pid
    target.kill()
    target.wait()
    target.stdout.close()


@pytest.fixture
def screen(watched):
    made = []

    def begin(*options, **size):
        made.append(Screen([PROBING, "-t", str(watched), "top", "--delay", "0.3", *options], **size))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def shares(line):
    return [float(word) for word in re.findall(r"\d+\.\d|\d+", line)[:4]]


def function_rows(lines):
    return {match.group(1): shares(line) for line in lines for match in [re.search(r"(\w+) \(watched.py:\d+\)", line)]
            if match}


def test_functions(screen):
    def shared(lines):
        """On a busy machine it stands where it lost its CPU for many samples: the shares come with time."""
        rows = function_rows(lines)
        return ({"heavy", "light", "work"} <= set(rows) and int(lines[2].split()[0]) >= 4 and list(rows)[0] == "heavy"  # sorted by own
                and 65 < rows["heavy"][2] < 85 and 15 < rows["light"][2] < 35 and rows["work"][2] < 5 < 95 < rows["work"][3])

    view = screen()
    lines = view.until(shared)
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("probing top: functions")
    view.press("s")
    view.until(lambda lines: any("sorted by total" in line for line in lines)
               and list(function_rows(lines))[:2] != ["heavy", "light"])
    view.press("q")
    assert view.end() == 0


def test_threads_and_stack(screen):
    view = screen("--view", "threads")
    lines = view.until(lambda lines: sum("waiter-" in line for line in lines) == 2 and re.search(r"\b(gil|runs)\b.*MainThread", lines[4]))
    assert all("futex" in line for line in lines if "waiter-" in line)
    view.press("\r")
    lines = view.until_text("innermost first")
    view.until(lambda lines: any(re.match(r"\s+work \(watched.py:\d+\)", line) for line in lines))
    assert lines[0].startswith("probing top: stack")
    view.press("q")
    view.until_text("probing top: threads")
    view.press("j")
    view.press("/waiter\r")
    lines = view.until(lambda lines: "filter: waiter" in lines[0] and "MainThread" not in "".join(lines[4:]))
    assert sum("waiter-" in line for line in lines) == 2
    view.press("q")
    assert view.end() == 0


def test_the_chosen_thread_stays_chosen():
    """The order changes; the mark goes with the thread, and Enter opens what was marked."""
    target = subprocess.Popen([sys.executable, os.path.join(TARGETS, "turns.py")], stdout=subprocess.PIPE)
    view = None
    try:
        assert target.stdout.readline() == b"ready\n"
        view = Screen([PROBING, "-t", str(target.pid), "top", "--delay", "0.2", "--view", "threads"])
        marked = None
        while not marked:  # neither may have had a turn in the time that is shown when it is paused
            view.until(lambda lines: "turn-" in lines[4] and "turn-" in lines[5])
            view.press(" ")
            lines = view.until_text("[paused]")
            marked = "turn-" in lines[4] and re.search(r"turn-\d", lines[5])
            view.press("j" if marked else " ")
        marked = marked.group()
        view.press(" ")
        view.until(lambda lines: marked in lines[4])
        view.press("\r")
        lines = view.until_text("probing top: stack")
        assert "stack of " + marked in lines[0], lines
        view.press("q")
        view.until_text("probing top: threads")
        view.until(lambda lines: marked in lines[5])
        view.press("\r")
        view.until(lambda lines: "stack of " + marked in lines[0])
    finally:
        if view:
            view.close()
        target.kill()
        target.wait()
        target.stdout.close()


def test_hold_filter_help(screen):
    view = screen()
    view.until(lambda lines: "heavy" in function_rows(lines))
    view.press("/li")
    view.until(lambda lines: "filter: li_" in lines[0] and "heavy" not in function_rows(lines))
    view.press("\x7f\x7f\x7f")
    view.until(lambda lines: "heavy" in function_rows(lines))
    view.press("\r")
    view.press(" ")
    paused = view.until_text("[paused]")
    for _ in range(5):  # longer than a picture takes to change
        view.read(0.2)
    assert view.shown()[1:] == paused[1:]
    view.press(" h")
    view.until(lambda lines: "probing top: help" in lines[0] and any("filter by name" in line for line in lines)
               and any("threads of the chosen process" in line for line in lines)
               and not any("…" in line for line in lines[3:]))  # whole at 80 columns; the head's command may not be
    view.press("qp")
    view.until_text("probing top: processes")
    view.press("q")
    assert view.end() == 0


def test_a_function_its_lines_and_callers(screen):
    view = screen()
    lines = view.until(lambda lines: "heavy" in function_rows(lines))
    assert "Enter lines, callers" in lines[-1] and lines[-1].endswith("q quit"), lines
    view.press("/heavy\r\r")
    def most(lines):
        rows = [line.split(None, 3) for line in lines[4:-1] if line]
        return lines[0] == "probing top: function heavy" and 50 < sum(float(row[0]) for row in rows if row[2] == "line") <= 100

    lines = view.until(most)
    assert "q back" in lines[-1] and re.search(r"heavy \(watched.py:\d+\)", "\n".join(lines)), lines
    assert any(re.search(r"^ +\d[\d.]* +from work \(watched.py:\d+\)", line) for line in lines), lines
    view.press("jjjjjjjj\r")  # its last caller
    view.until(lambda lines: lines[0] == "probing top: function work" and any("from" in line for line in lines))
    view.press("q")
    view.until_text("probing top: functions")
    view.press("q")
    assert view.end() == 0


def test_a_filter_shows_itself(screen):
    view = screen("--view", "threads")
    view.until_text("waiter-1")
    view.press("/nothing like it\r")
    lines = view.until_text("(0 of 3 match)")
    assert "filter: nothing like it (0 of 3 match)" in lines[0] and "Esc drop the filter" in lines[-1], lines
    view.press("\x1b")
    lines = view.until_text("waiter-1")
    assert "filter" not in lines[0]
    view.press("q")
    assert view.end() == 0


def test_sizes(screen):
    """Smaller and larger while it runs; nothing breaks, no line is longer than the screen."""
    view = screen(columns=80)
    view.until(lambda lines: "heavy" in function_rows(lines))
    view.resize(40, 10)
    lines = view.until(lambda lines: any("heavy" in line for line in lines))
    assert len(lines) == 10 and all(len(line) <= 40 for line in lines)
    view.resize(200, 50)
    view.until(lambda lines: "heavy" in function_rows(lines))
    view.press("\x03")
    assert view.end() == 0


def test_terminal_is_given_back(screen):
    view = screen()
    view.until_text("probing top")
    view.press("q")
    assert view.end() == 0
    assert view.shown()[-1] == "" or "heavy" not in view.shown()[-1]


def test_folders_give_way_before_names(probing, tmp_path):
    name = "a_function_with_a_long_name"
    folder = tmp_path / "quite" / "some" / "folders" / "deep"
    folder.mkdir(parents=True)
    (folder / "work.py").write_text("print(1, flush=True)\ndef {0}():\n    while True: pass\n{0}()\n".format(name))
    target = subprocess.Popen([sys.executable, "-c", "import quite.some.folders.deep.work"], stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": str(tmp_path)})
    try:
        target.stdout.readline()
        out = probing("-t", target.pid, "top", "--count", 1, env={**os.environ, "COLUMNS": "80"}).works()
        assert re.search(name + r" \(…/(deep/)?work.py:\d+\)", out), out
    finally:
        target.kill()
        target.wait()
        target.stdout.close()


def test_no_terminal(probing, watched):
    out = probing("-t", watched, "top", "--count", 2, "--delay", "0.3").works()
    pictures = out.strip().split("\n\n")
    assert len(pictures) == 2
    for picture in pictures:
        lines = picture.split("\n")
        assert lines[0] == "probing top: functions" and "\x1b" not in picture
        assert all(len(line) <= 80 for line in lines)
        assert "work" in function_rows(lines)  # of every sample, however few
    out = probing("-t", watched, "top", "--count", 1, "--view", "threads").works()
    assert "waiter-0" in out and "waiter-1" in out and "MainThread" in out
    out = probing("-t", watched, "top", "--count", 1, "--view", "processes").works()
    assert re.search(r"^ *%d " % watched, out, re.M)


BRIEF = """
import sys, threading
def brief():
    print("ready", flush=True)
    end.wait()
def lasting():
    while True: sum(range(1000))
end = threading.Event()
threading.Thread(target=brief, name="short-lived").start()
threading.Thread(target=lasting, daemon=True).start()
sys.stdin.readline()
end.set()
sys.stdin.readline()
"""


def test_what_ended_leaves():
    """A thread that ended says so, and leaves the list; its functions stay where the order is by all time."""
    target = subprocess.Popen([sys.executable, "-c", BRIEF], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    view = None
    try:
        assert target.stdout.readline() == b"ready\n"
        view = Screen([PROBING, "-t", str(target.pid), "top", "--idle", "--delay", "0.2", "--view", "threads"])
        view.until(lambda lines: any(re.search(r"futex +short-lived", line) for line in lines))
        os.write(target.stdin.fileno(), b"\n")
        view.until(lambda lines: any(re.search(r"ended +short-lived", line) for line in lines))
        lines = view.until(lambda lines: not any("short-lived" in line for line in lines))
        assert any("lasting" in line for line in lines)
        view.press("f")
        lines = view.until(lambda lines: "sorted by own" in lines[3] and any("lasting" in line for line in lines[4:]))
        assert not any("brief" in line for line in lines[4:]), lines
        view.press("ss")
        view.until(lambda lines: "sorted by own of all" in lines[3] and any("brief" in line for line in lines[4:]))
    finally:
        if view:
            view.close()
        target.kill()
        target.wait()
        target.stdin.close()
        target.stdout.close()


def test_target_ends():
    target = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target.stdout.readline()
    with subprocess.Popen([PROBING, "-t", str(target.pid), "top", "--delay", "0.3"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as top:
        first = top.stdout.readline()
        assert first == "probing top: functions\n", (first, top.stderr.read())
        target.communicate(b"\n")
        out, err = top.communicate(timeout=120)
    assert top.returncode == 0, err
    assert out.endswith("Process %d ended.\n" % target.pid)


def test_the_last_picture_is_left():
    """On a terminal what was shown last stands above the note that the target has ended."""
    target = subprocess.Popen([sys.executable, os.path.join(TARGETS, "watched.py")], stdout=subprocess.PIPE)
    view = None
    try:
        assert target.stdout.readline() == b"ready\n"
        view = Screen([PROBING, "-t", str(target.pid), "top", "--delay", "0.3"])
        view.until(lambda lines: "heavy" in function_rows(lines))
        target.kill()
        target.wait()
        assert view.end() == 0
        lines = view.shown()
        note = lines.index("Process %d ended." % target.pid)
        assert "heavy" in function_rows(lines[:note]), lines
    finally:
        if view:
            view.close()
        target.kill()
        target.wait()
        target.stdout.close()


def test_wrong_options(probing, watched):
    probing("-t", watched, "top", "--delay", "0").fails(2, "--delay")
    probing("-t", watched, "top", "--view", "nothing").fails(2, "nothing")
    probing("top").fails(2, "target")


# Threads come and go, each for some samples at the most, and mostly sleep.
SHORT_LIVES = """
import random, threading, time
print("ready", flush=True)
while True:
    threading.Thread(target=lambda: (time.sleep(random.random() * .05), sum(range(20000)))).start()
    time.sleep(random.random() * .03)
"""


def test_the_gil_share_of_threads_that_come_and_go():
    """Samples with the GIL over the samples of the interval, not over those of each thread's own life."""
    target = subprocess.Popen([sys.executable, "-c", SHORT_LIVES], stdout=subprocess.PIPE)
    try:
        assert target.stdout.readline() == b"ready\n"
        done = subprocess.run([PROBING, str(target.pid), "top", "--view", "threads", "--count", "4", "--delay", "1"],
                              stdout=subprocess.PIPE, encoding="utf-8", timeout=120)
    finally:
        target.kill()
        target.wait()
        target.stdout.close()
    heads = re.findall(r"cpu \d+ %, gil (\d+) %", done.stdout)
    assert done.returncode == 0 and len(heads) == 4
    assert all(int(gil) <= 100 for gil in heads), heads  # who has it may wait for a CPU for long
    rows = re.findall(r"^ *(?:\d+ +)?\d+ +[\d.]+ +([\d.]+) .*<lambda>", done.stdout, re.M)
    assert rows and all(float(gil) <= 80 for gil in rows), rows


def test_steps(screen):
    """By its key, beside the other views; a program that counts no steps says so."""
    view = screen()
    view.until(lambda lines: "heavy" in function_rows(lines))
    view.press("e")
    lines = view.until(lambda lines: lines[0] == "probing top: steps" and "tier 0: sampled from outside" in lines[2])
    assert lines[3].split()[:3] == ["process", "tier", "step"]
    view.until(lambda lines: re.match(r"\d+ +0 ", lines[4]) and any(re.match(r"  \. other +100.0 %", line) for line in lines))
    view.press("/nothing like it\r")
    view.until_text("(0 of ")
    view.press("\x1b")
    view.until(lambda lines: re.match(r"\d+ +0 ", lines[4]))
    view.press("f")
    view.until(lambda lines: "heavy" in function_rows(lines))
    view.press("q")
    assert view.end() == 0
