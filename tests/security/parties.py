"""The parties of an attack: root, two ordinary users, and the program that they run."""

import os
import shutil
import subprocess
import sys
import tempfile

U, V = 12345, 12346
DEADLINE = 120  # seconds that any command may take: a bound for what hangs
BUILD = os.environ.get("BUILDDIR", ".")
SRCDIR = os.environ.get("SRCDIR", ".")


def become(user):
    """For preexec_fn: all ids and no groups of `user`; None: stay who we are."""
    if user is None:
        return None

    def change():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)

    return change


def may_run(user, *argv):
    try:
        return subprocess.run(argv, preexec_fn=become(user), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=DEADLINE).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def open_python():
    """A Python that U may run, or None."""
    user = U if os.geteuid() == 0 else None
    for name in ("/usr/bin/python3", "/usr/local/bin/python3", os.path.realpath(sys.executable)):
        if may_run(user, name, "-c", "pass"):
            return name
    return None


class Program:
    """The built program, copied to a folder that everybody may read."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="prb-security-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        for name in ("probing", "libprobing.so.0", "libprobe.so"):
            shutil.copy(os.path.realpath(os.path.join(BUILD, ".libs", name)), os.path.join(self.folder, name))
        self.package = os.path.join(self.folder, "python")
        for name in ("probing", "probing_c"):
            shutil.copytree(os.path.join(SRCDIR, "python", name), os.path.join(self.package, name), ignore=shutil.ignore_patterns("__pycache__"))
        self.path = os.path.join(self.folder, "probing")

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROBING", "PROBE_", "XDG_"))}
        kept.update(LD_LIBRARY_PATH=self.folder, HOME=self.folder, **more)
        return kept

    def run(self, *args, user=None, prefix=(), timeout=DEADLINE, env=None, **options):
        """One run of the command as `user`: a CompletedProcess with text."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*prefix, self.path, *map(str, args)], preexec_fn=become(user), cwd="/", env=self.environment(**(env or {})),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", timeout=timeout,
                              **options)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
