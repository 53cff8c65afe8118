"""Requests made up by the protocol's own schema, good and bad, in bursts: each is answered, none harms the program.

PROBING_DAP_FUZZ: seconds that it goes on with ever new seeds (0: a fixed few).  The bytes below are tests/fuzz/dap_wire.
"""

import os
import random
import subprocess
import time

import pytest

import protocol
from support.injection import built
from support.target import SRCDIR

SECONDS = float(os.environ.get("PROBING_DAP_FUZZ", "0"))
BURSTS = 60  # of one seed
# What would end the session or the program, by right.
LEFT_OUT = {"disconnect", "terminate", "attach", "launch", "goto"}
COMMANDS = sorted(name[:1].lower() + name[1:-len("Request")] for name in protocol.DEFINITIONS
                  if name.endswith("Request") and name != "Request")
HOSTILE = [None, True, -1, 0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 53, -2 ** 63, 1.5, "", "x", "\0", "a" * 5000, "\u20ac", [], {}, [[[]]],
           [None] * 50, {"a": {"b": [1]}}]
TEXTS = {
    "expression": ["i", "page", "i +", "box.x", "[0] * 10", "1 / 0", "no_such", "[0 for _ in iter(int, 1)]", "(", "\0", "print(i)"],
    "value": ["1", "2 +", "None.x"], "name": ["i", "0", "no such", ""], "condition": ["", "i % 7 == 0", "i %", "1 / 0"],
    "hitCondition": ["", "3", ">= 2", "% 5", "often"], "logMessage": ["", "i is {i}", "{", "}", "{no_such}"], "text": ["i", "box.", "("],
    "filterId": ["raised", "uncaught", "userUnhandled", "none"], "context": ["watch", "hover", "repl", "clipboard", "variables", "x"],
    "data": ["AAAA", "no base64"], "filter": ["indexed", "named", "x"],
}
# Numbers and names that answers told, by what a request may do with them.
TOLD = ["threadId", "frameId", "variablesReference", "memoryReference", "sourceReference", "dataId", "instructionReference"]


class Maker:
    def __init__(self, seed, program):
        self.random = random.Random(seed)
        self.program = program
        self.known = {name: [] for name in TOLD}

    def learn(self, value, name=""):
        """Remember what an answer tells."""
        if isinstance(value, list):
            for item in value[:30]:
                self.learn(item, name)
        elif isinstance(value, dict):
            for key, item in value.items():
                self.learn(item, {"threads": "threadId", "stackFrames": "frameId"}.get(name, name) if key == "id" else key)
        elif name in self.known and value:
            self.known[name] = self.known[name][-40:] + [value]

    def value(self, schema, name, depth=0):
        chance = self.random.random()
        if chance < 0.08:
            return self.random.choice(HOSTILE)
        if self.known.get(name) and chance < 0.9:
            return self.random.choice(self.known[name])
        if name == "path" and chance < 0.8:
            return self.program.path
        if name in TEXTS:
            return self.random.choice(TEXTS[name])
        if "$ref" in schema:
            return self.value(protocol.DEFINITIONS[schema["$ref"].rsplit("/", 1)[1]], name, depth)
        if "oneOf" in schema:
            return self.value(self.random.choice(schema["oneOf"]), name, depth)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        return self.of_type(schema, depth)

    def of_type(self, schema, depth):
        kinds = schema.get("type", "object")
        kind = self.random.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return self.object(schema, depth + 1) if depth < 6 else {}
        if kind == "array":
            return [self.value(schema.get("items", {}), "", depth + 1) for _ in range(self.random.randrange(4))]
        return {"string": lambda: self.random.choice(["", "x", "raised", "debugged.py"]), "boolean": lambda: self.random.random() < 0.5,
                "integer": lambda: self.random.choice([0, 1, 2, 5, 60, 65, 100, 130, 5000]), "number": lambda: 1.5,
                "null": lambda: None}[kind]()

    def object(self, schema, depth=0):
        wanted = set(schema.get("required", []))
        return {name: self.value(part, name, depth) for name, part in schema.get("properties", {}).items()
                if (name in wanted and self.random.random() < 0.95) or self.random.random() < 0.4}

    def request(self):
        command = self.random.choice(COMMANDS + ["continue", "continue", "next", "stepIn", "threads", "stackTrace", "scopes", "variables"])
        while command in LEFT_OUT:
            command = self.random.choice(COMMANDS)
        schema = protocol.DEFINITIONS[protocol.title(command) + "Request"]["properties"].get("arguments", {})
        return command, self.value(schema, "arguments")


def burst(session, maker):
    """Some requests in one go; all are answered."""
    sent = []
    for _ in range(maker.random.randrange(1, 6)):
        command, arguments = maker.request()
        sent.append((session.send(command, arguments, check=False), command, arguments))
    for seq, command, _ in sent:
        if command == "evaluate" and maker.random.random() < 0.5:
            session.send("cancel", {"requestId": seq})
    for seq, command, arguments in sent:
        try:
            answer = session.answer(seq)
        except AssertionError as error:
            raise AssertionError("{} {!r}: {}".format(command, arguments, error))
        if answer["success"]:
            maker.learn(answer.get("body") or {})
    for stop in session.seen("stopped")[-3:]:
        maker.learn(stop)


def run(seed, debuggee, client, python):
    program = debuggee(python, "hot", "calls", "sleeper")
    session = client()
    session.attach(program.pid, evaluateTimeout=0.3)
    maker = Maker(seed, program)
    program.say("cold")
    for _ in range(BURSTS):
        burst(session, maker)
    session.disconnect()
    session.wait_end()
    program.until("done cold")
    program.run("cold")
    for lane in ("hot", "calls", "sleeper"):
        program.moves(lane)


@pytest.mark.parametrize("seed", range(3))
def test_requests(debuggee, client, python, seed):
    run(seed, debuggee, client, python)


@pytest.mark.skipif(not SECONDS, reason="the long form: PROBING_DAP_FUZZ=SECONDS")
def test_requests_for_long(debuggee, client, any_python):
    until, seed = time.monotonic() + SECONDS, 1000
    while time.monotonic() < until:
        seed += 1
        try:
            run(seed, debuggee, client, any_python)
        except AssertionError as error:
            raise AssertionError("seed {}: {}".format(seed, error))


def test_bytes():
    """tests/fuzz/dap_wire with changed bytes of its corpus, always the same ones; for long: as many seconds, about."""
    count = max(2000, int(SECONDS * 2000))
    program = built("fuzz/dap_wire")
    with open(program, "rb") as file:
        if b"libFuzzer" in file.read():
            pytest.skip("built with --enable-fuzz, which has options of its own")
    done = subprocess.run([program, "-n", str(count)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, SRCDIR=SRCDIR), timeout=240 + 10 * SECONDS, encoding="utf-8", errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
