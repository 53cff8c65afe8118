#!/usr/bin/env python3
"""Puts the libraries that our programs use beside them, so that a wheel needs nothing of its system but the C library; prints the wheel's platform.

    vendor.py NATIVE SONAME...

NATIVE is the folder that `make python-native` made; each SONAME is a library that is opened at run time (lib/base/lazy.h).  Beside the
programs come these, what the programs are linked with, and all that those need; everything looks for its libraries in its own folder,
and in licences/ is what their packages say of their copyright (Debian's folders).  Runs on the system that the programs were built on.
"""

import os
import re
import shutil
import subprocess
import sys

# Of every system that a manylinux wheel is for (PEP 600), and never to be had twice in a process.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|gcc_s))\.so\.\d+$")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))


def loader_paths():
    """{soname: path} of this machine's own architecture."""
    paths = {}
    for line in output("/sbin/ldconfig", "-p").splitlines():
        found = re.match(r"\s*(\S+) \(libc6,(x86-64|AArch64)[^)]*\) => (.*)", line)
        if found:
            paths.setdefault(found.group(1), os.path.realpath(found.group(3)))
    return paths


def package_of(path):
    """Debian's package of a file; where /usr was merged its list may have the other name."""
    for name in path, re.sub(r"^/usr", "", path), "/usr" + path:
        done = subprocess.run(["dpkg", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise SystemExit("{} is of no package".format(path))


def strip(path):
    """Before patchelf(1): what it moved must not be stripped."""
    subprocess.run(["strip", "--strip-unneeded", path], check=True)


def look_beside(path):
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", path], check=True)


def platform_of(native):
    """The oldest C library that has what our files and the vendored ones ask for, as PEP 600 names it."""
    minors = [17]
    for name in os.listdir(native):
        if ".so" in name or name.startswith("probing"):
            minors += map(int, re.findall(r"\bGLIBC_2\.(\d+)", output("readelf", "-VW", os.path.join(native, name))))
    return "manylinux_2_{}_{}".format(max(minors), os.uname().machine)


def main(native, sonames):
    paths = loader_paths()
    ours = [name for name in os.listdir(native) if os.path.isfile(os.path.join(native, name)) and name != "vendored"]
    wanted = list(sonames)
    for name in ours:
        strip(os.path.join(native, name))
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
        done[soname] = package_of(paths[soname])
        copy = os.path.join(native, soname)
        shutil.copy(paths[soname], copy)
        os.chmod(copy, 0o755)
        strip(copy)
        look_beside(copy)
        wanted += needed(copy)
        shutil.copy("/usr/share/doc/{}/copyright".format(done[soname]), os.path.join(licences, done[soname]))
    for name in ours:
        if not name.startswith(("libprobe.so", "libprobing-nccl")):  # these are a target's, and need its C library alone
            look_beside(os.path.join(native, name))
    with open(os.path.join(native, "vendored"), "w", encoding="utf-8") as listed:
        for soname in sorted(done):
            version = output("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", done[soname])
            listed.write("{} {} {}\n".format(soname, done[soname], version))
    print(platform_of(native))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
