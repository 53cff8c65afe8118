"""What agents publish, taken into a PostgreSQL database: every value as it was, each row once, whatever is killed."""

import itertools
import json
import random
import signal
import socket
import subprocess

import pytest

import postgres
from bus import PROBING, Bus, missing
from nats_client import Client
from support.injection import wait_until

WHY = missing() or postgres.missing()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY)
STREAM = {"name": "probing_history", "subjects": ["probing.v1.*.history.*"], "storage": "file", "allow_direct": True}
IO = 11


class Published:
    """The bus, and an agent's messages on it."""

    def __init__(self, bus):
        self.bus = bus
        self.client = Client(bus.file("agent"))
        self.client.subscribe("_INBOX.agent.>")
        self.numbers, self.styles = itertools.count(), itertools.count()
        self.ask("$JS.API.STREAM.CREATE.probing_history", STREAM)

    def ask(self, subject, body, headers=None):
        reply = "_INBOX.agent.{}".format(next(self.numbers))
        self.client.publish(subject, body, reply, headers)
        answer = self.client.next()
        while answer.subject != reply:
            answer = self.client.next()
        assert "error" not in answer.json, answer.body
        return answer.json

    def rows(self, table, columns, rows, rank=0, host="node1", **headers):
        # Every other one as agents write it, which is read another way than any JSON.
        plain = {"separators": (",", ":"), "ensure_ascii": False}
        body = b"".join(json.dumps(row, **(plain if next(self.styles) % 2 else {})).encode() + b"\n" for row in rows)
        about = {"host": host, "key": host + "-key", "job": "llama", "rank": rank, "world_size": 8, "pid": 100 + rank, "started": 7}
        return self.ask("probing.v1.llama.history." + table, body,
                        dict({"Probing-Columns": columns, "Probing-Process": json.dumps(about)}, **headers))["seq"]

    def record(self, target, *options):
        return self.bus.run("cluster", "record", target, *options)


@pytest.fixture(scope="module")
def server():
    one = postgres.Server()
    yield one
    one.end()


@pytest.fixture(scope="module")
def published():
    bus = Bus()
    bus.up()
    one = Published(bus)
    yield one
    one.client.close()
    bus.remove()


def record(published, server):
    done = published.record(server.url, "--once")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" rows were added to the database postgres\n")
    return int(done.stdout.split()[0]), done.stderr


COLUMNS = "step:integer,loss:real,note:text,good:boolean,timestamp:time"
HARD = "tab\t, line\nreturn\r, back\\slash \\N, \"quote\" 'one', ä\u20ac\U0001f600"
ROWS = [{"step": 1, "loss": 0.1, "note": "", "good": True, "timestamp": 1.7e9 + 0.123456},
        {"step": (1 << 63) - 1, "loss": "NaN", "note": HARD, "good": False, "timestamp": 0},
        {"step": -(1 << 63), "loss": "-Infinity", "note": None, "good": None, "timestamp": None},
        {"step": None, "loss": 5e-324, "note": "a\0b", "good": True}]


def test_every_value(published, server):
    """Every type, NULL, and what COPY escapes; whose rows they are; what was lost."""
    published.rows("losses", COLUMNS, ROWS, rank=3, host="node\t2", **{"Probing-Lost": "17"})
    assert record(published, server)[0] == len(ROWS)
    told = server.ask("SELECT step, loss, note, good, timestamp, rank, host, job, pid FROM python.losses ORDER BY step NULLS FIRST")
    end = ["3", "node\t2", "llama", "103"]
    assert told == [[None, "5e-324", "a\u2400b", "t", None, *end], [str(-(1 << 63)), "-Infinity", None, None, None, *end],
                    ["1", "0.1", "", "t", "1700000000.123456", *end], [str((1 << 63) - 1), "NaN", HARD, "f", "0", *end]]
    assert server.ask("SELECT table_name, rows, key, world_size FROM probing.gap JOIN probing.process ON id = _process") == [
        ["python.losses", "17", "node\t2-key", "8"]]
    assert record(published, server)[0] == 0


def test_other_columns(published, server):
    """A column that is new, one that has another type now, one that is named as one of ours, and words of SQL."""
    published.rows("grown", "step:integer,value:integer", [{"step": 1, "value": 2}])
    published.rows("grown", "step:integer,value:text,select:real,rank:text", [{"step": 2, "value": "two", "select": 0.5, "rank": "own"}])
    published.rows("grown", "step:integer,value:integer", [{"step": 3, "value": 4}], rank=5)
    published.rows("probing_host_usage", "timestamp:time,scope:text", [{"timestamp": 5.5, "scope": "process"}])
    assert record(published, server)[0] == 4
    assert server.ask('SELECT step, value, value_text, "select", rank, rank_text, _process IS NULL FROM python.grown ORDER BY step') == [
        ["1", "2", None, None, "0", None, "f"], ["2", None, "two", "0.5", None, "own", "f"], ["3", "4", None, None, "5", None, "f"]]
    assert server.ask("SELECT timestamp, scope, rank FROM host.probing_host_usage") == [["5.5", "process", "0"]]


EVENTS = {"name": "probing_events", "subjects": ["probing.v1.*.event.*"], "storage": "file", "allow_direct": True}
CRASH = {"v": 1, "host": "node1", "key": "node1-key", "job": "llama", "path": "/dumps/crash-1.snap", "kind": "signal", "title": "SIGSEGV, address 0x0",
         "place": "", "group": "f00", "time": 1.7e9 + 0.5, "pid": 103, "rank": 3, "bytes": 4096}


def test_crashes(published, server):
    """What agents tell of crashes, beside the rows of ranks; what is no such event is passed over."""
    published.ask("$JS.API.STREAM.CREATE.probing_events", EVENTS)
    for broken in (b"no json", dict(CRASH, path=None), dict(CRASH, pid=-1), dict(CRASH, title="x" * 3000), {**CRASH, "time": "now"}):
        published.ask("probing.v1.llama.event.crash", broken)
    published.ask("probing.v1.llama.event.crash", CRASH)
    published.ask("probing.v1.llama.event.crash", dict(CRASH, rank=-1, pid=0, host="node2", place="f (a.py:1)"))
    published.ask("probing.v1.llama.event.other", {"not": "a crash"})
    published.rows("beside", "a:integer", [{"a": 1}])
    assert record(published, server)[0] == 3
    assert server.ask("SELECT time, kind, title, place, crash_group, path, bytes, rank, host, job, pid FROM python.crash_events ORDER BY host") == [
        ["1700000000.5", "signal", "SIGSEGV, address 0x0", None, "f00", "/dumps/crash-1.snap", "4096", "3", "node1", "llama", "103"],
        ["1700000000.5", "signal", "SIGSEGV, address 0x0", "f (a.py:1)", "f00", "/dumps/crash-1.snap", "4096", "-1", "node2", "llama", "0"]]
    assert record(published, server)[0] == 0


def test_what_is_no_message(published, server):
    """What anybody with an agent's key may send is passed over, whole, and holds up nothing."""
    wrong = ["a:integer,a:integer", "a:what", "1a:integer", 'a";DROP:integer', "", ",".join("c{}:text".format(n) for n in range(64))]
    for columns in wrong:
        published.rows("wrong", columns, [{"a": 1}])
    published.rows("wrong", "a:integer", [], **{"Probing-Lost": "99999999999999999999999"})
    published.ask("probing.v1.llama.history.wrong", b"no json\n", {"Probing-Columns": "a:integer"})
    for part in range(27):  # more columns than a table can have there
        published.rows("wide", ",".join("c{}_{}:text".format(part, n) for n in range(60)), [{"c{}_0".format(part): "x"}])
    published.rows("right", "a:integer", [{"a": 1}])
    added, said = record(published, server)
    assert added == 1 + int(server.ask("SELECT count(*) FROM python.wide")[0][0])
    assert "is left out: PostgreSQL: tables can have at most 1600 columns" in said
    assert server.ask("SELECT a, rank FROM python.right") == [["1", "0"]]
    assert record(published, server)[0] == 0


def test_killed_in_a_loop(published, server):
    """The record is killed again and again, the database once: each row is there, and once."""
    chance = random.Random(7)
    follower, sent = None, 0
    for turn in range(8):
        follower = subprocess.Popen([PROBING, "cluster", "record", server.url], env=published.bus.environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        for _ in range(chance.randrange(1, 40)):
            published.rows("many", "number:integer", [{"number": sent + n} for n in range(10)], rank=sent % 3)
            sent += 10
        if turn == 4:
            server.stop()
            server.start()
        if turn < 7:
            follower.kill()
            follower.communicate()
    try:
        wait_until(lambda: server.ask("SELECT to_regclass('python.many')") != [[None]] and
                   server.ask("SELECT count(*) FROM python.many") == [[str(sent)]])
    finally:
        follower.send_signal(signal.SIGINT)
        follower.communicate()
    assert follower.returncode == 0
    assert server.ask("SELECT count(DISTINCT number), min(number), max(number) FROM python.many") == [[str(sent), "0", str(sent - 1)]]


def test_the_database_is_away(published, server):
    """A record that runs says so, waits, and goes on; one that begins, or is to end, says so and ends.  Two at a time take each row once."""
    both = [subprocess.Popen([PROBING, "cluster", "record", server.url], env=published.bus.environment, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8") for _ in range(2)]
    published.rows("away", "n:integer", [{"n": 0}])
    wait_until(lambda: server.ask("SELECT to_regclass('python.away')") != [[None]] and server.ask("SELECT count(*) FROM python.away") == [["1"]])
    # Both have begun, and are between two messages: one that cannot connect at first ends.
    wait_until(lambda: server.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'probing cluster record' AND state = 'idle'"
                                  " AND query IN ('COMMIT', 'ROLLBACK')") == [["2"]])
    server.stop()
    try:
        published.rows("away", "n:integer", [{"n": 1}])
        said = [one.stderr.readline() for one in both]
        assert all(line.startswith("probing: note: PostgreSQL: ") and line.endswith("; it is tried again\n") for line in said), said
        done = published.record(server.url, "--once")
        assert done.returncode == IO and "PostgreSQL: " in done.stderr
    finally:
        server.start()
    assert [one.stderr.readline() for one in both] == ["probing: note: the database postgres is back\n"] * 2
    for n in range(2, 30):
        published.rows("away", "n:integer", [{"n": n}])
    wait_until(lambda: server.ask("SELECT count(*) FROM python.away") == [["30"]])
    counts = []
    for one in both:
        one.send_signal(signal.SIGINT)
        counts.append(int(one.communicate()[0].split()[0]))
    assert server.ask("SELECT count(*), count(DISTINCT n) FROM python.away") == [["30", "30"]]
    assert sum(counts) <= 30  # one that ends in a commit may not know of it


def test_a_server_that_says_nothing(published):
    """Ctrl-C ends a record that waits for it; a password is in no message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        url = "postgresql://ada:secret@127.0.0.1:{}/x".format(listener.getsockname()[1])
        child = subprocess.Popen([PROBING, "cluster", "record", url], env=published.bus.environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        connection, _ = listener.accept()
        connection.recv(1)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=60)[0]
        connection.close()
    assert child.returncode != 0 and b"secret" not in said and b"ended while PostgreSQL was waited for" in said


def test_one_who_may_not(published, server):
    """A user without rights is told so; one who may only write into what is there can."""
    server.ask("CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    guest = server.url.replace("tester@", "guest@")
    done = published.record(guest, "--once")
    assert done.returncode == 5 and "permission denied" in done.stderr, done.stderr
    server.ask("GRANT USAGE ON SCHEMA probing, python, host TO guest; GRANT ALL ON ALL TABLES IN SCHEMA probing, python, host TO guest;"
               "GRANT ALL ON ALL SEQUENCES IN SCHEMA probing TO guest")
    published.rows("right", "a:integer", [{"a": 2}])
    done = published.record(guest, "--once")
    assert done.returncode == 0 and done.stdout.startswith("1 rows"), done.stderr


def test_together(published, server):
    """Many messages are taken in one transaction; one that is no message, and one that the database refuses, are left out alone."""
    numbers = [published.rows("together", "step:integer", [{"step": step}, {"step": step}]) for step in range(2)]
    assert record(published, server)[0] == 4
    server.ask("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'unlucky' USING ERRCODE = '22023'; END $$;"
               "CREATE TRIGGER refuse BEFORE INSERT ON python.together FOR EACH ROW WHEN (new.step = 23) EXECUTE FUNCTION refuse()")

    def ranks(step):
        return 9 if step == 24 else step % 4  # one that is new ends what the one before began

    for step in range(2, 60):
        numbers.append(published.rows("together", "step:integer", [{"step": step}, {"step": step}], rank=ranks(step)))
        if step == 40:
            published.ask("probing.v1.llama.history.together", b"{}\n")
    rows, said = record(published, server)
    assert rows == 2 * 57 and "message {} is left out: PostgreSQL: unlucky".format(numbers[23]) in said, said
    assert "message {} is left out: a message does not say whose rows it has".format(numbers[40] + 1) in said and said.count("left out") == 2, said
    wanted = [[str(step), str(ranks(step) if step > 1 else 0), "2"] for step in range(60) if step != 23]
    assert server.ask("SELECT step, rank, count(*) FROM python.together GROUP BY 1, 2 ORDER BY 1") == wanted
    assert record(published, server) == (0, "")
