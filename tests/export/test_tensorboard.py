"""probing export --format tensorboard: event files, read back record by record with their checksums."""

import struct

import pytest

from support import rings
from support.protobuf import fields
from support.target import probing

T0 = 1.7e9
LOGS = "time:time\nepoch:integer\nstep:integer\nloss:real\nlr:real\nnote:text\nother:text"


def crc32c(data):
    """Castagnoli's, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_the_checksum():
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, B.4


def records(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at:at + 8])
        body = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(body) and len(body) == length
        yield fields(body)
        at += 16 + length


def scalars(path):
    """[(time, step, {tag: value})], after the record that names the version."""
    first, *rest = records(path)
    assert first[3] == [b"brain.Event:2"] and 5 not in first
    for event in rest:
        values = [fields(value) for value in fields(event[5][0])[1]]
        yield struct.unpack("<d", event[1][0])[0], event.get(2, [0])[0], {value[1][0].decode(): struct.unpack("<f", value[2][0])[0] for value in values}


@pytest.fixture
def job(tmp_path):
    folder = str(tmp_path / "1234-99")
    rings.write(folder, "training_logs", LOGS, [(T0 + n, 0, n, 1 / n, 0.5 if n == 7 else None, "text", None) for n in range(1, 51)])
    return folder


def test_all_that_was_logged(job, tmp_path):
    done = probing("-t", job, "export", "--format", "tensorboard", "-o", tmp_path / "runs", check=False)
    assert done.returncode == 0 and "50 steps of 1 process, 51 values" in done.stderr, done.stderr
    path, = (tmp_path / "runs").glob("*/events.out.tfevents.*")
    found = list(scalars(path))
    assert [(time, step) for time, step, _ in found] == [(T0 + n, n) for n in range(1, 51)]
    assert [values["loss"] for _, _, values in found] == pytest.approx([1 / n for n in range(1, 51)])
    assert [(step, values["lr"]) for _, step, values in found if "lr" in values] == [(7, 0.5)]
    assert not any("note" in values or "epoch" in values for _, _, values in found)


def test_the_last_ones(job, tmp_path):
    """Again into the same folder: TensorBoard reads a folder's files together, so the new one begins later and is another."""
    probing("-t", job, "export", "--format", "tensorboard", "--duration", "10", "-o", tmp_path / "runs", check=False)
    path, = (tmp_path / "runs").glob("*/events.out.tfevents.*")
    assert [step for _, step, _ in scalars(path)] == list(range(40, 51))


def test_nothing_is_logged(tmp_path):
    folder = str(tmp_path / "5-5")
    rings.write(folder, "steps", "time:time\nstep:integer", [(T0, 1)])
    refused = probing("-t", folder, "export", "--format", "tensorboard", "-o", tmp_path / "runs", check=False)
    assert refused.returncode == 3 and "nothing is logged" in refused.stderr and not (tmp_path / "runs").exists()


def test_a_file_in_the_way(job, tmp_path):
    (tmp_path / "runs").write_text("mine")
    refused = probing("-t", job, "export", "--format", "tensorboard", "-o", tmp_path / "runs", check=False)
    assert refused.returncode != 0 and str(tmp_path / "runs") in refused.stderr and (tmp_path / "runs").read_text() == "mine"
