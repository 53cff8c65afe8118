"""A debugger's client as another party: it says what it is told, from the address that it is told, and what came back."""

import json
import os
import re
import subprocess

import parties

# argv: addresses of its own ("": any), the server's place, [command, arguments]...; a line for each address: the answers.
CLIENT = r'''
import json, socket, sys
sources, place, requests = map(json.loads, sys.argv[1:])
def talk(source):
    told = []
    one = socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET6 if ":" in place[0] else socket.AF_INET)
    one.settimeout(100)
    try:
        if source:
            one.bind((source, 0))
        one.connect(place if isinstance(place, str) else tuple(place))
        file = one.makefile("rb")
        for seq, (command, arguments) in enumerate(requests, 1):
            text = json.dumps({"seq": seq, "type": "request", "command": command, "arguments": arguments}).encode()
            one.sendall(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            while True:
                head = file.readline()
                if not head:
                    return told + ["hung up"]
                file.readline()
                message = json.loads(file.read(int(head.split()[1])).decode())
                if message["type"] == "response" and message["request_seq"] == seq:
                    break
            told.append(message.get("body") or {} if message["success"] else message["message"])
    except OSError as error:
        told.append(type(error).__name__)
    finally:
        one.close()
    return told
for source in sources:
    print(json.dumps([source, talk(source)]), flush=True)
'''


def ask(python, user, sources, place, requests, prefix=()):
    """{address: what came of each request: the body, or why not}, a session for each address."""
    done = subprocess.run([*prefix, python, "-c", CLIENT, *map(json.dumps, (sources, place, [["initialize", {"adapterID": "x"}],
                                                                                              *requests]))],
                          cwd="/", preexec_fn=parties.become(user), stdout=subprocess.PIPE, encoding="utf-8", timeout=240, check=True)
    return {source: told[1:] if len(told) > 1 else told for source, told in map(json.loads, done.stdout.splitlines())}


def attach(python, user, sources, place, prefix=(), **arguments):
    """{address: "in", or why not}"""
    told = ask(python, user, sources, place, [["attach", arguments]], prefix)
    return {source: "in" if isinstance(one[-1], dict) else one[-1] for source, one in told.items()}


def session(python, user, place, *requests):
    """What came of each request of one client."""
    return ask(python, user, [""], place, requests)[""]


class Server:
    """`probing debug` of a job, by whom it is started: .place, .token or None."""

    def __init__(self, spawn, installed, user, pid, options, address="127.0.0.1:0"):
        self.child = spawn([installed.path, "-t", pid, "debug", *options, "--address", address], user=user,
                           wait_for="process " if "--pause" in options else "waiting for ", env=installed.environment())
        where = self.child.line.rpartition(" on ")[2]
        if "/" in where:
            self.place, self.token = where, None
            return
        said = ""
        while not said.endswith("}\n"):
            said += self.child.stdout.readline()
        found = re.search('"token": "(.*)"', said)
        self.token = found and found.group(1)
        host, _, port = where.rpartition(":")
        self.place = (host.strip("[]"), int(port))


def addresses(six):
    """Every address of this machine that a client may have."""
    found = set()
    if six:
        if os.path.exists("/proc/net/if_inet6"):
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
