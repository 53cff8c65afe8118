"""`probing debug`, listening: where, what it said, and its end."""

import signal
import subprocess
import threading

from support.target import DEADLINE, PROBING, die_with_parent


class Server:
    """`probing -t PID debug ...`, and where it listens."""

    def __init__(self, program, *options, address="127.0.0.1:0"):
        target = ["-t", str(program.pid)] if program else []
        self.child = subprocess.Popen([PROBING, *target, "debug", "--address", address, *options], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent, encoding="utf-8")
        self.errors = []
        self._drain = threading.Thread(target=lambda: self.errors.extend(self.child.stderr), daemon=True)
        self._drain.start()
        self.said = []
        while not any("waiting for a debugger on" in line for line in self.said):
            line = self.child.stdout.readline()
            assert line, "the server ended: {}".format(self.errors)
            self.said.append(line)
        self.address = self.said[-1].split()[-1]
        if "/" not in self.address:
            host, _, port = self.address.rpartition(":")
            self.address = (host, int(port))

    def end(self, how=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(how)
        try:
            status = self.child.wait(DEADLINE)
        finally:
            if self.child.poll() is None:
                self.child.kill()
                self.child.wait(DEADLINE)
        self.said += self.child.stdout.read().splitlines()
        self.child.stdout.close()
        self._drain.join(DEADLINE)
        self.child.stderr.close()
        return status
