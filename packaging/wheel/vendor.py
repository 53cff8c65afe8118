#!/usr/bin/env python3
"""Puts the libraries that our programs use beside them, so that a wheel needs nothing of its system but the C library; prints the wheel's platform.

    vendor.py [--root FOLDER MACHINE] NATIVE SONAME...

NATIVE is the folder that `make python-native` made; each SONAME is a library that is opened at run time (lib/base/lazy.h).  Beside the
programs come these, what the programs are linked with, and all that those need; everything looks for its libraries in its own folder,
and in licences/ is what their packages say of their copyright (Debian's files), and LIBRARIES, which has their versions.  Runs on the system that the programs were built on.
With --root the programs are for MACHINE (as uname -m says it), and FOLDER has the system whose libraries they use.
"""

import os
import re
import shutil
import struct
import subprocess
import sys

# Of every system that a manylinux wheel is for (PEP 600), and never to be had twice in a process.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|gcc_s))\.so\.\d+$")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))


class Here:
    """The system that this runs on."""
    machine, tools, root = os.uname().machine, "", ""

    def paths(self):
        """{soname: path} of this machine's own architecture."""
        paths = {}
        for line in output("/sbin/ldconfig", "-p").splitlines():
            found = re.match(r"\s*(\S+) \(libc6,(x86-64|AArch64)[^)]*\) => (.*)", line)
            if found:
                paths.setdefault(found.group(1), os.path.realpath(found.group(3)))
        return paths


class Below:
    """The system whose root folder is below this one's, for another machine."""

    def __init__(self, root, machine):
        self.root, self.machine, self.tools = os.path.realpath(root), machine, machine + "-linux-gnu-"

    def paths(self):
        folder = os.path.join(self.root, "usr/lib", self.tools.rstrip("-"))
        return {name: os.path.realpath(os.path.join(folder, name)) for name in os.listdir(folder) if ".so" in name}


def package_of(system, path):
    """Debian's package of a file; where /usr was merged its list may have the other name."""
    path = path[len(system.root):]
    for name in path, re.sub(r"^/usr", "", path), "/usr" + path:
        done = subprocess.run(["dpkg-query", "--admindir=" + system.root + "/var/lib/dpkg", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8")
        if done.returncode == 0:
            return done.stdout.split(": ")[0]
    raise SystemExit("{} is of no package".format(path))


def strip(system, path):
    """Before patchelf(1): what it moved must not be stripped."""
    subprocess.run([system.tools + "strip", "--strip-unneeded", path], check=True)


def look_beside(path):
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", path], check=True)


VERSIONS_NEEDED = 0x6FFFFFFE  # elf(5): SHT_GNU_verneed
NEWER_MATH, FIRST_VERSION = b"GLIBC_2.29", {"x86_64": b"GLIBC_2.2.5", "aarch64": b"GLIBC_2.17"}


def name_hash(name):
    """elf(5)'s."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value


def text_at(elf, at):
    return elf[at:elf.index(b"\0", at)]


def ask_for_older_math(system, path):
    """exp(), log() and pow() of glibc 2.29 differ from those before it in errno alone, which SQLite does not look at: take the first ones."""
    with open(path, "rb") as file:
        elf = bytearray(file.read())
    at, = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, at + i * size) for i in range(count)]
    for header in headers:
        if header[1] == VERSIONS_NEEDED:
            names, library = headers[header[6]][4], header[4]
            older = elf.index(b"\0" + FIRST_VERSION[system.machine] + b"\0", names) + 1 - names
            for _ in range(header[7]):
                _, needs, of, first, following = struct.unpack_from("<HHIII", elf, library)
                version = library + first
                for _ in range(needs if text_at(elf, names + of) == b"libm.so.6" else 0):
                    _, flags, index, name, rest = struct.unpack_from("<IHHII", elf, version)
                    if text_at(elf, names + name) == NEWER_MATH:
                        struct.pack_into("<IHHII", elf, version, name_hash(text_at(elf, names + older)), flags, index, older, rest)
                    version += rest
                library += following
    with open(path, "wb") as file:
        file.write(elf)


def platform_of(system, native):
    """The oldest C library that has what our files and the vendored ones ask for, as PEP 600 names it."""
    minors = [17]
    for name in os.listdir(native):
        if ".so" in name or name.startswith("probing"):
            minors += map(int, re.findall(r"\bGLIBC_2\.(\d+)", output("readelf", "-VW", os.path.join(native, name))))
    return "manylinux_2_{}_{}".format(max(minors), system.machine)


def main(system, native, sonames):
    paths = system.paths()
    ours = [name for name in os.listdir(native) if os.path.isfile(os.path.join(native, name))]
    wanted = list(sonames)
    for name in ours:
        strip(system, os.path.join(native, name))
        wanted += [one for one in needed(os.path.join(native, name)) if one not in ours]
    licences = os.path.join(native, "licences")
    os.makedirs(licences, exist_ok=True)
    done = {}
    while wanted:
        soname = wanted.pop()
        if SYSTEM.match(soname) or soname in done or soname in ours:
            continue
        if soname not in paths:
            raise SystemExit("there is no " + soname)
        done[soname] = package_of(system, paths[soname])
        copy = os.path.join(native, soname)
        shutil.copy(paths[soname], copy)
        os.chmod(copy, 0o755)
        strip(system, copy)
        ask_for_older_math(system, copy)
        look_beside(copy)
        wanted += needed(copy)
        package = done[soname].split(":")[0]
        shutil.copy("{}/usr/share/doc/{}/copyright".format(system.root, package), os.path.join(licences, package))
    for name in ours:
        if not name.startswith(("libprobe.so", "libprobing-nccl")):  # these are a target's, and need its C library alone
            look_beside(os.path.join(native, name))
    with open(os.path.join(licences, "LIBRARIES"), "w", encoding="utf-8") as listed:
        for soname in sorted(done):
            version = output("dpkg-query", "--admindir=" + system.root + "/var/lib/dpkg", "-W", "-f", "${Package} ${Version} of ${source:Package} ${source:Version}", done[soname])
            listed.write("{} {}\n".format(soname, version))
    print(platform_of(system, native))


if __name__ == "__main__":
    words, there = sys.argv[1:], Here()
    if words[:1] == ["--root"] and len(words) > 3:
        there, words = Below(*words[1:3]), words[3:]
    if not words:
        raise SystemExit(__doc__)
    main(there, words[0], words[1:])
