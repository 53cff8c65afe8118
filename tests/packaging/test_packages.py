"""`make release` and what it makes.  The build takes minutes: PROBING_RELEASE=1 runs it, twice, or PROBING_RELEASE=FOLDER looks at one that was made."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

SRCDIR = os.path.abspath(os.environ["SRCDIR"])
ASKED = os.environ.get("PROBING_RELEASE", "")
TARGET_SECONDS = 420
with open(os.path.join(SRCDIR, "configure.ac"), encoding="utf-8") as text:
    VERSION = re.findall(r"AC_INIT\(\[probing\], \[(.*?)\]", text.read())[0]


def read(*path):
    with open(os.path.join(SRCDIR, *path), encoding="utf-8") as file:
        return file.read()


def test_versions_agree():
    """One version, written in configure.ac, and where packagers' tools want it to stand."""
    assert re.match(r"probing \({}-[a-z\d]+\) ".format(re.escape(VERSION)), read("packaging", "debian", "changelog"))
    assert re.search(r"^Version: +{}$".format(re.escape(VERSION)), read("packaging", "rpm", "probing.spec"), re.M)


def test_overrides_have_reasons():
    """At most eight tags of lintian are overridden, each below a comment."""
    found = 0
    folder = os.path.join(SRCDIR, "packaging", "debian")
    for name in os.listdir(folder):
        if name.endswith("lintian-overrides"):
            lines = read("packaging", "debian", name).splitlines()
            for before, line in zip([""] + lines, lines):
                if line and not line.startswith("#"):
                    found += 1
                    assert before.startswith("# "), line
    assert found <= 8


def release(folder):
    done = subprocess.run([sys.executable, os.path.join(SRCDIR, "packaging", "release.py"), folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", timeout=3 * TARGET_SECONDS)
    assert done.returncode == 0, done.stdout
    print(done.stdout)
    return folder


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    if not ASKED:
        pytest.skip("takes minutes: PROBING_RELEASE=1")
    if os.path.isdir(ASKED):
        return ASKED
    return release(str(tmp_path_factory.mktemp("one") / "dist"))


def only(dist, ending):
    (found,) = [name for name in os.listdir(dist) if name.endswith(ending)]
    return os.path.join(dist, found)


def wheels(dist):
    """This machine's, and AArch64's where `make release AARCH64=1` made it."""
    return sorted(os.path.join(dist, name) for name in os.listdir(dist) if name.endswith(".whl"))


def test_everything_is_there(dist):
    names = set(os.listdir(dist))
    assert {"probing_c-{}.tar.gz".format(VERSION), "probing-{}.cdx.json".format(VERSION), "SHA256SUMS"} <= names
    endings = sorted(re.sub(r"^.*?(\.src)?(\.\w+)$", r"\1\2", name) for name in names - {"SHA256SUMS"})
    assert endings == sorted([".whl"] * len(wheels(dist)) + [".gz", ".json", ".changes", ".rpm", ".rpm", ".src.rpm"] + [".deb"] * 4)
    assert any(name.endswith("_{}.whl".format(os.uname().machine)) for name in names)
    assert not any(os.path.isdir(os.path.join(dist, name)) for name in names)


def test_checksums(dist):
    with open(os.path.join(dist, "SHA256SUMS"), encoding="utf-8") as sums:
        told = dict(reversed(line.split()) for line in sums)
    assert set(told) == set(os.listdir(dist)) - {"SHA256SUMS"}
    for name, digest in told.items():
        with open(os.path.join(dist, name), "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


def test_bill_of_materials(dist):
    with open(only(dist, ".cdx.json"), encoding="utf-8") as file:
        bill = json.load(file)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    names = {one["name"] for one in bill["components"]}
    assert {"preact", "uplot", "libjansson4"} <= names
    references = [one["bom-ref"] for one in bill["components"]]
    assert len(references) == len(set(references))


def test_source_is_whole(dist):
    with tarfile.open(only(dist, ".tar.gz")) as archive:
        names = archive.getnames()
        assert {member.uid for member in archive} == {0} and {member.uname for member in archive} <= {"", "root"}
    assert {name.split("/")[0] for name in names} == {"probing_c-" + VERSION}
    assert all("probing_c-{}/{}".format(VERSION, name) in names for name in ("configure.ac", "PKG-INFO", "packaging/debian/rules", "bootstrap"))


def test_wheel(dist):
    """For the C library of the support matrix and newer; of each library within it there is what its authors ask to be told."""
    for path in wheels(dist):
        own = path.endswith("_{}.whl".format(os.uname().machine))
        with zipfile.ZipFile(path) as wheel:
            names, info = wheel.namelist(), "probing_c-{}.dist-info/licenses/".format(VERSION)
            assert re.fullmatch(r"probing_c-.*-py3-none-manylinux_2_28_\w+\.whl", os.path.basename(path))
            libraries = {name.split("/")[2] for name in names if re.match(r"probing_c/native/lib", name)} - {"libprobing.so.0", "libprobe.so", "libprobing-nccl.so"}
            name = path[:-len(".whl")].split("2_28_")[1]
            wanted = {"libsqlite3.so.0", "libdw.so.1", "libunwind-{}.so.8".format(name), "libjansson.so.4"} | ({"libnats.so.3"} if own else set())
            assert wanted <= {re.sub(r"(\.so\.\d+).*", r"\1", one) for one in libraries}
            listed = dict(line.split()[:2] for line in wheel.read(info + "LIBRARIES").decode().splitlines())
            assert set(listed) == libraries
            texts = {name[len(info):]: wheel.read(name) for name in names if name.startswith(info) and not name.endswith("/LIBRARIES")}
            assert set(listed.values()) == set(texts) and all(b"Copyright" in text or b"copyright" in text for text in texts.values())
            assert {"probing_c/native/probing", "probing_c/native/libprobe.so", "probing_c/native/libprobing-nccl.so"} <= set(names)
            assert "probing_c/share/editors/probing.vsix" in names and any(name.endswith("/man1/probing.1") for name in names)
            machine = {"x86_64": 62, "aarch64": 183}[name]  # e_machine of elf(5)
            for inner in names:
                if inner.startswith("probing_c/native/"):
                    assert int.from_bytes(wheel.read(inner)[18:20], "little") == machine, inner
        if shutil.which("auditwheel") and shutil.which("patchelf"):
            told = subprocess.run(["auditwheel", "show", path], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
            assert re.search(r'platform tag:\s+"manylinux_2_28_', told), told


def test_lintian(dist):
    if not shutil.which("lintian"):
        pytest.skip("needs lintian")
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning,info", "-i", only(dist, ".changes")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8")
    assert done.returncode == 0, done.stdout


def test_rpmlint(dist):
    if not shutil.which("rpmlint"):
        pytest.skip("needs rpmlint")
    packages = [os.path.join(dist, name) for name in os.listdir(dist) if name.endswith(".rpm")]
    done = subprocess.run(["rpmlint", "-c", os.path.join(SRCDIR, "packaging", "rpm", "rpmlint.toml"), *packages], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8")
    assert done.returncode == 0 and re.search(r" 0 errors, 0 warnings", done.stdout), done.stdout


def test_dependencies_that_are_opened(dist):
    """Packages name the libraries that nothing links."""
    fields = subprocess.run(["dpkg-deb", "-f", [os.path.join(dist, name) for name in os.listdir(dist) if name.startswith("libprobing0_")][0]],
                            stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    for name in ("libsqlite3-0", "libunwind8", "libdw1", "libzstd1"):
        assert name in fields
    packages = [os.path.join(dist, name) for name in os.listdir(dist) if re.match(r"probing-\d.*(?<!src)\.rpm$", name)]
    told = subprocess.run(["rpm", "-qp", "--requires", *packages], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True).stdout
    assert "libsqlite3.so.0()(64bit)" in told and "libdw.so.1()(64bit)" in told


def unpacked(path, folder):
    """A file of the release in a folder; what has no parts, as it is."""
    os.makedirs(folder)
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    elif path.endswith(".deb"):
        subprocess.run(["dpkg-deb", "-R", path, folder], check=True)
    elif path.endswith(".rpm"):
        subprocess.run("rpm2cpio '{}' | cpio -idm --quiet".format(path), shell=True, cwd=folder, check=True)
    else:
        shutil.copy(path, folder)
    for top, _, names in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(top, name)):
                yield os.path.join(top, name)


def test_no_path_of_the_builder(dist, tmp_path):
    """Of the folder that it was built in, of the sources, of a home."""
    homes = re.compile(b"probing-release-|" + re.escape(os.fsencode(os.path.realpath(SRCDIR))) + b"|" + re.escape(os.path.expanduser("~").encode()) + b"/[.a-z]")
    found = []
    for name in sorted(os.listdir(dist)):
        for path in unpacked(os.path.join(dist, name), str(tmp_path / name)):
            with open(path, "rb") as file:
                seen = homes.search(file.read())
            if seen and not path.endswith((".py", ".sh", ".md", ".tar.gz", ".spec")):
                found.append((path, seen.group()))
    assert found == []


def test_again_in_another_folder(dist, tmp_path):
    """Equal bytes."""
    if os.path.isdir(ASKED):
        pytest.skip("PROBING_RELEASE=1 builds twice")
    again = release(str(tmp_path / "a longer name" / "dist"))
    differing = []
    for name in sorted(set(os.listdir(dist)) | set(os.listdir(again))):
        with open(os.path.join(dist, name), "rb") as one, open(os.path.join(again, name), "rb") as other:
            if one.read() != other.read():
                differing.append(name)
    assert differing == []
