# JSON, both ways.  Not the module json: importing it takes its lock and milliseconds, and the program may have changed it.
# Texts that are no Unicode (surrogates) are escaped, numbers that are no JSON become text.
DEPTH_MAX = 64
NAMES_MAX = 256
BLANK = " \t\n\r"
NUMBER = frozenset("0123456789+-.eE")
WORDS = {"true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
SPECIAL = {number: "\\u{:04x}".format(number) for number in range(32)}
SPECIAL.update({ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 127: "\\u007f"})


class Wrong(ValueError):
    pass


def text_of(value):
    """Most have nothing to escape; translate() asks the table for every letter that occurs, which takes microseconds."""
    if value.isprintable() and '"' not in value and "\\" not in value:
        return '"' + value + '"'
    return escaped(value)


def escaped(value):
    return '"' + str.__str__(value).translate(SPECIAL) + '"'


def float_of(value):
    return repr(value) if value - value == 0 else text_of(repr(value))


SCALARS = {str: text_of, int: int.__repr__, float: float_of, bool: ("false", "true").__getitem__, type(None): lambda _: "null"}


class Names(dict):
    """Keys as they are written: the same few in every answer."""

    def __missing__(self, key):
        text = escaped(key) + ":"
        if len(self) < NAMES_MAX:
            self[key] = text
        return text


names = Names()


def written(value, depth=0):
    scalar = SCALARS.get(type(value))
    if scalar is not None:
        return scalar(value)
    if isinstance(value, str):
        return escaped(value)
    if not isinstance(value, (dict, list, tuple)):
        raise Wrong("{} is not JSON".format(type(value).__name__))
    if depth > DEPTH_MAX:
        return '"..."'
    if isinstance(value, dict):
        return "{" + ",".join([names[key] + written(one, depth + 1) for key, one in value.items()]) + "}"
    return "[" + ",".join([written(one, depth + 1) for one in value]) + "]"


def dumps(value):
    text = written(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\\u{:04x}".format(ord(c)) if 0xD800 <= ord(c) < 0xE000 else c for c in text).encode("utf-8")


class Words(object):
    """Reads what is not nested.  (A statement is compiled in one go, with the GIL: none of them is long.)"""

    def __init__(self, text):
        self.text = text
        self.at = 0

    def blank(self):
        text, at = self.text, self.at
        while text[at:at + 1] in BLANK and at < len(text):
            at += 1
        self.at = at
        return text[at:at + 1]

    def expect(self, what):
        if self.blank() != what:
            raise Wrong("{!r} is missing at {}".format(what, self.at))
        self.at += 1

    def word(self):
        text, start = self.text, self.at
        at = start
        while at < len(text) and (text[at] in NUMBER or text[at].isalpha()):
            at += 1
        word = text[start:at]
        self.at = at
        if word in WORDS:
            return WORDS[word]
        try:
            return int(word) if not set(word) - set("-0123456789") else float(word)
        except ValueError:
            raise Wrong("{!r} at {}".format(word[:20], start))


class Texts(Words):
    def string(self):
        text, start = self.text, self.at + 1
        parts = []
        while True:
            end = text.find('"', start)
            slash = text.find("\\", start, end)
            if end < 0:
                raise Wrong("a text does not end")
            if slash < 0:
                parts.append(text[start:end])
                self.at = end + 1
                return "".join(parts)
            parts.append(text[start:slash])
            start = self.escape(slash, parts)

    def escape(self, at, parts):
        """Where the text goes on."""
        kind = self.text[at + 1:at + 2]
        if kind != "u":
            if kind not in ESCAPES:
                raise Wrong("a wrong escape at {}".format(at))
            parts.append(ESCAPES[kind])
            return at + 2
        number = self.hexadecimal(at + 2)
        after = at + 6
        if 0xD800 <= number < 0xDC00 and self.text[after:after + 2] == "\\u":
            low = self.hexadecimal(after + 2)
            if 0xDC00 <= low < 0xE000:
                parts.append(chr(0x10000 + ((number - 0xD800) << 10) + (low - 0xDC00)))
                return after + 6
        parts.append(chr(number))
        return after

    def hexadecimal(self, at):
        try:
            return int(self.text[at:at + 4].rjust(4, "?"), 16)
        except ValueError:
            raise Wrong("a wrong escape at {}".format(at))


class Reader(Texts):
    def value(self, depth=0):
        first = self.blank()
        if depth > DEPTH_MAX:
            raise Wrong("nested too deeply")
        if first == '"':
            return self.string()
        if first == "{":
            return self.object(depth)
        if first == "[":
            return self.array(depth)
        return self.word()

    def object(self, depth):
        found = {}
        self.at += 1
        if self.blank() == "}":
            self.at += 1
            return found
        while True:
            if self.blank() != '"':
                raise Wrong("a name is missing at {}".format(self.at))
            name = self.string()
            self.expect(":")
            found[name] = self.value(depth + 1)
            if self.blank() != ",":
                break
            self.at += 1
        self.expect("}")
        return found

    def array(self, depth):
        found = []
        self.at += 1
        if self.blank() == "]":
            self.at += 1
            return found
        while True:
            found.append(self.value(depth + 1))
            if self.blank() != ",":
                break
            self.at += 1
        self.expect("]")
        return found


def loads(data):
    reader = Reader(data.decode("utf-8", "replace"))
    value = reader.value()
    if reader.blank():
        raise Wrong("more than one value")
    return value
