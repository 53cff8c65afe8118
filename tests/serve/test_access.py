"""Who gets in: by which door, with what, and what he may then do."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading

import pytest

from serving import DEADLINE, PROBING, Server
from websocket import WebSocket

LOOPBACK = "0100007F"


def nobody(*words, **more):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, stdin=subprocess.DEVNULL, **more)


# ---- the token ----


def test_tcp_needs_the_token(server):
    for token in ("", "x", server.token[:-1], server.token + "0", server.token.upper(), "Bearer " + server.token):
        answer = server.ask("/api/v1", tcp=True, token=token)
        assert answer.status in (401, 429) and server.token not in answer.text
    assert server.ask("/api/v1?token=" + server.token, tcp=True, token="").status == 401
    assert server.ask("/api/v1", tcp=True, token="", Cookie="token=" + server.token).status == 401
    assert server.ask("/api/v1", tcp=True).status == 200
    assert server.ask("/api/v1", tcp=True, token="", X_Probing_Token=server.token).status == 200
    assert server.ask("/api/v1", tcp=True, token="", Authorization="bearer  " + server.token).status == 200


def test_every_route_needs_it(server):
    for path in ("/assets/nowhere", "/health", "/api/v1", "/api/v1/processes", "/api/v1/p/1/stacks", "/api/v1/p/1/query?sql=SELECT+1", "/nowhere"):
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD"):
            assert server.ask(path, method, tcp=True, token="").status == 401, (method, path)


def test_wrong_tokens_are_counted(serve):
    """The right one is let in all the time."""
    server = serve()
    statuses = [server.ask("/api/v1", tcp=True, token="wrong%d" % i).status for i in range(15)]
    assert statuses == [401] * 10 + [429] * 5
    assert server.ask("/api/v1", tcp=True).status == 200
    assert server.ask("/api/v1").status == 200


def test_a_token_of_ones_own(serve, tmp_path):
    file = tmp_path / "token"
    file.write_text("a-token-of-sixteen-and-more\nrest")
    assert serve("--token-file", str(file)).ask("/api/v1", tcp=True, token="a-token-of-sixteen-and-more").status == 200
    assert serve(variables={"PROBING_AUTH_TOKEN": "b" * 16}).token == "b" * 16
    for variables, words in (({"PROBING_AUTH_TOKEN": "short"}, ()), ({}, ("--token-file", str(tmp_path / "missing")))):
        refused = subprocess.run([PROBING, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                 env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path), **variables), timeout=DEADLINE)
        assert refused.returncode and not refused.stdout and "token" in refused.stderr


def test_a_token_from_a_pipe(tmp_path):
    """Until it comes SIGTERM and Ctrl-C end the server, and nothing of it is there."""
    pipe = tmp_path / "pipe"
    os.mkfifo(str(pipe))
    environment = dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path))
    waiting = subprocess.Popen([PROBING, "serve", "--token-file", str(pipe)], stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    with open(str(pipe), "w"):  # opens once the server has the other end
        assert not (tmp_path / "probing").exists()
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(DEADLINE) == -signal.SIGTERM and not waiting.stdout.read()
    serving = subprocess.Popen([PROBING, "serve", "--token-file", str(pipe)], stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    pipe.write_text("c" * 16 + "\n")
    assert serving.stdout.readline().endswith("/#token=" + "c" * 16 + "\n")
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(DEADLINE) == 0


def test_the_token_stands_nowhere(server):
    """In no log, no answer, no argument, and no file that others may read."""
    server.ask("/api/v1", tcp=True)
    server.ask("/nowhere", tcp=True)
    assert server.token not in server.log
    assert server.token not in open("/proc/{}/cmdline".format(server.pid)).read()
    assert stat.S_IMODE(os.stat(server.folder).st_mode) == 0o700
    for name in os.listdir(server.folder):
        assert stat.S_IMODE(os.lstat(os.path.join(server.folder, name)).st_mode) == 0o600, name
    holders = [name for name in os.listdir(server.folder) if os.path.isfile(os.path.join(server.folder, name))
               and server.token in open(os.path.join(server.folder, name)).read()]
    assert holders == ["serve-{}.token".format(server.pid)]


# ---- browsers and proxies ----


@pytest.mark.parametrize("headers, status", [
    ({"Host": "evil.example"}, 200),  # curl --unix-socket with any name: the kernel proves the user
    ({"Origin": "http://localhost", "Host": "localhost"}, 200),
    ({"Origin": "http://localhost:3344", "Host": "localhost:3344"}, 200),
    ({"Origin": "http://evil.example", "Host": "localhost"}, 403),
    ({"Origin": "null", "Host": "localhost"}, 403),
    ({"Origin": "http://evil.example", "Host": "evil.example"}, 421),
    ({"Sec-Fetch-Site": "cross-site", "Host": "localhost"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Host": "localhost"}, 403),
    ({"Sec-Fetch-Site": "same-origin", "Host": "127.0.0.1:1"}, 200),
    ({"Sec-Fetch-Mode": "cors", "Host": "user@localhost"}, 421),
    ({"Sec-Fetch-Mode": "cors", "Host": "localhost.evil.example"}, 421),
    ({"Sec-Fetch-Mode": "cors", "Host": "localhost:1@evil.example"}, 421),
    ({"X-Forwarded-For": "1.2.3.4", "Host": "hub.example"}, 421),
    ({"Via": "1.1 proxy", "Host": "hub.example"}, 421),
])
def test_the_unix_socket_behind_a_proxy(server, headers, status):
    answer = server.ask("/api/v1", **headers)
    assert answer.status == status, answer.body
    if status == 200 and len(headers) > 1:
        assert answer.json["grants"] == ["look"]


def test_a_proxy_with_the_token(server):
    assert server.ask("/api/v1", token=server.token, Origin="http://hub.example", Host="hub.example").json["grants"] == ["look"]
    assert server.ask("/api/v1", token="wrong", Origin="http://hub.example", Host="hub.example").status == 401


def test_no_other_page_may_ask(server):
    preflight = server.ask("/api/v1", "OPTIONS", tcp=True, Origin="http://evil.example", Access_Control_Request_Method="GET")
    assert preflight.status == 403
    for answer in (preflight, server.ask("/api/v1", tcp=True, Origin="http://evil.example"), server.ask("/nowhere", tcp=True)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


# ---- doors ----


def listening(pid):
    """(address, port) of the TCP sockets on which a process listens."""
    inodes = set()
    for fd in os.listdir("/proc/{}/fd".format(pid)):
        try:
            inodes.add(os.readlink("/proc/{}/fd/{}".format(pid, fd)))
        except OSError:
            pass
    found = []
    for kind in ("tcp", "tcp6"):
        for line in open("/proc/net/" + kind).read().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and "socket:[{}]".format(words[9]) in inodes:
                address, port = words[1].split(":")
                found.append((address, int(port, 16)))
    return found


def test_it_listens_on_loopback_alone(serve):
    server = serve()
    assert listening(server.pid) == [(LOOPBACK, server.port)]
    assert listening(serve("--unix").pid) == []


def test_an_open_network(serve, tmp_path):
    """Another address than loopback asks for the token, and never runs code."""
    server = serve("--address", "0.0.0.0:0")
    assert server.ask("/api/v1", tcp=True, token="").status == 401
    refused = subprocess.run([PROBING, "serve", "--address", "0.0.0.0:0", "--allow", "eval"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                             env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
    assert refused.returncode == 2 and "is not loopback" in refused.stderr


def test_grants(serve):
    assert serve("--allow", "control").ask("/api/v1", tcp=True).json["grants"] == ["look", "control"]
    assert serve("--allow", "eval").ask("/api/v1", tcp=True).json["grants"] == ["look", "control", "eval"]
    refused = subprocess.run([PROBING, "serve", "--allow", "everything"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             encoding="utf-8", timeout=DEADLINE)
    assert refused.returncode == 2 and "everything" in refused.stderr


# ---- second tokens ----


def serve_words(server, *words):
    return subprocess.run([PROBING, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                          env=server.environment)


def test_a_second_token(serve):
    """`serve --url --allow eval`: for a running server, until it is revoked."""
    server = serve()
    told = serve_words(server, "--url", "--allow", "eval")
    assert told.returncode == 0, told.stderr
    url, token = told.stdout.strip().split("#token=")
    assert url == server.line.split("#")[0] and token != server.token and len(token) >= 32
    assert server.ask("/api/v1", tcp=True, token=token).json["grants"] == ["look", "control", "eval"]
    assert server.ask("/api/v1", tcp=True).json["grants"] == ["look"] and server.ask("/api/v1").json["second_tokens"] == 1
    control = serve_words(server, "--url", "--allow", "control").stdout.strip().split("#token=")[1]
    assert server.ask("/api/v1", tcp=True, token=control).json["grants"] == ["look", "control"]
    assert token not in server.log and control not in server.log
    assert serve_words(server, "--url").stdout.strip() == server.line
    assert serve_words(server, "--revoke").stdout == "2 second tokens ended\n"
    assert server.ask("/api/v1", tcp=True, token=token).status == 401 and server.ask("/api/v1", tcp=True).status == 200


def test_a_second_token_for_a_proxy(serve):
    """A server with the Unix socket alone has no address: the token is for that of who shows its page."""
    server = serve("--unix", "--host", "*")
    there = {"Via": "1.1 proxy", "Host": "hub.example"}
    told = serve_words(server, "--url", "--allow", "eval")
    mark, token = told.stdout.strip().split("=")
    assert told.returncode == 0 and mark == "#token" and token not in server.log
    assert server.ask("/api/v1", **there).json["grants"] == ["look"]
    assert server.ask("/api/v1", token=token, **there).json["grants"] == ["look", "control", "eval"]
    assert server.ask("/api/v1", Origin="http://evil.example", **there).status == 403
    assert server.ask("/api/v1", Origin="http://hub.example", **there).json["grants"] == ["look"]


def test_who_gives_second_tokens(serve):
    """The user through the Unix socket alone: neither a token with all grants, nor a page."""
    server = serve("--allow", "eval")
    assert server.post("/api/v1/tokens", {"allow": "eval"}, tcp=True).status == 403
    assert server.post("/api/v1/tokens", {"allow": "eval"}, Origin="http://localhost", Host="localhost").status == 403
    assert server.post("/api/v1/tokens", {"allow": "everything"}).status == 400
    tokens = [server.post("/api/v1/tokens", {"allow": "control"}).json["token"] for _ in range(16)]
    assert len(set(tokens)) == 16
    assert server.post("/api/v1/tokens", {"allow": "control"}).status == 409
    assert server.ask("/api/v1/tokens", "DELETE").json == {"ended": 16}


def test_who_makes_the_agent(serve):
    server = serve("--allow", "eval")
    assert server.post("/api/v1/agent", {"agent": {}}, tcp=True).status == 403
    assert server.post("/api/v1/agent", {"agent": {}}, Origin="http://localhost", Host="localhost").status == 403
    assert server.ask("/api/v1/agent", "DELETE", tcp=True).status == 403
    assert server.post("/api/v1/agent", {"agent": {"colour": "blue"}}).status == 400
    assert server.post("/api/v1/agent", {"agent": {"bus": "/nowhere"}}).status == 404
    assert server.ask("/api/v1/agent", "DELETE").json == {"ended": False}


def test_the_log_names_the_token(serve):
    server = serve()
    token = server.post("/api/v1/tokens", {"allow": "control"}).json["token"]
    server.post("/api/v1/p/1/detach", {}, tcp=True, token=token)
    assert "with second token 1" in server.log


# ---- without a token ----


@pytest.mark.parametrize("headers, status", [
    ({}, 200), ({"Host": "localhost:1"}, 200), ({"Host": "evil.example"}, 421), ({"Host": "hub.example"}, 200), ({"Host": "hub.example:80"}, 200),
    ({"Host": "hub.example.evil"}, 421), ({"Origin": "http://evil.example", "Host": "localhost"}, 403),
    ({"Origin": "http://localhost", "Host": "localhost"}, 200), ({"Origin": "http://localhost:81", "Host": "localhost:80"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Host": "localhost"}, 403), ({"Sec-Fetch-Site": "same-site", "Host": "localhost"}, 403),
    ({"Sec-Fetch-Site": "none", "Host": "localhost"}, 200)])
def test_no_token(open_server, headers, status):
    """DNS rebinding, cross-site requests, and what is right."""
    answer = open_server.ask("/api/v1", tcp=True, **headers)
    assert answer.status == status, answer.body
    if status == 200:
        assert answer.json["grants"] == ["look"]


@pytest.fixture(scope="module")
def open_server():
    one = Server("--no-token", "--host", "hub.example")
    yield one
    one.end()
    one.remove()


def test_no_token_and_a_websocket_of_another_page(open_server):
    for headers, status in (({"Origin": "http://evil.example", "Host": "localhost"}, 403), ({"Host": "evil.example"}, 421),
                            ({"Sec-Fetch-Site": "cross-site", "Host": "localhost"}, 403), ({"Origin": "http://localhost", "Host": "localhost"}, 101)):
        with WebSocket(open_server, token=None, **headers) as one:
            assert one.status == status, headers
            if status == 101:
                assert one.ask(op="sub", topic="processes")["ok"]


def test_no_host(open_server):
    """A program may leave it out, as old clients do; what a browser or a proxy sends has one."""
    for more, status in ((b"", b"200"), (b"Origin: http://evil.example\r\n", b"421"), (b"Sec-Fetch-Site: none\r\n", b"421"), (b"Via: 1.1 x\r\n", b"421")):
        assert open_server.raw(b"GET /api/v1 HTTP/1.1\r\n" + more + b"\r\n").startswith(b"HTTP/1.1 " + status), more


def test_a_page_that_is_named_may_ask(serve):
    """--origin: of /mcp with the token, and where none is needed; any other page is refused as before."""
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    server = serve("--origin", "https://hub.example:8443")
    for origin, status in (("https://hub.example:8443", 200), ("https://hub.example", 403), ("https://evil.example", 403), ("null", 403)):
        assert server.ask("/mcp", "POST", ping, tcp=True, Origin=origin).status == status, origin
    server = serve("--no-token", "--origin", "https://hub.example")
    for origin, status in (("https://hub.example", 200), ("https://hub.example.evil", 403), ("http://hub.example", 403)):
        assert server.ask("/api/v1", tcp=True, Origin=origin).status == status, origin


def test_no_token_is_for_its_user_to_look(open_server, tmp_path):
    assert re.match(r"http://127.0.0.1:\d+/$", open_server.line)
    assert serve_words(open_server, "--url").stdout.strip() == open_server.line
    assert open_server.post("/api/v1/p/1/detach", {}, tcp=True).status == 403
    assert "401" in nobody("/usr/bin/python3", "-c", CLIENT.format(
        family="socket.AF_INET", address=(open_server.host, open_server.port), bytes=b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n")).stdout
    token = serve_words(open_server, "--url", "--allow", "eval").stdout.strip().split("#token=")[1]
    assert open_server.ask("/api/v1", tcp=True, token=token).json["grants"][-1] == "eval"
    for words in (("--host", "*"), ("--no-token", "--host", "*"), ("--no-token", "--address", "0.0.0.0:0"), ("--allow", "control", "--address", "0.0.0.0:0"), ("--host", "a@b"), ("--host", ""),
                  ("--origin", "hub.example"), ("--origin", "https://hub.example/path"), ("--origin", "://x")):
        refused = subprocess.run([PROBING, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                 timeout=DEADLINE, env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
        assert refused.returncode == 2 and not refused.stdout, words


CLIENT = """
import socket, sys
one = socket.socket({family}); one.settimeout(20)
try:
    one.connect({address!r})
    one.sendall({bytes!r})
    print(repr(one.recv(4000)))
except OSError as error:
    print("no way in:", error)
"""


def test_another_user(serve):
    server = serve()
    python = "/usr/bin/python3"
    for folder in (server.folder, server.runtime):
        os.chmod(folder, 0o755)  # as if the folders did not keep him out
    os.chmod(server.socket_path, 0o666)
    get = b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    local = nobody(python, "-c", CLIENT.format(family="socket.AF_UNIX", address=server.socket_path, bytes=get)).stdout
    assert "HTTP" not in local and "refused uid 65534" in server.log
    there = dict(family="socket.AF_INET", address=(server.host, server.port))
    assert "401" in nobody(python, "-c", CLIENT.format(bytes=get, **there)).stdout
    assert "first a line" in nobody(python, "-c", CLIENT.format(bytes=b"list\n", **there)).stdout
    shown = "token {}\nlist\n".format(server.token).encode()
    assert "pid" in nobody(python, "-c", CLIENT.format(bytes=shown, **there)).stdout.lower()


ASKED = [("GET", path, None) for path in ("", "/stacks", "/stacks?format=text", "/stacks?native=1", "/threads", "/tables", "/tasks", "/history", "/query?sql=SELECT+1",
                                           "/object/0x1000", "/tensor/0x1000", "/source?frame=x:1", "/snapshot", "/profile?seconds=0.1")] + [
    ("POST", "/inject", {}), ("POST", "/eval", {"code": "1"}), ("POST", "/skills/health", {}), ("POST", "/debug", {}), ("PUT", "/crash", {"on": True})]


def test_a_process_of_somebody_else(serve, job):
    """Not ours to look at: 403 with what to do, whatever is asked, and by all doors; nothing of it is told but what /proc says to all."""
    if nobody(PROBING, "--version").returncode:
        pytest.skip("another user cannot run this build")
    server = serve("--allow", "control,eval", user=65534)
    started = next(row["id"] for row in server.ask("/api/v1/processes", tcp=True).json["processes"] if row["pid"] == job.pid)
    for target in (str(job.pid), started):
        for method, path, body in ASKED if target == started else ASKED[:2]:
            told = server.ask("/api/v1/p/{}{}".format(target, path), method, json.dumps(body) if body is not None else None, tcp=True)
            assert told.status == 403 and told.error["code"] == "permission" and told.error["message"] and told.error["remedy"], (method, path, told.text)
    assert server.ask("/api/v1/p/{}.1/stacks".format(job.pid), tcp=True).status == 410
    assert "it belongs to user" in server.text("token " + server.token, "pid {}".format(job.pid), "bt")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stacks", "arguments": {"target": str(job.pid)}}}
    assert server.post("/mcp", message, tcp=True).json["result"]["isError"]
    assert 'pid="{}"'.format(job.pid) not in server.ask("/metrics", tcp=True).text


@pytest.mark.parametrize("trick", ["link", "open to others"])
def test_a_folder_that_is_not_safe(tmp_path, trick):
    folder = tmp_path / "probing"
    if trick == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    refused = subprocess.run([PROBING, "serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                             env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
    assert refused.returncode == 5 and not refused.stdout and "is not a folder of user" in refused.stderr


# ---- life ----


def test_one_server_a_user(serve):
    first = serve()
    second = subprocess.run([PROBING, "serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                            timeout=DEADLINE, env=first.environment)
    assert second.returncode == 0 and second.stdout.strip() == first.line and str(first.pid) in second.stderr
    url = subprocess.run([PROBING, "serve", "--url"], stdout=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, env=first.environment)
    assert url.stdout.strip() == first.line
    told = json.load(open(os.path.join(first.folder, "serve-{}.json".format(first.pid))))
    assert told["pid"] == first.pid and told["socket"] == first.socket_path and told["url"].endswith(str(first.port))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_and_leaves_nothing(serve, how):
    server = serve()
    assert server.ask("/health").status == 200
    silent = server.connected()  # a connection that says nothing, and a session of text
    text = server.connected()
    text.sendall(b"help\n")
    assert text.recv(100)
    assert server.end(how) == 0
    silent.close()
    text.close()
    assert sorted(os.listdir(server.folder)) == ["serve.lock", "serve.log"]
    none = subprocess.run([PROBING, "serve", "--url"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=DEADLINE, env=server.environment)
    assert none.returncode == 3 and "no server of yours runs" in none.stderr


def test_the_list_says_where_it_is(serve):
    server = serve()
    told = serve_words(server, "--url")  # the whole address, to its owner
    assert told.stdout.strip() == server.line
    listed = subprocess.run([PROBING, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, env=server.environment)
    assert "process {} serves at {}".format(server.pid, server.line.split("#")[0]) in listed.stderr and "serves" not in listed.stdout
    assert server.token not in listed.stderr + listed.stdout
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    listed = subprocess.run([PROBING, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE, env=server.environment)
    assert not listed.stderr


@pytest.mark.parametrize("before", ["", "4194305\n"], ids=["new", "of a server that was killed"])
def test_a_server_that_has_just_begun(tmp_path, before):
    """It holds the lock, and says a moment later who it is: the second one waits for that."""
    (tmp_path / "probing").mkdir(mode=0o700)
    with open(str(tmp_path / "probing" / "serve.lock"), "w") as lock:
        lock.write(before)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen([PROBING, "serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                  env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            second.wait(0.5)
        os.ftruncate(lock.fileno(), 0)
        os.pwrite(lock.fileno(), b"%d\n" % os.getpid(), 0)
        assert "process {}\n".format(os.getpid()) in second.communicate(timeout=DEADLINE)[1]


def test_who_looks_at_the_lock_keeps_no_server_out(serve, tmp_path):
    (tmp_path / "probing").mkdir(mode=0o700)
    with open(str(tmp_path / "probing" / "serve.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        threading.Timer(0.5, fcntl.flock, (lock, fcntl.LOCK_UN)).start()
        assert serve("--unix", runtime=str(tmp_path)).end() == 0


def test_killed_and_begun_again(serve):
    first = serve()
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    second = serve(runtime=first.runtime)
    assert second.ask("/health").status == 200 and second.ask("/health", tcp=True).status == 200
    assert second.end() == 0


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = subprocess.run([PROBING, "serve", "--address", "127.0.0.1:{}".format(taken.getsockname()[1])],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=DEADLINE,
                                 env=dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path)))
    assert refused.returncode and not refused.stdout and "listening on" in refused.stderr
    assert sorted(os.listdir(str(tmp_path / "probing"))) == ["serve.lock"]
