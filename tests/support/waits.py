"""No test waits for ever for a process that it started, nor pytest for a thread of a test.  tests/conftest.py begins with this.

A time that a test names itself holds.  What has no event is looked at again and again, by until().
"""

import contextlib
import subprocess
import threading
import time

LONGEST = 240  # seconds that a wait takes which names no time: less than a test may take
AFTER_KILL = 10


def until(what, seconds=120):
    """What what() returns, once that is true.  The bound is for what hangs, not for a machine that is slow."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, "waited {} s in vain".format(seconds)
        time.sleep(0.005)


def line_of(path, seconds=120):
    """The first line of a file that another process makes: it is there before anything is in it, and may be emptied to be written anew."""
    def read():
        with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
            line = file.readline()
            return line if line.endswith("\n") else None

    return until(read, seconds).rstrip("\n")


class Popen(subprocess.Popen):
    killed = False

    def kill(self):
        self.killed = True
        super().kill()

    def wait(self, timeout=None):
        return super().wait(LONGEST if timeout is None else timeout)

    def communicate(self, input=None, timeout=None):
        """Of one that was killed, what it started may hold the pipes as long as it likes."""
        if timeout is not None:
            return super().communicate(input, timeout)
        if self.killed:
            try:
                return super().communicate(input, AFTER_KILL)
            except subprocess.TimeoutExpired as late:
                self.close()
                return late.output, late.stderr
        late = threading.Timer(LONGEST, self.kill)
        late.daemon = True
        late.start()
        try:
            return super().communicate(input)
        finally:
            late.cancel()

    def close(self):
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with contextlib.suppress(OSError):  # of what was not written yet
                    stream.close()

    def __exit__(self, kind, error, trace):
        """A `with` that failed ends the process, which nobody has told to end."""
        if kind is not None:
            self.kill()
        return super().__exit__(kind, error, trace)


def bound():
    subprocess.Popen = Popen
    threading.main_thread()._daemonic = True  # what its threads inherit: those of a test that failed are not waited for at the end
