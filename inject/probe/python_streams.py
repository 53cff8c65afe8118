# sys.stdin, stdout, stderr and displayhook while evaluations run: what an evaluating thread writes goes to its client;
# every other thread reaches the program's own objects as before.  Nothing stands in for them when no evaluation runs.
import _thread
import io
import sys

STREAMS = ("stdin", "stdout", "stderr")


class Pipe(io.RawIOBase):
    """Bytes to the client."""

    def __init__(self, send, number):
        self._send = send
        self._number = number
        self.name = "<{}>".format(STREAMS[number])

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
        self.display = display
        self._streams = {}

    def stream(self, number):
        stream = self._streams.get(number)
        if stream is None:
            if number:
                stream = io.TextIOWrapper(Pipe(self._send, number), "utf-8", "backslashreplace", "",
                                          write_through=True)
            else:
                stream = io.StringIO()  # no input: the program's own would block it
            self._streams[number] = stream
        return stream


class StandIn(object):
    """Acts as the stream of the thread that asks."""

    __slots__ = ("_prb_find", "__weakref__")

    def __init__(self, find):
        object.__setattr__(self, "_prb_find", find)

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


class Streams(object):
    def __init__(self):
        self._lock = _thread.allocate_lock()
        self._outputs = {}  # of evaluating threads, by ident
        self._originals = {}
        self._stand_ins = {}

    def enter(self, output):
        with self._lock:
            if not self._outputs:
                self._install()
            self._outputs[_thread.get_ident()] = output

    def leave(self):
        with self._lock:
            if self._outputs.pop(_thread.get_ident(), None) is not None and not self._outputs:
                self._remove()

    def detach(self):
        """Although evaluations may run: theirs are the program's streams now."""
        with self._lock:
            self._outputs.clear()
            self._remove()

    def _install(self):
        for number, name in enumerate(STREAMS):
            self._put(name, StandIn(self._finder(number, getattr(sys, name, None))))
        self._put("displayhook", self._displayer(sys.displayhook))

    def _put(self, name, stand_in):
        self._originals[name] = getattr(sys, name, None)
        self._stand_ins[name] = stand_in
        setattr(sys, name, stand_in)

    def _remove(self):
        for name, original in self._originals.items():
            # The program, or the code that ran, may have put another one there: that stays.
            if getattr(sys, name, None) is self._stand_ins[name]:
                setattr(sys, name, original)
        self._originals.clear()
        self._stand_ins.clear()

    def _finder(self, number, original):
        outputs, ident = self._outputs, _thread.get_ident

        def find():
            output = outputs.get(ident())
            if output is not None:
                return output.stream(number)
            return Nothing() if original is None else original

        return find

    def _displayer(self, original):
        outputs, ident = self._outputs, _thread.get_ident

        def displayhook(value):
            output = outputs.get(ident())
            if output is not None:
                output.display(value)
            else:
                original(value)

        return displayhook
