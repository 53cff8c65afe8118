# sys.stdin, stdout, stderr, displayhook and breakpointhook while evaluations run: what an evaluating thread writes goes to its client;
# every other thread reaches the program's own objects as before.  Nothing stands in for them when no evaluation runs.
import _thread
import io
import os
import sys

STREAMS = ("stdin", "stdout", "stderr")
NOBODY = object()
mine = _thread._local()  # .output: of this thread's evaluation; a child's new threads can have a parent's idents
evaluations = {}  # by process: a child that is forked meanwhile has none


class Pipe(io.RawIOBase):
    """Bytes to the client."""

    def __init__(self, send, name):
        self._send = send
        self._number = STREAMS.index(name)
        self.name = "<{}>".format(name)

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self._send(self._number, data)
        return len(data)


class Nothing(object):
    """In the place of a stream that the program has closed to None."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


class Output(object):
    """The streams of one evaluation."""

    def __init__(self, send, display):
        self._send = send
        self._objects = {"displayhook": display}
        self.over = False

    def of(self, name):
        found = self._objects.get(name)
        if found is None:
            if name == "stdin":
                found = io.StringIO()  # no input: the program's own would block it
            else:
                found = io.TextIOWrapper(Pipe(self._send, name), "utf-8", "backslashreplace", "", write_through=True)
            self._objects[name] = found
        return found


class StandIn(object):
    """Acts as the object of the thread that asks.  Never freed, but used again: CPython's print() uses sys.stdout
    without a reference of its own (gh-130163) and may end long after the evaluation that it began with."""

    __slots__ = ("_prb_name", "_prb_original", "__weakref__")

    def __init__(self, name):
        object.__setattr__(self, "_prb_name", name)
        object.__setattr__(self, "_prb_original", NOBODY)

    def _prb_find(self):
        name = self._prb_name
        output = getattr(mine, "output", None)
        if output and not output.over:
            return output.of(name)
        found = self._prb_original
        if found is NOBODY:  # only a call that began earlier
            found = getattr(sys, name, None)
            if type(found) is type(self):
                found = getattr(sys, "__{}__".format(name), None)
        return Nothing() if found is None else found

    def __getattr__(self, name):
        return getattr(self._prb_find(), name)

    def __setattr__(self, name, value):
        setattr(self._prb_find(), name, value)

    def __delattr__(self, name):
        delattr(self._prb_find(), name)

    @property
    def __class__(self):
        return type(self._prb_find())

    def __repr__(self):
        return repr(self._prb_find())

    def __dir__(self):
        return dir(self._prb_find())

    def __iter__(self):
        return iter(self._prb_find())

    def __next__(self):
        return next(self._prb_find())

    def __enter__(self):
        return self._prb_find().__enter__()

    def __exit__(self, *exception):
        return self._prb_find().__exit__(*exception)


class StandInHook(StandIn):
    __slots__ = ()

    def __call__(self, value):
        return self._prb_find()(value)


def no_commands(what):
    """Why what asks for commands cannot: there is nobody to ask."""
    return "{} cannot ask for commands in an evaluation; `probing {} debug` lets a debugger attach".format(what, os.getpid())


class StandInBreakpoint(StandIn):
    """breakpoint() of an evaluation: pdb would read no input and end with BdbQuit.  A hook of the program's is called."""

    __slots__ = ()

    def _prb_find(self):
        found = self._prb_original
        return sys.__breakpointhook__ if found is NOBODY else found

    def __call__(self, *args, **named):
        output = getattr(mine, "output", None)
        hook = self._prb_find()
        ours = type(hook).__module__ == "probing_debug_breakpointhook"  # the debugger's: this thread cannot stop
        if output and not output.over and (ours or hook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT")):
            raise RuntimeError(no_commands("breakpoint()"))
        return hook(*args, **named)


class Place(object):
    """One name in sys, and all stand-ins that were there."""

    def __init__(self, name, kind=StandIn):
        self._name = name
        self._kind = kind
        self._every = [kind(name)]
        self._references = sys.getrefcount(self._every[0])
        self._current = 0

    def _is_kept(self, number):
        """Whether the program keeps it, as contextlib.redirect_stdout does to put it back later."""
        return sys.getrefcount(self._every[number]) > self._references

    def install(self):
        self._current = next((n for n in range(len(self._every)) if not self._is_kept(n)), len(self._every))
        if self._current == len(self._every):
            self._every.append(self._kind(self._name))
        stand_in = self._every[self._current]
        object.__setattr__(stand_in, "_prb_original", getattr(sys, self._name, None))
        setattr(sys, self._name, stand_in)

    def remove(self):
        # The program, or the code that ran, may have put another one there: that stays.
        if getattr(sys, self._name, None) is self._every[self._current]:
            setattr(sys, self._name, self._every[self._current]._prb_original)
        for number in range(len(self._every)):
            if not self._is_kept(number):
                object.__setattr__(self._every[number], "_prb_original", NOBODY)


places = [Place(name) for name in STREAMS] + [Place("displayhook", StandInHook)]
if hasattr(sys, "breakpointhook"):
    places.append(Place("breakpointhook", StandInBreakpoint))


class Evaluations(object):
    """Those that run in this process.  The lock is its own: a parent's may have been held when it forked."""

    def __init__(self):
        self.lock = _thread.allocate_lock()
        self.outputs = set()


def running():
    return evaluations.setdefault(os.getpid(), Evaluations())


def enter(output):
    here = running()
    with here.lock:
        if not here.outputs:
            for place in places:
                place.install()
        here.outputs.add(output)
    mine.output = output


def leave():
    here = running()
    output, mine.output = mine.output, None
    with here.lock:
        end(here, [output] if output in here.outputs else [])


def detach():
    """Although evaluations may run: theirs are the program's streams now."""
    here = running()
    with here.lock:
        end(here, list(here.outputs))


def end(here, outputs):
    for output in outputs:
        output.over = True
        here.outputs.remove(output)
    if outputs and not here.outputs:
        for place in places:
            place.remove()
