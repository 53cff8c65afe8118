"""Timelines read back, by readers that share nothing with their writers: Perfetto's packets and Chrome's events give the same.

read(path): {process: {track: [Slice or Value, by time]}}, arrows between slices in Slice.to.
"""

import collections
import json
import struct

from .protobuf import fields

BEGIN, END, MOMENT, VALUE = 1, 2, 3, 4


class Slice:
    """begin and end in s since the epoch (a moment: the same); depth: slices around it on its track."""

    def __init__(self, name, begin, notes, depth):
        self.name, self.begin, self.end, self.notes, self.depth, self.to = name, begin, None, notes, depth, []

    def __repr__(self):
        return "{}@{:.6f}+{:.6f}".format(self.name, self.begin, (self.end or self.begin) - self.begin)


Value = collections.namedtuple("Value", "time value unit")


def signed(value):
    return value - (1 << 64) if value >> 63 else value


# ---- Perfetto ----

class Sequence:
    """The state of one sequence of packets."""

    def __init__(self):
        self.names, self.track, self.clock, self.time, self.open = {}, None, None, None, []

    def clear(self, packet):
        self.names = {2: {}, 3: {}, 29: {}}
        clocks = {fields(one)[1][0]: fields(one) for one in fields(packet[6][0])[1]}
        assert fields(packet[6][0])[2] == [1] and clocks[64][3] == [1], "the clock of the sequence counts on from the day's"
        self.time = clocks[1][2][0]
        assert clocks[64][2] == [0]
        defaults = fields(packet[59][0])
        assert defaults[58] == [64]
        self.track = fields(defaults[11][0])[11][0]

    def intern(self, packet):
        for interned in packet.get(12, []):
            for kind, entries in fields(interned).items():
                for entry in map(fields, entries):
                    assert entry[1][0] not in self.names[kind], "a number stands for one text"
                    self.names[kind][entry[1][0]] = entry[2][0].decode()


def note(state, data):
    one = fields(data)
    name = state.names[3][one[1][0]]
    if 4 in one:
        return name, signed(one[4][0])
    return (name, struct.unpack("<d", one[5][0])[0]) if 5 in one else (name, state.names[29][one[17][0]])


def connect(sources, ends):
    for number, source in sources.items():
        source.to.append(ends.pop(number))
    assert not ends


def perfetto(path):
    with open(path, "rb") as file:
        data = file.read()
    processes, pids, tracks, sequences = {}, {}, {}, collections.defaultdict(Sequence)
    made, sources, ends = collections.defaultdict(list), {}, {}
    for packet in map(fields, fields(data)[1]):
        if 60 in packet:
            track = fields(packet[60][0])
            if 3 in track:
                process = fields(track[3][0])
                processes[track[1][0]] = pids[process[1][0]] = process[6][0].decode()
            elif 4 in track:
                thread = fields(track[4][0])
                tracks[track[1][0]] = (pids[thread[1][0]], thread[5][0].decode(), None)
            else:
                unit = fields(track[8][0]).get(6, [b""])[0].decode() if 8 in track else None
                tracks[track[1][0]] = (processes[track[5][0]], track[2][0].decode(), unit)
            continue
        state = sequences[packet[10][0]]
        if packet.get(13) == [1]:
            state.clear(packet)
            continue
        state.intern(packet)
        state.time += packet[8][0]
        event, seconds = fields(packet[11][0]), state.time * 1e-9
        if event[9] == [END]:
            state.open.pop().end = seconds
            continue
        if event[9] == [VALUE]:
            made[state.track].append(Value(seconds, struct.unpack("<d", event[44][0])[0], tracks[state.track][2]))
            continue
        one = Slice(state.names[2][event[10][0]], seconds, dict(note(state, data) for data in event.get(4, [])), len(state.open))
        made[state.track].append(one)
        sources.update((number, one) for number in event.get(47, []))
        ends.update((number, one) for number in event.get(48, []))
        if event[9] == [MOMENT]:
            one.end = seconds
        else:
            state.open.append(one)
    assert not any(state.open for state in sequences.values())
    connect(sources, ends)
    found = collections.defaultdict(dict)
    for number, (process, name, _) in tracks.items():
        found[process][name] = made[number]
    return dict(found)


# ---- Chrome ----

def chrome(path):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    begin = float(whole["otherData"]["begin"].split()[0])
    names, found, sources, ends = {}, collections.defaultdict(dict), {}, {}
    slices = {}
    for event in whole["traceEvents"]:
        key = event["pid"], event["tid"]
        if event["ph"] == "M":
            if event["name"] in ("process_name", "thread_name"):
                names[event["pid"] if event["name"] == "process_name" else key] = event["args"]["name"]
            continue
        if event.get("s") == "g":
            continue
        seconds = begin + event["ts"] * 1e-6
        if event["ph"] in "Xi":
            track = found[names[event["pid"]]].setdefault(names[key], [])
            around = [one for one in track if one.end >= seconds + event.get("dur", 0) * 1e-6 - 1e-9 and one.end > seconds]
            one = Slice(event["name"], seconds, event.get("args", {}), len(around))
            one.end = seconds + event.get("dur", 0) * 1e-6
            track.append(one)
            slices[key, event["ts"]] = one
        elif event["ph"] == "C":
            (unit, value), = event["args"].items()
            found[names[event["pid"]]].setdefault(event["name"], []).append(Value(seconds, value, "" if unit == "value" else unit))
        else:
            assert event["ph"] in "sf"
            (sources if event["ph"] == "s" else ends)[event["id"]] = slices[key, event["ts"]]
    connect(sources, ends)
    return dict(found)


READERS = {"pftrace": perfetto, "json": chrome}


def read(path):
    return READERS[str(path).rpartition(".")[2]](path)
