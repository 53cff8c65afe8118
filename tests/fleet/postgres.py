"""A PostgreSQL server of a test's own, on a Unix socket in a temporary folder."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile

DEADLINE = 120


def programs():
    """The folder of initdb and postgres; "": there is none."""
    folders = [os.path.dirname(path) for path in sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), reverse=True)]
    folders += [os.path.dirname(shutil.which("postgres") or "")]
    return next((folder for folder in folders if all(os.access(os.path.join(folder, name), os.X_OK) for name in ("initdb", "postgres", "psql"))), "")


def missing():
    """Why there can be no server here; "": there can."""
    with open(os.path.join(os.environ["BUILDDIR"], "config.h")) as file:
        if "#define PRB_SONAME_PQ " not in file.read():
            return "built without libpq"
    return "" if programs() else "no PostgreSQL server (Debian, Ubuntu: postgresql)"


class Server:
    """It refuses to run as root: then it runs as nobody."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pg-", dir="/tmp")  # the socket's path is short
        self.data = os.path.join(self.folder, "data")
        self.other = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.other = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self.run("initdb", "-D", self.data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def run(self, program, *words):
        done = subprocess.run([os.path.join(programs(), program), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              encoding="utf-8", timeout=DEADLINE, cwd=self.folder, **self.other)
        assert done.returncode == 0, done.stdout

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-t", str(DEADLINE), "-l", os.path.join(self.folder, "log"), "-o",
                 "-F -k {} -c listen_addresses= -c shared_buffers=16MB -c max_wal_size=64MB".format(self.folder), "start")

    def stop(self, mode="immediate"):
        self.run("pg_ctl", "-D", self.data, "-w", "-t", str(DEADLINE), "-m", mode, "stop")

    @property
    def url(self):
        return "postgresql://tester@/postgres?host={}".format(self.folder)

    def ask(self, sql):
        """Rows as lists of texts, NULL as None."""
        done = subprocess.run([os.path.join(programs(), "psql"), "-AtXq", "-F", "\x1f", "-R", "\x1e", "-P", "null=\x1d", "-v", "ON_ERROR_STOP=1",
                               "-c", sql, self.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr.decode()
        text = done.stdout.decode()[:-1]
        return [[None if value == "\x1d" else value for value in row.split("\x1f")] for row in text.split("\x1e")] if text else []

    def end(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
