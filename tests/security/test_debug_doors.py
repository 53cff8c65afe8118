"""Who gets into a debugger's port: nobody by the address that he comes from, a user by what the kernel says of him, anybody by
the token."""

import json
import os
import re
import subprocess

import pytest

import parties

JOB = """
import os, sys, time
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""
# As who it is started as: connect from each address, attach, say what came of it.
CLIENT = r'''
import json, socket, sys
def attach(source, place, arguments):
    six = ":" in place[0]
    one = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
    one.settimeout(20)
    try:
        if source:
            one.bind((source, 0))
        one.connect(tuple(place))
        file = one.makefile("rb")
        for seq, command, given in ((1, "initialize", {"adapterID": "x"}), (2, "attach", arguments)):
            text = json.dumps({"seq": seq, "type": "request", "command": command, "arguments": given}).encode()
            one.sendall(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            while True:
                head = file.readline()
                if not head:
                    return "hung up"
                file.readline()
                message = json.loads(file.read(int(head.split()[1])).decode())
                if message["type"] == "response":
                    break
        return "in" if message["success"] else message["message"]
    except OSError as error:
        return type(error).__name__
    finally:
        one.close()
for source in json.loads(sys.argv[1]):
    print(json.dumps([source, attach(source, json.loads(sys.argv[2]), json.loads(sys.argv[3]))]), flush=True)
'''


def attach(python, user, sources, place, prefix=(), **arguments):
    """{address that the client had: what came of its attach}"""
    done = subprocess.run([*prefix, python, "-c", CLIENT, json.dumps(sources), json.dumps(place), json.dumps(arguments)], cwd="/",
                          preexec_fn=parties.become(user), stdout=subprocess.PIPE, encoding="utf-8", timeout=120, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines())


def addresses(six):
    """Every address of this machine that a client may have."""
    found = set()
    if six:
        with open("/proc/net/if_inet6") as lines:
            for line in lines:
                digits = line.split()[0]
                if not digits.startswith("fe80"):
                    found.add(":".join(digits[i:i + 4] for i in range(0, 32, 4)))
        return sorted(found)
    with open("/proc/net/fib_trie") as lines:
        before = ""
        for line in lines:
            if "/32 host LOCAL" in line:
                found.add(before)
            before = line.split()[-1]
    return sorted(found | {"127.0.0.2"})


@pytest.fixture
def listen(installed, python, spawn):
    """listen(user, *options, address=..., owner=...): (job, server, (host, port), token or None) of a job of `owner`."""

    def begin(user, *options, address="127.0.0.1:0", owner=None, prefix=()):
        job = spawn([*prefix, python, "-c", JOB], user=user if owner is None else owner)
        server = spawn([*prefix, installed.path, "-t", job.pid, "debug", *(options or ["--listen"]), "--address", address], user=user,
                       wait_for="process " if "--pause" in options else "waiting for ", env=installed.environment())
        where = server.line.rpartition(" on ")[2]
        if "/" in where:
            return job, server, where, None
        said = ""
        while not said.endswith("}\n"):
            said += server.stdout.readline()
        if '"token"' in said:
            server.stdout.readline()
        token = re.search('"token": "(.*)"', said)
        host, _, port = where.rpartition(":")
        return job, server, (host.strip("[]"), int(port)), token and token.group(1)

    return begin


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"])
def test_from_every_address(users, listen, python, address):
    """Another user is refused from each, and comes in by the token."""
    _, server, place, token = listen(users[0], address=address)
    six = ":" in place[0]
    place = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(place[0], place[0]), place[1])
    sources = addresses(six)
    assert sources
    told = attach(python, users[1], sources, place)
    assert not [one for one in told.items() if one[1] == "in"], told
    assert any("token" in one for one in told.values()), told
    told = attach(python, users[1], sources[:1], place, token=token)
    assert set(told.values()) == {"in"}
    assert server.poll() is None


@pytest.mark.parametrize("options", [["--listen"], ["--pause"], ["--snapshot"]])
def test_an_address_of_one_s_own_as_root(users, listen, python, options):
    """Root's server about root's job: by the machine's own address, too, nobody comes in without the token."""
    told = attach(python, users[1], addresses(False), listen(None, *options)[2])
    assert not [one for one in told.items() if one[1] == "in"], told


def test_the_same_user_needs_no_token(users, listen, python):
    place = listen(users[0])[2]
    assert attach(python, users[0], ["", "127.0.0.2"], place) == {"": "in", "127.0.0.2": "in"}


def test_the_owner_of_the_job_at_root_s_server(users, listen, python):
    place = listen(None, owner=users[0])[2]
    assert attach(python, users[0], [""], place) == {"": "in"}
    assert "token" in attach(python, users[1], [""], place)[""]


def test_a_container_s_root_is_not_root(users, listen, python, namespaces):
    """User 0 in another container, which has the host's network: the number proves nothing."""
    place, token = listen(None)[2:]
    container = namespaces("--mount", "--pid", "--fork")
    assert "token" in attach(python, None, [""], place, prefix=container)[""]
    assert attach(python, None, [""], place, prefix=container, token=token) == {"": "in"}
    assert attach(python, None, [""], place) == {"": "in"}


def test_a_launched_program(users, installed, python, spawn):
    """`dap --address`: nobody starts programs as its owner."""
    server = spawn([installed.path, "dap", "--address", "127.0.0.1:0"], wait_for="waiting for a debugger on ",
                   env=installed.environment())
    port = int(server.line.rpartition(":")[2])
    told = attach(python, users[1], addresses(False), ("127.0.0.1", port), processId=os.getpid())
    assert not [one for one in told.items() if "token" not in one[1] and "Error" not in one[1]], told
