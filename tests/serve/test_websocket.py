"""RFC 6455, case by case: framing, pings, reserved bits, opcodes, fragments, UTF-8, closing, lengths, handshakes."""

import json
import struct
import subprocess

import pytest

from serving import Server, until
from websocket import Closed, WebSocket, frame

ASKED = json.dumps({"id": 7, "op": "nothing", "text": "κόσμος 🌍"}).encode()
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def text_of(length):
    """A message of so many bytes."""
    bare = json.dumps({"id": 7, "op": "", "pad": ""}).encode()
    return bare[:-2] + b"x" * (length - len(bare)) + bare[-2:]


@pytest.fixture(scope="module")
def sleeper(any_python):
    with subprocess.Popen(any_python.command("-c", "import time; print(flush=True); time.sleep(10**6)"), stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        yield child.pid
        child.kill()


@pytest.fixture(scope="module")
def server(sleeper):
    """For this process alone: what else runs here costs it no memory."""
    opened = Server(of=sleeper)
    yield opened
    status = opened.end()
    opened.remove()
    assert status == 0


@pytest.fixture
def one(server):
    with WebSocket(server, tcp=False) as opened:
        yield opened
    assert server.alive()


def answers(one):
    assert one.next(7)["error"]


def code(one, *sent):
    """The code by which it is closed after these bytes; None: it just ends."""
    try:
        for piece in sent:
            one.socket.sendall(piece)
        while True:
            opcode, _, payload = one.frame()
            if opcode == CLOSE:
                return struct.unpack("!H", payload[:2])[0] if len(payload) > 1 else None
    except (Closed, OSError):
        return None


# ---- framing ----


@pytest.mark.parametrize("length", [60, 125, 126, 127, 128, 1000, 16384, 65535, 65536])
def test_lengths(one, length):
    one.send_frame(text_of(length))
    answers(one)


@pytest.mark.parametrize("length, size", [(60, 16), (60, 64), (126, 64), (300, 64)])
def test_a_length_in_more_bits_than_it_needs(one, length, size):
    one.send_frame(text_of(length), size=size)
    answers(one)


@pytest.mark.parametrize("chop", [1, 997])
def test_chopped(one, chop):
    whole = frame(text_of(2000))
    for at in range(0, len(whole), chop):
        one.socket.sendall(whole[at:at + chop])
    answers(one)


def test_many_at_once(one):
    one.socket.sendall(frame(ASKED) * 50)
    for _ in range(50):
        answers(one)


def test_a_text_of_nothing(one):
    assert code(one, frame(b"")) == 1008


def test_binary(one):
    assert code(one, frame(ASKED, BINARY)) == 1003


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("length", [2**31, 2**32 + 5, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_length_that_never_comes(server, one, length, masked):
    """Nothing is kept for it; what comes is a message that is too long."""
    before = memory(server.pid)
    told = code(one, frame(b"x" * 70000, length=length, size=64, masked=masked))
    assert told in (None, 1009) and (told or length >= 2**63)
    assert memory(server.pid) < before + 4096


def memory(pid):
    return int(next(line for line in open("/proc/{}/status".format(pid)) if line.startswith("VmRSS")).split()[1])


def test_too_long(one):
    assert code(one, frame(text_of(65537))) == 1009


def test_too_long_in_fragments(one):
    assert code(one, frame(b"[" * 60000, final=False), frame(b"[" * 60000, 0)) == 1009


def test_frames_without_a_mask(one):
    """The library takes them; they say nothing that a masked one could not."""
    one.socket.sendall(frame(ASKED, masked=False))
    answers(one)
    one.socket.sendall(frame(b"", length=0, size=16, masked=False) + b"x" * 70000)
    assert code(one) in (None, 1008, 1009)


# ---- pings ----


@pytest.mark.parametrize("payload", [b"", b"hello", bytes(range(256))[:125]])
def test_ping(one, payload):
    one.send_frame(payload, PING)
    assert one.frame() == (PONG, True, payload)


def test_ping_in_pieces(one):
    for byte in frame(b"slowly", PING):
        one.socket.sendall(bytes([byte]))
    assert one.frame() == (PONG, True, b"slowly")


def test_pings_too_long_or_in_fragments(server):
    for bad in (frame(b"x" * 126, PING), frame(b"", PING, length=70000, size=64), frame(b"x", PING, final=False), frame(b"x" * 126, PONG), frame(b"x", PONG, final=False),
                frame(b"x" * 126, CLOSE)):
        with WebSocket(server, tcp=False) as one:
            assert code(one, bad) in (1002, None), bad[:4]  # the library just ends it for a length


def test_pongs_that_nobody_asked_for(one):
    one.socket.sendall(frame(b"", PONG) + frame(b"unasked", PONG) + frame(ASKED))
    answers(one)


# ---- reserved bits and opcodes ----


@pytest.mark.parametrize("reserved", range(1, 8))
def test_reserved_bits(one, reserved):
    assert code(one, frame(ASKED, reserved=reserved)) == 1002


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
def test_reserved_opcodes(one, opcode):
    assert code(one, frame(ASKED, opcode)) == 1002


# ---- fragments ----


def test_fragments(one):
    one.socket.sendall(frame(ASKED[:9], final=False) + frame(b"amid", PING) + frame(b"", 0, final=False) + frame(ASKED[9:40], 0, final=False)
                       + frame(b"", PONG) + frame(ASKED[40:], 0))
    assert one.frame() == (PONG, True, b"amid")
    answers(one)


def test_a_fragment_for_each_byte(one):
    for at, byte in enumerate(ASKED):
        one.send_frame(bytes([byte]), 0 if at else TEXT, final=at == len(ASKED) - 1)
    answers(one)


@pytest.mark.parametrize("sent", [[frame(ASKED, 0)], [frame(ASKED, 0, final=False)], [frame(ASKED[:5], final=False), frame(ASKED)],
                                  [frame(ASKED[:5], final=False), frame(ASKED, final=False)], [frame(ASKED), frame(b"more", 0)],
                                  [frame(ASKED[:5], final=False), frame(ASKED[5:], 0), frame(b"more", 0)]])
def test_fragments_in_a_wrong_order(one, sent):
    assert code(one, *sent) == 1002


# ---- UTF-8 ----


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xce", b"\xf0\x9f\x8c", b"\x80", b"\xe0\x80\x80", b"\xf8\x88\x80\x80\x80"])
def test_what_is_no_utf8(server, bad):
    for sent in ([frame(b'{"id": 7, "op": "' + bad + b'"}')], [frame(b'{"id": 7, "op": "' + bad[:1], final=False), frame(bad[1:] + b'"}', 0)], [frame(b"x" + bad)]):
        with WebSocket(server, tcp=False) as one:
            assert code(one, *sent) == 1007, sent


def test_a_character_in_two_fragments(one):
    text = json.dumps({"id": 7, "op": "🌍"}, ensure_ascii=False).encode()
    at = text.index("🌍".encode()) + 2
    one.socket.sendall(frame(text[:at], final=False) + frame(text[at:], 0))
    answers(one)


# ---- closing ----


@pytest.mark.parametrize("payload, told", [(b"", None), (struct.pack("!H", 1000), 1000), (struct.pack("!H", 1000) + b"bye", 1000), (struct.pack("!H", 1000) + b"x" * 123, 1000),
                                           *((struct.pack("!H", good), good) for good in (1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999))])
def test_it_is_closed_in_return(one, payload, told):
    assert code(one, frame(payload, CLOSE)) == told


@pytest.mark.parametrize("number", [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999])
def test_codes_that_nobody_may_send(one, number):
    assert code(one, frame(struct.pack("!H", number), CLOSE)) == 1002


@pytest.mark.parametrize("payload", [b"\x03", struct.pack("!H", 5000), struct.pack("!H", 65535), struct.pack("!H", 1000) + b"\xff\xfe"])
def test_odd_closes_end_it_too(one, payload):
    code(one, frame(payload, CLOSE))


def test_nothing_is_answered_after_a_close(one):
    one.socket.sendall(frame(struct.pack("!H", 1000), CLOSE) + frame(ASKED) + frame(b"late", PING))
    told = []
    with pytest.raises((Closed, OSError)):
        while True:
            told.append(one.frame()[0])
    assert told in ([CLOSE], [])


# ---- handshakes ----


def handshake(server, method="GET", version="HTTP/1.1", path="/api/v1/live", **more):
    headers = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    lines = ["{} {} {}".format(method, path, version)] + ["{}: {}".format(*pair) for pair in headers.items() if pair[1] is not None]
    return server.raw(("\r\n".join(lines) + "\r\n\r\n").encode(), tcp=False, end=True)


def test_accept(server):
    """The key of RFC 6455's example."""
    with WebSocket(server, tcp=False) as one:
        one.close()
    told = handshake(server)
    assert told.startswith(b"HTTP/1.1 101") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in told


@pytest.mark.parametrize("more", [{"method": "POST"}, {"method": "POST", "Content_Length": "0"}, {"method": "HEAD"}, {"Sec_WebSocket_Version": "12"}, {"Sec_WebSocket_Version": "0"},
                                  {"Sec_WebSocket_Version": None}, {"Sec_WebSocket_Version": "13, 8"}, {"Sec_WebSocket_Key": None}, {"Sec_WebSocket_Key": ""},
                                  {"Sec_WebSocket_Key": "dGhlIHNhbXBsZQ=="}, {"Sec_WebSocket_Key": "x" * 24}, {"Sec_WebSocket_Key": "x" * 500}, {"Upgrade": "h2c"},
                                  {"Upgrade": "websocket2"}, {"Upgrade": None}, {"Connection": "keep-alive"}, {"Connection": None}, {"path": "/"}, {"path": "/api/v1"},
                                  {"path": "/api/v1/live/"}, {"path": "/api/v1/p/1/stacks"}, {"path": "/api/v1/live%00"}, {"version": "HTTP/1.0"}, {"Sec_Fetch_Site": "cross-site"},
                                  {"Origin": "http://evil.example"}])
def test_handshakes_that_are_none(server, more):
    told = handshake(server, **more)
    assert not told.startswith(b"HTTP/1.1 101"), told
    until(server.alive)


@pytest.mark.parametrize("more", [{"Connection": "keep-alive, Upgrade"}, {"Upgrade": "WebSocket"}, {"Sec_WebSocket_Extensions": "permessage-deflate; client_max_window_bits"},
                                  {"Sec_WebSocket_Protocol": "none"}, {"path": "/api/v1/live?x=1"}])
def test_what_is_offered_and_not_taken(server, more):
    told = handshake(server, **more)
    assert not told.startswith(b"HTTP/1.1 101") or (b"permessage" not in told and b"-Protocol" not in told.title()), told
