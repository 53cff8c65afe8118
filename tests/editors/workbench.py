"""The real VS Code, driven: code-server (tests/editors/setup.sh) on loopback, its page in Debian's Chromium by Playwright."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

DEADLINE = 120  # seconds for any one thing
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
    "chat.disableAIFeatures": True,
    "git.enabled": False,
    "editor.minimap.enabled": False,
    "explorer.autoReveal": False,
}
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


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


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# The contrast of an element's text with what is behind it, as WCAG 2 counts: 1 to 21.
CONTRAST = """element => {
    const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
    const behind = [];
    for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const luminance = colours => {
        for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
        const linear = [...pen.getImageData(0, 0, 1, 1).data].map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const editor = getComputedStyle(document.body).getPropertyValue('--vscode-editor-background');
    const pair = [luminance([editor, ...behind]), luminance([getComputedStyle(element).color])].sort((a, b) => a - b);
    return (pair[1] + 0.05) / (pair[0] + 0.05);
}"""


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
        self.environment = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home, XDG_CACHE_HOME=home,
                                EXTENSIONS_GALLERY='{"serviceUrl":""}')
        for level in ("User", "Machine"):  # settings about the machine count only in the latter
            os.makedirs(self.path("data/" + level))
            with open(self.path("data/{}/settings.json".format(level)), "w") as out:
                json.dump(dict(SETTINGS, **(settings or {})), out)
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

    def members(self):
        """What its session still runs: the extension host outlives the server by some seconds."""
        listed = subprocess.run(["ps", "-o", "pid=", "-s", str(self.child.pid)], stdout=subprocess.PIPE)
        return [int(word) for word in listed.stdout.split()]

    def close(self):
        self.child.terminate()
        self.child.wait(DEADLINE)
        end = time.monotonic() + 10
        while self.members() and time.monotonic() < end:
            time.sleep(0.2)
        for pid in self.members():
            os.kill(pid, signal.SIGKILL)
        self.log.close()


class Workbench:
    """A page of it.  Views are read by what they say to a screen reader."""

    def __init__(self, browser, server, folder, pictures):
        self.pictures = str(pictures)
        self.page = browser.new_page(viewport={"width": 1600, "height": 1000})
        self.page.goto("http://127.0.0.1:{}/?folder={}".format(server.port, folder), wait_until="commit", timeout=90000)
        self.page.locator(".monaco-workbench").wait_for(timeout=90000)
        self.told = []  # notifications, as they were seen

    def picture(self, name):
        self.page.screenshot(path=os.path.join(self.pictures, name + ".png"))

    def until(self, what, ask, seconds=DEADLINE):
        """As until(); a failure says what VS Code notified of meanwhile."""
        def look():
            for text in self.page.locator(".notification-list-item-message, .dialog-message-text").all_inner_texts():
                if text not in self.told:
                    self.told.append(text)
            return ask()

        try:
            return until(what, look, seconds)
        except AssertionError as error:
            raise AssertionError("{}; told: {}".format(error, self.told)) from None

    def press(self, key):
        self.page.keyboard.press(key)

    def rows(self, view):
        return self.page.locator(".{} .monaco-list-row".format(view)).evaluate_all(
            "rows => rows.map(row => row.getAttribute('aria-label') || row.innerText)")

    def row(self, view, text):
        return self.page.locator(".{} .monaco-list-row".format(view), has_text=text).first

    def box(self, *told):
        """The box of the palette, a list or a question, once its widget says all that."""
        widget = self.page.locator(".quick-input-widget")
        self.until("the question", lambda: widget.is_visible() and all(text in widget.inner_text() for text in told))
        return widget.locator("input").first

    def picks(self):
        """What a list offers."""
        return self.page.locator(".quick-input-list .monaco-list-row").all_inner_texts()

    def pick(self, text, *told):
        """Type into the box of the palette or a list, and take the first line."""
        self.box(*told).fill(text)
        self.until("the list to follow", lambda: self.picks())
        self.press("Enter")

    def answer(self, text, *told):
        """Type into the box of a question."""
        self.box(*told).fill(text)
        self.press("Enter")

    def dialog(self, text):
        """Waits until a dialog says that, and shuts it."""
        box = self.page.locator(".monaco-dialog-box")
        self.until("a dialog", lambda: box.is_visible() and text in box.inner_text())
        self.press("Escape")
        self.until("the dialog's end", lambda: not box.is_visible())

    def command(self, title):
        self.press("F1")
        self.pick(">" + title)

    def open(self, name, line):
        """A file of the folder, at a line, once its language is known: breakpoints need that."""
        mode = self.page.locator("#status\\.editor\\.mode")

        def opened():
            if not mode.is_visible():
                self.press("F1")
                self.page.locator(".quick-input-widget input").first.fill(name, timeout=5000)
                self.page.locator(".quick-input-list .monaco-list-row", has_text=name).first.wait_for(timeout=10000)
                self.press("Enter")
                mode.wait_for(timeout=10000)
            return "Python" in mode.inner_text()

        self.until("the language of " + name, opened)
        self.command("Go to Line/Column")
        box = self.page.locator(".quick-input-widget input").first
        box.fill(":{}".format(line))
        self.press("Enter")

    def text(self):
        """What the editors show."""
        return "\n".join(self.page.locator(".editor-instance .view-line").all_inner_texts()).replace("\xa0", " ")

    def breakpoints(self):
        return self.page.locator(".codicon-debug-breakpoint, .codicon-debug-breakpoint-unverified").count()

    def toggle_breakpoint(self):
        before = self.breakpoints()

        def toggled():
            self.press("F9")
            try:
                self.until("the breakpoint's sign", lambda: self.breakpoints() != before, 15)
            except AssertionError:
                return False
            return True

        self.until("the breakpoint", toggled)

    def stack(self):
        return self.rows("debug-call-stack")

    def debug_view(self):
        """Shows it, which VS Code does by itself at a breakpoint only; the rows of CALL STACK."""
        def look():
            if not self.page.locator(".debug-call-stack").is_visible():
                self.command("View: Show Run and Debug")
                self.page.locator(".debug-call-stack").wait_for(timeout=5000)
            return self.stack()

        return self.until("a session", look)

    def stopped_in(self, function, line=None, thread="paused on"):
        """Waits, opening the row of the thread that stopped where it stays shut; the frame's row."""
        wanted = "{}, line {}".format(function, "" if line is None else line)

        def look():
            for row in self.stack():
                if wanted in row:
                    return row
            self.open_row("debug-call-stack", re.compile(thread, re.IGNORECASE))
            return None

        return self.until("a stop in " + wanted, look)

    def choose(self, view, text, item):
        """An item of a row's menu, which a view that is drawn again may take away."""
        entry = self.page.get_by_role("menuitem", name=item)

        def chosen():
            self.press("Escape")
            self.row(view, text).click(button="right", timeout=3000)
            entry.wait_for(timeout=3000)
            entry.click(timeout=3000)
            return True

        self.until("the menu", chosen)

    def open_row(self, view, text):
        """A row of a tree that stays shut."""
        shut = self.page.locator('.{} .monaco-list-row[aria-expanded="false"]'.format(view), has_text=text)
        if shut.count():
            time.sleep(1.5)  # the workbench may be about to open it
            if shut.count():
                shut.first.click()
                self.press("ArrowRight")

    def variable(self, name, scope="Locals"):
        """Waits for "name, value ..." in VARIABLES, opening the scope where it stays shut; what the row says."""
        def look():
            for row in self.rows("debug-variables"):
                if re.match(re.escape(name) + r"(, value|:| =)", row):
                    return row
            self.open_row("debug-variables", scope)
            return None

        return self.until("the variable " + name, look)

    def evaluate(self, expression, answer):
        """Waits until the debug console says the answer."""
        self.command("Debug Console: Focus on Debug Console View")
        self.page.locator(".repl-input-wrapper .view-lines").click()
        self.page.keyboard.type(expression)
        self.press("Enter")
        return self.until("the answer of " + expression, lambda: answer in self.page.locator(".repl-tree").inner_text())

    def view(self, element):
        """Waits for the frame of an extension's panel that holds an element."""
        def look():
            for frame in self.page.frames:
                if frame.locator(element).count():
                    return frame
            return None

        return self.until("a panel with " + element, look)

    def theme(self, panel, name):
        """Light or dark, whichever it is not, until a panel has taken it."""
        body = panel.locator("body")
        if "vscode-" + name not in body.get_attribute("class"):
            self.command("Preferences: Toggle between Light/Dark Themes")
        self.until("the theme " + name, lambda: "vscode-" + name in body.get_attribute("class"))

    def ended(self):
        self.until("the end of the session", lambda: not self.stack() or not self.page.locator(".debug-call-stack").is_visible())

    def close(self):
        self.page.close()
