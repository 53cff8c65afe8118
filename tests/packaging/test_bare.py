"""What was released, on systems that have nothing of what it was built with: root folders with Python and, for the wheel, pip alone.

PROBING_RELEASE=FOLDER has the files, PROBING_ROOTS=FOLDER the roots, which debootstrap makes there, with the packages of PACKAGES, when they
are missing.
"""

import ensurepip
import glob
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile

import pytest

from support import pythons

RELEASE, ROOTS = os.environ.get("PROBING_RELEASE", ""), os.environ.get("PROBING_ROOTS", "")
SECONDS = 30  # for pip and the demo, on an idle machine
LONGEST = 900
PACKAGES = {"trixie": "python3-venv", "bookworm": "python3", "bullseye": "python3-venv", "noble": "python3-venv", "jammy": "python3-venv", "focal": "python3-venv"}
UBUNTU = ("noble", "jammy", "focal")
SCRIPT = "/usr/share/debootstrap/scripts/gutsy"  # of all of Ubuntu's
NEEDED = "libdw1 libjansson4 libsqlite3-0 libunwind8 libwebsockets17 libedit2 libncursesw6 libzstd1 liblz4-1"
INSIDE = """mount -t proc proc "$0/proc"; mkdir -p "$0/dev/shm"; mount -t tmpfs shm "$0/dev/shm"
exec chroot "$0" /usr/bin/env -i HOME=/root ${PROBING_PYTHON:+"PROBING_PYTHON=$PROBING_PYTHON"} LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/v/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec "$1" """
# Everything that is in the root, and who runs there, before and after; the processes that look are this shell's.
DEMO = """list() { find / /dev/shm -xdev ! -path '/proc*' ! -name __pycache__ ! -name '*.pyc' | sort; }
list >/dev/shm/.before; probing demo >/root/demo.txt; mv /root/demo.txt /dev/shm/.told
list >/dev/shm/.after; diff /dev/shm/.before /dev/shm/.after | grep -v '/\\.[a-z]*$' | grep '^[<>]' >/dev/shm/.new || true
for folder in /proc/[0-9]*; do [ "${folder#/proc/}" -le "$$" ] || [ ! -e "$folder/exe" ] || readlink "$folder/exe"; done >/dev/shm/.left
cat /dev/shm/.told; echo ==== files; cat /dev/shm/.new; echo ==== processes; cat /dev/shm/.left"""

if not (os.path.isdir(RELEASE) and ROOTS):
    pytest.skip("PROBING_RELEASE=FOLDER PROBING_ROOTS=FOLDER", allow_module_level=True)
if os.geteuid() != 0 or not shutil.which("debootstrap"):
    pytest.skip("needs root and debootstrap", allow_module_level=True)


def archive():
    """Ubuntu's, as debootstrap knows it, and its script."""
    with open(SCRIPT, encoding="utf-8") as text:
        return [next(url for url in re.findall(r"default_mirror (\S+)", text.read()) if "old-" not in url), SCRIPT]


class Root:
    def __init__(self, suite):
        self.folder = os.path.join(ROOTS, suite + "-bare")
        if not os.path.exists(os.path.join(self.folder, ".ready")):
            options = ["--variant=minbase", "--include=" + PACKAGES[suite]] + (["--components=main,universe"] if suite in UBUNTU else [])
            subprocess.run(["debootstrap", *options, suite, self.folder, *(archive() if suite in UBUNTU else [])], check=True,
                           stdout=subprocess.DEVNULL, timeout=2 * LONGEST)
            open(os.path.join(self.folder, ".ready"), "w").close()
        self.run("rm -rf /v /dist /root/*; mkdir /dist")
        for path in glob.glob(os.path.join(RELEASE, "*")):
            shutil.copy(path, os.path.join(self.folder, "dist"))

    def run(self, script):
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", "unset PROBING_PYTHON\n" + INSIDE, self.folder, script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=LONGEST)
        assert done.returncode == 0, (script, done.stdout[-6000:])
        return done.stdout


@pytest.fixture(params=["trixie", "bullseye", *UBUNTU])
def python_root(request):
    return Root(request.param)


# What root runs once, so that its Pythons keep byte code of the module and of gdb's plugin; and what is there of us, with all folders.
USED = """python3 -c 'import sys; sys.path.append("{}"); import probing, _probing_hook, _probing_birth'
python3 -O -c 'import sys; sys.path.append("{}"); import probing'
gdb -nx -batch -ex "source $(probing gdb-script)" -ex 'help py-backtrace' | grep -q Show"""
PURGE, ERASE = "dpkg --purge probing python3-probing libprobing0 libprobing-dev", "rpm -e --nodeps probing"
THERE = "find / -xdev -regextype posix-extended ! -regex '/(proc|dist|var|root|tmp)/.*' '(' -type d -o -path '*probing*' ')'"


def check_story(story):
    for part in (r"Thread \d+ ", r"stopped at a breakpoint in backward \(train\.py:\d+\)", r"the job ended by signal 11", "SIGSEGV"):
        assert re.search(part, story), story


def check_demo(told):
    story, files, processes = re.split(r"==== \w+\n", told)
    check_story(story)
    assert (files, processes) == ("", "")


def test_wheel(python_root, record_property):
    """pip without a network; then the demo."""
    python_root.run("python3 -m venv /v")
    if python_root.folder.endswith("focal-bare"):  # its pip is older than 20.3
        (newer,) = glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl"))
        shutil.copy(newer, os.path.join(python_root.folder, "dist"))
        python_root.run("pip -q install --no-index /dist/pip-*.whl")
    began = time.monotonic()
    told = python_root.run("pip -q install --no-index /dist/probing_c-*_$(uname -m).whl\n" + DEMO)
    record_property("seconds", time.monotonic() - began)
    print("{:.1f} s".format(time.monotonic() - began))
    check_demo(told)
    assert python_root.run("ldd $(python -c 'import probing_c; print(probing_c.__path__[0])')/native/probing-serve | grep 'not found' || true") == ""
    path = python_root.run("probing vscode path").strip()
    assert path.endswith("/probing.vsix") and os.path.getsize(python_root.folder + path) > 10000


def test_gdb_from_the_wheel():
    """gdb with our commands, by a script's path and by `probing gdb`."""
    python_root = Root("trixie")
    python_root.run("apt-get -qq update; apt-get -qq install -y --no-install-recommends gdb; python3 -m venv /v; pip -q install --no-index /dist/probing_c-*_$(uname -m).whl")
    told = python_root.run("""python3 -c 'import time\ndef waits(): time.sleep(600)\nwaits()' & pid=$!
until probing $pid backtrace 2>/dev/null | grep -q waits; do :; done
probing gdb $pid -batch -ex py-backtrace
echo ====
gdb -batch -p $pid -ex "source $(probing gdb-script)" -ex py-backtrace; kill $pid""")
    for one in told.split("====\n"):
        assert "waits" in one, told


def test_bus_from_the_wheel():
    """Ranks over a bus with keys and TLS, by the wheel's own libnats; the server is Debian's."""
    python_root = Root("trixie")
    python_root.run("apt-get -qq update; apt-get -qq install -y --no-install-recommends nats-server; python3 -m venv /v; pip -q install --no-index /dist/probing_c-*_$(uname -m).whl")
    told = python_root.run("""for rank in 0 1; do RANK=$rank WORLD_SIZE=2 TORCHELASTIC_RUN_ID=bare python3 -c 'import time
def waits(): time.sleep(600)
waits()' & done
probing cluster up --listen 127.0.0.1:4999; probing cluster attach
for i in 1 2 3 4 5 6 7 8 9; do probing -t @bare backtrace >/root/told 2>&1; grep -q 'ranks 0-1 (2 of 2)' /root/told && grep -q waits /root/told && break; done
cat /root/told; probing cluster detach; probing cluster down""")
    assert "ranks 0-1 (2 of 2)" in told and re.search(r"^ *waits \(<string>:2\)$", told, re.M), told


@pytest.fixture
def debian():
    """With what both packages use, so that what is new after them is theirs."""
    root = Root("bookworm")
    root.run("apt-get -qq update; apt-get -qq install -y --no-install-recommends gdb rpm {}; {{ {}; {}; gdb -nx -batch; }} || true".format(NEEDED, PURGE, ERASE))
    return root


def test_deb(debian):
    before = debian.run(THERE)
    debian.run("apt-get -qq install -y --no-install-recommends /dist/*.deb")
    check_demo(debian.run(DEMO))
    debian.run(USED.format(*2 * ["/usr/lib/python3/dist-packages"]))
    debian.run(PURGE)
    assert sorted(set(debian.run(THERE).splitlines()) - set(before.splitlines())) == []


def test_rpm(debian):
    """Debian's rpm installs it by its own data base, which knows no package of Debian's."""
    site = debian.run("rpm -qlp /dist/probing-[0-9]*[!c].rpm | sed -n 's|/probing_c.pth||p'").strip()
    debian.run("cd /usr/share && mkdir -p {}/__pycache__ fish/vendor_completions.d licenses zsh/site-functions".format(site))  # of Fedora's own packages
    before = debian.run(THERE)
    debian.run("rpm -i --nodeps --ignorearch /dist/probing-[0-9]*[!c].rpm; ldconfig /usr/lib64 2>/dev/null || true")
    check_demo(debian.run(DEMO))
    debian.run(USED.format(site, site))
    debian.run(ERASE)
    assert sorted(set(debian.run(THERE).splitlines()) - set(before.splitlines())) == []


@pytest.mark.parametrize("version", ["3.13", "3.14", "3.15"])
def test_newer_pythons(tmp_path, version):
    """The demo on each Python of the root that tests/newer-pythons.sh made."""
    top = pythons.newer_root()
    if not top or not os.path.exists(os.path.join(top, "usr/bin/python" + version)):
        pytest.skip("needs tests/newer-pythons.sh")
    with zipfile.ZipFile(glob.glob(os.path.join(RELEASE, "probing_c-*_{}.whl".format(os.uname().machine)))[0]) as wheel:
        wheel.extractall(str(tmp_path))
    (tmp_path / "probing_c/native/probing").chmod(0o755)
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", """mount --bind "$2" "$0/mnt"; export PROBING_PYTHON=$3; """ + INSIDE, top,
                           "/mnt/probing_c/native/probing demo", str(tmp_path), "/usr/bin/python" + version],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=LONGEST)
    assert done.returncode == 0, done.stdout
    check_story(done.stdout)


def test_source(tmp_path):
    """pip builds the source archive, with nothing from a network."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True, timeout=LONGEST)
    subprocess.run([str(tmp_path / "bin/pip"), "-q", "install", "--no-index", *glob.glob(os.path.join(RELEASE, "probing_c-*.tar.gz"))], check=True,
                   timeout=2 * LONGEST)
    told = subprocess.run([str(tmp_path / "bin/probing"), "demo"], stdout=subprocess.PIPE, encoding="utf-8", check=True, timeout=LONGEST)
    check_story(told.stdout)
