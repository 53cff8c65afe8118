"""TLS with the user's own certificate: what speaks it, what does not, and files that will not do."""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile

import pytest

from serving import DEADLINE, PROBING, Server, received, until
from test_text import children
from websocket import WebSocket


def openssl_is_there():
    return bool(shutil.which("openssl"))


pytestmark = pytest.mark.skipif(not openssl_is_there(), reason="no openssl to make certificates with")


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE, stdin=subprocess.DEVNULL)


def make(folder, name, *more):
    """NAME.pem and NAME.key, vouched for by itself."""
    cert, key = str(folder / (name + ".pem")), str(folder / (name + ".key"))
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
            "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:{},{}".format(name, more[0] if more else "IP:127.0.0.1"))
    os.chmod(key, 0o600)
    return cert, key


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return make(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture(scope="module")
def secure(pair):
    one = Server("--cert", pair[0], "--key", pair[1], "--allow", "eval", trusted=pair[0])
    yield one
    status = one.end()
    one.remove()
    assert status == 0


def test_it_is_asked(secure, pair):
    assert secure.line.startswith("https://127.0.0.1:")
    answer = secure.ask("/api/v1", tcp=True)
    assert answer.status == 200 and answer.json["grants"][-1] == "eval" and answer.json["warning"] is None
    assert "strict-transport-security" not in answer.headers  # it would bind the other ports of that name, too
    assert secure.ask("/api/v1", tcp=True, token="").status == 401
    assert secure.ask("/api/v1").status == 200  # the Unix socket stays as it is
    told = json.load(open(os.path.join(secure.folder, "serve-{}.json".format(secure.pid))))
    assert told["url"] == secure.line.split("/#")[0]
    assert open(pair[1]).read() not in secure.log


def test_curl(secure, pair):
    if not shutil.which("curl"):
        pytest.skip("no curl")
    url = "https://localhost:{}/api/v1/processes".format(secure.port)
    words = ["curl", "-sS", "--max-time", str(DEADLINE), "-H", "Authorization: Bearer " + secure.token, url]
    told = subprocess.run([*words, "--cacert", pair[0]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert told.returncode == 0 and "processes" in json.loads(told.stdout), told.stderr
    assert subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode == 60  # nobody vouches for it


def test_long_answers_and_bodies(secure, job):
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i, i FROM n -- " + "x" * 200000
    answer = secure.ask("/api/v1/p/{}/query?format=csv".format(job.pid), "POST", sql, tcp=True, Content_Type="text/plain")
    assert answer.status == 200 and answer.body.count(b"\n") == 200001


def test_split(secure):
    request = "GET /api/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n".format(secure.token).encode()
    for at in range(1, len(request), 9):
        assert secure.raw(request[:at], request[at:], pause=0.002).startswith(b"HTTP/1.1 200"), at


def test_websocket(secure):
    with WebSocket(secure) as one:
        assert "processes" in one.value(one.subscribe("processes"))["value"]


def test_who_leaves_ends_his_work(secure, job):
    one = secure.connected()
    one.sendall("GET /api/v1/p/{}/profile?seconds=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n".format(job.pid, secure.token).encode())
    until(lambda: children(secure.pid))
    one.close()
    until(lambda: not children(secure.pid))


@pytest.mark.parametrize("version, agrees", [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)])
def test_versions(secure, pair, version, agrees):
    context = ssl.create_default_context(cafile=pair[0])
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection((secure.host, secure.port), DEADLINE) as bare:
        if not agrees:
            with pytest.raises((ssl.SSLError, OSError)):
                context.wrap_socket(bare, server_hostname="localhost")
            return
        with context.wrap_socket(bare, server_hostname="localhost") as one:
            assert one.selected_alpn_protocol() == "http/1.1"  # never HTTP/2


@pytest.mark.parametrize("name", ["probing", "no.such.host", "probing.example", ".".join(["x" * 50] * 4)])
def test_any_name_is_answered(secure, pair, name):
    """What a client calls the server in its first message changes nothing."""
    context = ssl.create_default_context(cafile=pair[0])
    context.check_hostname = False
    with socket.create_connection((secure.host, secure.port), DEADLINE) as bare, context.wrap_socket(bare, server_hostname=name) as one:
        one.sendall("GET /api/v1 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n".format(name, secure.token).encode())
        assert received(one).startswith(b"HTTP/1.1 200")


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@pytest.mark.parametrize("sent", [b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"help\n", b"\x16\x02\x00\x00", HELLO + b"x" * 500, b"\x16\x03\x01\xff\xff" + b"y" * 70000,
                                  b"\x15\x03\x01\x00\x02\x02\x28", b"\x80\x2e\x01\x00\x02"])
def test_what_is_no_tls_is_closed(secure, sent):
    """Plain HTTP and text on the same port, too: nobody sends his token in the clear by mistake and gets an answer."""
    with socket.create_connection((secure.host, secure.port), DEADLINE) as one:
        one.settimeout(DEADLINE)
        try:
            one.sendall(sent)
            one.shutdown(socket.SHUT_WR)
            answer = received(one)
        except OSError:
            answer = b""
        assert b"HTTP" not in answer and b"bt " not in answer
    assert secure.alive() and secure.ask("/api/v1", tcp=True).status == 200


def test_text_is_not_spoken_in_tls(secure):
    assert b"bt " not in secure.raw(b"help\n", end=True)
    assert b"bt " in secure.raw(b"help\n", tcp=False, end=True)
    assert secure.raw(HELLO + b"x" * 500, tcp=False) == b""  # nor TLS by the Unix socket


def test_a_chain(serve, tmp_path):
    """A root that clients know, and one between it and the server's own."""
    root = make(tmp_path, "root")
    for name, by, what in (("between", root, "CA:TRUE"), ("leaf", (str(tmp_path / "between.pem"), str(tmp_path / "between.key")), "CA:FALSE")):
        key, asked, cert = (tmp_path / (name + end) for end in (".key", ".csr", ".pem"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", asked, "-subj", "/CN=" + name)
        (tmp_path / "more").write_text("basicConstraints=critical,{}\nsubjectAltName=IP:127.0.0.1\n".format(what))
        openssl("x509", "-req", "-in", asked, "-CA", by[0], "-CAkey", by[1], "-CAcreateserial", "-out", cert, "-days", "2", "-extfile", tmp_path / "more")
    whole = tmp_path / "whole.pem"  # the key stands in it, too
    whole.write_text("".join((tmp_path / name).read_text() for name in ("leaf.pem", "between.pem", "leaf.key")))
    whole.chmod(0o600)
    assert serve("--cert", str(whole), trusted=root[0]).ask("/api/v1", tcp=True).status == 200


def test_an_open_network(serve, pair, tmp_path):
    """With TLS code may come from elsewhere, too; without, everybody is told that others may read along."""
    server = serve("--address", "0.0.0.0:0", "--allow", "eval", "--cert", pair[0], "--key", pair[1], trusted=pair[0])
    server.host = "127.0.0.1"
    assert server.ask("/api/v1", tcp=True).json["grants"] == ["look", "control", "eval"] and server.ask("/api/v1", tcp=True).json["warning"] is None
    assert server.post("/api/v1/tokens", {"allow": "eval"}).status == 200
    bare = serve("--address", "0.0.0.0:0")
    assert "encrypt" in bare.ask("/api/v1", tcp=True).json["warning"]
    assert bare.post("/api/v1/tokens", {"allow": "eval"}).status == 400
    bare.end()


# ---- files that will not do ----


def refused(tmp_path, *words):
    told = subprocess.run([PROBING, "serve", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
    assert told.returncode and not told.stdout and told.stderr.count("probing: ") == 1, told
    assert not (tmp_path / "probing").exists()  # it ended before anything was opened
    return told.returncode, told.stderr


def test_wrong_files(pair, tmp_path):
    cert, key = pair
    other = make(tmp_path, "other")
    locked, empty, many = (tmp_path / name for name in ("locked.key", "empty", "open.key"))
    openssl("pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked)
    locked.chmod(0o600)
    empty.write_text("")
    shutil.copyfile(key, str(many))
    many.chmod(0o644)
    for words, status, said in ((("--cert", tmp_path / "none", "--key", key), 3, "certificate"), (("--cert", cert, "--key", tmp_path / "none"), 3, "key"),
                                (("--cert", empty, "--key", key), 2, "holds no certificate"), (("--cert", cert), 2, "holds no private key"),
                                (("--cert", cert, "--key", other[1]), 2, "is not that of the certificate"),
                                (("--cert", cert, "--key", locked), 2, "passphrase"), (("--cert", cert, "--key", many), 5, "others than its owner"),
                                (("--cert", cert, "--key", tmp_path), 2, "is a folder"), (("--key", key), 2, "--cert"),
                                (("--unix", "--cert", cert, "--key", key), 2, "TCP"), (("--cert", "/dev/zero", "--key", key), None, "/dev/zero")):
        got, text = refused(tmp_path, *words)
        assert said in text and (status is None or got == status), (words, got, text)
    assert "secret" not in refused(tmp_path, "--cert", cert, "--key", locked)[1]


def test_it_has_expired(serve, tmp_path):
    """Said, and served all the same: what clients then make of it is theirs."""
    cert, key, asked, how = (str(tmp_path / name) for name in ("old.pem", "old.key", "old.csr", "how"))
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", asked, "-subj", "/CN=x")
    (tmp_path / "index").write_text("")
    (tmp_path / "how").write_text("[ca]\ndefault_ca = all\n[all]\ndatabase = {0}/index\nnew_certs_dir = {0}\nrand_serial = yes\ndefault_md = sha256\npolicy = any\n[any]\n"
                                  "commonName = supplied\n".format(tmp_path))
    openssl("ca", "-batch", "-selfsign", "-config", how, "-in", asked, "-keyfile", key, "-out", cert, "-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
    os.chmod(key, 0o600)
    server = serve("--cert", cert, "--key", key, trusted=cert)
    assert server.ask("/health").status == 200
    server.process.send_signal(15)
    assert "has expired" in server.process.stderr.read()


# ---- our own client ----


def ask(where, tmp_path, *words, **variables):
    """Where no server of the user's own is."""
    return subprocess.run([PROBING, "-t", where, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                          env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path), **variables))


def test_from_elsewhere(secure, serve, pair, tmp_path):
    told = ask(secure.line, tmp_path, "list", SSL_CERT_FILE=pair[0])
    assert told.returncode == 0 and "PID" in told.stdout.upper(), told.stderr
    assert ask(secure.line.replace("127.0.0.1", "localhost"), tmp_path, "list", SSL_CERT_FILE=pair[0]).returncode == 0
    other = make(tmp_path, "other", "DNS:elsewhere")  # of another host
    for where, variables in ((secure.line, {}), (serve("--cert", other[0], "--key", other[1], trusted=other[0]).line, {"SSL_CERT_FILE": other[0]})):
        told = ask(where, tmp_path, "list", **variables)
        assert told.returncode and not told.stdout and "certificate" in told.stderr and secure.token not in told.stderr
    told = ask(secure.line.replace("https", "http"), tmp_path, "list")
    assert told.returncode and not told.stdout and "no server of Probing" in told.stderr


def test_ones_own_server_is_known(secure, tmp_path):
    """By its certificate, whoever vouches for it; another one there is not asked."""
    where = "{}:{}".format(secure.host, secure.port)
    told = subprocess.run([PROBING, "-t", where, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                          env=secure.environment)
    assert told.returncode == 0 and "PID" in told.stdout.upper(), told.stderr
    mine = tmp_path / "probing"
    mine.mkdir(mode=0o700)
    (mine / "token").write_text(secure.token)
    (mine / "serve-1.json").write_text(json.dumps({"pid": 1, "socket": "/x", "url": "https://" + where, "token_file": str(mine / "token"), "certificate": "0" * 64}))
    told = ask(where, tmp_path, "list")
    assert told.returncode == 5 and not told.stdout and "not the one that runs here" in told.stderr


def test_a_server_that_is_none(tmp_path):
    """It takes the hello and says nothing, or something else."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        client = subprocess.Popen([PROBING, "-t", "https://127.0.0.1:{}/#token={}".format(door.getsockname()[1], "t" * 32), "list"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, encoding="utf-8", env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
        with door.accept()[0] as one:
            assert one.recv(1000)[0] == 0x16
            one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        out, err = client.communicate(timeout=DEADLINE)
    assert client.returncode and not out and "no server answers there by TLS" in err


# ---- a server beside a process ----


def test_a_server_of_its_own(pair, job, start, any_python, tmp_path):
    """PROBING_SERVE_CERT and _KEY; who joins it is told the same address, and `-t` knows it by its certificate."""
    short = tempfile.mkdtemp(prefix="tls-")
    environment = dict(os.environ, XDG_RUNTIME_DIR=short, PROBING_STORE="off", PROBING_SERVE_CERT=str(pair[0]), PROBING_SERVE_KEY=str(pair[1]), PROBING_SERVE_LINGER="0.1")
    own = start(any_python, "threads.py").settle()

    def inject(pid, *words):
        return subprocess.run([PROBING, "-p", str(pid), "inject", *words], check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                              env=environment).stdout.splitlines()[1]

    url = inject(own.pid, "-b")
    where, token = re.match(r"https://([^/]+)/#token=(\S+)$", url).groups()
    connection = http.client.HTTPSConnection(where, timeout=DEADLINE, context=ssl.create_default_context(cafile=str(pair[0])))
    connection.request("GET", "/api/v1/p/{}/stacks".format(own.pid), headers={"Authorization": "Bearer " + token})
    assert connection.getresponse().status == 200
    connection.close()
    other = start(any_python, "threads.py").settle()
    assert inject(other.pid, "-l", where) == url
    told = subprocess.run([PROBING, "-t", where, "list"], stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, env=environment)
    assert told.returncode == 0 and str(other.pid) in told.stdout and str(job.pid) not in told.stdout
    for one in (own, other):
        one.child.kill()
        one.child.wait()
    until(lambda: os.listdir(os.path.join(short, "probing")) == ["serve.log"])
    shutil.rmtree(short)
