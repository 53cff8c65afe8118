"""A bus of a test's own: `probing cluster up` in a home of its own."""

import json
import os
import shutil
import subprocess
import tempfile

from support.injection import wait_until
from support.target import children

PROBING = os.environ["PROBING"]
DEADLINE = 120


def missing():
    """Why there can be no bus here; "": there can."""
    if not any(shutil.which("nats-server", path=path) for path in (os.environ["PATH"], "/usr/sbin")):
        return "no nats-server"
    with open(os.path.join(os.environ["BUILDDIR"], "config.h")) as file:
        text = file.read()
    return ", ".join("built without {}".format(name) for name in ("NATS", "CRYPTO") if "#define PRB_SONAME_{} ".format(name) not in text)


def enroll(client, entries):
    """Put {key: entry} into the roster, as agents do, which is made where there is none.  Whom it has, who asks waits for."""
    bucket = {"name": "KV_probing_roster", "subjects": ["$KV.probing_roster.>"], "max_msgs_per_subject": 1, "storage": "file", "discard": "new",
              "max_msg_size": 1 << 20, "max_age": 86400 * 10 ** 9, "allow_rollup_hdrs": True, "allow_direct": True, "deny_delete": True}
    client.subscribe("_INBOX.agent.enroll.*")
    client.publish("$JS.API.STREAM.CREATE.KV_probing_roster", bucket, "_INBOX.agent.enroll.bucket")
    client.next()  # an error where it is there
    for key, entry in entries.items():
        client.publish("$KV.probing_roster." + key, entry, "_INBOX.agent.enroll.entry")
        assert "error" not in client.next().json


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
        """The server's pid; between two of them it is waited for."""
        found = []

        def there():
            found[:] = children(self.state["pid"])
            return found

        wait_until(there)
        return found[0]

    @property
    def address(self):
        return "127.0.0.1", self.state["port"]

    def down(self):
        return self.run("cluster", "down")

    def remove(self):
        done = self.down()
        shutil.rmtree(self.home, ignore_errors=True)
        assert done.returncode == 0, done.stderr
