"""code-server (tests/editors/setup.sh) on loopback: the workbench of VS Code for a browser, and its extension hosts."""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from support.target import free_port
from support.waits import line_of

DEADLINE = 120  # seconds for any one thing
LINGER = 600  # s that `probing serve` waits for a window that is loaded again: on a busy machine that takes more than its minute
# Keys of these tests for what is not their subject.
CLEAN_KEY, OPEN_KEY, DEBUG_KEY, CONSOLE_KEY, THEME_KEY = ("Control+Alt+Shift+" + key for key in "FGHJK")
KEYS = {
    CLEAN_KEY: ["workbench.action.closeQuickOpen", "workbench.debug.viewlet.action.removeAllBreakpoints", "notifications.clearAll",
                "workbench.debug.panel.action.clearReplAction", "workbench.action.closePanel", "workbench.action.closeAllEditors"],
    OPEN_KEY: ["workbench.action.quickOpen"],
    DEBUG_KEY: ["workbench.view.debug"],
    CONSOLE_KEY: ["workbench.debug.action.focusRepl"],
    THEME_KEY: ["workbench.action.toggleLightDarkThemes"],
}
SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.enableExperiments": False,
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "debug.openDebug": "openOnDebugBreak",
    "debug.internalConsoleOptions": "openOnSessionStart",
    "debug.toolBarLocation": "docked",
    "debug.showInStatusBar": "always",
    "chat.disableAIFeatures": True,
    "git.enabled": False,
    "editor.minimap.enabled": False,
    "explorer.autoReveal": False,
}


def until(what, ask, seconds=DEADLINE):
    """The first true answer; an exception counts as none."""
    end, last = time.monotonic() + seconds, None
    while True:
        try:
            last = ask()
            if last:
                return last
        except Exception as error:  # the page may be drawing
            last = error
        assert time.monotonic() < end, "waited {} s for {}; last: {!r}".format(seconds, what, last)
        time.sleep(0.1)


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class CodeServer:
    """extensions: .vsix files to install and plain folders; settings: over SETTINGS."""

    def __init__(self, root, extensions=(), settings=None):
        self.root = str(root)
        self.port = free_port()
        tools = os.environ["PROBING_EDITORS"]
        self.command = [os.path.join(tools, "node", "bin", "node"),
                        os.path.join(tools, "code-server", "node_modules", "code-server", "out", "node", "entry.js"),
                        "--config", self.path("config.yaml"), "--user-data-dir", self.path("data"),
                        "--extensions-dir", self.path("extensions")]
        home = self.path("home")
        self.runtime = tempfile.mkdtemp(prefix="code-")  # short: the path of a socket has 107 bytes
        self.crashes = self.path("crashes")
        self.environment = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home, XDG_CACHE_HOME=home,
                                XDG_RUNTIME_DIR=self.runtime, PROBING_CRASH_DIR=self.crashes, PROBING_STORE="off",
                                PROBING_SERVE_LINGER=str(LINGER),
                                EXTENSIONS_GALLERY='{"serviceUrl":""}')
        for level in ("User", "Machine"):  # settings about the machine count only in the latter
            os.makedirs(self.path("data/" + level))
            with open(self.path("data/{}/settings.json".format(level)), "w") as out:
                json.dump(dict(SETTINGS, **(settings or {})), out)
        with open(self.path("data/User/keybindings.json"), "w") as out:
            json.dump([{"key": key.replace("Control", "ctrl").lower(), "command": "runCommands", "args": {"commands": commands}}
                       for key, commands in KEYS.items()], out)
        os.makedirs(self.path("extensions"))
        os.makedirs(home)
        with open(self.path("config.yaml"), "w") as out:
            out.write("auth: none\n")
        for extension in extensions:
            self.install(str(extension))
        self.log = open(self.path("server.log"), "wb")
        self.child = subprocess.Popen(
            self.command + ["--auth", "none", "--bind-addr", "127.0.0.1:{}".format(self.port), "--disable-telemetry",
                            "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override",
                            "--ignore-last-opened"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.environment, start_new_session=True)
        until("code-server", lambda: answers(self.port))

    def path(self, name):
        return os.path.join(self.root, name)

    def install(self, extension):
        if os.path.isdir(extension):  # picked up before the first start, under this form of name
            with open(os.path.join(extension, "package.json")) as text:
                about = json.load(text)
            shutil.copytree(extension, self.path("extensions/{publisher}.{name}-{version}".format(**about)))
            return
        done = subprocess.run(self.command + ["--install-extension", extension], env=self.environment, timeout=DEADLINE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()

    def logs(self):
        """Its own, and those of its extension hosts."""
        found = sorted(glob.glob(self.path("data/logs/*/exthost*/**/*.log"), recursive=True), key=os.path.getmtime)
        return [self.path("server.log")] + found[-4:]

    def last_words(self, lines=4):
        """The ends of its extension hosts' logs."""
        told = []
        for log in self.logs()[1:]:
            with open(log, errors="replace") as text:
                told += [os.path.basename(log) + ": " + line[:300] for line in text.read().splitlines()[-lines:]]
        return told

    def members(self):
        """What its session still runs: the extension host outlives the server by some seconds."""
        listed = subprocess.run(["ps", "-o", "pid=", "-s", str(self.child.pid)], stdout=subprocess.PIPE)
        return [int(word) for word in listed.stdout.split()]

    def storage(self):
        """Where our extension keeps files."""
        return self.path("data/User/globalStorage/probing.probing")

    def serving(self):
        """The pid of the `probing serve` that the extension started; 0: none."""
        try:
            with open(os.path.join(self.runtime, "probing", "serve.lock")) as text:
                fcntl.flock(text, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return 0  # the file keeps the pid of one that ended
        except BlockingIOError:
            return int(line_of(os.path.join(self.runtime, "probing", "serve.lock")))
        except FileNotFoundError:
            return 0

    def close(self):
        self.child.terminate()
        self.child.wait(DEADLINE)
        end = time.monotonic() + 10
        while self.members() and time.monotonic() < end:
            time.sleep(0.2)
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.log.close()
        server = self.serving()
        if server:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, signal.SIGTERM)
        shutil.rmtree(self.runtime, ignore_errors=True)
