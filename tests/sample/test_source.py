"""The heat map shows the source file that the target has, not one of that name which the caller sees."""

import os
import shutil
import signal
import subprocess

import pytest

from profiles import sampling
from support.target import DEADLINE, PROBING, probing

PROGRAM = "import os\ndef inside():\n    total = 0\n    for number in range(10 ** 5): total += number\nos.write(1, b'ready\\n')\nwhile True:\n    inside()\n"


@pytest.fixture
def contained(any_python, tmp_path):
    """A program whose file is in a file system of its own; the caller has another file in its place."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs a file system of its own")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "program.py").write_text("OUTSIDE\n" * 9)
    (tmp_path / "inside.py").write_text(PROGRAM)
    script = 'mount -t tmpfs none "$1" || exit 77; cp "$2" "$1/program.py"; exec "$3" "$1/program.py"'
    child = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", str(folder), str(tmp_path / "inside.py"),
                              any_python.executable], stdout=subprocess.PIPE)
    if not child.stdout.readline():
        assert child.wait() == 77
        pytest.skip("no file system can be mounted here")
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_other_root(contained, tmp_path):
    probing("-t", contained.pid, "profile", "-d", 3, "-o", tmp_path / "p.html", check=False)
    text = (tmp_path / "p.html").read_text()
    assert "total += number" in text and "OUTSIDE" not in text


def test_other_root_that_ended(contained, tmp_path):
    """Its root is held: what was there can be read when it has gone."""
    command = subprocess.Popen([PROBING, "-t", str(contained.pid), "profile", "-o", str(tmp_path / "p.html")],
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    sampling(contained.pid, command)
    contained.kill()
    contained.wait()
    command.communicate(timeout=DEADLINE)
    text = (tmp_path / "p.html").read_text()
    assert command.returncode == 0 and "total += number" in text and "OUTSIDE" not in text


def test_relative_name(any_python, tmp_path):
    """CPythons before 3.9 call the program as it was named: relative to its folder, not to ours."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "program.py").write_text("exec(compile({!r}, 'named.py', 'exec'))".format(PROGRAM))
    (tmp_path / "theirs" / "named.py").write_text(PROGRAM)
    (tmp_path / "named.py").write_text("OUTSIDE\n" * 9)
    child = subprocess.Popen([any_python.executable, "program.py"], cwd=str(tmp_path / "theirs"), stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        probing("-t", child.pid, "profile", "-d", 3, "--source", "named.py", "-o", tmp_path / "p.html", check=False,
                cwd=str(tmp_path))
        text = (tmp_path / "p.html").read_text()
        assert "total += number" in text and "OUTSIDE" not in text
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
