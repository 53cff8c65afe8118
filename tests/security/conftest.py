"""What attacks are tested with: two ordinary users beside root, the program where they may run it, namespaces of one's own.
Where the tests do not run as root, or namespaces are not to be had, they are skipped."""

import os
import shutil
import subprocess

import pytest

import parties


@pytest.fixture(scope="session")
def users():
    """(U, V): two ordinary users, who are nobody on this machine."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    return parties.U, parties.V


@pytest.fixture(scope="session")
def installed():
    """A Program that every user may run: the build may lie where they may not look."""
    program = parties.Program()
    yield program
    program.remove()


@pytest.fixture
def python():
    """A Python that every user may run."""
    found = parties.open_python()
    if not found:
        pytest.skip("no Python here that other users may run")
    return found


@pytest.fixture
def spawn():
    """spawn(argv, user=None, wait_for="ready", **options of Popen): a running process that said its first line; killed with the test."""
    started = []

    def begin(argv, user=None, wait_for="ready", **options):
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("cwd", "/")
        process = subprocess.Popen(list(map(str, argv)), stdout=subprocess.PIPE, encoding="utf-8",
                                   preexec_fn=parties.become(user), **options)
        started.append(process)
        process.line = process.stdout.readline().strip() if wait_for else ""
        assert not wait_for or process.line.startswith(wait_for), "it said {!r}, status {}".format(process.line, process.poll())
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


@pytest.fixture(scope="session")
def namespaces():
    """namespaces("--net", "--mount", ...): words before a command that runs it in such namespaces of its own."""

    def words(*kinds):
        prefix = ["unshare", *kinds]
        if os.geteuid() != 0 or not shutil.which("unshare") or \
                subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL).returncode:
            pytest.skip("no namespaces of one's own: " + " ".join(kinds))
        return prefix

    return words
