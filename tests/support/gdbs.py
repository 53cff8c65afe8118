"""The gdbs to test with, and sessions of them: batch, MI, DAP."""

import functools
import json
import os
import re
import select
import shutil
import subprocess
import time

from support import pythons

DEADLINE = 240
HERE = os.path.dirname(os.path.abspath(__file__))
SRCDIR = os.environ.get("SRCDIR", os.path.join(HERE, "..", ".."))
PLUGIN = os.path.join(os.path.abspath(SRCDIR), "gdb", "probing-gdb.py")
QUIET = ["-q", "-nx", "-iex", "set auto-load off", "-iex", "set confirm off", "-iex", "set pagination off",
         "-iex", "set style enabled off", "-iex", "set debuginfod enabled off", "-iex", "set print frame-arguments all"]


class Gdb:
    def __init__(self, command, version, variables=None):
        self.command = command
        self.version = version
        self.variables = variables or {}
        self.id = "gdb-" + version

    def environment(self):
        environment = dict(os.environ, PROBING_BUILDDIR=os.environ.get("BUILDDIR", "."), LC_ALL="C.UTF-8", HOME="/nonexistent")
        environment.pop("LD_LIBRARY_PATH", None)
        return dict(environment, **self.variables)

    def batch(self, *commands, load=True, before=()):
        """Run commands; what each wrote (both streams), in order.  An error does not end the session."""
        words = self.command + QUIET + list(before)
        script = ["source " + PLUGIN] * load + list(commands)
        for i, command in enumerate(script):
            words += ["-ex", "echo \\n@@{}@@\\n".format(i), "-ex", command]
        words += ["-ex", "echo \\n@@end@@\\n", "-batch"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment(), timeout=DEADLINE, encoding="utf-8", errors="replace")
        parts = re.split(r"\n?@@(?:\d+|end)@@\n", done.stdout)
        assert len(parts) == len(script) + 2, done.stdout
        if load:
            assert parts[1] == "", parts[1]
        return parts[1 + load:-1]


def _version(command, variables):
    try:
        done = subprocess.run(command + ["-nx", "-batch", "-ex", "python import ctypes; print(gdb.VERSION)"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=dict(os.environ, **variables), timeout=DEADLINE, encoding="utf-8")
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+\.\d+)", done.stdout)
    return found.group(1) if found and done.returncode == 0 else None


@functools.lru_cache(maxsize=None)
def found():
    """This machine's, and that of the root folder with newer programs, run here by that root's own loader."""
    ways = [(["gdb"], {})] if shutil.which("gdb") else []
    root = pythons.newer_root()
    if root and os.path.exists(root + "/usr/bin/gdb"):
        libraries = root + "/usr/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu"
        ways.append(([root + "/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, root + "/usr/bin/gdb",
                      "--data-directory", root + "/usr/share/gdb"], {"PYTHONHOME": root + "/usr"}))
    gdbs = [Gdb(command, _version(command, variables), variables) for command, variables in ways]
    return [gdb for gdb in gdbs if gdb_serves(gdb)]


def gdb_serves(gdb):
    return gdb.version is not None and int(gdb.version.split(".")[0]) >= 12


def attach(target):
    """gdb's words for a process: of another root it needs to be told the program and the root."""
    root = target.python.root
    return ["-p", str(target.pid)] if not root else \
        ["-iex", "set sysroot " + root, root + os.path.realpath(root + target.python.executable)[len(root):], "-p", str(target.pid)]


class Talk:
    """A gdb that is spoken to: reads its output as it comes."""

    def __init__(self, gdb, *words, errors=subprocess.DEVNULL):
        self.child = subprocess.Popen(gdb.command + QUIET + list(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=errors, env=gdb.environment())
        self.text = b""

    def until(self, pattern, deadline=DEADLINE):
        """What comes up to the pattern, which is given back as a match over all of it."""
        end = time.monotonic() + deadline
        while True:
            match = re.search(pattern, self.text, re.DOTALL)
            if match:
                self.text = self.text[match.end():]
                return match
            assert select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))[0], self.text
            data = os.read(self.child.stdout.fileno(), 1 << 16)
            assert data, "gdb ended: {!r}".format(self.text)
            self.text += data

    def send(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def end(self):
        self.child.kill()
        self.child.wait(DEADLINE)
        self.child.stdin.close()
        self.child.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.end()
        return False


class Mi(Talk):
    """gdb's machine interface."""

    def __init__(self, gdb, *words):
        super().__init__(gdb, "-i=mi", *words)
        self.until(rb"\(gdb\) \n")

    def ask(self, command):
        """The result record, and what was written before it."""
        self.send(command.encode() + b"\n")
        match = self.until(rb"^(.*?)\n?(\^(?:done|error|running)[^\n]*)\n(?:[^\n]*\n)*?\(gdb\) \n")
        return match.group(2).decode(), match.group(1).decode("utf-8", "replace")

    def console(self, command):
        return self.ask('-interpreter-exec console "{}"'.format(command.replace("\\", "\\\\").replace('"', '\\"')))


class Dap(Talk):
    """gdb's own debug adapter."""

    def __init__(self, gdb, *words):
        super().__init__(gdb, "-i=dap", *words)
        self.sequence = 0

    def message(self):
        length = int(self.until(rb"Content-Length: (\d+)\r\n\r\n").group(1))
        return json.loads(self.until(b"^.{%d}" % length).group(0).decode())

    def request(self, command, **arguments):
        self.sequence += 1
        body = json.dumps({"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}).encode()
        self.send(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return self.sequence

    def answer(self, sequence):
        while True:
            message = self.message()
            if message["type"] == "response" and message["request_seq"] == sequence:
                assert message["success"], message
                return message.get("body", {})

    def ask(self, command, **arguments):
        return self.answer(self.request(command, **arguments))
