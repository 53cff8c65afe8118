#!/bin/sh
# tests/newer-pythons.sh DIR: make a root folder with newer CPythons than the machine has (Debian's 3.13, 3.14, 3.15),
# for tests that look into another root, and with a newer gdb and two debug clients, Emacs with dape and Helix.  Needs root, debootstrap and a
# Debian archive, whose address is taken from this machine's own apt sources.  About 50 s and 1 GB; a second run does nothing.
# Status 77, with the reason, when it cannot be made here.
set -eu
dir=${1:?usage: tests/newer-pythons.sh DIR}
suite=${SUITE:-sid}

skip() {
    echo "newer pythons: $*"
    exit 77
}

[ ! -e "$dir/.ready" ] || [ ! -e "$dir/.clients" ] || [ ! -e "$dir/usr/bin/gdb" ] || exit 0
[ "$(id -u)" = 0 ] || skip "needs root"
command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null 2>&1 || skip "needs debootstrap"
[ "$(. /etc/os-release && echo "$ID")" = debian ] || skip "the apt sources of this machine are not Debian's"
archive=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
[ -n "$archive" ] || archive=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) { print $i; exit } }' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null)
[ -n "$archive" ] || skip "no archive in the apt sources"
if [ ! -e "$dir/.ready" ]; then
    # with headers, from which tests/layout prints the layouts again
    packages=python3.13,python3.14,python3.15,libpython3.13-dev,libpython3.14-dev,libpython3.15-dev
    mkdir -p "$(dirname "$dir")"
    if ! debootstrap --variant=minbase --include="$packages" "$suite" "$dir" "$archive" >"$dir.log" 2>&1; then
        tail -n 5 "$dir.log"
        skip "debootstrap failed, see $dir.log"
    fi
    touch "$dir/.ready"
fi
# An archive that is kept for a while may be past its own date.
if ! chroot "$dir" sh -ec 'quiet="-o Acquire::Check-Valid-Until=false -qq"
    apt-get $quiet update
    DEBIAN_FRONTEND=noninteractive apt-get $quiet install -y --no-install-recommends gdb emacs-nox elpa-dape hx' >>"$dir.log" 2>&1; then
    tail -n 5 "$dir.log"
    skip "gdb, Emacs and Helix could not be installed, see $dir.log"
fi
touch "$dir/.clients"
