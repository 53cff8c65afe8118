"""Hosts of a test: namespaces of network, processes and names on one machine, joined by a bridge.  Needs root."""

import contextlib
import ctypes
import os
import shutil
import subprocess

DEADLINE = 60
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None)


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE)


def can():
    """Whether this machine lets us make them."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        return False
    script = "ip link add hub0 type bridge && ip link add port0 type veth peer name e0"
    return subprocess.run(["unshare", "--net", "--pid", "--uts", "--fork", "--mount-proc", "sh", "-c", script],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Space:
    """Namespaces that live as long as their first process."""

    def __init__(self, name, *kinds):
        self.name = name
        self.first = subprocess.Popen(["unshare", "--uts", "--net", *kinds, "--fork", "--kill-child", "sh", "-c", 'hostname "$0"; echo ready; exec sleep infinity',
                                       name], stdout=subprocess.PIPE)
        assert self.first.stdout.readline() == b"ready\n"
        with open("/proc/{0}/task/{0}/children".format(self.first.pid)) as file:
            self.pid = int(file.read().split()[0])
        # Not --uts of the program that runs the test: nsenter changes its own alone.
        self.enter = ["nsenter", "-t", str(self.pid), "-u", "-n"] + (["-p", "-m"] if "--pid" in kinds else [])
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *words):
        run(*self.enter, *words)

    @contextlib.contextmanager
    def network(self):
        """Sockets that this thread makes meanwhile are of its network."""
        with open("/proc/self/ns/net") as own, open("/proc/{}/ns/net".format(self.pid)) as there:
            assert LIBC.setns(there.fileno(), CLONE_NEWNET) == 0
            try:
                yield
            finally:
                assert LIBC.setns(own.fileno(), CLONE_NEWNET) == 0

    def end(self):
        self.first.kill()
        self.first.communicate()


class Hosts:
    """The hub, where the bus runs, 10.77.0.1; and hosts node1, node2, … from 10.77.0.2 on."""

    def __init__(self, count):
        self.hub = Space("hub")
        self.hub.run("ip", "link", "add", "hub0", "type", "bridge")
        self.hub.run("ip", "addr", "add", "10.77.0.1/24", "dev", "hub0")
        self.hub.run("ip", "link", "set", "hub0", "up")
        self.all = [self.add(number) for number in range(1, count + 1)]

    def add(self, number):
        host = Space("node{}".format(number), "--pid", "--mount-proc")
        host.address = "10.77.0.{}".format(number + 1)
        port = "port{}".format(number)
        self.hub.run("ip", "link", "add", port, "type", "veth", "peer", "name", "e0", "netns", str(host.pid))
        self.hub.run("ip", "link", "set", port, "master", "hub0", "up")
        host.run("ip", "addr", "add", host.address + "/24", "dev", "e0")
        host.run("ip", "link", "set", "e0", "up")
        return host

    def cut(self, number):
        self.hub.run("ip", "link", "set", "port{}".format(number), "down")

    def join(self, number):
        self.hub.run("ip", "link", "set", "port{}".format(number), "up")

    def part(self, number, parted):
        """Nothing goes from a host to the others, but to the hub; or again."""
        for other in self.all:
            if other is not self.all[number - 1]:
                self.all[number - 1].run("ip", "route", "add" if parted else "del", "blackhole", other.address)

    def end(self):
        for one in (*self.all, self.hub):
            one.end()
