"""probing cluster up: the server, its folder, and who may do what on it."""

import glob
import json
import os
import signal
import socket
import ssl
import stat
import time

import pytest

from bus import DEADLINE, Bus, missing
from nats_client import Client, Key, Refused

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
FAKETIME = glob.glob("/usr/lib*/*/faketime/libfaketime.so.1") + glob.glob("/usr/lib*/faketime/libfaketime.so.1")
CLASSES = ("agent", "look", "control", "eval")
USAGE, PERMISSION, CORRUPT, BUSY = 2, 5, 8, 14


@pytest.fixture
def bus():
    one = Bus()
    yield one
    one.remove()


@pytest.fixture(scope="module")
def running():
    one = Bus()
    one.up()
    yield one
    one.remove()


def is_gone(pid):
    """It ended: at once, though nobody may have asked for its status yet."""
    try:
        with open("/proc/{}/stat".format(pid)) as file:
            return file.read().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_up_again_and_down(bus):
    """It listens when `up` returns; once more keeps the keys, a killed server is back soon on its port, `down` ends all."""
    said = bus.up()
    assert said.splitlines()[-1] == "probing cluster attach --bus {}/agent".format(bus.folder)
    socket.create_connection(bus.address, 1).close()
    assert mode(bus.folder) == 0o700
    assert {name: mode(os.path.join(bus.folder, name)) for name in CLASSES + ("server.key", "server.conf")} == dict.fromkeys(
        CLASSES + ("server.key", "server.conf"), 0o600)
    files, address = {name: bus.file(name) for name in CLASSES}, bus.address
    assert len({file["nkey"] for file in files.values()}) == len(CLASSES)

    assert "runs already" in bus.up()
    assert {name: bus.file(name) for name in CLASSES} == files
    os.kill(bus.server, signal.SIGKILL)
    end = time.monotonic() + DEADLINE
    while True:
        try:
            Client(bus.file("look")).close()
            break
        except (OSError, ValueError, IndexError):
            assert time.monotonic() < end, "the server is not back"
            time.sleep(0.02)

    keeper = bus.state["pid"]
    assert bus.down().stdout == "the bus has ended\n"
    assert is_gone(keeper)
    with pytest.raises(OSError):
        socket.create_connection(address, 1)
    assert bus.down().stdout == "no bus of yours runs\n"
    bus.up()
    assert {name: bus.file(name)["nkey"] for name in CLASSES} == {name: file["nkey"] for name, file in files.items()}
    Client(files["look"] | {"servers": bus.file("look")["servers"]}).close()


def test_keeper_killed(bus):
    """What keeps the server running is killed: the server ends, and `up` starts both."""
    bus.up()
    keeper, address = bus.state["pid"], bus.address
    os.kill(keeper, signal.SIGKILL)
    end = time.monotonic() + DEADLINE
    while True:
        try:
            socket.create_connection(address, 1).close()
        except OSError:
            break
        assert time.monotonic() < end
        time.sleep(0.02)
    assert "runs already" not in bus.up()
    assert bus.state["pid"] != keeper
    Client(bus.file("look")).close()


def test_refusals(bus):
    """What is wrong is told before anything is started."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = bus.run("cluster", "up", "--listen", "127.0.0.1:{}".format(other.getsockname()[1]))
    assert taken.returncode == BUSY and "in use" in taken.stderr and "--listen :0" in taken.stderr
    for words, why in (("--listen", "nowhere.example:1"), "not an address"), (("--listen", "127.0.0.1:70000"), "port"), (("--store", "5"), "16M"):
        done = bus.run("cluster", "up", *words)
        assert (done.returncode, why in done.stderr) == (USAGE, True), done.stderr
    nowhere = bus.run("cluster", "up", "--listen", "192.0.2.1:0")
    assert nowhere.returncode != 0 and "assign" in nowhere.stderr
    assert bus.down().stdout == "no bus of yours runs\n"


def test_print(bus):
    """For an own server: the permissions, with public keys only, and nothing runs."""
    done = bus.run("cluster", "up", "--print")
    assert done.returncode == 0, done.stderr
    for name in CLASSES:
        file = bus.file(name)
        assert file["nkey"] not in done.stdout and Key(file["nkey"]).text in done.stdout
    assert "allow_responses" in done.stdout
    assert bus.down().stdout == "no bus of yours runs\n"


@pytest.mark.parametrize("broken, why, code", [
    ("", "not JSON", CORRUPT), ("[]", "object", CORRUPT), ('{"v": 2}', "another version", 6), ('{"v": 1, "servers": []}', "servers", CORRUPT),
    ('{"v": 1, "servers": ["tls://a b:1"]}', "tls://HOST:PORT", CORRUPT), ('{"v": 1, "servers": ["tls://a:1"], "nkey": "SUAAAA"}', "nkey", CORRUPT),
    ('{"v": 1, "servers": ["tls://a:1"], "v": 1}', "not JSON", CORRUPT), ('{"v": 1, "servers": ["tls://a:1"]' + " " * 300000 + "}", "too large", CORRUPT)],
    ids=["empty", "list", "version", "servers", "address", "nkey", "twice", "large"])
def test_broken_files(bus, broken, why, code):
    """A bus file may hold anything."""
    bus.run("cluster", "up", "--print")
    with open(os.path.join(bus.folder, "control"), "w") as file:
        file.write(broken)
    done = bus.run("cluster", "up", "--print")
    assert (done.returncode, why in done.stderr) == (code, True), done.stderr
    assert "remove it" in done.stderr


def test_open_files(bus):
    """A file with a secret that others can read is refused."""
    bus.run("cluster", "up", "--print")
    os.chmod(os.path.join(bus.folder, "eval"), 0o644)
    done = bus.run("cluster", "up", "--print")
    assert done.returncode == PERMISSION and "open to others" in done.stderr


MAY_PUBLISH = {
    "probing.v1.find": "look control eval", "probing.v1.j.look.all": "look control eval", "probing.v1.j.look.r.3": "look control eval",
    "probing.v1.j.control.all": "control", "probing.v1.j.control.h.node": "control", "probing.v1.end": "control",
    "probing.v1.j.eval.all": "eval", "probing.v1.j.eval.stream.x": "eval", "probing.v1.j.cancel": "look control eval",
    "probing.v1.j.event.crash": "agent", "probing.v1.j.history.t": "agent", "$KV.probing_roster.node": "agent",
    "_INBOX.look.x.1": "", "_INBOX.control.x.1": "", "$JS.API.STREAM.DELETE.KV_probing_roster": "",
    "$JS.API.CONSUMER.CREATE.KV_probing_roster": "", "$JS.API.STREAM.CREATE.other": "",
    "$JS.API.STREAM.CREATE.probing_history": "agent", "$JS.API.DIRECT.GET.probing_history": "look", "$JS.API.STREAM.PURGE.probing_history": "",
    "$JS.API.STREAM.CREATE.probing_events": "agent", "$JS.API.DIRECT.GET.probing_events": "look control eval",
    "$JS.API.STREAM.INFO.probing_events": "look", "$SYS.REQ.SERVER.PING": "", "anything": ""}
MAY_HEAR = {
    "_INBOX.look.x.*": "look", "_INBOX.control.x.*": "control", "_INBOX.eval.x.*": "eval", "_INBOX.agent.x.*": "agent", "_INBOX.>": "", ">": "",
    "probing.>": "", "probing.v1.j.look.all": "agent", "probing.v1.*.control.>": "agent", "probing.v1.*.eval.>": "agent", "$KV.>": "", "$SYS.>": "",
    "probing.v1.j.event.*": "look control eval"}


@pytest.mark.parametrize("name", CLASSES)
def test_permissions(running, name):
    """Each class does what it may, and nothing else."""
    client = Client(running.file(name))
    for may, act in ((MAY_PUBLISH, client.publish), (MAY_HEAR, client.subscribe)):
        for subject, classes in may.items():
            act(subject)
            refused = client.refused()
            assert bool(refused) == (name not in classes.split()), (subject, refused)
            assert not refused or "Permissions Violation" in refused[0]
    client.close()


def test_replies_only(running):
    """An agent answers whoever asked, there alone."""
    agent, look = Client(running.file("agent")), Client(running.file("look"))
    look.subscribe("_INBOX.look.me.*")
    look.refused()
    agent.subscribe("probing.v1.find")
    agent.refused()
    look.publish("probing.v1.find", b"who", "_INBOX.look.me.1")
    asked = agent.next()
    for part in range(3):
        agent.publish(asked.reply, b"part %d" % part)
    assert [look.next().body for _ in range(3)] == [b"part 0", b"part 1", b"part 2"]
    agent.publish("_INBOX.look.me.2", b"unasked")
    assert "Permissions Violation" in agent.refused()[0]
    agent.close()
    look.close()


def test_strangers(running):
    """Another's key, another authority, another name."""
    file = running.file("look")
    with pytest.raises(Refused, match="Authorization Violation"):
        Client(file, key=Key(bytes(32)))
    with pytest.raises(ssl.SSLError):
        Client(file, name="127.0.0.1")
    other = Bus()
    try:
        other.run("cluster", "up", "--print")
        with pytest.raises(ssl.SSLError):
            Client(file, ca=other.file("look")["ca"])
    finally:
        other.remove()


def with_servers(running, folder, servers, **changed):
    """A bus file that names these servers."""
    path = folder / "look"
    path.write_text(json.dumps(dict(running.file("look"), servers=servers, **changed)))
    path.chmod(0o600)
    return str(path)


def test_a_key_that_is_not_known(running, tmp_path):
    """What one server says is told, though another one of the file is not there."""
    server, = running.file("look")["servers"][:1]
    file = with_servers(running, tmp_path, [server, "tls://nowhere.invalid:4222"], nkey=Key(bytes(range(32))).seed)
    done = running.run("cluster", "--bus", file, "jobs")
    assert done.returncode == PERMISSION and "the server does not know the key of this bus file" in done.stderr, done.stderr


@pytest.mark.parametrize("time, how", [("+40y", "has expired"), ("-2y", "is not valid yet")])
@pytest.mark.skipif(not FAKETIME, reason="no libfaketime")
def test_a_clock_that_is_wrong(running, tmp_path, time, how):
    """A certificate that counts only at another time is no other bus's."""
    file = with_servers(running, tmp_path, running.file("look")["servers"][:1])
    done = running.run("cluster", "--bus", file, "jobs", environment={"LD_PRELOAD": FAKETIME[0], "FAKETIME": time})
    assert done.returncode == PERMISSION and how + " by this host's clock" in done.stderr, done.stderr
