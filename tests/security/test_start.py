"""What a caller's environment may do to a Python that has more rights than he: nothing."""

import json
import os
import re
import shutil
import struct
import subprocess

import pytest

import parties

NET_BIND_SERVICE = 10  # capabilities(7)
SCRIPT = "import os\nopen({!r}, 'a').write('%d\\n' % os.getpid())\n"


class Raised:
    """A Python of U's with a capability in its file: AT_SECURE.  The package lies in the user base of it."""

    def __init__(self, python, installed, folder):
        python = os.path.realpath(python)
        os.chmod(folder, 0o755)
        self.folder = folder
        self.plain = shutil.copy(python, os.path.join(folder, "python3-plain"))
        self.path = shutil.copy(python, os.path.join(folder, "python3-raised"))
        try:
            os.setxattr(self.path, "security.capability", struct.pack("<5I", 0x02000001, 1 << NET_BIND_SERVICE, 0, 0, 0))
        except OSError as error:
            pytest.skip("no capabilities of files here: {}".format(error))
        self.said = os.path.join(folder, "said")
        os.mkdir(self.said)
        os.chown(self.said, parties.U, parties.U)
        version = subprocess.check_output([python, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"], encoding="utf-8").strip()
        site = os.path.join(folder, "base", "lib", version, "site-packages")
        shutil.copytree(os.path.join(installed.package, "probing_c"), os.path.join(site, "probing_c"))
        os.mkdir(os.path.join(site, "probing_c", "native"))
        self.library = shutil.copy(os.path.join(installed.folder, "libprobe.so"), os.path.join(site, "probing_c", "native"))
        for name in ("probing_c.pth", "_probing_hook.py", "_probing_rules.py"):
            shutil.copy(os.path.join(parties.SRCDIR, "python", name), site)
        self.script = os.path.join(folder, "script.py")
        self.ran = os.path.join(self.said, "ran")
        with open(self.script, "w") as script:
            script.write(SCRIPT.format(self.ran))

    def environment(self, **more):
        return dict({"PATH": "/usr/bin:/bin", "PYTHONUSERBASE": os.path.join(self.folder, "base"), "HOME": self.said,
                     "XDG_RUNTIME_DIR": self.said, "PYTHONDONTWRITEBYTECODE": "1"}, **more)

    def secure(self, path, **variables):
        """Whether the kernel calls it so, as it says itself; its exit status must be 0."""
        code = "import ctypes; print(ctypes.CDLL(None).getauxval(23))"
        done = subprocess.run([path, "-c", code], env=self.environment(**variables), preexec_fn=parties.become(parties.U), cwd="/",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=parties.DEADLINE)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip() == "1"


@pytest.fixture
def raised(users, installed, python, tmp_path):
    for above in (tmp_path, *tmp_path.parents):
        if not os.stat(above).st_mode & 0o001:
            os.chmod(above, 0o755)
    made = Raised(python, installed, str(tmp_path))
    if not made.secure(made.path):
        pytest.skip("file capabilities do nothing here (nosuid)")
    return made


def test_variables_start_nothing_in_a_process_with_more_rights(raised):
    variables = {"PROBING": "init:{}+1".format(raised.script)}
    assert raised.secure(raised.plain, **variables) is False
    assert os.path.exists(raised.ran)  # the way is there
    os.remove(raised.ran)
    assert raised.secure(raised.path, **variables) is True
    assert not os.path.exists(raised.ran)


WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("words", [(), ("-I",), ("-E", "-u"), ("-uE",)], ids="".join)
def test_variables_set_nothing_in_a_probe_of_such_a_process(raised, installed, spawn, words):
    variables = {"PROBING_CRASH_PROGRAM": raised.script, "PROBING_SAMPLE_RATE": "0.25"}

    def setting(path, *words):
        process = spawn([path, *words, "-c", WAITS], user=parties.U, env=raised.environment(**variables))
        done = installed.run(process.pid, "inject")
        assert done.returncode == 0, done.stderr
        return [installed.run(process.pid, "config", "probing." + name).stdout.strip().rpartition("=")[2].strip()
                for name in ("sample_rate", "crash_program")]

    program = setting(raised.plain)
    assert program == ["0.25", raised.script]
    assert setting(raised.plain if words else raised.path, *words) == ["1", ""]


def test_what_launch_was_told_holds_for_a_python_that_ignores_the_environment(installed, python, spawn, tmp_path):
    """It comes by LD_PRELOAD, which leads the process already."""
    process = spawn([installed.path, "launch", "-D", "probing.sample_rate=0.25", python, "-I", "-c", WAITS],
                    env=installed.environment(XDG_RUNTIME_DIR=str(tmp_path)))
    assert installed.run(process.pid, "config", "probing.sample_rate", env={"XDG_RUNTIME_DIR": str(tmp_path)}).stdout.strip().endswith("0.25")


def test_a_preloaded_library_obeys_no_variable_there(raised, installed, namespaces, spawn):
    """The loader takes a set-id library of the system's folders: ours lies over one of them, in a mount namespace of its own."""
    with open("/proc/self/maps") as maps:  # beside this C library: there may be one of 32 bits, too
        theirs = os.path.join(os.path.dirname(re.search(r"(/\S+)/libc[.-]\S*\n", maps.read())[0].strip()), "libBrokenLocale.so.1")
    if not os.path.exists(theirs):
        pytest.skip("no library to lie over")
    library = shutil.copy(raised.library, os.path.join(raised.folder, "libprobe-set-id.so"))
    os.chmod(library, 0o4755)
    says = "import json, os; print(json.dumps(['libBrokenLocale' in open('/proc/self/maps').read(), len(os.listdir('/proc/self/task')) > 1]))"

    def run(path):
        command = [*namespaces("--mount"), "sh", "-c", "mount --bind \"$0\" \"$1\" && shift && shift && exec \"$@\"", library, theirs, "x",
                   "setpriv", "--clear-groups", "--regid={}".format(parties.U), "--reuid={}".format(parties.U), "env",
                   "LD_PRELOAD=libBrokenLocale.so.1:libprobe", "PROBE=1", path, "-c", says]
        done = subprocess.run(command, env=raised.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=parties.DEADLINE)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    assert run(raised.plain) == [True, True]
    assert run(raised.path) == [True, False]
