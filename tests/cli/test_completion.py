"""Completion: what the program offers for an unfinished line, and that each shell makes it of a Tab."""

import json
import os
import shutil
import subprocess

import pytest

from screen import Screen

PROBING = os.environ["PROBING"]
SHELLS = ("bash", "zsh", "fish")

NAMED = """
import sys, threading
gate = threading.Event()
for name in ("my reader", "a$(touch pwned)b", "red\\x1b[31m", "two\\nlines"):
    threading.Thread(target=gate.wait, name=name, daemon=True).start()
while threading.active_count() < 5: pass
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def named(start):
    """A program whose threads have names that a shell or a terminal would take badly."""
    return start(NAMED)


@pytest.fixture
def offered(probing):
    """offered(*words): what the last may become: (what the shell adds, {candidate: explanation})."""

    def ask(*words):
        lines = probing("completion", "fish", *words).works().splitlines()
        return lines[0].split()[1:], dict(line.split("\t") for line in lines[1:])

    return ask


@pytest.mark.parametrize("shell", SHELLS)
def test_script(probing, shell, tmp_path):
    text = probing("completion", shell).works()
    if not shutil.which(shell):
        pytest.skip("no {} here to parse it".format(shell))
    script = tmp_path / "script"
    script.write_text(text)
    done = subprocess.run([shell, "-n", str(script)], stderr=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_all_commands_and_options(probing, offered):
    described = json.loads(probing("help", "--json").works())
    assert set(offered("")[1]) >= {command["name"] for command in described["commands"]}
    for command in described["commands"]:
        assert set(offered(command["name"], "--")[1]) >= {"--" + option["name"] for option in command["options"]}
    assert set(offered("query", "-f", "")[1]) == {"table", "json", "jsonl", "csv", "vertical"}
    assert offered("help", "")[1]["version"] == "print the version"
    assert "--color" in offered("--")[1] and "-p" in offered("-")[1]
    assert "-p" not in offered("--")[1]


def test_processes(offered, job):
    """A pid before the command, behind it, and where an option wants one; not where one is given, or none is taken."""
    pid = str(job.pid)
    for words in ((), ("bt",), ("top",), ("detach",), ("tables",), ("eval",), ("profile", "-d", "2"), ("-p",), ("config",)):
        assert pid in offered(*words, "")[1], words
    assert "import sys, threading" in offered(pid)[1][pid]
    assert "--pid=" + pid in offered("--pid=")[1]
    for words in ((1,), (1, "bt"), ("bt", 1), ("list",), ("list", "-t"), ("help",), ("eval", "1 + 1"), ("-n", "train", "bt"),
                  ("launch", "python3"), ("--nonsense", "bt"), ("diff",)):
        assert pid not in offered(*words, "")[1], words


def test_threads(offered, job, named):
    names = {"MainThread"} | {"waiter-{}".format(i) for i in range(5)}
    for words in ((job.pid, "bt", "--thread"), (job.pid, "bt"), ("bt", job.pid), ("-p", job.pid, "repl", "--thread"),
                  ("eval", job.pid, "--thread")):
        assert set(offered(*words, "")[1]) == names, words
    assert offered(job.pid, "eval", "--thread", "1")[1][str(job.pid)] == "MainThread"
    assert "--thread=waiter-3" in offered(job.pid, "eval", "--thread=wa")[1]
    assert offered("eval", "--thread", "") == ([], {})
    assert offered(1 << 30, "eval", "--thread", "") == ([], {})
    assert set(offered(named.pid, "bt", "")[1]) == {"MainThread", "my reader", "a$(touch pwned)b"}


def test_settings_and_tables(offered, job):
    pid = job.pid
    more, keys = offered(pid, "config", "")
    assert more == ["join"] and "a dump" in keys["probing.crash"]
    assert "probing.crash=" in offered("inject", pid, "-D", "")[1] and "probing.crash=" in offered("launch", "-D", "p")[1]
    assert set(offered(pid, "config", "probing.crash=")[1]) == {"probing.crash=on", "probing.crash=off"}
    assert not offered(pid, "config", "probing.max_memory=")[1]
    assert offered("config", "probing.crash_dir=/t")[0] == ["files"]
    assert "python.backtrace" in offered("tables", "")[1] and "python.backtrace" in offered(pid, "tables", "")[1]
    assert "speedscope" in offered("profile", "--format", "")[1]
    assert set(offered("export", "--format", "")[1]) == {"perfetto", "chrome", "tensorboard"}
    assert "--format=speedscope" in offered("profile", "--format=")[1]


def test_files(offered, job, tmp_path):
    for words in (("-t",), ("profile", "-o"), ("profile", "--source"), ("crash", "show"), ("diff",), ("diff", "a"),
                  ("launch", "python3"), ("launch", "python3", "-"), ("snapshot",), ("debug", "--core"), ("inject", "--dll")):
        assert offered(*words, "")[0] == ["files"], words
    assert offered(str(tmp_path) + "/")[0] == offered("no-command-begins-so")[0] == ["files"]
    assert offered("--sysroot", "")[0] == ["folders"] and offered("launch", "")[0] == ["programs"]
    for words in (("",), (str(job.pid)[:1],), ("top", ""), ("profile", "-d", ""), ("completion", ""), ("query", "")):
        assert offered(*words)[0] == [], words


def test_bash_completes(probing, job, named, tmp_path):
    script = tmp_path / "script"
    script.write_text(probing("completion", "bash").works())

    def complete(*words):
        command = 'source {}; COMP_WORDS=({} "$@"); COMP_CWORD=$#; _probing; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", command.format(script, PROBING), "bash", *map(str, words)],
                              stdout=subprocess.PIPE, timeout=120, encoding="utf-8", check=True)
        return done.stdout.splitlines()

    assert complete("back") == ["backtrace"]
    assert "--native" in complete("123", "bt", "--")
    assert complete("123", "query", "-f", "js") == ["json", "jsonl"]
    assert complete("help", "ver") == ["version"]
    assert complete("crash", "ex") == ["export"]
    assert complete("123", "inspect", "t") == ["tensors", "threads"]
    assert complete("profile", "--mode", "=", "g") == ["gil"]
    assert complete("profile", "--mode", "=") == ["active", "wall", "cpu", "gil", "exception", "memory"]
    assert complete("config", "probing.crash", "=", "of") == ["off"]
    assert complete(str(job.pid)) == [str(job.pid)]
    assert str(job.pid) in complete("")
    assert not any(word.startswith("-") for words in (("",), ("tables", ""), ("profile", "--format", ""))
                   for word in complete(*words))
    # A name comes quoted, so that running the line runs nothing else.
    assert complete(named.pid, "bt", "--thread", "my\\ r") == ["my\\ reader"]
    assert complete(named.pid, "bt", "--thread", '"my r') == ["my reader"]
    assert complete(named.pid, "bt", "--thread", "a") == ["a\\$\\(touch\\ pwned\\)b"]
    assert complete(named.pid, "bt", "--thread", '"a') == [""]
    assert complete(named.pid, "bt", "--thread", "'a") == ["a$(touch pwned)b"]


STARTED = {
    "bash": ("bash --norc --noprofile -i", "source <(probing completion bash); PS1='$ '"),
    "zsh": ("zsh -f -i", "PS1='$ '; fpath=($PWD $fpath); autoload -Uz compinit; compinit -D -u"),
    "fish": ("fish --no-config -i", "probing completion fish | source; function fish_prompt; echo '$ '; end"),
}


@pytest.fixture(params=SHELLS)
def terminal(request, probing, monkeypatch, tmp_path):
    """A terminal with a shell that completes for probing."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip("no {} here".format(shell))
    (tmp_path / "_probing").write_text(probing("completion", "zsh").works())  # where zsh looks for it
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.path.dirname(PROBING), prepend=os.pathsep)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    command, prepare = STARTED[shell]
    screen = Screen(command.split(), columns=110)
    screen.press(prepare + "; clear; echo rea''dy\r")
    screen.until(lambda lines: "ready" in lines)
    yield screen
    screen.close()


def test_tab(terminal, job, named, tmp_path):
    """A Tab on a real terminal, where one candidate is left; Ctrl-U takes the line away again."""
    begun = "probing {} ".format(job.pid)
    for typed, made in (("probing backt", "probing backtrace"),
                        ("probing {}".format(job.pid), begun.rstrip()),
                        ("probing top {}".format(job.pid), "probing top {}".format(job.pid)),
                        (begun + "eval --thread=waiter-3", begun + "eval --thread=waiter-3"),
                        (begun + "eval --thread MainT", begun + "eval --thread MainThread"),
                        ("probing {} bt my".format(named.pid), "probing {} bt my\\ reader".format(named.pid)),
                        ("probing {} bt a".format(named.pid), "probing {} bt a\\$\\(touch\\ pwned\\)b".format(named.pid)),
                        (begun + "config probing.crash_s", begun + "config probing.crash_size"),
                        ("probing profile --format=sp", "probing profile --format=speedscope"),
                        ("probing profile --format sp", "probing profile --format speedscope"),
                        ("probing tables python.back", "probing tables python.backtrace"),
                        ("probing profile -o _pro", "probing profile -o _probing")):
        terminal.press(typed + "\t")
        terminal.until(lambda lines, made=made: any(line.endswith(made) for line in lines))
        terminal.press("\x15")
        terminal.until(lambda lines: not any("probing " in line for line in lines))
    assert not (tmp_path / "pwned").exists()


def test_zsh_gives_each_process_a_line(tmp_path, monkeypatch):
    """Processes of one command line would make a table, and zsh would ask whether to show it."""
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    words = ["-"] + ["{}:python worker.py".format(pid) for pid in range(101, 131)] + ["list:list the processes"]
    fake = tmp_path / "probing"
    fake.write_text("#!/bin/sh\ncat <<'END'\n{}\nEND\n".format("\n".join(words)))
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SCRIPT", os.path.join(os.environ["SRCDIR"], "cli", "help", "complete.zsh"))
    screen = Screen(["zsh", "-f", "-i"], columns=80, lines=50)
    screen.press("PS1='$ '; autoload -Uz compinit; compinit -D -u; source $SCRIPT; clear; echo rea''dy\r")
    screen.until(lambda lines: "ready" in lines)
    screen.press("probing \t")
    screen.until(lambda lines: any(line.split() == ["130", "--", "python", "worker.py"] for line in lines))
    screen.close()
