"""Whatever answers in a probe's place: the command line ends, with a message of its own, and no terminal is harmed."""

import os
import signal
import struct
import subprocess

import pytest

from fake_probe import (
    CODE,
    CONFIG_GET,
    CONFIG_LIST,
    CONFIG_SET,
    DETACH,
    END,
    EVAL,
    FAILED,
    HELLO,
    INCOMPLETE,
    ITEM,
    NONE,
    OUTPUT,
    PART,
    RAISED,
    REMEDY,
    STREAM,
    TEXT,
    FakeProbe,
    message,
)

PROBING = os.environ["PROBING"]
NOTHING = b""
GONE_CODE = 6  # enum prb_code


@pytest.fixture
def fake(tmp_path):
    started = []

    def begin(answers):
        started.append(FakeProbe(tmp_path, answers))
        return started[-1]

    yield begin
    for one in started:
        if one.listener.fileno() >= 0:
            one.close()


def ended_well(done):
    """Neither success nor a signal, and a message."""
    assert 0 < done.status < 128, done.err
    assert done.err.startswith("probing: ") and done.out == ""


GARBAGE = {
    "hangs up": None,
    "another size": struct.pack("<IIHH", 0xffffffff, 1, END, 0),
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "text": b"HTTP/1.0 400 Bad Request\r\n\r\n" * 20,
    "a field that is too long": struct.pack("<IIHHHHI", 8, 2, END, 0, TEXT, 0, 0xffffffff),
    "half a field": struct.pack("<IIHHHH", 4, 2, END, 0, TEXT, 0),
    "a short number": struct.pack("<IIHHHHI", 9, 2, END, 0, RAISED, 0, 1) + b"\1",
}


@pytest.mark.parametrize("kind", [HELLO, EVAL], ids=["hello", "eval"])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage(probing, fake, kind, garbage):
    one = fake({kind: lambda number: GARBAGE[garbage]})
    ended_well(probing("-t", one.path, "eval", "1"))


def test_garbage_to_the_other_requests(probing, fake):
    for data in (None, b"\xff" * 64):
        for kind, words in ((CONFIG_LIST, ["config"]), (CONFIG_GET, ["config", "a"]), (CONFIG_SET, ["config", "a=b"]),
                            (DETACH, ["detach"])):
            one = fake({kind: lambda number, data=data: data})
            ended_well(probing("-t", one.path, *words))
            one.close()
            os.unlink(one.path)


def test_no_answer_to_the_greeting_is_bounded(probing, fake):
    one = fake({HELLO: lambda number: NOTHING})
    ended_well(probing("-t", one.path, "eval", "1"))


def test_a_socket_without_a_listener(probing, fake):
    one = fake({})
    one.close()
    ended_well(probing("-t", one.path, "eval", "1"))


def test_failures_are_shown_without_harm(probing, fake):
    one = fake({EVAL: lambda number: message(FAILED, number, {CODE: 999, TEXT: b"no\x1b]0;evil\x07", REMEDY: b"\x9b2J"})})
    done = probing("-t", one.path, "eval", "1")
    ended_well(done)
    assert "\\x1b]0;evil" in done.err and "\x1b" not in done.err
    one = fake_again(fake, one, {EVAL: lambda number: message(FAILED, number, {CODE: GONE_CODE, TEXT: b"it ended"})})
    done = probing("-t", one.path, "eval", "1")
    assert (done.status, done.err) == (7, "probing: it ended\n")


def fake_again(fake, one, answers):
    one.close()
    os.unlink(one.path)
    return fake(answers)


def test_settings_are_shown_without_harm(probing, fake):
    one = fake({CONFIG_LIST: lambda number: message(PART, number, {ITEM: b"a\x1b[2J\tb"}) +
                message(PART, number, {ITEM: b""}) + message(PART, number, {ITEM: b"a\tb\tc\td\te\tf"}) +
                message(END, number)})
    out = probing("-t", one.path, "config").works()
    assert "\x1b" not in out and "\\x1b[2J" in out
    import json

    listed = json.loads(probing("-t", one.path, "config", "--json").works())
    assert listed[0]["key"] == "a\x1b[2J" and listed[2]["meaning"] == "e\tf"


def test_output_of_all_kinds(probing, fake):
    def answer(number):
        return (message(PART, number, {STREAM: 1, OUTPUT: b"out\n"}) + message(PART, number, {STREAM: 2, OUTPUT: b"err\n"}) +
                message(PART, number, {STREAM: 77, OUTPUT: b"odd\n"}) + message(PART, number, {STREAM: 1}) +
                message(PART, number + 1, {STREAM: 1, OUTPUT: b"of another request"}) + message(PART, number) +
                message(END, number, {TEXT: b"5"}))

    done = probing("-t", fake({EVAL: answer}).path, "eval", "1")
    assert (done.works(), done.err) == ("out\nodd\n5\n", "err\n")


@pytest.mark.parametrize("answer, status, out, err", [
    ({TEXT: b"boom", RAISED: 1}, 1, "", "boom\n"),
    ({TEXT: b"boom\n", RAISED: 1}, 1, "", "boom\n"),
    ({TEXT: b"7", NONE: 1}, 0, "", ""),
    ({}, 0, "", ""),
    ({TEXT: b"a\xffb"}, 0, "a\udcffb\n", ""),
    ({TEXT: b"x" * (1 << 20)}, 0, "x" * (1 << 20) + "\n", ""),
], ids=["raised", "raised, line ended", "no value", "no field", "no UTF-8", "a megabyte"])
def test_results(probing, fake, answer, status, out, err):
    done = probing("-t", fake({EVAL: lambda number: message(END, number, answer)}).path, "eval", "1")
    assert (done.status, done.out, done.err) == (status, out, err)


def test_endless_output_ends_with_ctrl_c(fake):
    def answer(number):
        return message(PART, number, {STREAM: 1, OUTPUT: b"more\n"}) * 1000

    one = fake({EVAL: answer})
    with subprocess.Popen([PROBING, "-t", one.path, "eval", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"more\n"
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=120)
    assert child.returncode == 130


def test_a_conversation_that_never_completes(probing, fake):
    one = fake({EVAL: lambda number: message(END, number, {INCOMPLETE: 1, NONE: 1})})
    done = probing("-t", one.path, "repl", input="1\n2\n3\n")
    assert done.status == 1 and "middle of a statement" in done.err
    one = fake_again(fake, one, {EVAL: lambda number: None})
    done = probing("-t", one.path, "repl", input="1\n2\n")
    assert 0 < done.status < 128 and done.err.startswith("probing: ")


def test_a_reader_that_goes_away(fake):
    one = fake({EVAL: lambda number: message(PART, number, {STREAM: 1, OUTPUT: b"x" * 65536}) * 64 + message(END, number)})
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PROBING, "-t", one.path, "eval", "1"], stdout=writer, stderr=subprocess.PIPE, timeout=120)
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE
