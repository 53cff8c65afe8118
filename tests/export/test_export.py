"""probing export: what tables have becomes a timeline, the same in each format; rows are made up, so that every number is known."""

import itertools
import json
import os
import socket
import threading
import time

import pytest

from support import rings, timeline
from support.ranks import two_ranks_with_tables
from support.target import DEADLINE, probing

T0 = 1.7e9
STEPS = ("timestamp:time\nlocal_step:integer\nglobal_step:integer\nstep_duration_sec:real:s\ndata:real:s\nforward:real:s\nbackward:real:s\n"
         "optimizer:real:s\noverhead:real:ratio")
TRACE = ("timestamp:time\nglobal_step:integer\nmodule:text\noperation_name:text\nstage:text\ndepth:integer\nrecompute:boolean\n"
         "thread:integer\nduration:real:s")
COLLECTIVES = "timestamp:time\ngroup:text\nseq:integer\nop:text\nduration_ms:real:ms\nbytes:integer\ntensor_shape:text"
LOGS = "time:time\nepoch:integer\nstep:integer\nloss:real\nlr:real\nother:text"
SPANS = "time:time\nduration:real:s\nname:text\nos_thread_id:integer\nstep:integer\nerror:text\nattributes:text"
FORMATS = ["pftrace", "json"]
SAME = 2e-6  # seconds: times are kept to 0.24 µs


def module(begin, duration, name, module="", depth=0, stage="forward", recompute=0, thread=7):
    return (begin, 1, module, name, stage, depth, recompute, thread, duration)


def step_rows(number, begin):
    """A step of 100 ms: its phases, and a model of two layers, the second of which has one within it."""
    return [
        module(begin + 0.001, 0.009, "DataLoader.data", stage="data"),
        module(begin + 0.010, 0.030, "Net.forward"),
        module(begin + 0.010, 0.010, "Linear.forward", "first", 1),
        module(begin + 0.021, 0.018, "Block.forward", "second", 1),
        module(begin + 0.022, 0.017, "Linear.forward", "second.inner", 2),
        module(begin + 0.041, 0.040, "backward.backward", stage="backward"),
        module(begin + 0.082, 0.015, "AdamW.optimizer", stage="optimizer"),
    ]


@pytest.fixture
def job(tmp_path):
    """Tables that a process of 30 steps left."""
    folder = str(tmp_path / "1234-99")
    begins = [(number, T0 + number * 0.1) for number in range(1, 31)]
    rings.write(folder, "torch_step_timing", STEPS, [(begin + 0.1, n, n + 100, 0.1, 0.009, 0.03, 0.04, 0.015, 0.001) for n, begin in begins])
    rings.write(folder, "torch_trace", TRACE, [row for n, begin in begins for row in step_rows(n, begin)])
    rings.write(folder, "training_logs", LOGS, [(begin + 0.1, 0, n, 1 / n, None if n % 2 else 0.001, None) for n, begin in begins])
    rings.write(folder, "spans", SPANS, [(T0 + 2.5, 0.25, "evaluate", 7, 25, None, '{"on": "test"}'), (T0 + 2.6, 0.05, "save", 7, 25, "OSError", None)])
    rings.write(folder, "events", "time:time\nname:text\nos_thread_id:integer\nstep:integer\nattributes:text", [(T0 + 2.7, "checkpoint", 7, 25, None)])
    return folder


def exported(target, path, *options):
    """(the timeline, what the command said)."""
    done = probing("-t", target, "export", "-o", path, *options, check=False)
    assert done.returncode == 0, done.stderr
    return timeline.read(path), done.stderr


@pytest.mark.parametrize("suffix", FORMATS)
def test_steps_phases_and_modules(job, tmp_path, suffix):
    found, told = exported(job, tmp_path / ("steps." + suffix))
    assert "20 steps of 1 process" in told
    (process, tracks), = found.items()
    assert process == "process"
    steps = [one for one in tracks["steps"] if one.depth == 0]
    assert [one.name for one in steps] == ["step {}".format(n + 100) for n in range(11, 31)]
    for number, one in enumerate(steps, 11):
        assert one.begin == pytest.approx(T0 + number * 0.1, abs=SAME) and one.end == pytest.approx(one.begin + 0.1, abs=SAME)
        assert one.notes == pytest.approx({"data": 0.009, "forward": 0.03, "backward": 0.04, "optimizer": 0.015, "overhead": 0.001})
        phases = [inner for inner in tracks["steps"] if inner.depth == 1 and one.begin - SAME <= inner.begin < one.end]
        assert [inner.name for inner in phases] == ["data", "forward", "backward", "optimizer"]
        assert [round(inner.end - inner.begin, 5) for inner in phases] == [0.009, 0.03, 0.04, 0.015]
    calls = tracks["modules, thread 7"]
    assert len(calls) == 20 * 4
    assert [(one.name, one.depth, one.notes) for one in calls[:4]] == [
        ("Net.forward", 0, {}), ("Linear.forward", 1, {"module": "first"}), ("Block.forward", 1, {"module": "second"}),
        ("Linear.forward", 2, {"module": "second.inner"})]


@pytest.mark.parametrize("suffix", FORMATS)
def test_values_spans_and_moments(job, tmp_path, suffix):
    found, _ = exported(job, tmp_path / ("steps." + suffix))
    tracks = found["process"]
    assert [value.value for value in tracks["loss"]] == pytest.approx([1 / n for n in range(10, 31)])
    assert [value.time for value in tracks["loss"]] == pytest.approx([T0 + n * 0.1 + 0.1 for n in range(10, 31)], abs=SAME)
    assert len(tracks["lr"]) == 11, "a value that was not logged is none"
    spans = tracks["spans, thread 7"]
    assert [(one.name, one.depth) for one in spans] == [("evaluate", 0), ("save", 1), ("checkpoint", 1)]
    assert spans[0].notes == {"step": 25, "attributes": '{"on": "test"}'} and spans[1].notes["error"] == "OSError"
    assert spans[2].begin == spans[2].end == pytest.approx(T0 + 2.7, abs=SAME)


def test_formats_agree(job, tmp_path):
    def told(path):
        found, _ = exported(job, path)
        return {track: [(one.name, round(one.begin - T0, 5), round(one.end - T0, 5), one.notes) if isinstance(one, timeline.Slice) else
                        (round(one.time - T0, 5), one.unit) for one in events] for track, events in found["process"].items()}

    files = [tmp_path / ("steps." + suffix) for suffix in FORMATS]
    assert told(files[0]) == told(files[1])


def test_size(tmp_path):
    """A slice takes few bytes; Perfetto's a third of JSON's."""
    folder, sizes = str(tmp_path / "1-1"), []
    rings.write(folder, "torch_trace", TRACE, [row for n in range(1000) for row in step_rows(n, T0 + n * 0.1)])
    for suffix in FORMATS:
        exported(folder, tmp_path / ("x." + suffix), "--duration", "1000")
        sizes.append((tmp_path / ("x." + suffix)).stat().st_size / 8000)
    print("bytes a slice: Perfetto {:.1f}, JSON {:.1f}".format(*sizes))
    assert sizes[0] <= 36 and sizes[0] <= sizes[1] / 3


def test_last_and_duration(job, tmp_path):
    for options, first in ((("--last", "5"), 26), (("--last", "1"), 30), (("--last", "1000"), 1), (("--duration", "0.35"), 28)):
        found, _ = exported(job, tmp_path / "steps.pftrace", *options)
        steps = [one for one in found["process"]["steps"] if one.depth == 0]
        assert [one.name for one in steps] == ["step {}".format(n + 100) for n in range(first, 31)], options


@pytest.mark.parametrize("table, columns, row", [
    ("torch_step_timing", STEPS, lambda n, now: (now, n, n, 2e-6, None, None, None, None, None)),
    ("steps", "time:time\nstep:integer", lambda n, now: (now, n))], ids=["timed", "counted"])
def test_steps_that_end_meanwhile(tmp_path, table, columns, row):
    """A job goes on while it is read: so many steps as were asked for are still so many."""
    folder, ends, written = str(tmp_path / "1-1"), threading.Event(), threading.Event()
    writer = rings.Writer(folder, table, columns)

    def work():
        for n in itertools.count():
            writer.write(*row(n, time.time()))
            if n == 10:
                written.set()
            if ends.is_set():
                return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert written.wait(DEADLINE)
        for _ in range(5):
            found, told = exported(folder, tmp_path / "steps.pftrace", "--last", "4")
            names = [one.name for one in found["process"]["steps"] if one.depth == 0]
            first = int(names[0].split()[1])
            assert names == ["step {}".format(n) for n in range(first, first + 4)] and "4 steps of 1 process" in told
    finally:
        ends.set()
        worker.join()
        writer.kill()


def test_slices_that_overlap_get_tracks_of_their_own(tmp_path):
    """And an inner one that rounding lets end after, or begin before, the one around it stays within."""
    folder = str(tmp_path / "1-1")
    rings.write(folder, "spans", SPANS, [(T0, 1.0, "a", 7, None, None, None), (T0 + 0.5, 1.0, "b", 7, None, None, None),
                                         (T0 + 0.6, 0.1, "c", 7, None, None, None), (T0 + 1.2, 0.1, "d", 7, None, None, None)])
    rings.write(folder, "torch_trace", TRACE, [module(T0 + 0.2, 0.1 + 5e-7, "Inner.forward", "x", 1),
                                               module(T0 + 0.2 + 4e-7, 0.1, "Net.forward"),
                                               module(T0 + 0.3 + 2e-7, 0.1, "Net.forward")])
    for suffix in FORMATS:
        found, _ = exported(folder, tmp_path / ("x." + suffix))
        tracks = found["process"]
        assert [(one.name, one.depth) for one in tracks["spans, thread 7"]] == [("a", 0), ("c", 1), ("d", 0)], suffix
        assert [one.name for one in tracks["spans, thread 7 2"]] == ["b"]
        calls = tracks["modules, thread 7"]
        assert [(one.name, one.depth) for one in calls] == [("Net.forward", 0), ("Inner.forward", 1), ("Net.forward", 0)]
        assert calls[0].begin <= calls[1].begin <= calls[1].end <= calls[0].end <= calls[2].begin


@pytest.fixture
def ranks(tmp_path):
    """Two live ranks: (pids, write(rank, table, columns, rows))."""
    with two_ranks_with_tables(tmp_path / "data") as both:
        yield both


def launcher(pid):
    with open("/proc/{}/stat".format(pid)) as file:
        return file.read().rpartition(")")[2].split()[1]


@pytest.mark.parametrize("as_job", [False, True], ids=["ranks", "job"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_arrows_go_to_the_rank_that_began_last(ranks, tmp_path, suffix, as_job):
    pids, write = ranks
    late = {1: 0.02, 2: -0.03, 3: 0.0}  # by how much rank 1 begins after rank 0
    for rank in range(2):
        write(rank, "steps", "time:time\nstep:integer\nepoch:real\nprevious_duration:real", [(T0 + n, n, None, 1.0) for n in range(5)])
        write(rank, "comm_collective", COLLECTIVES, [
            (T0 + n + 0.5 + (late[n] if rank else 0), "dp", n, "all_reduce", 40.0 if n < 3 else None, 4096, "[1024]") for n in late])
    target, options = ("@launcher-" + launcher(pids[0]), ()) if as_job else (pids[0], ("--ranks",))
    found, told = exported(target, tmp_path / ("steps." + suffix), *options)
    assert "8 steps of 2 processes" in told and "2 arrows" in told
    names = ["rank {}{}".format(rank, " ({})".format(socket.gethostname()) if as_job else "") for rank in range(2)]
    assert sorted(found) == names
    zero, one = (found[name]["collectives"] for name in names)
    assert [each.name for each in zero] == ["all_reduce"] * 3
    assert zero[0].notes == {"group": "dp", "seq": 1, "bytes": 4096, "tensor_shape": "[1024]"}
    assert zero[0].to == [one[0]] and one[1].to == [zero[1]]
    assert not one[0].to and not zero[1].to and not zero[2].to and not one[2].to
    assert zero[2].begin == zero[2].end and zero[2].notes["end"] == "not known"
    assert zero[0].end - zero[0].begin == pytest.approx(0.04, abs=SAME)


def test_arrows_of_ranks_that_began_to_record_at_different_moments(ranks, tmp_path):
    """Each counts from then on; what PyTorch counts is the same in all, and where it is not known there is no arrow."""
    pids, write = ranks
    for rank in range(2):
        write(rank, "steps", "time:time\nstep:integer", [(T0 + n, n) for n in range(5)])
        write(rank, "comm_collective", COLLECTIVES + "\ncollective_seq_id:integer\nsource:text", [
            (T0 + n + 0.1 * rank, "dp", n + 2 - rank, "all_reduce", 1.0, 4096, "[1024]", n + 10 if n else None, "observer") for n in range(4)])
    found, told = exported(pids[0], tmp_path / "steps.pftrace", "--ranks")
    zero, one = (found["rank {}".format(rank)]["collectives"] for rank in range(2))
    assert [each.to for each in zero] == [[]] + [[each] for each in one[1:]], told


def test_a_live_job_without_tables_says_what_would_record(ranks, tmp_path):
    pids, _ = ranks
    refused = probing("-t", pids[0], "export", "-o", tmp_path / "x.pftrace", check=False)
    assert refused.returncode == 3 and "nothing is recorded" in refused.stderr and "probing.torch.profiling" in refused.stderr
    assert not (tmp_path / "x.pftrace").exists()


def test_standard_output_and_devices(job):
    """The same goes to standard output; a device is written to, not replaced."""
    whole = json.loads(probing("-t", job, "export", "--json", "-o", "-").stdout)
    assert "step 130" in {event["name"] for event in whole["traceEvents"]}
    done = probing("-t", job, "export", "-o", "/dev/full", check=False)
    assert done.returncode != 0 and "/dev/full" in done.stderr and os.path.exists("/dev/full")


def test_bad_input(job, tmp_path):
    path = tmp_path / "kept.pftrace"
    path.write_bytes(b"before")
    for options, told in ((("--format", "svg"), '--format: "svg" is not one of: perfetto, chrome, tensorboard'), (("--last", "0"), "--last"),
                          (("--last", "3", "--duration", "2"), "exclude"), (("-o", str(tmp_path)), str(tmp_path))):
        refused = probing("-t", job, "export", *(("-o", path) if "-o" not in options else ()), *options, check=False)
        assert refused.returncode != 0 and told in refused.stderr, refused.stderr
    assert path.read_bytes() == b"before"
    rows = [("NaN", 0.1, "no time", 7, None, None, None), ("inf", 0.1, "no time", 7, None, None, None), (T0, "inf", "no end", 7, None, None, None),
            (-5, 0.1, "before the epoch", 7, None, None, None), (T0, "-1", "ends before", 7, None, None, None)]
    folder = str(tmp_path / "5-5")
    rings.write(folder, "spans", SPANS, rows)
    rings.write(folder, "steps", "time:time\nstep:integer", [(T0 - 1, 1), (T0 + 1, 2)])
    found, told = exported(folder, path)
    assert {one.name for one in found["process"]["spans, thread 7"] + found["process"].get("spans, thread 7 2", [])} <= {"no end", "ends before"}


def test_the_schema_of_perfetto_reads_it(job, tmp_path):
    """With Perfetto's own schema, where its package is installed: no unknown field, each of its type."""
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    exported(job, tmp_path / "steps.pftrace")
    trace = schema.Trace()
    trace.ParseFromString((tmp_path / "steps.pftrace").read_bytes())
    kinds = {packet.WhichOneof("data") for packet in trace.packet}
    assert kinds == {"track_descriptor", "clock_snapshot", "track_event"}
    names = {entry.name for packet in trace.packet for entry in packet.interned_data.event_names}
    assert {"step 130", "forward", "Net.forward", "evaluate"} <= names
    assert len(trace.SerializeToString()) == (tmp_path / "steps.pftrace").stat().st_size, "a field that it does not know"
