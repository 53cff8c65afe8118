"""A bus of a test's own: `probing cluster up` in a home of its own."""

import json
import os
import shutil
import subprocess
import tempfile

PROBING = os.environ["PROBING"]
DEADLINE = 60


def missing():
    """Why there can be no bus here; "": there can."""
    if not any(shutil.which("nats-server", path=path) for path in (os.environ["PATH"], "/usr/sbin")):
        return "no nats-server"
    with open(os.path.join(os.environ["BUILDDIR"], "config.h")) as file:
        text = file.read()
    return ", ".join("built without {}".format(name) for name in ("NATS", "CRYPTO") if "#define PRB_SONAME_{} ".format(name) not in text)


class Bus:
    def __init__(self, home=None):
        self.home = home or tempfile.mkdtemp(prefix="bus-")
        self.folder = os.path.join(self.home, ".config", "probing", "bus")
        self.environment = {name: value for name, value in os.environ.items() if name not in ("PROBING_BUS", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        self.environment["HOME"] = self.home

    def run(self, *words, **more):
        environment = dict(self.environment, **more.pop("environment", {}))
        return subprocess.run([PROBING, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment,
                              timeout=DEADLINE, stdin=subprocess.DEVNULL, **more)

    def up(self, *options):
        done = self.run("cluster", "up", "--listen", "127.0.0.1:0", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def file(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return json.load(file)

    @property
    def state(self):
        return self.file("server")

    @property
    def server(self):
        """The server's pid."""
        children = "/proc/{0}/task/{0}/children".format(self.state["pid"])
        with open(children) as file:
            return int(file.read().split()[0])

    @property
    def address(self):
        return "127.0.0.1", self.state["port"]

    def down(self):
        return self.run("cluster", "down")

    def remove(self):
        done = self.down()
        shutil.rmtree(self.home, ignore_errors=True)
        assert done.returncode == 0, done.stderr
