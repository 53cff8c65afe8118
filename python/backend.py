"""The build of the pip package (PEP 517), with nothing but the standard library.

The wheel has the Python files of python/probing and python/probing_c, beside them the start-up hook (probing_c.pth and what it imports),
and in probing_c/native/ the tool and its libraries.  They are built with configure and make in a temporary folder, or taken from a build folder:

    pip install .                                    builds
    pip install . --config-settings=build=b          takes what `make python-native` made in b
    python3 python/backend.py wheel NATIVE FOLDER    the same without pip (make wheel)

`pip install -e .` (PEP 660) leaves the files where they are: a folder of links to them, and to the binaries of the build folder
(build-editable, unless --config-settings=build=b names another), is put on the path.  A file that is new needs it again.
"""

import base64
import csv
import glob
import gzip
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
DATA = ".data/data"  # of the environment
START = ("_probing_hook.py", "_probing_rules.py", "_probing_birth.py", "probing_c.pth")
HOOKS = tuple(name for name in START if name.endswith(".pth"))
BINARIES = ("probing", "libprobing.so.0")
OPTIONAL = ("libprobe.so", "libprobing-nccl.so", "probing-serve")  # configure may leave them out
ENTRY_POINTS = """[console_scripts]
probing = probing_c._tool:main
probing-c = probing_c._tool:main
[jupyter_serverproxy_servers]
probing = probing_c._jupyter:proxied
"""
CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Intended Audience :: System Administrators",
    "License :: OSI Approved :: Apache Software License",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: C",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3 :: Only",
    "Programming Language :: Python :: Implementation :: CPython",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Topic :: Software Development :: Debuggers",
    "Topic :: System :: Monitoring",
    "Typing :: Typed",
)
STAMP = (1980, 1, 1, 0, 0, 0)  # the same input gives the same wheel


def version():
    with open(os.path.join(ROOT, "configure.ac"), encoding="utf-8") as text:
        return re.findall(r"AC_INIT\(\[probing\], \[([^\]]+)\]\)", text.read())[0]


def metadata():
    head = [
        "Metadata-Version: 2.1",
        "Name: probing-c",
        "Version: " + version(),
        "Summary: See inside a live Python training job: stacks, SQL, profiles, a debugger, crash dumps",
        "Author: The Probing authors",
        "License: Apache-2.0",
        "Keywords: debugger,profiler,stack,pytorch,training,sql,crash,gdb,dap",
        "Requires-Python: >=3.6",
        "Platform: Linux",
    ]
    head += ["Classifier: " + one for one in CLASSIFIERS]
    head += ["Classifier: Programming Language :: Python :: 3.{}".format(minor) for minor in range(6, 16)]
    head += ["Description-Content-Type: text/markdown; charset=UTF-8"]
    with open(os.path.join(HERE, "DESCRIPTION.md"), encoding="utf-8") as text:
        return "\n".join(head) + "\n\n" + text.read()


def tag():
    """PROBING_WHEEL_PLATFORM: what packaging/wheel/wheel.sh found that it runs on."""
    return "py3-none-" + (os.environ.get("PROBING_WHEEL_PLATFORM") or "linux_" + platform.machine())


def run(command, folder):
    """Quietly; what it printed when it fails."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.stderr.write(done.stdout.decode("utf-8", "replace")[-8000:])
        raise SystemExit("{} failed in {}".format(" ".join(command), folder))


def compiled(folder, keeps=False):
    """Configure and make in folder; where the binaries are.  keeps: it is made in again, when sources have changed."""
    if not os.path.exists(os.path.join(ROOT, "configure")):
        run(["./bootstrap"], ROOT)
    if not os.path.exists(os.path.join(folder, "config.status")):
        run([os.path.join(ROOT, "configure"), "-q"] + ([] if keeps else ["--disable-dependency-tracking"]), folder)
    run(["make", "-j", str(len(os.sched_getaffinity(0)))], folder)
    run(["make", "python-native", "python-share"], folder)
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


def sources(native):
    """(name in the wheel, mode, path) of everything but the records."""
    for package in PACKAGES:
        for path in sorted(glob.glob(os.path.join(HERE, package, "*"))):
            if os.path.isfile(path):
                yield package + "/" + os.path.basename(path), 0o644, path
    for name in START:
        yield name, 0o644, os.path.join(HERE, name)
    yield "probing_c/icon.svg", 0o644, os.path.join(ROOT, "serve", "page", "icon.svg")
    for name in BINARIES + tuple(name for name in OPTIONAL if os.path.exists(os.path.join(native, name))):
        yield NATIVE + name, 0o755, os.path.join(native, name)
    for name in vendored(native):
        yield NATIVE + name, 0o755, os.path.join(native, name)
    info, beside = "probing_c-" + version(), os.path.dirname(os.path.abspath(native))
    for target, folder in (("probing_c/share", os.path.join(beside, "share")), (info + DATA, os.path.join(beside, "data")),
                           (info + ".dist-info/licenses", os.path.join(native, "licences"))):
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*"), recursive=True)):
            if os.path.isfile(path):
                yield target + path[len(folder):], 0o644, path


def vendored(native):
    """Libraries of others that packaging/wheel/vendor.py put beside ours, which it stripped, too."""
    return sorted(name for name in os.listdir(native) if ".so" in name and name not in BINARIES + OPTIONAL)


def contents(native):
    """The same with the bytes of each."""
    for name, mode, path in sources(native):
        if name.startswith(NATIVE) and not vendored(native):
            yield name, mode, stripped(path)
        else:
            with open(path, "rb") as text:
                yield name, mode, text.read()


def linked(native, folder):
    """A folder of links to what the wheel would have."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, _, path in sources(native):
        if os.path.exists(path) and name not in HOOKS and DATA not in name:
            link = os.path.join(folder, name)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(path, link)
    return folder


def start_lines(folder):
    """The start-up files with that folder before them on the path."""
    for name in HOOKS:
        with open(os.path.join(HERE, name), "rb") as lines:
            yield name, 0o644, os.fsencode(folder) + b"\n" + lines.read()


def records(info):
    """The wheel's own papers."""
    yield info + "/METADATA", 0o644, metadata().encode("utf-8")
    wheel = "Wheel-Version: 1.0\nGenerator: probing\nRoot-Is-Purelib: false\nTag: {}\n".format(tag())
    yield info + "/WHEEL", 0o644, wheel.encode()
    yield info + "/entry_points.txt", 0o644, ENTRY_POINTS.encode()
    with open(os.path.join(ROOT, "LICENSE"), "rb") as text:
        yield info + "/LICENSE", 0o644, text.read()


def write_wheel(parts, folder):
    """A wheel of parts (name, mode, bytes) and the records."""
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

        for part in (parts, records(info)):
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
        return write_wheel(contents(os.path.join(build, "python", "native")), wheel_directory)
    with tempfile.TemporaryDirectory(prefix="probing-build-") as folder:
        return write_wheel(contents(compiled(folder)), wheel_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    build = (config_settings or {}).get("build")
    if build:
        build = os.path.abspath(build)
        native = os.path.join(build, "python", "native")
    else:
        build = os.path.join(ROOT, "build-editable")
        os.makedirs(build, exist_ok=True)
        native = compiled(build, keeps=True)
    return write_wheel(start_lines(linked(native, os.path.join(build, "python", "editable"))), wheel_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without this hook pip builds the whole wheel to learn its name."""
    info = "probing_c-{}.dist-info".format(version())
    os.makedirs(os.path.join(metadata_directory, info))
    for name, _, data in records(info):
        with open(os.path.join(metadata_directory, name), "wb") as paper:
            paper.write(data)
    return info


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def date():
    """Seconds since the epoch: SOURCE_DATE_EPOCH, else of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def build_sdist(sdist_directory, config_settings=None):
    """The files that git knows."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    base = "probing_c-" + version()
    when = date()

    def plain(entry):
        """As everybody's copy of the commit has it."""
        entry.mtime, entry.mode = when, 0o755 if entry.mode & 0o100 else 0o644
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        return entry

    with open(os.path.join(sdist_directory, base + ".tar.gz"), "wb") as file, \
            gzip.GzipFile("", "wb", mtime=when, fileobj=file) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name in sorted(filter(None, done.stdout.decode().split("\0"))):
            made.add(os.path.join(ROOT, name), base + "/" + name, filter=plain)
        papers = metadata().encode("utf-8")
        entry = tarfile.TarInfo(base + "/PKG-INFO")
        entry.size = len(papers)
        made.addfile(plain(entry), io.BytesIO(papers))
    return base + ".tar.gz"


def main(words):
    if len(words) != 3 or words[0] != "wheel":
        raise SystemExit("usage: backend.py wheel NATIVE FOLDER")
    print(os.path.join(words[2], write_wheel(contents(words[1]), words[2])))


if __name__ == "__main__":
    main(sys.argv[1:])
