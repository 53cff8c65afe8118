# repr() with a bound: builtin containers are written piece by piece until the room is used up, so that a list of
# millions of numbers costs no more than what is shown of it; everything else by its own repr, whose exceptions are shown.
import _collections
import itertools

SHOW_DEPTH = 50
SHOW_INT_BITS = 1 << 14  # repr of an int takes time by the square of its digits


class Shower(object):
    """The text of a value, at most about room characters."""

    BRACKETS = {_collections.deque: ("[", "]"), list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"),
                frozenset: ("frozenset({", "})"), dict: ("{", "}")}
    EMPTY = {set: "set()", frozenset: "frozenset()"}
    TEXTS = (str, bytes, bytearray)

    def __init__(self, room):
        self.room = room
        self.parts = []
        self.inside = set()

    def put(self, text):
        if len(text) > self.room:
            text = text[:max(self.room, 0)] + "..." if self.room > 0 else ""
        self.room -= len(text)
        self.parts.append(text)

    def value(self, value, depth=0):
        kind = type(value)
        base = self.base(value, kind)
        if base is not None:
            self.container(value, base, depth)
        elif kind in self.TEXTS and len(value) > self.room:
            self.put(repr(value[:max(self.room, 0)]))
            self.parts.append("... ({} in all)".format(len(value)))
        elif kind is int and value.bit_length() > SHOW_INT_BITS:
            self.put(hex(value))
        else:
            self.put(self.own(value))

    def base(self, value, kind):
        """The builtin container to write it as: its own, or for a large one of a subclass, the one it extends."""
        if kind in self.BRACKETS and kind is not _collections.deque:
            return kind
        base = next((one for one in self.BRACKETS if issubclass(kind, one)), None)
        if base is None or base.__len__(value) * 2 < self.room:
            return None
        self.put(probe.agent.name_of(value) + " ")
        return base

    def own(self, value):
        try:
            text = self.repr(value)
        except Exception as error:
            reason = self.reason(error)
            return "<{} object at {:#x}; its repr raised {}>".format(probe.agent.name_of(value), id(value), reason)
        return str.__str__(text)

    def repr(self, value):
        return repr(value)

    def reason(self, error):
        return probe.agent.plain(error)

    def container(self, value, kind, depth):
        count = kind.__len__(value)
        if not count:
            return self.put(self.EMPTY.get(kind) or "".join(self.BRACKETS[kind]))
        first, last = self.BRACKETS[kind]
        if id(value) in self.inside or depth >= SHOW_DEPTH:
            return self.put(first + "..." + last)
        self.inside.add(id(value))
        self.put(first)
        # One call of C code: the program's threads cannot change the container meanwhile.
        parts = list(itertools.islice(dict.items(value) if kind is dict else kind.__iter__(value), max(self.room, 0) // 2 + 1))
        shown = 0
        for shown, part in enumerate(parts, 1):
            self.item(part, kind, depth + 1)
            if self.room <= 0:
                break
            if shown < len(parts):
                self.put(", ")
        if shown < count:
            self.parts.append(" ... ({} more)".format(count - shown))
        elif kind is tuple and count == 1:
            self.put(",")
        self.parts.append(last)
        self.inside.discard(id(value))

    def item(self, part, kind, depth):
        if kind is dict:
            self.value(part[0], depth)
            self.put(": ")
            part = part[1]
        self.value(part, depth)


def show(value, room):
    shower = Shower(room)
    shower.value(value)
    return "".join(shower.parts)
