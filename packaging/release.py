#!/usr/bin/env python3
"""`make release`: the last commit as a wheel, a source archive, .deb and .rpm packages, with a bill of materials and checksums.

    release.py FOLDER [PART...]      parts: sdist wheel deb rpm (default: these), aarch64 (the wheel for AArch64)

FOLDER is made anew and is flat.  Built twice from one commit, on one machine and anywhere, the files have equal bytes: the date is the
commit's, and no file has the path of a folder that it was built in.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import uuid
import zipfile
from typing import Any, Dict, List, Set, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PLACE = "/mnt"  # where the folder of the build is while .deb and .rpm are made
PARTS = ("sdist", "wheel", "deb", "rpm")  # for this machine's architecture
OTHERS = ("aarch64",)
sys.path.insert(0, os.path.join(ROOT, "python"))

import backend  # noqa: E402


class Release:
    def __init__(self, folder: str, work: str) -> None:
        self.folder, self.work = os.path.abspath(folder), work
        self.version = backend.version()
        self.base = "probing_c-" + self.version
        self.began = time.monotonic()
        self.environment = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC", SOURCE_DATE_EPOCH=str(backend.date()))
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CFLAGS", "CPPFLAGS", "LDFLAGS", "DESTDIR"):
            self.environment.pop(name, None)
        os.environ["SOURCE_DATE_EPOCH"] = self.environment["SOURCE_DATE_EPOCH"]
        self.jobs = str(len(os.sched_getaffinity(0)))
        # .deb and .rpm are compiled at one place with the same options, so that the second takes the objects of the first.
        self.place = os.path.join(work, "build")
        os.makedirs(self.place)
        if shutil.which("ccache"):
            # rpmbuild has a LANG of its own, which would be part of what an object is found by.
            self.environment.update(CC="ccache gcc", CCACHE_SLOPPINESS="locale", CCACHE_DIR=os.environ.get("CCACHE_DIR", os.path.join(work, "ccache")))

    def say(self, text: str) -> None:
        print("[{:3.0f} s] {}".format(time.monotonic() - self.began, text), flush=True)

    def run(self, name: str, words: List[str], folder: str, **more: str) -> None:
        """Quietly; the end of what it said when it fails."""
        log = os.path.join(self.work, name + ".log")
        with open(log, "ab") as out:
            done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                  env=dict(self.environment, **more))
        if done.returncode != 0:
            with open(log, encoding="utf-8", errors="replace") as text:
                sys.stderr.write(text.read()[-6000:])
            raise SystemExit("release: {} failed".format(" ".join(words)))

    def run_at_place(self, name: str, words: List[str], folder: str, **more: str) -> None:
        """The folder of the build stands at PLACE, in a mount namespace of its own: what is made notes that path, and what is compiled for one
        package serves the other."""
        own = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
        script = 'mount --bind "$0" {} && cd "$1" && shift && exec "$@"'.format(PLACE)
        self.run(name, own + ["sh", "-c", script, self.work] + [word.replace(self.work, PLACE) for word in [folder] + words], "/", **more)

    def unpacked(self, folder: str) -> str:
        """The source archive in a folder; the top of its tree."""
        shutil.rmtree(os.path.join(folder, self.base), ignore_errors=True)
        with tarfile.open(os.path.join(self.folder, self.base + ".tar.gz")) as archive:
            archive.extractall(folder)
        return os.path.join(folder, self.base)

    def flags(self, name: str) -> str:
        """Debian's options of the preprocessor, the compiler or the linker, for the tree at PLACE."""
        done = subprocess.run(["dpkg-buildflags", "--get", name], cwd=self.place, stdout=subprocess.PIPE, check=True, encoding="utf-8",
                              env=dict(self.environment, DEB_BUILD_MAINT_OPTIONS="hardening=+bindnow"))
        there = self.place.replace(self.work, PLACE)
        return done.stdout.strip().replace(self.place + "=", os.path.join(there, self.base) + "=")

    # ---- the parts ----

    def sdist(self) -> None:
        backend.build_sdist(self.folder)

    def wheel(self) -> None:
        """For any Linux: the files that git knows, compiled in a root folder of an older system, which stays for the next release."""
        root = os.environ.get("PROBING_WHEEL_ROOT", os.path.join(ROOT, "build", "roots", "bullseye"))
        self.run("wheel", [os.path.join(HERE, "wheel", "wheel.sh"), self.folder, root], ROOT, CC="gcc")
        for name in os.listdir(self.folder):
            if name.endswith(".whl"):
                with zipfile.ZipFile(os.path.join(self.folder, name)) as made:
                    if not any(re.search("/libnats.so", inner) for inner in made.namelist()):
                        self.say("libnats could not be had (packaging/wheel/nats.sh): the wheel knows no bus of many machines")

    def aarch64(self) -> None:
        """The wheel for AArch64, of the source archive; the folder of Debian 11's libraries stays for the next release."""
        root = os.environ.get("PROBING_WHEEL_AARCH64", os.path.join(ROOT, "build", "roots", "bullseye-arm64"))
        self.run("aarch64", [os.path.join(self.unpacked(self.place), "packaging", "wheel", "aarch64.sh"), self.folder, root], ROOT)

    def deb(self) -> None:
        """packaging/debian as debian/, as a distribution has it; then what dpkg-buildpackage -b does, but for .buildinfo, which has the time."""
        top = self.unpacked(self.place)
        shutil.copytree(os.path.join(top, "packaging", "debian"), os.path.join(top, "debian"))
        options = {"DEB_BUILD_OPTIONS": "nocheck noautodbgsym parallel=" + self.jobs, "DEB_BUILD_PROFILES": "nocheck"}
        self.run("deb", ["dpkg-checkbuilddeps"], top, **options)
        self.run_at_place("deb", ["debian/rules", "build"], top, **options)
        self.run_at_place("deb", ["debian/rules", "binary"], top, **options)
        architecture = subprocess.run(["dpkg", "--print-architecture"], stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout.strip()
        with open(os.path.join(top, "debian", "changelog"), encoding="utf-8") as changelog:
            version = re.findall(r"\((.*?)\)", changelog.readline())[0]
        changes = "../probing_{}_{}.changes".format(version, architecture)
        self.run("deb", ["dpkg-genchanges", "-b", "-O" + changes], top, **options)
        for name in os.listdir(self.place):
            if name.endswith((".deb", ".changes")):
                shutil.move(os.path.join(self.place, name), self.folder)

    def rpm(self) -> None:
        top = os.path.join(self.work, "rpm")
        sources = os.path.join(top, "SOURCES")
        os.makedirs(sources)
        for path in (os.path.join(self.folder, self.base + ".tar.gz"), os.path.join(self.unpacked(self.place), "packaging", "rpm", "probing.spec")):
            shutil.copy(path, sources)
            os.utime(os.path.join(sources, os.path.basename(path)), (int(self.environment["SOURCE_DATE_EPOCH"]),) * 2)
        defined = {"_topdir": top, "_sourcedir": sources, "_builddir": self.place, "_smp_mflags": "-j" + self.jobs, "_buildhost": "localhost", "dist": "%{nil}",
                   "debug_package": "%{nil}", "build_cppflags": self.flags("CPPFLAGS"), "optflags": self.flags("CFLAGS"), "build_ldflags": self.flags("LDFLAGS"),
                   "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1", "source_date_epoch_from_changelog": "0"}
        words = ["rpmbuild", "-ba", "--nodeps"]
        for name, value in defined.items():
            words += ["--define", "{} {}".format(name, value)]
        self.run_at_place("rpm", words + [os.path.join(sources, "probing.spec")], top)
        for folder, _, names in os.walk(top):
            for name in names:
                if name.endswith(".rpm"):
                    shutil.move(os.path.join(folder, name), self.folder)

    # ---- what describes them ----

    def materials(self) -> None:
        """CycloneDX 1.5: ourselves, what is within, and the packages that the system's libraries come from."""
        components = vendored_scripts() + self.libraries()
        serial = uuid.uuid5(uuid.NAMESPACE_URL, "probing {} {}".format(self.version, self.environment["SOURCE_DATE_EPOCH"]))
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(self.environment["SOURCE_DATE_EPOCH"])))
        bill: Dict[str, Any] = {
            "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": "urn:uuid:{}".format(serial), "version": 1,
            "metadata": {"timestamp": when, "component": component("application", "probing", self.version, "Apache-2.0", "pkg:pypi/probing-c@" + self.version)},
            "components": components,
            "dependencies": [{"ref": "pkg:pypi/probing-c@" + self.version, "dependsOn": [one["bom-ref"] for one in components]}],
        }
        with open(os.path.join(self.folder, "probing-{}.cdx.json".format(self.version)), "w", encoding="utf-8") as file:
            json.dump(bill, file, indent=1)
            file.write("\n")

    def libraries(self) -> List[Dict[str, Any]]:
        """The packages whose libraries are in the wheel; and of this system those that the .deb depends on, with their versions here."""
        found: Set[Tuple[str, str]] = set()
        names: Set[str] = set()
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".whl"):
                with zipfile.ZipFile(os.path.join(self.folder, name)) as wheel:
                    text = wheel.read("probing_c-{}.dist-info/licenses/LIBRARIES".format(self.version)).decode()
                found.update((package, version) for _, package, version, *_ in map(str.split, text.splitlines()))
            if name.endswith(".deb"):
                fields = subprocess.run(["dpkg-deb", "-f", os.path.join(self.folder, name), "Depends", "Recommends"], stdout=subprocess.PIPE,
                                        check=True, encoding="utf-8").stdout
                names.update(re.findall(r"[a-z0-9][a-z0-9.+-]+(?= \(|,|\n|$)", re.sub(r"^\w+:", "", fields, flags=re.M)))
        for name in sorted(names):
            shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
            if shown.returncode == 0 and shown.stdout:
                found.add((name, shown.stdout))
        # What has no revision of Debian's was compiled from its authors' source.
        return [component("library", name, version, None, "pkg:{}/{}@{}".format("deb/debian" if "-" in version else "generic", name, urllib.parse.quote(version, "")))
                for name, version in sorted(found)]

    def checksums(self) -> None:
        lines = []
        for name in sorted(os.listdir(self.folder)):
            with open(os.path.join(self.folder, name), "rb") as file:
                lines.append("{}  {}\n".format(hashlib.sha256(file.read()).hexdigest(), name))
        with open(os.path.join(self.folder, "SHA256SUMS"), "w", encoding="utf-8") as file:
            file.writelines(lines)


def component(kind: str, name: str, version: str, licence: Any, url: str) -> Dict[str, Any]:
    made: Dict[str, Any] = {"type": kind, "bom-ref": url, "name": name, "version": version, "purl": url}
    if licence:
        made["licenses"] = [{"license": {"id": licence}}]
    return made


def vendored_scripts() -> List[Dict[str, Any]]:
    """The page's libraries: lines `package NAME VERSION LICENCE` of serve/page/vendor/VENDOR."""
    with open(os.path.join(ROOT, "serve", "page", "vendor", "VENDOR"), encoding="utf-8") as text:
        found = re.findall(r"^package (\S+) (\S+) (\S+)", text.read(), re.M)
    return [component("library", name, version, licence, "pkg:npm/{}@{}".format(name, version)) for name, version, licence in found]


def main(words: List[str]) -> None:
    if not words or words[0].startswith("-") or any(part not in PARTS + OTHERS for part in words[1:]):
        raise SystemExit(__doc__)
    folder, parts = words[0], words[1:] or list(PARTS)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryDirectory(prefix="probing-release-") as work:
        release = Release(folder, work)
        if os.path.exists(os.path.join(ROOT, ".git")) and subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, stdout=subprocess.PIPE).stdout:
            release.say("what is not committed is part of it")
        for part in ["sdist"] + [part for part in parts if part != "sdist"]:
            getattr(release, part)()
            release.say(part)
        release.materials()
        release.checksums()
        for name in sorted(os.listdir(folder)):
            release.say("{:9} {}".format(os.path.getsize(os.path.join(folder, name)), name))


if __name__ == "__main__":
    main(sys.argv[1:])
