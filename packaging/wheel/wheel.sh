#!/bin/sh
# packaging/wheel/wheel.sh OUT [ROOT]: the wheel for any Linux of this architecture, in the folder OUT.
# It is compiled in a root folder of Debian 11 (ROOT, made by tests/systems.sh when it is not there and kept), so that it asks for no newer C
# library than that; the libraries it uses are put beside it (vendor.py).  The extension for VS Code is in it where npm is here.
# Needs root and debootstrap.  The last line is the wheel's path.
set -eu
out=${1:?usage: packaging/wheel/wheel.sh OUT [ROOT]}
cd "$(dirname "$0")/../.."
root=${2:-$PWD/build/roots/bullseye}
mkdir -p "$out"
out=$(cd "$out" && pwd)

tests/systems.sh bullseye "$root" build
# What is opened at run time by configure's list, and the parts that are not programs.  PROBING_VSIX: a file that `make vsix` made.
# shellcheck disable=SC2016 # the inner shell expands these
platform=$(unshare --mount sh -ec 'mount -t proc proc "$0/proc"; exec chroot "$0" sh -ec "$1"' "$root" '
    command -v patchelf >/dev/null || apt-get install -qq -y --no-install-recommends patchelf >/dev/null 2>&1
    cd /probing/build && make -s python-native python-share >/dev/null
    rm -rf wheel && mkdir wheel && cp -r python/native python/share python/data wheel
    python3 ../packaging/wheel/vendor.py wheel/native $(sed -n "s/^#define PRB_SONAME_.* \"\(.*\)\"/\1/p" config.?) | tail -n 1')
made=$root/probing/build/wheel
[ -z "${PROBING_VSIX:-}" ] || cp "$PROBING_VSIX" "$made/share/editors/probing.vsix"
PROBING_WHEEL_PLATFORM=$platform python3 python/backend.py wheel "$made/native" "$out"
