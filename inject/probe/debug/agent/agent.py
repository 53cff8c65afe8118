# The debugger inside the target: what C calls, and what it gives (debug.h).  Every other file is a module of its own that
# nobody else sees, loaded when it is first needed.
import _thread
import sys

OWN = probe.OWN = probe.agent.OWN
Function = type(lambda: None)
Code = type((lambda: None).__code__)
LINE, CALL, RESUME, JUMP, RETURN, RAISE, UNWIND = (1 << bit for bit in range(7))


class Failed(Exception):
    """The request fails with this text; code: a name of CODES."""

    def __init__(self, text, code="USAGE"):
        Exception.__init__(self, text)
        self.code = probe.codes.get(code, 1)


class Engine(object):
    """probe.functions as attributes, and those that only need them."""

    def __init__(self, functions):
        self.__dict__.update(functions)

    def event(self, name, body):
        self.emit(part("json").dumps({"event": name, "body": body}), name != "output")

    def note(self, text, category="console"):
        self.event("output", {"category": category, "output": text + "\n"})


engine = Engine(probe.functions)


def caught(error):
    """The text of an exception that code of ours took.  The program still gets it when a signal handler of its own raised it."""
    engine.keep_pending(error)
    return probe.agent.plain(error)




class Uncompiled(object):
    """Keeps TorchDynamo off our code, which it would compile where compiled code calls ours (a write to sys.stdout)."""

    def __init__(self):
        self.done = set()  # ids of code objects, which live as long as we do
        self.seen = False  # torch's compiler is loaded, and knows all of our code
        self.known = set()  # names of parts of which it knows the code

    def of(self, spaces):
        skip = self.skip()
        if skip is not None:
            for space in spaces:
                self.values(list(space.values()), skip)

    def of_part(self, name, codes, space):
        """codes: those that made the space, or None."""
        skip = self.skip()
        if skip is None:
            return
        self.known.add(name)
        if codes is None:
            self.values(list(space.values()), skip)
        waiting = list(codes or ())
        while waiting:
            code = waiting.pop()
            skip(code)
            waiting += [one for one in code.co_consts if type(one) is Code]

    def skip(self):
        """What does that to a code object, in the torch that is loaded."""
        for name in ("torch._dynamo.eval_frame", "torch._C._dynamo.eval_frame"):
            found = getattr(sys.modules.get(name), "skip_code", None)
            if found is not None:
                return found
        return None

    def values(self, waiting, skip):
        while waiting:
            one = waiting.pop()
            if len(waiting) % 16 == 0:
                engine.yield_gil()
            if isinstance(one, type) and str(one.__module__).startswith("probing_"):
                waiting += list(vars(one).values())
            code = one if type(one) is Code else getattr(one, "__code__", None) if type(one) is Function else None
            if code is not None and id(code) not in self.done and code.co_filename.startswith(OWN):
                self.done.add(id(code))
                skip(code)
                waiting += code.co_consts


class Calls(object):
    """Which thread runs a call of the client; a call that does not end keeps its thread busy."""

    def __init__(self):
        self.methods = {}  # ident -> method

    def begin(self, method):
        ident = _thread.get_ident()
        outer = self.methods.get(ident)
        self.methods[ident] = method
        return ident, outer

    def end(self, begun):
        ident, outer = begun
        if outer is None:
            self.methods.pop(ident, None)
        else:
            self.methods[ident] = outer

    def busy(self, handle):
        """Whether the thread of a frame is in another call: no code of the program can run on it."""
        return handle is not None and handle.ident != _thread.get_ident() and handle.ident in self.methods


uncompiled = Uncompiled()
calls = probe.calls = Calls()
parts = {}
loading = _thread.RLock()


def part(name):
    """Another file as a module.  Other threads run while it is loaded: a lock has only one of them load it."""
    found = parts.get(name)
    if found is not None:
        return found
    with loading:
        if name not in parts:
            found = type(sys)("probing_debug_" + name)
            found.__dict__.update(__builtins__=__builtins__, probe=probe)
            uncompiled.of_part(name, probe.run("{}debug {}>".format(OWN, name), found.__dict__), found.__dict__)
            parts[name] = found
        return parts[name]


probe.part, probe.engine, probe.Failed, probe.caught = part, engine, Failed, caught
probe.repr_timeout = 1.0  # s, that the repr of one value may take; 0: no limit
session = part("session").Session()


def call(method, arguments):
    where = probe.methods.get(method)
    if where is None:
        raise Failed("there is no method {}".format(method), "UNSUPPORTED")
    json = part("json")
    try:
        given = json.loads(arguments) if arguments else {}
    except json.Wrong as wrong:
        raise Failed("the arguments are not JSON: {}".format(wrong))
    if not isinstance(given, dict):
        raise Failed("the arguments must be a JSON object")
    if session.exceptions is not None:
        session.exceptions.again()
    begun = calls.begin(method)
    try:
        module = part(where)
        function = getattr(module, method, None) or getattr(module, method + "_")
        result = function(session, given)
    except Failed:
        raise
    except Exception as error:
        raise Failed("{}: {}".format(method, caught(error)), "INTERNAL")
    finally:
        calls.end(begun)
        part("threads").forget_dummy()
        if not uncompiled.seen and uncompiled.skip() is not None:
            uncompiled.seen = True
            of_agent = [probe.agent, probe.agent.streams] + list(probe.agent.parts.values())
            others = [one for name, one in list(parts.items()) if name not in uncompiled.known]
            uncompiled.of([globals()] + [one.__dict__ for one in of_agent + others])
    return json.dumps(result or {})


def happened(event, frame, code, line, value, planted, judged=None):
    return session.happened(event, frame, code, line, value, planted, judged)


def parked(ident, frame, reason):
    session.parked(ident, frame, reason)


def forget(ident):
    session.forget(ident)


def close():
    session.close()
    parts.clear()
