"""A program full of secrets: in its environment and arguments, set at run time, as text of 1-, 2- and 4-byte characters.

argv: WAY, then options with secrets.  Of standard input: a line of JSON, {"late": {NAME: VALUE}, "message": TEXT, "locals": [A, B]}:
what is set at run time, what the exception says, two variables.  Says "ready PID", then ends at the next line: WAY raise, signal or wait.
"""

import json
import os
import signal
import sys
from urllib.parse import quote, unquote, urlsplit

given = json.loads(sys.stdin.readline())
os.environ.update(given["late"])


def copies():
    """What a program makes of its variables: longer texts, parts of URLs, bytes."""
    kept = []
    for name, value in sorted(os.environ.items()) + [(str(i), word) for i, word in enumerate(sys.argv)]:
        parts = [value, unquote(value), quote(value)]
        if "://" in value:
            url = urlsplit(value)
            parts += [url.password or "", unquote(url.password or ""), url.username or ""]
        for part in parts:
            kept.append([part + " narrow", part + " wide \u20ac", part + " widest \U0001f600", part.encode() + b" bytes"])
    return kept


def inner(way, message):
    neighbour, wide, widest = "beside the secrets", "beside the secrets \u20ac", "beside the secrets \U0001f600"
    db_password, config = given["locals"][0], {"user": "joe", "api_key": given["locals"][1], "mark": "\u20ac"}
    kept = copies()
    texts = [one[k] for one in kept for k in range(4)]
    first, second, third, fourth = (" ".join(str(text) for text in texts[k::4])[:2000] for k in range(4))
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    if way == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "raise":
        raise RuntimeError(message)
    return db_password, config, neighbour, wide, widest, first, second, third, fourth


def outer():
    return inner(sys.argv[1], given["message"])


outer()
