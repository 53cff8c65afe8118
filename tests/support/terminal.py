"""A command whose output goes to a terminal."""

import os
import pty
import select
import subprocess
import threading
import time

DEADLINE = 120  # seconds in which a command ends
END = b"\x04nothing more comes\x04"


def on_a_terminal(command, stdin=subprocess.DEVNULL, stderr=None, **variables):
    """(exit status, the bytes that the terminal got, lines ending in CR LF).

    stdin, stderr: as of Popen, or "terminal".  variables: of the environment, None: absent.
    """
    environment = dict(os.environ, **variables)
    for name in [name for name, value in environment.items() if value is None]:
        del environment[name]
    ours, its = pty.openpty()
    try:
        with subprocess.Popen([str(word) for word in command], env=environment, stdout=its, stdin=its if stdin == "terminal" else stdin,
                              stderr=its if stderr == "terminal" else stderr) as process:
            # Once nobody has the terminal open, the kernel may drop what was not read yet: this side closes it last.
            threading.Thread(target=lambda: (process.wait(), os.write(its, END)), daemon=True).start()
            text = b""
            until = time.monotonic() + DEADLINE
            while not text.endswith(END):
                assert select.select([ours], [], [], max(0, until - time.monotonic()))[0], text
                text += os.read(ours, 65536)
        return process.returncode, text[:-len(END)]
    finally:
        os.close(its)
        os.close(ours)
