#!/bin/sh
# packaging/wheel/wheel.sh OUT [ROOT]: the wheel for any Linux of this architecture, in the folder OUT.
# It is compiled in a root folder of Debian 11 (ROOT, made by tests/systems.sh when it is not there and kept), so that it asks for no newer C
# library than that; the libraries it uses are put beside it (vendor.py), libnats among them, which nats.sh compiles there.
# The extension for VS Code is in it where npm is here.  Needs root and debootstrap.  The last line is the wheel's path.
set -eu
out=${1:?usage: packaging/wheel/wheel.sh OUT [ROOT]}
cd "$(dirname "$0")/../.."
root=${2:-$PWD/build/roots/bullseye}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# in_root COMMAND: what it prints but for the last line goes to ROOT.wheel.log.
# shellcheck disable=SC2016 # the inner shell expands these
in_root() {
    unshare --mount sh -ec 'mount -t proc proc "$0/proc"; exec chroot "$0" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec "$1"' "$root" "$1" >"$root.wheel.log" 2>&1 || {
        tail -n 20 "$root.wheel.log" >&2
        exit 1
    }
}

[ -e "$root/.ready" ] && [ -d "$root/usr/include/openssl" ] || tests/systems.sh bullseye "$root" packages
packaging/wheel/nats.sh "$root" >"$root.nats.log" 2>&1 || [ $? = 77 ] || {
    tail -n 20 "$root.nats.log" >&2
    exit 1
}
tests/systems.sh bullseye "$root" build
# What is opened at run time by configure's list, and the parts that are not programs.
# shellcheck disable=SC2016
in_root 'command -v patchelf || apt-get install -qq -y --no-install-recommends patchelf
    cd /probing/build && make -s python-native python-share
    rm -rf wheel && mkdir wheel && cp -r python/native python/share python/data wheel
    python3 ../packaging/wheel/vendor.py wheel/native $(sed -n "s/^#define PRB_SONAME_.* \"\(.*\)\"/\1/p" config.?)'
made=$root/probing/build/wheel
! command -v npm >/dev/null || editors/vscode/build.sh "$made/share/editors/probing.vsix"
rm -rf "$made/share/editors/vsix.dir"
PROBING_WHEEL_PLATFORM=$(tail -n 1 "$root.wheel.log") python3 python/backend.py wheel "$made/native" "$out"
