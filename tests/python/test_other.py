"""Another project's package of the name probing in the same environment: installed before ours, after it, and the remedy that we print."""

import os
import subprocess
import zipfile

import pytest

import package
from support import pythons

REMEDY = "pip uninstall probing && pip install --force-reinstall probing-c"
# What the other project's releases have, as far as it meets ours.
OTHERS = {
    "probing/__init__.py": "WHOSE = 'the other'\n",
    "probing/cli/__init__.py": "",
    "probing/cli/__main__.py": "def main():\n    print('the other')\n",
    "probing.pth": "import probing_hook\n",
    "probing_hook.py": "import os\nif os.environ.get('PROBING'):\n    os.environ['OTHER_HOOK_RAN'] = '1'\n",
}


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A wheel with the other's names."""
    path = str(tmp_path_factory.mktemp("other") / "probing-0.2.4-py3-none-any.whl")
    info = "probing-0.2.4.dist-info/"
    files = dict(OTHERS)
    files[info + "METADATA"] = "Metadata-Version: 2.1\nName: probing\nVersion: 0.2.4\n"
    files[info + "WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[info + "entry_points.txt"] = "[console_scripts]\nprobing = probing.cli.__main__:main\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        wheel.writestr(info + "RECORD", "".join("{},,\n".format(name) for name in [*files, info + "RECORD"]))
    return path


@pytest.fixture
def environment(tmp_path):
    python = [python for python in pythons.found() if not python.root and python.version >= (3, 8)][-1]
    folder = str(tmp_path / "environment")
    if subprocess.run(python.command("-m", "venv", folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no venv here")
    return folder


class Environment:
    def __init__(self, folder):
        self.folder = folder

    def run(self, *words, **variables):
        """(status, standard output, standard error)."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PROB", "PYTHON", "LD_", "OTHER"))}
        done = subprocess.run([os.path.join(self.folder, "bin", words[0]), *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", timeout=package.DEADLINE, cwd="/",
                              env=dict(kept, PIP_DISABLE_PIP_VERSION_CHECK="1", XDG_RUNTIME_DIR=self.folder, **variables))
        return done.returncode, done.stdout, done.stderr

    def install(self, wheel, *options):
        status, out, err = self.run("pip", "install", "-q", "--no-index", "--no-deps", *options, wheel)
        assert status == 0, out + err

    def hook(self):
        """Whether our probe started by PROBING=1, and what was said."""
        _, out, err = self.run("python", "-c", "import sys; print('probing_c._native' in sys.modules and sys.modules['probing_c._native'].functions is not None)",
                               PROBING="1")
        return out.strip(), err


def whole(one):
    """Ours, and nothing said."""
    status, out, err = one.run("probing", "--version")
    assert status == 0 and out.startswith("probing ") and err == ""
    assert one.run("probing-c", "--version") == (0, out, "")
    assert one.run("python", "-c", "import probing; print(probing.table.__module__)") == (0, "probing_c\n", "")
    assert one.hook() == ("True", "")


def test_alone_it_says_nothing(environment, wheel):
    one = Environment(environment)
    one.install(wheel)
    whole(one)


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_both_in_one_environment(environment, wheel, other, first):
    one = Environment(environment)
    for each in (wheel, other) if first == "ours" else (other, wheel):
        one.install(each)
    tool = subprocess.check_output([os.environ["PROBING"], "--version"], encoding="utf-8")
    status, out, err = one.run("probing-c", "--version")
    assert (status, out) == (0, tool) and REMEDY in err and err.count("\n") == 1
    status, out, err = one.run("probing", "--version")
    if first == "theirs":
        assert out == tool and REMEDY in err
    else:
        assert (out, err) == ("the other\n", "")
    # Neither package sees a file of the other one.
    status, out, err = one.run("python", "-c", "import probing; print(hasattr(probing, 'WHOSE')); import probing.cli")
    if first == "theirs":
        assert status == 1 and out == "False\n" and REMEDY in err and "probing.cli" in err
    else:
        assert (status, out, err) == (0, "True\n", "")
    status, out, err = one.run("python", "-c", "import probing_c; print(probing_c.table.__module__)")
    assert (status, out) == (0, "probing_c\n")
    started, err = one.hook()
    assert started == "False" and REMEDY in err
    # A process that nobody asks about hears nothing.
    assert one.run("python", "-c", "pass") == (0, "", "") == one.run("python", "-c", "pass", PROBING="another.py")
    # And the remedy is one.
    status, out, err = one.run("pip", "uninstall", "-q", "-y", "probing")
    assert status == 0, out + err
    one.install(wheel, "--force-reinstall")
    whole(one)
