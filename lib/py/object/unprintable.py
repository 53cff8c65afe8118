"""Prints unprintable.def: the ranges that str.isprintable() refuses, from the Python that runs it (use the newest)."""

import sys
import unicodedata


def ranges():
    start = None
    for code in range(0x80, sys.maxunicode + 2):
        hidden = code <= sys.maxunicode and not chr(code).isprintable()
        if hidden and start is None:
            start = code
        elif not hidden and start is not None:
            yield start, code - 1
            start = None


print("/* Code points from U+0080 on that repr() escapes; printed by unprintable.py, Unicode %s. */" % unicodedata.unidata_version)
line = ""
for first, last in ranges():
    item = "RANGE(0x%x, 0x%x)" % (first, last)
    if len(line) + len(item) > 98:
        print(line)
        line = ""
    line += (" " if line else "") + item
print(line)
