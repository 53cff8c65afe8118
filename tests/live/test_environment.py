"""The environment of a process that set RANK inside: libc's own list, from memory."""

import ctypes
import os
import subprocess
import sys

BUILD = os.path.abspath(os.environ["BUILDDIR"])
TORCH = os.path.join(BUILD, "tests", "comm", ".libs", "libtorch_cpu.so")
MOST = 4095  # bytes of a variable with its name; a longer one is left out

RANK = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1])
os.environ.update({name: "v" * int(length) for name, length in (word.split("=") for word in sys.argv[2:])})
os.environ["RANK"] = "3"
print(flush=True)
sys.stdin.read()
"""


def environment(pid):
    library = ctypes.CDLL(os.path.join(BUILD, ".libs", "libprobing.so.0"))
    library.prb_process_environment.restype = ctypes.c_void_p
    length = ctypes.c_size_t()
    text = library.prb_process_environment(pid, ctypes.byref(length), None)
    assert text
    told = ctypes.string_at(text, length.value)
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return dict(entry.split(b"=", 1) for entry in told.split(b"\0")[:-1])


def test_variables_of_all_lengths():
    """Some of those that it was started with cross pages, the last ones end where the stack does; others were set since."""
    started = {"PAD{:03}".format(i): "p" * (611 + i) for i in range(90)}
    started.update(PATH=os.environ["PATH"], LONG="l" * (MOST - 5), TOO_LONG="t" * MOST)
    inside = {"A": 0, "STEP": 506, "MORE": 507, "WHOLE": MOST - 6, "CUT": MOST}
    child = subprocess.Popen([sys.executable, "-c", RANK, TORCH, *("{}={}".format(*one) for one in inside.items())],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=started)
    try:
        assert child.stdout.readline()
        told = environment(child.pid)
    finally:
        child.communicate()
    wanted = dict(started, RANK="3", **{name: "v" * length for name, length in inside.items()})
    for name in "TOO_LONG", "CUT":
        wanted.pop(name)
        assert name.encode() not in told
    told.pop(b"LC_CTYPE", None)  # Python's own, where the locale is C
    assert {name.encode(): value.encode() for name, value in wanted.items()} == told
