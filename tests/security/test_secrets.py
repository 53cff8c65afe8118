"""Secrets of 40 kinds are planted in a program, and none of them stands in anything that is written or shown of it."""

import base64
import json
import os
import subprocess

import pytest

from support.target import DEADLINE, PROBING, SRCDIR, probing, query

PROGRAM = os.path.join(SRCDIR, "tests", "security", "secretive.py")
DIGITS = "0123456789abcdefABCD"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2UifQ."
KEY = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{:02}".format(n) for n in range(3)]


def environment(late):
    """{name: (value, [what of it is secret])}, other words when they are set late."""
    end = "l9" if late else "e9"
    names = {
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG", "GH_PAT": "p4t-of-gh", "SSHPASS": "sshp4ss-x", "LDAP_BINDPW": "b1ndpw-x",
        "MASTERKEY": "m4ster-key", "SIGNINGKEY": "s1gning-key", "STRIPE_SK": "str1pe-sk-x", "SLACK_WEBHOOK_URL": "https://h.example/w3bh00k-x",
        "KUBE_CONFIG_DATA": "YXBpVmVyc2lvbjog", "DB_PASSWORD": "two words! 7", "SENTRY_DSN": "dsn-0f-sentry", "HF_TOKEN": "of hugging f4ce",
        "SESSION_COOKIE": "c00kie-x", "JWT": "js0n-web-x", "MYSQL_PWD": "my5ql-pwd", "UNICODE_SECRET": "gehe\u00efm-w\u00f6rt-7",
        # By the look of the whole value.
        "STORE": "ghp_" + DIGITS, "HUB": "hf_" + DIGITS, "MODEL": "sk-" + DIGITS, "CHAT": "xoxb-" + DIGITS, "CLAIM": JWT + "s1gnature",
        "FORGE": "glpat-" + DIGITS, "FINE": "github_pat_" + DIGITS,
    }
    found = {name: (value + end, [value + end]) for name, value in names.items()}
    cloud = "AKIA0123456789ABCD" + end.upper()
    found["CLOUD"] = (cloud, [cloud])
    key = [line + end for line in KEY]
    found["RSA"] = ("\n".join(["-----BEGIN PRIVATE KEY-----"] + key + ["-----END PRIVATE KEY-----"]), key)
    basic = base64.b64encode(b"joe:bas1c-" + end.encode()).decode()
    found["PROXY_LINE"] = ("Basic " + basic, [basic])
    found["HEADER_LINE"] = ("Bearer b3arer-x-" + end, ["b3arer-x-" + end])
    for name, form, word in (
            ("DATABASE_URL", "postgres://joe:{}@db.example/x", "d4tabase-url"), ("http_proxy", "joe:{}@proxy.example:3128", "pr0xy-word"),
            ("JDBC_URL", "jdbc:mysql://db/x?user=joe&password={}", "jdbc-w0rd"), ("STORAGE", "Endpoint=x;AccountKey={};Suffix=y", "acc0unt-k"),
            ("SIGNED", "https://s.example/x?sv=1&sig={}", "s1gned-word"), ("JSON", '{{"client_secret": "{}", "n": 1}}', "js0n-secret"),
            ("REDIS", "redis://:{}@cache.example/0", "r3dis-word"), ("LIBPQ", "host=db password={} sslmode=off", "l1bpq-word")):
        found[name] = (form.format(word + end), [word + end])
    found["QUOTED_URL"] = ("amqp://joe:p%40ss%2F{}@mq.example".format(end), ["p%40ss%2F" + end, "p@ss/" + end])
    return found


ARGUMENTS = {
    "--hf-token": "4rgument-one", "--db.password": "4rgument two", "--api_key=": "4rgument-three", "--secret": "4rgument-four",
    "optimizer.auth_token=": "4rgument-five", "--uri=mongodb://joe:{}@db": "4rgument-six", "--header=Authorization: Bearer ": "4rgument-seven",
}
MESSAGE = {
    "cannot reach ftp://joe:{}@host/": "m3ssage-one", "password={} refused": "m3ssage-two", "joe:{}@example.org": "m3ssage-three",
    "Bearer {}": "m3ssage-four-4444", "{{'api_key': '{}'}} \u20ac \U0001f600": "m3ssage-five",
}
LOCALS = ["v4riable-one", "v4riable-two"]
OPEN = {"PLAIN": "visible-neighbour", "MAX_EPOCHS": "17", "TOKENIZERS_PARALLELISM": "false"}


class Secretive:
    def __init__(self, python, way, folder):
        early, late = environment(False), environment(True)
        late = {"LATE_" + name: pair for name, pair in late.items()}
        words = []
        for option, value in ARGUMENTS.items():
            words += [option.format(value)] if "{}" in option else [option + value] if option[-1] in "= " else [option, value]
        variables = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8", **OPEN)
        variables.update((name, value) for name, (value, _) in early.items())
        self.folder = str(folder)
        self.planted = [one for plants in (early, late) for _, parts in plants.values() for one in parts]
        self.planted += list(ARGUMENTS.values()) + LOCALS
        if way == "raise":
            self.planted += list(MESSAGE.values())
        self.child = subprocess.Popen([python, PROGRAM, way, *words, "--max-tokens", "4096", "--name", "neighbour-run"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables)
        told = [form.format(word) for form, word in MESSAGE.items()] + ["{} and {}".format(*early["DB_PASSWORD"][1] + late["LATE_GH_PAT"][1])]
        message = "; ".join(told) if way == "raise" else ""
        given = {"late": {name: value for name, (value, _) in late.items()}, "message": message, "locals": LOCALS}
        self.child.stdin.write(json.dumps(given).encode() + b"\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline().decode()
        assert line.startswith("ready"), self.child.stderr.read()
        self.pid = int(line.split()[1])

    def crash(self):
        probing("-p", self.pid, "inject", "-c", "-D", "probing.crash_dir=" + self.folder, "-D", "probing.crash_wait=60")
        _, told = self.child.communicate(b"go\n", DEADLINE)
        files = sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.startswith("crash-"))
        assert [path[path.rindex("."):] for path in files] == [".snap", ".txt"], told
        return files

    def assert_none_in(self, data, what):
        data = data if isinstance(data, bytes) else data.encode()
        forms = [(one, one.encode(code)) for one in self.planted for code in ("utf-8", "latin-1", "utf-16-le", "utf-32-le")]
        found = [(one, len(form) / len(one)) for one, form in forms if form in data]
        assert not found, "{}: {}".format(what, found)

    def end(self):
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            stream.close()


@pytest.fixture
def secretive(python, tmp_path):
    """secretive(way): such a program, waiting."""
    started = []

    def start(way="wait"):
        started.append(Secretive(python, way, tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.end()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def test_forty_kinds():
    """So many are planted, each twice: at the start, and at run time."""
    assert len(environment(False)) + len(ARGUMENTS) + len(MESSAGE) >= 40
    early, late = ([one for _, parts in environment(late).values() for one in parts] for late in (False, True))
    assert len(set(early + late)) == len(early + late)


@pytest.mark.parametrize("way", ["raise", "signal"])
def test_crash_dumps(secretive, way):
    one = secretive(way)
    dump, text = one.crash()
    one.assert_none_in(read(dump), "the dump")
    one.assert_none_in(read(text), "its text")
    one.assert_none_in(probing("crash", "show", dump).stdout, "crash show")
    one.assert_none_in(probing("crash", "export", dump).stdout, "crash export")
    one.assert_none_in(probing("query", "-f", "json", "-t", dump, "SELECT * FROM system.environment").stdout, "SQL")
    # What is beside them stays.
    rows = {row["name"]: row["value"] for row in query(dump, "SELECT name, value FROM system.environment")}
    assert {name: rows[name] for name in OPEN} == OPEN
    row, = query(dump, "SELECT command FROM system.process")
    assert row["command"].endswith("--max-tokens 4096 --name neighbour-run") and "--hf-token ***" in row["command"]
    frames = query(dump, "SELECT func, file FROM python.backtrace WHERE frame_type = 'Python' ORDER BY depth")
    if way == "signal":
        assert [frame["func"] for frame in frames][-3:] == ["inner", "outer", "<module>"]
        assert all(frame["file"] == PROGRAM for frame in frames)
        values = {row["name"]: row["value"] for row in query(dump, "SELECT name, value FROM python.locals")}
        assert values["neighbour"] == "'beside the secrets'" and values["wide"] == "'beside the secrets \u20ac'"
    else:
        told, = query(dump, "SELECT title, message FROM system.crash")
        assert told["title"].startswith("RuntimeError: cannot reach ftp://joe:*")


@pytest.mark.parametrize("options", [(), ("--native",), ("--locals",), ("--native", "--locals")], ids=" ".join)
def test_snapshots(secretive, tmp_path, options):
    one = secretive()
    path = str(tmp_path / "taken.snap")
    done = subprocess.run([PROBING, "-p", str(one.pid), "snapshot", *options, path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=DEADLINE)
    assert done.returncode == 0, done.stdout
    one.assert_none_in(read(path), "the snapshot")
    frames = query(path, "SELECT func FROM python.backtrace WHERE frame_type = 'Python' ORDER BY depth")
    assert [frame["func"] for frame in frames] == ["inner", "outer", "<module>"]
    if "--locals" in options:
        values = {row["name"]: row["value"] for row in query(path, "SELECT name, value FROM python.locals")}
        assert values["widest"] == "'beside the secrets \U0001f600'"
    # And one that is made of it, or of a core.
    again = str(tmp_path / "again.snap")
    probing("-t", path, "snapshot", *options, again)
    one.assert_none_in(read(again), "a snapshot of it")


KEYED = """
import multiprocessing, sys
multiprocessing.current_process().authkey = bytes(range(200, 232))

def waits():
    key = multiprocessing.current_process().authkey
    copy = bytes(key) + b" beside it"
    print("ready", flush=True)
    sys.stdin.readline()

waits()
"""


def test_the_key_of_multiprocessing_is_in_no_snapshot(python, tmp_path):
    path = str(tmp_path / "taken.snap")
    with subprocess.Popen([python, "-c", KEYED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        probing("-p", child.pid, "snapshot", "--locals", path)
        child.stdin.close()
    values = {row["name"]: row["value"] for row in query(path, "SELECT name, value FROM python.locals")}
    assert values["key"] == "<AuthenticationString ***>" and "beside it" in values["copy"]
    assert bytes(range(200, 232)) not in read(path) and bytes(range(204, 228)) not in read(path)


def test_what_is_shown_of_a_live_one(secretive):
    one = secretive()
    probing_list = probing("list", "--json").stdout
    assert str(one.pid) in probing_list
    for what, text in (
            ("list", probing("list").stdout), ("list --json", probing_list),
            ("SQL", probing("-t", one.pid, "query", "-f", "json", "SELECT * FROM system.environment").stdout),
            ("system.process", probing("-t", one.pid, "query", "-f", "csv", "SELECT * FROM system.process").stdout),
            ("backtrace --json", probing("-t", one.pid, "backtrace", "--json").stdout)):
        one.assert_none_in(text, what)
    rows = {row["name"]: row["value"] for row in query(one.pid, "SELECT name, value FROM system.environment")}
    assert {name: rows[name] for name in OPEN} == OPEN and rows["DATABASE_URL"] == "postgres://joe:***@db.example/x"
    revealed = {row["name"]: row["value"] for row in
                query(one.pid, "SET probing.reveal_secrets = on; SELECT name, value FROM system.environment")}
    assert all(revealed[name] == value for name, (value, _) in environment(False).items())


def test_variables_of_a_live_one(secretive):
    """By the name of a variable, a key or an attribute; by form; --reveal-secrets shows them."""
    one = secretive()
    shown = {"db_password": "***", "config": "{'user': 'joe', 'api_key': ***, 'mark': '\u20ac'}", "neighbour": "'beside the secrets'"}
    clear = dict(shown, db_password=repr(LOCALS[0]), config=shown["config"].replace("***", repr(LOCALS[1])))
    sql = "SELECT name, value FROM python.locals WHERE func = 'inner' AND name IN ('db_password', 'config', 'neighbour')"
    for reveal, wanted in (((), shown), (("--reveal-secrets",), clear)):
        printed = probing("-t", one.pid, "backtrace", "--locals", "-v", *reveal).stdout
        lines = dict(line.strip().split(" = ", 1) for line in printed.splitlines() if " = " in line)
        assert {name: lines[name] for name in wanted} == wanted
        threads = json.loads(probing("-t", one.pid, "backtrace", "--locals", "--json", *reveal).stdout)
        frame = next(frame for frame in threads[0]["frames"] if frame["name"] == "inner")
        told = {local["name"]: local["repr"] for local in frame["locals"]}
        assert {name: told[name] for name in wanted} == wanted
        rows = json.loads(probing("-t", one.pid, "query", "-f", "json", *reveal, sql).stdout)
        assert {row["name"]: row["value"] for row in rows} == wanted


def test_a_small_secret_does_not_blank_the_dump(python, tmp_path):
    """Values that are names, paths and numbers stand in a dump for other reasons."""
    common = {"A_TOKEN": "main", "B_KEY": "/usr/lib", "C_PASSWORD": "inner", "D_SECRET": "1", "E_TOKEN": "true", "F_AUTH": "python3"}
    os.environ.update(common)
    try:
        one = Secretive(python, "signal", tmp_path)
    finally:
        for name in common:
            del os.environ[name]
    try:
        dump, _ = one.crash()
    finally:
        one.end()
    frames = query(dump, "SELECT func, file FROM python.backtrace WHERE frame_type = 'Python' ORDER BY depth")
    assert [frame["func"] for frame in frames][-3:] == ["inner", "outer", "<module>"]
    rows = {row["name"]: row["value"] for row in query(dump, "SELECT name, value FROM system.environment")}
    assert {rows[name] for name in common} == {"***"}


def test_a_text_without_a_dump(secretive, tmp_path):
    """Where the writer cannot run, the handler writes the exception itself."""
    one = secretive("raise")
    probing("-p", one.pid, "inject", "-c", "-D", "probing.crash_dir=" + str(tmp_path), "-D", "probing.crash_wait=0.1", "-D",
            "probing.crash_program=/bin/false")
    one.child.communicate(b"go\n", DEADLINE)
    (path,) = tmp_path.glob("crash-*.txt")
    assert "RuntimeError: cannot reach ftp://joe:***@host" in path.read_text()
    one.assert_none_in(read(str(path)), "the text")
