"""The debugger's in-target Python without a probe: an engine of sys.settrace, for any CPython from 3.6 on.

Only threads that Engine.thread() starts are traced.  A parked thread runs the calls that are sent to it, as the probe does.
"""

import json
import opcode
import os
import re
import threading
import time
import types

ROOT = os.environ.get("SRCDIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROBE = os.path.join(ROOT, "inject", "probe")
LINE, CALL, RESUME, JUMP, RETURN, RAISE, UNWIND, CALLEE, RESULT = (1 << bit for bit in range(9))
CODES = {"USAGE": 9, "UNSUPPORTED": 8, "NOT_FOUND": 7, "TIMEOUT": 6, "INTERNAL": 5, "PERMISSION": 4}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(path, name, space):
    exec(compile(read(path), name, "exec", 0, True), space)
    return space


def run_part(name, space):
    """As prb_py_run_method does: "<probing show>" is inject/probe/python/show.py, "<probing debug stepping>" inject/probe/debug/agent/stepping.py."""
    words = name[1:-1].split(" ")[1:]
    folder = ["debug", "agent"] if words[0] == "debug" else ["python"]
    run(os.path.join(PROBE, *(folder + [words[-1] + ".py"])), name, space)


def module(name, folder, probe):
    """agent.py of a folder of the probe, run as C does it."""
    folder = os.path.join(PROBE, *folder)
    probe.run = run_part
    probe.codes = CODES
    made = types.ModuleType("probing_" + name)
    made.probe = probe
    if not hasattr(probe, "agent"):
        probe.agent = made
    run(os.path.join(folder, "agent.py"), "<probing {}>".format("agent" if name == "agent" else name + " agent"), made.__dict__)
    return made


def agent_module():
    probe = types.ModuleType("probe")
    probe.kept = {}
    probe.text_max = 1 << 18
    return module("agent", ["python"], probe)


def methods():
    """Of methods.def: name -> the file that has it."""
    text = read(os.path.join(PROBE, "debug", "methods.def")).decode("utf-8")
    return {name: part for name, part in re.findall(r"^M\((\w+), \w+, (\w+)\)", text, re.M)}


class Parked(object):
    def __init__(self, frame, reason):
        self.frame = frame
        self.reason = reason
        self.calls = []
        self.go = False


class Engine(object):
    def __init__(self):
        self.changed = threading.Condition()
        self.events = []
        self.planted = {}
        self.steps = {}
        self.told = None
        self.mask = 0
        self.armed = False
        self.waiting = {}
        self.raised = {}
        self.mine = threading.local()
        self.idents = {}
        functions = {"emit": self.emit, "plant": self.plant, "conditions": lambda code, given: None, "watch_new_code": self.watch_new_code,
                     "watch_exceptions": self.watch_exceptions, "step": self.step, "gate": self.gate, "parked": self.parked,
                     "resume": self.resume, "yield_gil": self.yield_gil, "native_id": self.native_id, "save_locals": self.save_locals,
                     "repr": lambda value, seconds: repr(value),
                     "take_children": self.take_children, "child_waits": self.child_waits, "child_goes": self.child_goes, "mechanism": "fake",
                     "keep_pending": lambda error: False, "Interrupted": type("Interrupted", (KeyboardInterrupt,), {})}
        probe = types.ModuleType("probe")
        probe.agent = agent_module()
        probe.kept = {}
        probe.functions = functions
        probe.methods = methods()
        self.module = module("debug", ["debug", "agent"], probe)
        self.agent = self.module.__dict__

    # ---- probe.functions ----

    def emit(self, data, important=True):
        with self.changed:
            self.events.append(json.loads(data.decode("utf-8")))
            self.changed.notify_all()

    def plant(self, code, lines):
        self.planted[id(code)] = (code, frozenset(lines))

    def watch_new_code(self, on):
        self.told = (self.told or {}) if on else None

    def watch_exceptions(self, mask):
        self.mask = mask

    def step(self, ident, code, events, frame):
        if events:
            self.steps[ident, id(code)] = (code, events)
        else:
            self.steps.pop((ident, id(code)), None)

    def gate(self, armed):
        self.armed = bool(armed)

    def parked(self):
        return [(ident, self.native_id(ident), one.frame, one.reason) for ident, one in list(self.waiting.items())]

    def resume(self, ident):
        with self.changed:
            for key, one in self.waiting.items():
                if ident in (0, key):
                    one.go = True
            if not ident:
                self.armed = False
            self.changed.notify_all()

    def yield_gil(self):
        pass

    def native_id(self, ident):
        return self.idents.get(ident, 0)

    def take_children(self, name, seconds):
        return False

    def child_waits(self):
        return False

    def child_goes(self):
        pass

    def save_locals(self, frame):
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))

    # ---- the mechanism ----

    def trace(self, frame, event, value):
        if getattr(self.mine, "inside", False) or frame.f_code.co_filename.startswith("<probing "):
            return None
        self.mine.inside = True
        try:
            self.event(frame, event, value)
        finally:
            self.mine.inside = False
        return self.trace

    def event(self, frame, event, value):
        ident = threading.get_ident()
        code = frame.f_code
        kind = {"line": LINE, "call": CALL, "return": RETURN, "exception": RAISE}.get(event)
        if kind == CALL and code.co_flags & 0x2A0 and frame.f_lasti > 6:
            kind = RESUME
        if kind == RAISE:
            value = self.raised[ident] = value[1].with_traceback(value[2])
        elif kind == RETURN and value is None and not opcode.opname[code.co_code[frame.f_lasti]].startswith(("RETURN", "YIELD")):
            kind, value = UNWIND, self.raised.get(ident)
        back = frame.f_back
        if kind == RETURN and back is not None and self.steps.get((ident, id(back.f_code)), (None, 0))[1] & RESULT:
            self.agent["happened"](RESULT, back, code, back.f_lineno, value, False)
        planted = kind == LINE and frame.f_lineno in self.planted.get(id(code), (None, ()))[1]
        if planted or self.wanted(ident, kind, frame):
            reason = self.agent["happened"](kind, frame, code, frame.f_lineno, value, planted)
        else:
            reason = None
        if reason is not None or self.armed and kind in (LINE, CALL, RESUME):
            self.park(ident, frame, reason)

    def wanted(self, ident, kind, frame):
        code = frame.f_code
        if kind & (CALL | RESUME) and self.told is not None and id(code) not in self.told:
            self.told[id(code)] = code
            return True
        if kind & self.mask:
            return True
        if kind & (CALL | RESUME):
            code = frame.f_back.f_code if frame.f_back is not None else None
            kind = CALL
        return bool(self.steps.get((ident, id(code)), (None, 0))[1] & kind)

    def park(self, ident, frame, reason):
        one = self.waiting[ident] = Parked(frame, reason)
        if reason is not None:
            self.armed = True
            self.agent["parked"](ident, frame, reason)
        with self.changed:
            self.changed.notify_all()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: one.go or one.calls)
                if one.go:
                    break
                call = one.calls.pop(0)
            call()
        self.waiting.pop(ident, None)

    # ---- the client ----

    def start(self, function, *arguments):
        ready = threading.Event()

        def body():
            self.idents[threading.get_ident()] = 1000 + len(self.idents)
            ready.set()
            function(*arguments)

        thread = threading.Thread(target=body)
        thread.daemon = True
        threading.settrace(self.trace)
        thread.start()
        ready.wait()
        threading.settrace(None)
        self.ident = thread.ident
        self.number = self.idents[thread.ident]
        return thread

    def call(self, method, thread=None, **arguments):
        """thread: run it there, when it is parked."""
        data = json.dumps(arguments).encode("utf-8")
        one = self.waiting.get(thread) if thread else None
        if one is None:
            return json.loads(self.agent["call"](method, data).decode("utf-8"))
        result = []

        def body():
            try:
                result.append((json.loads(self.agent["call"](method, data).decode("utf-8")), None))
            except Exception as error:
                result.append((None, error))
            with self.changed:
                self.changed.notify_all()

        with self.changed:
            one.calls.append(body)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: result, 60), "{} does not answer".format(method)
        if result[0][1] is not None:
            raise result[0][1]
        return result[0][0]

    def wait(self, name, timeout=60):
        """The next event of a name; earlier ones of others are dropped."""
        def found():
            return any(one["event"] == name for one in self.events)

        with self.changed:
            assert self.changed.wait_for(found, timeout), "no event {}: {}".format(name, self.events)
            while self.events[0]["event"] != name:
                self.events.pop(0)
            return self.events.pop(0)["body"]

    def stopped(self):
        """The next stop, when its thread is parked."""
        body = self.wait("stopped")
        deadline = time.time() + 60
        ident = next(key for key, number in self.idents.items() if number == body["threadId"])
        while body["reason"] not in ("pause", "goto") and ident not in self.waiting and time.time() < deadline:
            time.sleep(0.001)
        return body

    def frames(self):
        return self.call("stack", threadId=self.number)["stackFrames"]

    def top(self):
        return self.frames()[0]

    def evaluate(self, text, context="watch", **more):
        frame = more.pop("frameId", None) or self.top()["id"]
        return self.call("evaluate", self.ident, expression=text, frameId=frame, context=context, **more)

    def scope(self, name="Locals"):
        scopes = self.call("scopes", frameId=self.top()["id"])["scopes"]
        return next(one for one in scopes if one["name"] == name)["variablesReference"]

    def variables(self, reference, **more):
        return self.call("variables", self.ident, variablesReference=reference, **more)["variables"]

    def go(self):
        self.call("continue", threadId=self.number)
