# What makes a breakpoint count: conditions, hit conditions in the forms that debugpy takes, and messages to log instead.
HITS = {
    "": lambda count, n: count == n, "==": lambda count, n: count == n, ">=": lambda count, n: count >= n,
    "<=": lambda count, n: count <= n, ">": lambda count, n: count > n, "<": lambda count, n: count < n,
    "%": lambda count, n: n > 0 and count % n == 0,
}
MESSAGE_MAX = 8192
ASKS_FRAMES = {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"}
CONVERSIONS = {"": None, "r": repr, "s": str, "a": ascii}
names = probe.part("names")


def compiled(text):
    return compile(text.strip(), "<condition>", "eval", 0, True)


def shown(text):
    """(code, conversion, format) of what stands between two braces: x, x!r, x:>4, as in an f-string."""
    try:
        return compiled(text), "", ""
    except SyntaxError:
        for at in range(len(text) - 1, 0, -1):
            head, conversion, spec = text[:at], "", text[at:]
            if spec[0] == "!" and (len(spec) == 2 or spec[2:3] == ":"):
                conversion, spec = spec[1:2], spec[2:]
            if conversion not in CONVERSIONS or spec[:1] not in ("", ":") or not (conversion or spec):
                continue
            try:
                return compiled(head), conversion, spec[1:]
            except SyntaxError:
                continue
        raise


def pieces(message):
    """Text and what shown() makes of expressions, one after the other; two braces are one."""
    found = []
    text, at = "", 0
    while at < len(message):
        char = message[at]
        if message[at:at + 2] in ("{{", "}}"):
            text += char
            at += 2
        elif char == "{":
            expression, at = closed(message, at + 1)
            found += [text, shown(expression)]
            text = ""
        else:
            text += char
            at += 1
    return found + [text]


def closed(message, at):
    """The expression up to the brace that closes it, and what comes behind."""
    depth, start, quote = 0, at, ""
    while at < len(message):
        char = message[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "{[(":
            depth += 1
        elif char in ")]" or char == "}" and depth:
            depth -= 1
        elif char == "}":
            return message[start:at], at + 1
        at += 1
    raise ValueError("a brace is not closed")


class Rule(object):
    """condition, hitCondition and logMessage of one breakpoint; wrong: why it cannot be."""

    def __init__(self, given):
        self.condition = self.hits = self.message = None
        self.count = 0
        self.wrong = None
        self.text = given.get("condition") or ""
        try:
            if self.text.strip():
                self.condition = compiled(self.text)
                self.plain = not names.nests(self.condition)
            if given.get("logMessage"):
                self.message = pieces(given["logMessage"])
        except (SyntaxError, ValueError) as error:
            self.wrong = "{}: {}".format(type(error).__name__, error)
        wanted = given.get("hitCondition")
        if wanted and wanted.strip():
            number = wanted.strip().lstrip("=<>%")
            sign = wanted.strip()[:-len(number)]
            if number.strip().isdecimal() and sign in HITS:
                self.hits = lambda count, test=HITS[sign], n=int(number): test(count, n)
            else:
                self.wrong = "hit conditions are N, ==N, >=N, >N, <=N, <N or %N"

    def in_c(self, code):
        """Whether C can evaluate the condition in frames of this code, and which of their variables it names: (name, index in
        co_varnames, ...); None: they are in a dict."""
        if not self.plain or ":=" in self.text or ASKS_FRAMES.intersection(self.condition.co_names):
            return False, None
        if not code.co_flags & 1:  # CO_OPTIMIZED
            return True, None
        local = []
        for name in self.condition.co_names:
            if name in code.co_cellvars or name in code.co_freevars:
                return False, None
            if name in code.co_varnames:
                local += [name, code.co_varnames.index(name)]
        return True, tuple(local)

    def met(self, frame, more=None, judged=None):
        """(whether it counts, what went wrong in the condition or None)."""
        trouble = None
        if self.condition is not None:
            try:
                if judged is None or judged[0] is not self.condition:
                    met = names.judged(self.condition, self.plain, frame, more)
                elif judged[1] is not None:
                    raise judged[1]
                else:
                    met = True
            except probe.engine.Interrupted:
                raise
            except BaseException as error:
                met = not probe.engine.keep_pending(error)
                trouble = "the condition {!r} raised {}".format(self.text, probe.caught(error))
            if not met:
                return False, None
        self.count += 1
        if self.hits is not None and not trouble and not self.hits(self.count):
            return False, None
        return True, trouble

    def log(self, frame):
        text = []
        for piece in self.message:
            if not isinstance(piece, str):
                try:
                    code, conversion, spec = piece
                    value = names.evaluated(code, frame)
                    value = CONVERSIONS[conversion](value) if conversion else value
                    piece = (format(value, spec) if spec else str(value))[:MESSAGE_MAX]
                except probe.engine.Interrupted:
                    raise
                except BaseException as error:
                    piece = "<" + probe.caught(error) + ">"
            text.append(piece)
        names.release(frame)
        probe.engine.note("".join(text)[:MESSAGE_MAX])
