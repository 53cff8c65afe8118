"""What `backtrace --json` says against what the target told."""

from support.target import inner_tids

POSITION = ("column", "end_line", "end_column")


def shown(frame, expected):
    """The keys of a frame that the target told about."""
    told = {"name": frame["name"], "filename": frame["filename"], "line": frame["line"]}
    for key in POSITION + ("qualname",):
        if key in expected:
            told[key] = frame[key]
    return told


def python_frames(entry):
    return [frame for frame in entry["frames"] if frame["kind"] == "python"]


def entry_of(entries, os_thread_id, interpreter=0):
    found = [entry for entry in entries
             if entry["os_thread_id"] == os_thread_id and entry["interpreter"] == interpreter]
    assert len(found) == 1, "thread {} of interpreter {}: {} entries of {}".format(
        os_thread_id, interpreter, len(found), [(e["os_thread_id"], e["interpreter"]) for e in entries])
    return found[0]


def same_frames(frames, expected):
    got = [shown(frame, truth) for frame, truth in zip(frames, expected)]
    assert got == expected
    assert len(frames) == len(expected), "{} frames, expected {}".format(len(frames), len(expected))


def kernel_name(pid, tid):
    with open("/proc/{}/task/{}/comm".format(pid, tid), errors="replace") as file:
        return file.read().rstrip("\n")


def same_thread(entry, truth):
    """One entry against one told thread."""
    assert entry["thread_id"] == truth["thread_id"]
    assert entry["thread_name"] == truth["thread_name"]
    assert not entry["unstable"]
    same_frames(python_frames(entry), truth["frames"])
    if "gil_state" in truth:
        assert entry["gil_state"] == truth["gil_state"]
        assert entry["owns_gil"] == (truth["gil_state"] == "holding")
    if "gc" in truth:
        assert entry["gc"] == truth["gc"]


def same(target, entries):
    """All entries against everything that the target told."""
    here = inner_tids(target.pid)
    for truth in target.truth:
        if target.python.minor < (3, 7):
            truth = {key: truth[key] for key in truth if key != "gc"}  # 3.6 keeps that where no name leads to
        tid = here[truth["os_thread_id"]]
        if not truth["thread_name"]:  # of a thread that threading does not know the kernel's name is told
            truth = dict(truth, thread_name=kernel_name(target.pid, tid))
        same_thread(entry_of(entries, tid, truth["interpreter"]), truth)
    assert all(entry["pid"] == target.pid for entry in entries)
