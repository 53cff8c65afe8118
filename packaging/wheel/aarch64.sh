#!/bin/sh
# packaging/wheel/aarch64.sh OUT [FOLDER]: the wheel for AArch64, in the folder OUT, compiled here by Debian's cross compiler.
# FOLDER (build/roots/bullseye-arm64), which stays, has the headers and libraries of Debian 11 for arm64, none of whose programs runs, so that
# the wheel asks for no newer C library than that.  qemu-user runs one program of ours, which prints its own man page and completions.
# Needs root and mmdebstrap.  libnats is not in this wheel: Debian 11 has no package of it.  The last line is the wheel's path.
set -eu
out=${1:?usage: packaging/wheel/aarch64.sh OUT [FOLDER]}
cd "$(dirname "$0")/../.."
top=$PWD triplet=aarch64-linux-gnu folder=${2:-$PWD/build/roots/bullseye-arm64}
mkdir -p "$out" "$folder"
out=$(cd "$out" && pwd) folder=$(cd "$folder" && pwd)
root=$folder/root build=$folder/build

fail() {
    echo "aarch64: $*" >&2
    exit 1
}

# log NAME COMMAND...: quietly; the end of FOLDER/NAME.log when it fails.
log() {
    log=$folder/$1.log
    shift
    "$@" >"$log" 2>&1 </dev/null || {
        tail -n 20 "$log" >&2
        exit 1
    }
}

for one in mmdebstrap:mmdebstrap $triplet-gcc:gcc-$triplet qemu-aarch64:qemu-user patchelf:patchelf; do
    command -v "${one%:*}" >/dev/null || apt-get install -y -qq --no-install-recommends "${one#*:}" >/dev/null 2>&1 || fail "needs ${one#*:}"
done

# dpkg's lists of what was unpacked, which vendor.py asks for versions and licences.
note_packages() {
    cat <<'END_OF_HOOK'
lists="$1/var/lib/dpkg"
mkdir -p "$lists/info" && echo 1 >"$lists/info/format" && : >"$lists/status"
for deb in "$1"/var/cache/apt/archives/*.deb; do
    { dpkg-deb -f "$deb" && printf 'Status: install ok unpacked\n\n'; } >>"$lists/status"
    name=$(dpkg-deb -f "$deb" Package)
    [ "$(dpkg-deb -f "$deb" Multi-Arch)" != same ] || name=$name:$(dpkg-deb -f "$deb" Architecture)
    dpkg-deb --fsys-tarfile "$deb" | tar t | sed 's/^\.//; s/\(.\)\/$/\1/; s/^\/*$/\/./' >"$lists/info/$name.list"
done
END_OF_HOOK
}

if [ ! -e "$folder/.ready" ]; then
    archive=${ARCHIVE:-$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)}
    [ -n "$archive" ] || fail "no archive: set ARCHIVE"
    rm -rf --one-file-system "$root"
    headers=$(sed -n "/^build_packages='/,/'/p" bootstrap | tr -d "'" | sed 's/build_packages=//' | tr -s ' ' '\n' | grep -e '-dev$' | grep -v -e nats -e cmocka | tr '\n' ',')
    note_packages >"$folder/note_packages"
    # shellcheck disable=SC2016 # mmdebstrap's shell expands it
    log root mmdebstrap --mode=root --architectures=arm64 --aptopt='Acquire::Check-Valid-Until "false"' --variant=extract --include="$headers" \
        --setup-hook='for one in bin sbin lib; do mkdir -p "$1/usr/$one"; ln -s "usr/$one" "$1/$one"; done' \
        --extract-hook="sh -eu $folder/note_packages \"\$1\"" bullseye "$root" "$archive"
    # Absolute links lead out of a linker's root.
    find "$root/usr/lib/$triplet" -type l -lname '/*' -printf '%p %l\n' | while read -r link to; do ln -sfrn "$root$to" "$link"; done
    touch "$folder/.ready"
fi

[ -x configure ] || log bootstrap ./bootstrap
export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig"
cache=$(command -v ccache || true)
# The compiler has a C library of its own, which is newer: the other one comes before it.
libc="--sysroot=$root -B$root/usr/lib/$triplet -isystem $root/usr/include/$triplet -isystem $root/usr/include"
grep -q -s -x "abs_top_srcdir = $top" "$build/Makefile" || rm -rf "$build"
mkdir -p "$build"
cd "$build"
[ -f Makefile ] || log configured "$top/configure" -q --host=$triplet --disable-dependency-tracking RUN_HOST="qemu-aarch64 -L $root" \
    CC="${cache:+ccache }$triplet-gcc $libc" CFLAGS="-g -O2 -mbranch-protection=standard -ffile-prefix-map=$root= -ffile-prefix-map=$top=. -ffile-prefix-map=$build=."
log made make -s -j"$(nproc)" all
log staged make -s python-native python-share # after the first: two targets of one make would each make what they need
rm -rf wheel && mkdir wheel && cp -r python/native python/share python/data wheel
# shellcheck disable=SC2046 # names without blanks
platform=$(python3 "$top/packaging/wheel/vendor.py" --root "$root" aarch64 wheel/native $(sed -n 's/^#define PRB_SONAME_.* "\(.*\)"/\1/p' config.?))
! command -v npm >/dev/null || log vsix "$top/editors/vscode/build.sh" "$build/wheel/share/editors/probing.vsix"
rm -rf wheel/share/editors/vsix.dir
PROBING_WHEEL_PLATFORM=$platform python3 "$top/python/backend.py" wheel wheel/native "$out"
