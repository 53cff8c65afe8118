"""Helix, from the newer root folder, in a terminal of tmux, debugs examples/train.py by the configuration in editors/helix."""

import os
import shutil
import subprocess

import pytest

import training
from codeserver import DEADLINE, until

LINE = training.line_of(training.LINE_TEXT)
AGAIN = 10  # s until the variables are asked for again


class Terminal:
    """A tmux server of its own with one window of 160 x 50."""

    def __init__(self, socket, command, variables):
        self.tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
        words = ["env", "-i"] + ["{}={}".format(*one) for one in variables.items()] + command
        self.run("new-session", "-d", "-x", "160", "-y", "50", *words)

    def run(self, *words):
        done = subprocess.run(self.tmux + list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def type(self, text):
        self.run("send-keys", "-l", text)

    def debug(self, key):
        """One key of the debug menu, which stays open until Escape."""
        self.type(" G")
        self.shows("Debug (experimental)")
        self.type(key)

    def shows(self, text, seconds=DEADLINE):
        return until(text, lambda: text in self.screen(), seconds)

    def variables(self, text):
        """Asked for again until they say that: the job stands before Helix has heard where."""
        def shown():
            self.debug("v")
            try:
                return self.shows(text, AGAIN)
            except AssertionError:
                self.leave_menu()
                return False

        until(text, shown)

    def leave_menu(self):
        """And what it shows."""
        self.keys("Escape")
        self.keys("Escape")

    def picture(self, path):
        with open(path, "a") as out:
            out.write(self.screen() + "-" * 160 + "\n")

    def screen(self):
        return self.run("capture-pane", "-p")

    def close(self):
        subprocess.run(self.tmux + ["kill-server"], stderr=subprocess.DEVNULL, timeout=120)


def test_helix(job, listen, newer_root, tmp_path, pictures):
    if not shutil.which("tmux"):
        pytest.skip("needs tmux")
    before = job.measure()
    home = newer_root.path + "/tmp/probing-helix-{}".format(os.getpid())
    project = newer_root.path + os.path.dirname(job.path)  # the same path there: Helix cannot pass pathMappings
    os.makedirs(home + "/.config/helix")
    os.makedirs(project)
    picture, terminal = os.path.join(pictures, "helix.txt"), None
    try:
        shutil.copy(job.path, project)
        shutil.copy(os.path.join(training.SRCDIR, "editors", "helix", "languages.toml"), home + "/.config/helix")
        variables = newer_root.variables(home[len(newer_root.path):])
        command = newer_root.command("hx", "{}:{}".format(job.path, LINE))
        terminal = Terminal(str(tmp_path / "tmux"), command, variables)
        terminal.shows("cross_entropy")
        terminal.debug("b")  # breakpoint
        terminal.keys("Escape")
        terminal.type(":debug-remote 127.0.0.1:{} connect".format(listen()))
        terminal.keys("Enter")
        until("the job to stand", job.stands_still)
        terminal.variables("float32 [8, 32, 101]")
        terminal.picture(picture)
        terminal.leave_menu()
        terminal.debug("t")  # leave
        job.moves()
    finally:
        if terminal:
            terminal.picture(picture)
            terminal.close()
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(project, ignore_errors=True)
    job.regains(before)
