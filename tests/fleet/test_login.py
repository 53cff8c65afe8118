"""Logins on the bus: what one of 256 nonces does to libnats, seen by a server of the test's own; and what is left of one at the end."""

import base64
import json
import os
import socket
import threading

import pytest

from bus import DEADLINE, Bus, missing
from nats_client import Key

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
INFO = {"server_id": "TEST", "server_name": "test", "version": "2.9.10", "proto": 1, "go": "go1.19", "host": "127.0.0.1", "headers": True,
        "auth_required": True, "max_payload": 1048576}


def nonces(key):
    """One whose signature begins with a zero, and one whose does not."""
    found = {}
    number = 0
    while len(found) < 2:
        nonce = base64.urlsafe_b64encode(number.to_bytes(11, "big")).decode()[:15]
        found.setdefault(key.sign(nonce.encode())[0] == 0, nonce)
        number += 1
    return found[True], found[False]


def serve(listener, said, logins):
    """Each connection is told the next nonce; what it logs in with is kept."""
    for nonce in said:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall("INFO {}\r\n".format(json.dumps(dict(INFO, port=listener.getsockname()[1], nonce=nonce))).encode())
            try:
                line = lines.readline()
            except ConnectionResetError:
                line = b""
            logins.append(json.loads(line.split(b" ", 1)[1].decode()) if line.startswith(b"CONNECT") else None)
    listener.close()


def test_a_signature_that_begins_with_a_zero(tmp_path):
    key = Key(bytes(range(32)))
    zero, other = nonces(key)
    logins = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE)
        serving = threading.Thread(target=serve, args=(listener, [zero, other], logins))
        serving.start()
        file = tmp_path / "look"
        file.write_text(json.dumps({"v": 1, "servers": ["nats://127.0.0.1:{}".format(listener.getsockname()[1])], "nkey": key.seed}))
        os.chmod(str(file), 0o600)
        done = Bus(str(tmp_path)).run("cluster", "--bus", str(file), "jobs")
        serving.join(DEADLINE)
    assert done.returncode != 0  # the server hangs up on both
    assert logins[0] is None, "no login that cannot succeed"
    signature = base64.urlsafe_b64decode(logins[1]["sig"] + "==")
    assert logins[1]["nkey"] == key.text and signature == key.sign(other.encode())


def test_what_threads_may_use_stays_at_the_end():
    """The process ends beside threads of libnats, which may be in libcrypto: it is left as it is."""
    bus = Bus()
    try:
        bus.up()
        library = os.path.join(os.environ["BUILDDIR"], "tests", "fleet", ".libs", "exit_locks.so")
        assert os.path.exists(library)
        done = bus.run("cluster", "ranks", environment={"LD_PRELOAD": library})
        assert done.returncode == 0, done.stderr
    finally:
        bus.remove()


@pytest.mark.parametrize("name, words", [("agent", ["backtrace"]), ("look", ["eval", "1"])])
def test_a_file_of_another_class(bus, start_ranks, name, words):
    """What is refused says which file it takes."""
    job = start_ranks(1)
    bus.run("cluster", "attach", "--allow", "eval")
    try:
        done = bus.run("--bus", os.path.join(bus.folder, name), "-t", "@" + job.name, *words)
    finally:
        bus.run("cluster", "detach")
    assert done.returncode == 5 and "the bus refuses: Permissions Violation" in done.stderr, done
    assert "the bus file is of class {}: to look takes the file look, to act control, to run code eval".format(name) in done.stderr, done.stderr
