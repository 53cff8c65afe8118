"""The real VS Code, driven: code-server's page in Debian's Chromium by Playwright.

One window serves test after test.  What is waited for is asked again when the page changes, not at intervals.
"""

import json
import os
import re
import time

from codeserver import CLEAN_KEY, CONSOLE_KEY, DEADLINE, DEBUG_KEY, OPEN_KEY, THEME_KEY

TEST_SECONDS = 270  # for all that a test does in a window
LIST_SECONDS = 20  # for a list that can be asked for again
LOOK_AGAIN = 0.25  # s between looks at what is outside the page
MENU_MS = 1000  # until a menu that took a click has gone
FILL_MS = 5000  # a box that closes again cannot be typed into
LOG_LINES = 40
ENTER_AGAIN = 5  # s after which an Enter that changed nothing is given again
SAID_MAX = 300  # characters of what one part of the screen says, and what the story keeps of a message
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]

# Counts what changes in a document, tells of the next change (no more often than it can be drawn), and keeps notifications.
WATCH = """(() => {
    const watch = window.prbWatch = {count: 0, told: [], waiting: []};
    new MutationObserver(() => {
        watch.count++;
        for (const one of document.querySelectorAll('.notification-list-item-message, .dialog-message-text'))
            if (one.innerText && !watch.told.includes(one.innerText)) watch.told.push(one.innerText);
        const waiting = watch.waiting.splice(0);
        if (waiting.length) setTimeout(() => waiting.forEach(done => done()), 20);
    }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
    watch.after = (count, most) => new Promise(done => {
        setTimeout(done, watch.count === count ? most : 20);
        if (watch.count === count) watch.waiting.push(done);
    });
})()"""


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


class Workbench:
    """A page of it, used for test after test.  Views are read by what they say to a screen reader."""

    def __init__(self, context, server, folder, pictures):
        self.pictures, self.server, self.folder = str(pictures), server, str(folder)
        self.began, self.story, self.end = time.monotonic(), [], None
        self.page = context.new_page()
        self.page.set_default_timeout(DEADLINE * 1000)
        self.page.on("pageerror", lambda error: self.tell("page: {}".format(error)[:SAID_MAX]))
        self.page.on("console", self._heard)
        self.page.add_init_script(WATCH)
        self.page.goto("http://127.0.0.1:{}/?folder={}".format(server.port, folder), wait_until="commit")
        self.page.locator(".monaco-workbench").wait_for()
        self.tell("a window")

    def begin(self, configuration):
        """A test: launch.json has this one entry, and VS Code knows it; what the last test left open is shut, its stack gone."""
        self.story, self.began, self.end = [], time.monotonic(), time.monotonic() + TEST_SECONDS
        self.ended()
        os.makedirs(os.path.join(self.folder, ".vscode"), exist_ok=True)
        written = os.path.join(self.folder, ".vscode", "launch.json")
        with open(written + ".new", "w") as out:
            json.dump({"version": "0.2.0", "configurations": [configuration]}, out)
        os.replace(written + ".new", written)
        self.press(CLEAN_KEY)
        self.page.evaluate("prbWatch.told = []")
        self.until("launch.json to be read", lambda: configuration["name"] in self.page.locator("#status\\.debug").inner_text())

    def tell(self, what):
        self.story.append("{:7.2f} s  {}".format(time.monotonic() - self.began, what))

    def _heard(self, message):
        """Errors of the panels' frames, which an empty panel shows nowhere else, and of what they load; the workbench's own begin with its colours."""
        if message.type == "error" and not message.text.startswith("%c"):
            self.tell("console: {} ({})".format(message.text[:SAID_MAX], (message.location or {}).get("url", "")[-80:]))

    def told(self):
        """What VS Code has notified of in this test."""
        return self.page.evaluate("prbWatch.told")

    def tabs(self):
        """The open editors."""
        return self.page.locator(".tabs-container .tab").evaluate_all("tabs => tabs.map(tab => tab.getAttribute('aria-label'))")

    def account(self):
        """What is on the screen, and what the extension host last said: for a failure's text."""
        def said(selector):
            return [one[:SAID_MAX] for one in self.page.locator(selector).all_inner_texts()]

        def frame_says(frame):
            return "{}: {!r}".format(frame.url.partition("?")[0][-60:], frame.evaluate("document.body ? document.body.innerText.slice(0, 200) : null"))

        parts = [
            ("told", self.told),
            ("editors", self.tabs),
            ("side bar", lambda: said(".part.sidebar .composite.title")),
            ("call stack", self.stack),
            ("variables", lambda: self.rows("debug-variables")),
            ("box", lambda: said(".quick-input-widget") if self.page.locator(".quick-input-widget").is_visible() else []),
            ("dialog", lambda: said(".monaco-dialog-box")),
            ("notifications", lambda: said(".notifications-toasts")),
            ("status bar", lambda: said(".part.statusbar")),
            ("focus", lambda: self.page.evaluate("document.activeElement && document.activeElement.outerHTML.slice(0, 200)")),
            ("frames", lambda: [frame_says(frame) for frame in self.page.frames[1:]]),
            ("story", lambda: self.story[-12:]),
            ("extension host", self.server.last_words),
        ]
        lines = []
        for name, ask in parts:
            try:
                lines.append("{}: {}".format(name, ask()))
            except Exception as error:  # a frame that is gone
                lines.append("{}: {!r}".format(name, error)[:SAID_MAX])
        return "\n    ".join(lines)

    def keep(self, name, failed):
        """The test's story as an artefact; of a failure also a picture, and the ends of the logs."""
        lines = list(self.story)
        if failed:
            self.picture(name + "-failed")
            lines += ["", "told: {}".format(self.told())]
            lines += ["frame: {}".format(frame.url[:120]) for frame in self.page.frames]
            for log in self.server.logs():
                with open(log, errors="replace") as text:
                    lines += ["", log] + text.read().splitlines()[-LOG_LINES:]
        with open(os.path.join(self.pictures, name + ".log"), "w") as out:
            out.write("\n".join(lines) + "\n")

    def picture(self, name):
        self.page.screenshot(path=os.path.join(self.pictures, name + ".png"))

    def until(self, what, ask, seconds=DEADLINE, frame=None):
        """The first true answer, asked again whenever the page (or a frame of it) changes; an exception counts as none."""
        place, begun, last, longest = frame or self.page, time.monotonic(), None, 0
        end = min(begun + seconds, self.end or begun + seconds)
        while True:
            seen, looked = self._changes(place), time.monotonic()
            try:
                last = ask()
                if last:
                    self.tell("{} ({:.2f} s)".format(what, time.monotonic() - begun))
                    return last
            except Exception as error:  # the page may be drawing
                last = error
            longest = max(longest, time.monotonic() - looked)
            if looked > end:  # a look waits for a frame that is loaded: one that was begun in time does not tell what is there now
                self.tell("NOT " + what)
                raise AssertionError("waited {:.0f} s for {}; last: {!r}; the longest look took {:.0f} s\n    {}".format(
                    time.monotonic() - begun, what, last, longest, self.account()))
            self._next_change(place, seen)

    @staticmethod
    def _changes(place):
        try:
            return place.evaluate("window.prbWatch ? prbWatch.count : -1")
        except Exception:  # a frame that is gone
            return -1

    @staticmethod
    def _next_change(place, seen):
        try:
            place.evaluate("([seen, most]) => prbWatch.after(seen, most)", [seen, LOOK_AGAIN * 1000])
        except Exception:
            time.sleep(LOOK_AGAIN)

    def press(self, key):
        self.page.keyboard.press(key)

    def rows(self, view):
        return self.page.locator(".{} .monaco-list-row".format(view)).evaluate_all(
            "rows => rows.map(row => row.getAttribute('aria-label') || row.innerText)")

    def row(self, view, text):
        return self.page.locator(".{} .monaco-list-row".format(view), has_text=text).first

    def box(self, *told, seconds=DEADLINE):
        """The box of the palette, a list or a question, once its widget says all that."""
        widget = self.page.locator(".quick-input-widget")
        self.until("the question " + " ".join(told),
                   lambda: widget.is_visible() and all(text in widget.inner_text() for text in told), seconds)
        return widget.locator("input").first

    def picks(self):
        """What a list offers."""
        return self.page.locator(".quick-input-list .monaco-list-row").all_inner_texts()

    def pick(self, text, *told, shown=None, seconds=DEADLINE):
        """Type into the box of the palette or a list, and take the first line once it is the one that was meant."""
        self.box(*told, seconds=seconds).fill(text, timeout=FILL_MS)
        wanted = (shown or text.lstrip(">")).strip()
        self.until("the line " + wanted, lambda: wanted in " ".join(self.picks()[0].split()), seconds)
        self._enter(text, seconds)

    def answer(self, text, *told):
        """Type into the box of a question."""
        self.box(*told).fill(text)
        self._enter(text)

    def _enter(self, text, seconds=DEADLINE):
        """Take what the box says.  The workbench drops an Enter that comes while it still draws the list: then again."""
        box, given = self.page.locator(".quick-input-widget input").first, []

        def taken():
            if not box.is_visible() or box.input_value() != text:
                return True
            if not given or time.monotonic() > given[-1] + ENTER_AGAIN:
                given.append(time.monotonic())
                box.press("Enter", timeout=FILL_MS)
            return False

        self.until("Enter to be taken", taken, seconds)

    def file(self, path, *told):
        """Choose a file: the box begins with a folder, maybe only after it was typed into, and follows."""
        box, name = self.box(*told), os.path.basename(path)

        def listed():
            if box.input_value() != path:
                box.fill(path)
            return any(name in one for one in self.picks()) and box.input_value() == path

        self.until("the file " + name, listed)
        self._enter(path)

    def dialog(self, text):
        """Waits until a dialog says that, and shuts it."""
        box = self.page.locator(".monaco-dialog-box")
        self.until("a dialog", lambda: box.is_visible() and text in box.inner_text())
        self.press("Escape")
        self.until("the dialog's end", lambda: not box.is_visible())

    def command(self, title):
        """From the palette, which shuts when what is still drawn takes the focus: then again."""
        tries = []

        def given():
            if tries:
                self.press("Escape")
            tries.append(title)
            self.press("F1")
            self.pick(">" + title, seconds=LIST_SECONDS)
            return True

        self.until("the command " + title, given)

    def open(self, name, line):
        """A file of the folder, at a line, once its language is known: breakpoints need that."""
        def found():  # the list keeps the files that it found when it was opened: one that misses ours is opened anew
            self.press("Escape")
            self.press(OPEN_KEY)
            self.pick("{}:{}".format(name, line), shown=name, seconds=LIST_SECONDS)
            return True

        self.until("the list of files", found)
        mode, place = self.page.locator("#status\\.editor\\.mode"), self.page.locator("#status\\.editor\\.selection")
        self.until("the place in " + name, lambda: "Ln {},".format(line) in place.inner_text() and "Python" in mode.inner_text())

    def text(self):
        """What the editors show."""
        return "\n".join(self.page.locator(".editor-instance .view-line").all_inner_texts()).replace("\xa0", " ")

    def breakpoints(self):
        return self.page.locator(".codicon-debug-breakpoint, .codicon-debug-breakpoint-unverified").count()

    def toggle_breakpoint(self):
        before = self.breakpoints()
        self.press("F9")
        self.until("the breakpoint's sign", lambda: self.breakpoints() != before)

    def stack(self):
        return self.rows("debug-call-stack")

    def debug_view(self, seconds=DEADLINE):
        """Shows it, which VS Code does by itself at a breakpoint only; the rows of CALL STACK."""
        if not self.page.locator(".debug-call-stack").is_visible():
            self.press(DEBUG_KEY)
        return self.until("a session", self.stack, seconds)

    def stopped_in(self, function, line=None, thread="paused on"):
        """Waits, opening the row of the thread that stopped where it stays shut; the frame's row."""
        wanted = "Stack Frame {}, line {}".format(function, "" if line is None else line)
        opens = Opener(self, "debug-call-stack", re.compile(thread, re.IGNORECASE))
        leafs = Leafer(self, "debug-call-stack")
        return self.until("a stop in " + wanted, lambda: next((row for row in self.stack() if wanted in row), None) or opens.look() or leafs.look())

    def select_frame(self, function):
        """Click a frame's row until it is the selected one: a view that is drawn again may take the click away."""
        row = self.page.locator('.debug-call-stack .monaco-list-row[aria-label*="Stack Frame {}, line"]'.format(function)).first
        leafs = Leafer(self, "debug-call-stack")

        def selected():
            if not row.count():
                return leafs.look()
            if row.get_attribute("aria-selected") != "true":
                row.click(timeout=3000)
            return row.get_attribute("aria-selected") == "true"

        self.until("the frame " + function, selected)

    def choose(self, view, text, item):
        """An item of a row's menu, which a view that is drawn again may take away; a menu younger than 100 ms takes no clicks."""
        entry = self.page.get_by_role("menuitem", name=item)

        def chosen():
            if not entry.is_visible():
                self.press("Escape")
                self.row(view, text).click(button="right", timeout=3000)
            entry.click(timeout=3000)
            entry.wait_for(state="hidden", timeout=MENU_MS)
            return True

        self.until("the menu", chosen)

    def variable(self, name, scope="Locals"):
        """Waits for "name, value ..." in VARIABLES, opening the scope where it stays shut; what the row says."""
        opens = Opener(self, "debug-variables", scope)
        return self.until("the variable " + name, lambda: self._variable(name) or opens.look())

    def no_variable(self, name):
        """Waits until it is gone: VARIABLES is drawn some time after CALL STACK."""
        self.until("the end of the variable " + name, lambda: self.rows("debug-variables") and not self._variable(name))

    def _variable(self, name):
        told = re.compile(re.escape(name) + r"(, value|:| =)")
        return next((row for row in self.rows("debug-variables") if told.match(row)), None)

    def evaluate(self, expression, answer):
        """Waits until the debug console says the answer."""
        self.press(CONSOLE_KEY)
        self.page.locator(".repl-input-wrapper .view-lines").click()
        self.page.keyboard.type(expression)
        self.press("Enter")
        return self.until("the answer of " + expression, lambda: answer in self.page.locator(".repl-tree").inner_text())

    def view(self, element, seconds=DEADLINE):
        """Waits for the frame of an extension's panel that holds an element."""
        def look():
            for frame in self.page.frames:
                if frame.locator(element).count():
                    return frame
            return None

        return self.until("a panel with " + element, look, seconds)

    def theme(self, panel, name):
        """Light or dark, whichever it is not, until a panel has taken it."""
        body = panel.locator("body")
        if "vscode-" + name not in body.get_attribute("class"):
            self.press(THEME_KEY)
        self.until("the theme " + name, lambda: "vscode-" + name in body.get_attribute("class"), frame=panel)

    def ended(self):
        self.until("the end of the session", lambda: not self.stack() or not self.page.locator(".debug-call-stack").is_visible())

    def close(self):
        self.page.close()


class Opener:
    """Opens the row of a tree that stays shut: the workbench may be about to do so by itself."""

    PATIENCE = 1.5  # s

    def __init__(self, workbench, view, text):
        self.workbench, self.since = workbench, None
        self.shut = workbench.page.locator('.{} .monaco-list-row[aria-expanded="false"]'.format(view), has_text=text)

    def look(self):
        now = time.monotonic()
        if not self.shut.count():
            self.since = None
        elif self.since is None:
            self.since = now
        elif now - self.since > self.PATIENCE:
            self.workbench.tell("opening a row that stayed shut")
            self.shut.first.click(timeout=3000)
            self.workbench.press("ArrowRight")
            self.since = None


class Leafer:
    """Turns the pages of a list, down and up again: it draws only the rows that are in sight, and a deep stack has more."""

    PATIENCE = 1  # s until what a page will say is drawn; a page that stays the same was the last one

    def __init__(self, workbench, view):
        self.workbench, self.rows, self.since, self.moved, self.step = workbench, None, 0, True, 0.5
        self.list = workbench.page.locator(".{} .monaco-list".format(view)).first

    def look(self):
        rows = self.list.locator(".monaco-list-row").evaluate_all("rows => rows.map(row => row.dataset.index)")
        now = time.monotonic()
        if rows != self.rows:
            self.rows, self.since, self.moved = rows, now, True
        elif rows and now - self.since > self.PATIENCE:
            self.step = self.step if self.moved else -self.step
            self._turn()
            self.since, self.moved = now, False

    def _turn(self):
        mouse, place = self.workbench.page.mouse, self.list.bounding_box()
        mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        mouse.wheel(0, self.step * place["height"])
        mouse.move(0, 0)
