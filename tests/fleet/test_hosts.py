"""Agents of all hosts by one command: ssh, which is a script here that enters the host of that name."""

import os
import stat

import pytest

from support.target import PROBING
from test_agents import Cluster, pytestmark  # noqa: F401

PARTIAL, USAGE = 15, 2
SSH = """#!/bin/sh
for host; do command=$1; shift; [ "$command" != -- ] || break; done
host=$1; shift
case $host in
{cases}
*) echo "no host $host" >&2; exit 255 ;;
esac
"""


@pytest.fixture(scope="module")
def job():
    one = Cluster()
    try:
        for number, host in enumerate(one.hosts.all):
            one.start(host, number)
        yield one
    finally:
        one.end()


def attach(job, hosts, *options):
    """From the hub; each host has a home of its own."""
    tools = os.path.join(job.bus.home, "bin")
    os.makedirs(tools, exist_ok=True)
    cases = "".join("{0.name}) HOME={1}/{0.name} PATH={2}:$PATH exec {3} sh -c \"$*\" ;;\n".format(
        host, job.bus.home, os.path.dirname(PROBING), " ".join(host.enter)) for host in job.hosts.all)
    with open(os.path.join(tools, "ssh"), "w") as file:
        file.write(SSH.format(cases=cases))
        os.fchmod(file.fileno(), 0o700)
    path = os.path.join(job.bus.home, "hosts")
    with open(path, "w") as file:
        file.write(hosts)
    return job.at(job.hosts.hub, "cluster", "attach", "--hosts", path, *options, PATH="{}:{}".format(tools, os.environ["PATH"]))


def test_attach_hosts(job):
    """Each host has the file, for its user alone, and its agent is on the bus with the options; one that is not there is told."""
    done = attach(job, "node1\n# the second\nnode2  # there\n\nnode9\n", "--allow", "eval", "--linger", "100")
    assert done.returncode == PARTIAL and "node9: no host node9" in done.stderr and "1 of 3 hosts have no agent" in done.stderr, done.stderr
    for number in (1, 2):
        assert "node{}: this host's agent is on the bus".format(number) in done.stdout, done.stdout
        assert "node{}: rank {} of @job".format(number, number - 1) in done.stdout
        path = os.path.join(job.bus.home, "node{}".format(number), ".config", "probing", "bus", "agent")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "42" in job.ask("eval", "6 * 7").stdout
    again = attach(job, "node1\nnode2\n")
    assert again.returncode == 0 and again.stdout.count("runs already") == 2, again.stderr
    for host in job.hosts.all:
        assert job.at(host, "cluster", "detach", HOME=os.path.join(job.bus.home, host.name)).stdout == "this host's agent has ended\n"


@pytest.mark.parametrize("hosts, why", [("-oProxyCommand=id\n", "not a host's name"), ("a;b\n", "not a host's name"), ("# none\n", "names no host")])
def test_wrong_hosts(job, hosts, why):
    done = attach(job, hosts)
    assert (done.returncode, why in done.stderr) == (USAGE, True), done.stderr
