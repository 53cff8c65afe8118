"""Who gets into a debugger's port: nobody by the address that he comes from, a user by what the kernel says of him, anybody by
the token."""

import os

import pytest

from debugger import Server, addresses, attach

JOB = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.fixture
def listen(installed, python, spawn):
    """listen(user, *options, address=..., owner=...): a server of `user` for a job of `owner`, or of his own."""

    def begin(user, *options, address="127.0.0.1:0", owner=None):
        job = spawn([python, "-c", JOB], user=user if owner is None else owner)
        return Server(spawn, installed, user, job.pid, options or ["--listen"], address)

    return begin


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"])
def test_from_every_address(users, listen, python, address):
    """Another user is refused from each, and comes in by the token."""
    server = listen(users[0], address=address)
    six = ":" in server.place[0]
    place = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.place[0], server.place[0]), server.place[1])
    sources = addresses(six)
    assert sources
    told = attach(python, users[1], sources, place)
    assert not [one for one in told.items() if one[1] == "in"], told
    assert any("token" in one for one in told.values()), told
    told = attach(python, users[1], sources[:1], place, token=server.token)
    assert set(told.values()) == {"in"}
    assert server.child.poll() is None


@pytest.mark.parametrize("options", [["--listen"], ["--pause"], ["--snapshot"]])
def test_the_machine_s_own_address_as_root(users, listen, python, options):
    """Root's server about root's job."""
    told = attach(python, users[1], addresses(False), listen(None, *options).place)
    assert not [one for one in told.items() if one[1] == "in"], told


def test_any_user_comes_by_loopback_only(users, listen, python):
    """--any-user lets everybody on the machine in, not its neighbours: who has another address is refused."""
    place = listen(users[0], "--listen", "--any-user").place
    told = attach(python, users[1], addresses(False), place)
    assert {source for source, what in told.items() if what == "in"} == {one for one in told if one.startswith("127.")}, told


def test_the_same_user_needs_no_token(users, listen, python):
    place = listen(users[0]).place
    assert attach(python, users[0], ["", "127.0.0.2"], place) == {"": "in", "127.0.0.2": "in"}


def test_the_owner_of_the_job_at_root_s_server(users, listen, python):
    place = listen(None, owner=users[0]).place
    assert attach(python, users[0], [""], place) == {"": "in"}
    assert "token" in attach(python, users[1], [""], place)[""]


def test_a_unix_socket_that_others_may_open(users, listen, python, tmp_path):
    path = "/tmp/prb-security-{}.sock".format(os.getpid())
    server = listen(None, address=path, owner=users[0])
    os.chmod(path, 0o666)
    assert attach(python, users[1], [""], path)[""] in ("hung up", "BrokenPipeError", "ConnectionResetError")
    assert attach(python, users[0], [""], path) == {"": "in"}
    assert server.child.poll() is None


def test_a_container_s_root_is_not_root(users, listen, python, namespaces):
    """User 0 in another container, which has the host's network: the number proves nothing."""
    server = listen(None)
    less = namespaces("--mount") + ["setpriv", "--bounding-set=-sys_ptrace,-sys_admin"]  # among the host's processes
    for container in (namespaces("--mount", "--pid", "--fork"), less):
        assert "token" in attach(python, None, [""], server.place, prefix=container)[""]
    assert attach(python, None, [""], server.place, prefix=namespaces("--mount")) == {"": "in"}  # of an editor's package
    assert attach(python, None, [""], server.place, prefix=container, token=server.token) == {"": "in"}
    assert attach(python, None, [""], server.place) == {"": "in"}


def test_a_program_to_launch(users, installed, python, spawn):
    """`dap --address`: nobody starts or attaches to programs as its owner."""
    server = spawn([installed.path, "dap", "--address", "127.0.0.1:0"], wait_for="waiting for a debugger on ",
                   env=installed.environment())
    port = int(server.line.rpartition(":")[2])
    told = attach(python, users[1], addresses(False), ("127.0.0.1", port), processId=os.getpid())
    assert not [one for one in told.items() if "token" not in one[1] and "Error" not in one[1]], told
