"""`probing debug --listen` and `--pause`: TCP and Unix sockets, who is let in, and what becomes of the program."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from client import Failed, Socket, framed
from debuggee import go_on, stop_at, stopped
from support.injection import wait_until
from support.target import DEADLINE, PROBING, die_with_parent

TOKEN = "correct-horse-battery-staple"
# As another user: connect, attach, tell what came.
STRANGER = """
import encodings.idna, json, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
one = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
file = one.makefile("rb")
def ask(seq, command, **arguments):
    text = json.dumps({"seq": seq, "type": "request", "command": command, "arguments": arguments}).encode()
    one.sendall(b"Content-Length: %d\\r\\n\\r\\n" % len(text) + text)
    while True:
        length = int(file.readline().split()[1])
        file.readline()
        message = json.loads(file.read(length).decode())
        if message["type"] == "response":
            return message
ask(1, "initialize", adapterID="x")
arguments = {"token": sys.argv[2]} if sys.argv[2:] else {}
print(json.dumps(ask(2, "attach", **arguments)))
"""


def stranger(server, *token):
    return json.loads(subprocess.run([sys.executable, "-c", STRANGER, str(server.address[1]), *token], stdout=subprocess.PIPE,
                                     encoding="utf-8", timeout=DEADLINE, check=True).stdout)


def made_token(server):
    """The one that it printed."""
    while not server.said[-1].startswith("Other clients: "):
        server.said.append(server.child.stdout.readline())
        assert server.said[-1], server.said
    token = server.said[-1].strip().rpartition("?token=")[2]
    assert '"token": "{}"'.format(token) in "".join(server.said) and len(token) == 32
    return token


def break_and_leave(session, program):
    body, _ = stop_at(session, program, "cold", "cold")
    go_on(session, program, body["threadId"], "cold")
    session.disconnect()
    session.wait_end()


def test_tcp_one_after_the_other(debuggee, client, serve, python):
    program = debuggee(python, "hot")
    server = serve(program, "--listen")
    for _ in range(3):
        session = client(Socket(server.address))
        session.attach(connect={"host": server.address[0], "port": server.address[1]}, justMyCode=False)
        break_and_leave(session, program)
        program.moves("hot")
    assert server.end() == 0


def test_what_it_prints_can_be_pasted(debuggee, serve, any_python):
    server = serve(debuggee(any_python), "--listen")
    server.end()
    text = "".join(server.said)
    assert '"type": "debugpy"' in text and '"request": "attach"' in text and '"port": {}'.format(server.address[1]) in text


def test_a_second_client_is_told_and_the_first_goes_on(debuggee, client, serve, any_python):
    program = debuggee(any_python)
    server = serve(program, "--listen")
    first = client(Socket(server.address))
    first.attach()
    second = client(Socket(server.address))
    with pytest.raises((Failed, AssertionError)) as failed:
        second.initialize()
        second.ready(second.send("attach", {}))
    assert isinstance(failed.value, Failed), failed.value
    assert "debug" in failed.value.message
    second.close()
    break_and_leave(first, program)


def test_the_network_goes(debuggee, client, serve, any_python):
    program = debuggee(any_python, "hot")
    server = serve(program, "--listen")
    for _ in range(2):
        session = client(Socket(server.address))
        session.attach()
        stop_at(session, program, "cold", "cold")
        session.kill()
        program.until("done cold")
        program.moves("hot")
        program.run("cold")


def test_a_client_that_comes_while_another_leaves(debuggee, client, serve, any_python):
    """It waits for the other's end, and gets a session of its own."""
    program = debuggee(any_python, "hot")
    server = serve(program, "--listen")
    for _ in range(10):
        session = client(Socket(server.address))
        session.attach()
        session.send("evaluate", {"expression": "sum(range(100000))", "context": "repl"})
        session.kill()
    session = client(Socket(server.address))
    session.attach()
    break_and_leave(session, program)
    assert server.end() == 0


def test_unix_socket(debuggee, client, serve, any_python, tmp_path):
    program = debuggee(any_python)
    path = str(tmp_path / "debug.sock")
    server = serve(program, "--listen", address=path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    session = client(Socket(path))
    session.attach()
    break_and_leave(session, program)
    assert server.end() == 0 and not os.path.exists(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_other_users_stay_outside(debuggee, serve, any_python):
    server = serve(debuggee(any_python), "--listen")
    answer = stranger(server)
    assert not answer["success"] and "token" in answer["message"]
    assert not stranger(server, "0" * 32)["success"]
    assert stranger(server, made_token(server))["success"]
    assert stranger(serve(debuggee(any_python), "--listen", "--any-user"))["success"]


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_other_addresses_need_a_token(debuggee, client, serve, any_python, address):
    """Of everybody, this user's clients on this machine, too."""
    program = debuggee(any_python)
    server = serve(program, "--listen", address=address)
    here = ("127.0.0.1", server.address[1])
    session = client(Socket(here))
    session.initialize()
    assert "token" in session.refused("attach", {})
    session.close()
    session = client(Socket(here))
    session.attach(token=made_token(server))
    break_and_leave(session, program)


def test_other_addresses_are_not_for_any_user(debuggee, any_python):
    done = subprocess.run([PROBING, "-t", str(debuggee(any_python).pid), "debug", "--listen", "--any-user", "--address", "0.0.0.0:0"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE, encoding="utf-8", stdin=subprocess.DEVNULL)
    assert done.returncode != 0 and "not loopback" in done.stderr


@pytest.mark.parametrize("given", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN])
def test_token(debuggee, client, serve, any_python, tmp_path, given):
    program = debuggee(any_python)
    (tmp_path / "token").write_text(TOKEN + "\n")
    server = serve(program, "--listen", "--token-file", str(tmp_path / "token"))
    session = client(Socket(server.address))
    arguments = {} if given is None else {"token": given}
    if given == TOKEN:
        session.attach(**arguments)
        break_and_leave(session, program)
    else:
        session.initialize()
        assert "token" in session.refused("attach", arguments)
        session.refused("evaluate", {"expression": "1"})
    session.close()
    server.end()
    assert TOKEN not in "".join(server.said + server.errors)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_token_that_others_can_read(debuggee, serve, any_python, tmp_path, mode):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(mode)
    server = serve(debuggee(any_python), "--listen", "--token-file", str(tmp_path / "token"))
    server.end()
    assert ("chmod 600" in "".join(server.errors)) == (mode != 0o600)


# ---- pause ----

def test_pause(debuggee, client, serve, python):
    program = debuggee(python, "hot", "one_line")
    server = serve(program, "--pause")
    program.stands("hot", "one_line")
    session = client(Socket(server.address))
    session.attach()
    body = stopped(session, "pause")
    session.request("continue", {"threadId": body["threadId"]})
    program.moves("hot")
    program.moves("one_line")
    break_and_leave(session, program)
    server.end()
    program.moves("hot")


def test_disconnect_that_leaves_it_paused(debuggee, client, serve, python):
    """The next client finds it as it was left."""
    program = debuggee(python, "hot")
    server = serve(program, "--listen")
    session = client(Socket(server.address))
    assert session.initialize()["supportSuspendDebuggee"]
    session.attach()
    stop_at(session, program, "cold", "cold")
    session.disconnect(suspendDebuggee=True)
    session.wait_end()
    program.stands("hot")
    other = client(Socket(server.address))
    other.attach()
    body = stopped(other)
    go_on(other, program, body["threadId"], "cold")
    program.moves("hot")


def test_only_a_server_that_stays_keeps_it_paused(client):
    """Standard input and output, and a server for one client, have no next one."""
    assert not client().initialize().get("supportSuspendDebuggee")
    adapter = subprocess.Popen([PROBING, "dap", "--once", "--address", "127.0.0.1:0"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, encoding="utf-8", preexec_fn=die_with_parent)
    try:
        port = int(adapter.stdout.readline().rpartition(":")[2])
        session = client(Socket(("127.0.0.1", port)))
        assert not session.initialize().get("supportSuspendDebuggee")
        session.close()
        assert adapter.wait(DEADLINE) == 0
    finally:
        adapter.kill()
        adapter.wait()
        adapter.stdout.close()


def test_a_pause_that_nobody_comes_to(debuggee, serve, any_python):
    program = debuggee(any_python, "hot")
    serve(program, "--pause", "--resume-after", "8")  # enough for a busy machine to see that it stands
    program.stands("hot")
    program.moves("hot")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_while_the_program_is_paused(debuggee, serve, any_python, how):
    program = debuggee(any_python, "hot")
    server = serve(program, "--pause")
    program.stands("hot")
    server.end(how)
    program.moves("hot")


def test_the_server_ends_with_the_program(debuggee, serve, any_python):
    program = debuggee(any_python)
    server = serve(program, "--listen")
    program.say("end")
    wait_until(lambda: server.child.poll() is not None)


def test_what_is_no_client(debuggee, client, serve, any_python):
    """Connections that say nothing, or something else, keep nobody out."""
    program = debuggee(any_python)
    server = serve(program, "--listen")
    for data in (b"", b"GET / HTTP/1.0\r\n\r\n", framed({"seq": 1})):
        one = socket.create_connection(server.address)
        one.sendall(data)
        one.close()
    time.sleep(0.1)
    session = client(Socket(server.address))
    session.attach()
    break_and_leave(session, program)


def test_listens_without_an_option_and_says_how_to_reach_it(debuggee, serve, any_python):
    """A port of its own; ssh and pathMappings for an editor elsewhere; what to do when the port is taken."""
    program = debuggee(any_python)
    server = serve(program)
    port = server.address[1]
    made_token(server)
    said = "".join(server.said)
    assert port > 0 and '"port": {} '.format(port) in said and "ssh -N -L {0}:127.0.0.1:{0} ".format(port) in said
    assert '"remoteRoot": {} '.format(json.dumps(os.readlink("/proc/{}/cwd".format(program.pid)))) in said
    taken = subprocess.run([PROBING, str(program.pid), "debug", "--address", "127.0.0.1:{}".format(port)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=DEADLINE, encoding="utf-8", stdin=subprocess.DEVNULL)
    assert taken.returncode != 0 and "--address 127.0.0.1:{} ".format(port + 1) in taken.stderr


def test_launch_json_of_a_core_needs_no_process(tmp_path):
    done = subprocess.run([PROBING, "debug", "--core", str(tmp_path / "none")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=DEADLINE, encoding="utf-8", stdin=subprocess.DEVNULL)
    assert done.returncode != 0 and "none" in done.stderr
