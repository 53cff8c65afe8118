"""The build of the pip package (PEP 517), with nothing but the standard library.

The wheel has the Python files of python/probing and python/probing_c, beside them the start-up hook (probing_c.pth and what it imports),
and in probing_c/native/ the tool and its libraries.  They are built with configure and make in a temporary folder, or taken from a build folder:

    pip install .                                    builds
    pip install . --config-settings=build=b          takes what `make python-native` made in b
    python3 python/backend.py wheel NATIVE FOLDER    the same without pip (make wheel)
"""

import base64
import csv
import glob
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PACKAGES = ("probing", "probing_c")
NATIVE = "probing_c/native/"
START = ("_probing_hook.py", "_probing_rules.py", "_probing_birth.py", "probing_c.pth")
BINARIES = ("probing", "libprobing.so.0", "libprobe.so", "libprobing-nccl.so")
OPTIONAL = ("probing-serve",)  # configure may leave it out
ENTRY_POINTS = """[console_scripts]
probing = probing_c._tool:main
probing-c = probing_c._tool:main
[jupyter_serverproxy_servers]
probing = probing_c._jupyter:proxied
"""
STAMP = (1980, 1, 1, 0, 0, 0)  # the same input gives the same wheel


def version():
    with open(os.path.join(ROOT, "configure.ac"), encoding="utf-8") as text:
        return re.findall(r"AC_INIT\(\[probing\], \[([^\]]+)\]\)", text.read())[0]


def metadata():
    head = [
        "Metadata-Version: 2.1",
        "Name: probing-c",
        "Version: " + version(),
        "Summary: See inside a live Python training job",
        "License: Apache-2.0",
        "Requires-Python: >=3.6",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: Implementation :: CPython",
        "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown",
    ]
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as text:
        return "\n".join(head) + "\n\n" + text.read()


def tag():
    return "py3-none-linux_" + platform.machine()


def run(command, folder):
    """Quietly; what it printed when it fails."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.stderr.write(done.stdout.decode("utf-8", "replace")[-8000:])
        raise SystemExit("{} failed in {}".format(" ".join(command), folder))


def compiled(folder):
    """Configure and make in folder; where the binaries are."""
    if not os.path.exists(os.path.join(ROOT, "configure")):
        run(["./bootstrap"], ROOT)
    run([os.path.join(ROOT, "configure"), "-q", "--disable-dependency-tracking"], folder)
    run(["make", "-j", str(len(os.sched_getaffinity(0)))], folder)
    run(["make", "python-native"], folder)
    return os.path.join(folder, "python", "native")


def stripped(path):
    """The file's bytes without debug information, where there is a strip."""
    path = os.path.abspath(path)
    tool = shutil.which("strip")
    if not tool:
        with open(path, "rb") as binary:
            return binary.read()
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "binary")
        run([tool, "--strip-unneeded", "-o", copy, path], folder)
        with open(copy, "rb") as binary:
            return binary.read()


def contents(native):
    """(name in the wheel, mode, bytes) of everything but the records."""
    for package in PACKAGES:
        for path in sorted(glob.glob(os.path.join(HERE, package, "*"))):
            if os.path.isfile(path):
                with open(path, "rb") as text:
                    yield package + "/" + os.path.basename(path), 0o644, text.read()
    for name in START:
        with open(os.path.join(HERE, name), "rb") as hook:
            yield name, 0o644, hook.read()
    with open(os.path.join(ROOT, "serve", "page", "icon.svg"), "rb") as icon:
        yield "probing_c/icon.svg", 0o644, icon.read()
    for name in BINARIES + tuple(name for name in OPTIONAL if os.path.exists(os.path.join(native, name))):
        yield NATIVE + name, 0o755, stripped(os.path.join(native, name))


def records(info):
    """The wheel's own papers."""
    yield info + "/METADATA", 0o644, metadata().encode("utf-8")
    wheel = "Wheel-Version: 1.0\nGenerator: probing\nRoot-Is-Purelib: false\nTag: {}\n".format(tag())
    yield info + "/WHEEL", 0o644, wheel.encode()
    yield info + "/entry_points.txt", 0o644, ENTRY_POINTS.encode()
    with open(os.path.join(ROOT, "LICENSE"), "rb") as text:
        yield info + "/LICENSE", 0o644, text.read()


def write_wheel(native, folder):
    name = "probing_c-{}-{}.whl".format(version(), tag())
    info = "probing_c-{}.dist-info".format(version())
    listed = io.StringIO()
    lines = csv.writer(listed, lineterminator="\n")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(inner, mode, data):
            entry = zipfile.ZipInfo(inner, STAMP)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)

        for part in (contents(native), records(info)):
            for inner, mode, data in part:
                add(inner, mode, data)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                lines.writerow([inner, "sha256=" + digest, len(data)])
        lines.writerow([info + "/RECORD", "", ""])
        add(info + "/RECORD", 0o644, listed.getvalue().encode())
    os.replace(path + ".new", path)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = (config_settings or {}).get("build")
    if build:
        return write_wheel(os.path.join(build, "python", "native"), wheel_directory)
    with tempfile.TemporaryDirectory(prefix="probing-build-") as folder:
        return write_wheel(compiled(folder), wheel_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without this hook pip builds the whole wheel to learn its name."""
    info = "probing_c-{}.dist-info".format(version())
    os.makedirs(os.path.join(metadata_directory, info))
    for name, _, data in records(info):
        with open(os.path.join(metadata_directory, name), "wb") as paper:
            paper.write(data)
    return info


def build_sdist(sdist_directory, config_settings=None):
    """The files that git knows."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    base = "probing_c-" + version()
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as made:
        for name in sorted(filter(None, done.stdout.decode().split("\0"))):
            made.add(os.path.join(ROOT, name), base + "/" + name)
        papers = metadata().encode("utf-8")
        entry = tarfile.TarInfo(base + "/PKG-INFO")
        entry.size = len(papers)
        made.addfile(entry, io.BytesIO(papers))
    return base + ".tar.gz"


def main(words):
    if len(words) != 3 or words[0] != "wheel":
        raise SystemExit("usage: backend.py wheel NATIVE FOLDER")
    print(os.path.join(words[2], write_wheel(words[1], words[2])))


if __name__ == "__main__":
    main(sys.argv[1:])
