#!/bin/sh
# tests/systems.sh SUITE DIR [packages|build|short|long]: make a root folder of another Debian or Ubuntu (bullseye, bookworm, trixie, jammy,
# noble) with the packages of `bootstrap`, build this tree there without a warning, and test it there.  Needs root and debootstrap.
#   packages  nothing is built
#   build   no tests
#   short   the tests of C, `probing demo`, SQL
#   long    also stacks, values, evaluation, profiles, the debugger and crashes, of that system's Python
# The archive is that of this machine's apt sources, for Ubuntu's on another system the one that debootstrap knows, or $ARCHIVE.  The last line tells what was built with what, for tests/SYSTEMS.md.
# Status 77, with the reason, when the root cannot be made here.
set -eu
suite=${1:?usage: tests/systems.sh SUITE DIR [short|long]} dir=${2:?usage: tests/systems.sh SUITE DIR [short|long]} length=${3:-short}
cd "$(dirname "$0")/.."
mkdir -p "$(dirname "$dir")"
dir=$(cd "$(dirname "$dir")" && pwd)/$(basename "$dir")

skip() {
    echo "$suite: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "needs root"
command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null 2>&1 || skip "needs debootstrap"
case $suite in
jammy | noble) archive=${ARCHIVE:-$(sed -n 's/.*default_mirror //p' /usr/share/debootstrap/scripts/gutsy | grep -v old- | head -n 1)} ;;
*) archive=${ARCHIVE:-$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)} ;;
esac
[ -n "$archive" ] || skip "no archive: set ARCHIVE"
if [ ! -e "$dir/.ready" ]; then
    case $suite in
    jammy | noble) components='main universe' script=gutsy ;; # the script of all of Ubuntu's
    *) components=main script=sid ;;
    esac
    if ! debootstrap --variant=minbase --include=ca-certificates "$suite" "$dir" "$archive" "/usr/share/debootstrap/scripts/$script" >"$dir.log" 2>&1; then
        tail -n 3 "$dir.log"
        skip "debootstrap failed, see $dir.log"
    fi
    echo "deb $archive $suite $components" >"$dir/etc/apt/sources.list"
    touch "$dir/.ready"
fi

# in_root COMMAND: with /proc and /dev/shm of its own, and this machine's /sys (control groups); they are gone with the command.  The root is a
# mount, as that of any system: unshare(1) asks for it.
# shellcheck disable=SC2016 # the inner shell expands these
in_root() {
    unshare --mount --pid --fork sh -ec 'mount --bind "$0" "$0"; mount -t proc proc "$0/proc"; mkdir -p "$0/dev/shm" "$0/dev/pts"
        mount -t tmpfs shm "$0/dev/shm"; mount --rbind /sys "$0/sys"; mount -t devpts devpts "$0/dev/pts" -o newinstance,ptmxmode=0666; exec chroot "$0" "$@"' \
        "$dir" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# The packages that this system has of those that `bootstrap` names; what none can do without is checked by configure.
packages=$(sed -n "/^build_packages='/,/'/p" bootstrap | tr -d "'\n" | sed 's/build_packages=//')
# shellcheck disable=SC2016
in_root sh -ec 'quiet="-o Acquire::Check-Valid-Until=false -qq"
    apt-get $quiet update
    for package; do apt-cache show "$package" >/dev/null 2>&1 && set -- "$@" "$package" || echo "no $package"; shift; done
    DEBIAN_FRONTEND=noninteractive apt-get $quiet install -y --no-install-recommends "$@"' \
    packages $packages python3-pytest python3-jsonschema procps git >>"$dir.log" 2>&1 || { tail -n 5 "$dir.log"; skip "packages, see $dir.log"; }

[ "$length" != packages ] || exit 0

# The files that git knows, as they are now, and no other; a build folder of its own is kept, for which a file is new that has other bytes.
git ls-files -z | python3 -c 'import os, shutil, sys
top = sys.argv[1]
names = set(os.fsdecode(sys.stdin.buffer.read()).split("\0")) - {""}
def data(path):
    with open(path, "rb") as file:
        return file.read()
for name in names:
    copy = os.path.join(top, name)
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    if not os.path.exists(copy) or data(copy) != data(name):
        shutil.copyfile(name, copy)
    shutil.copymode(name, copy)
with open(os.path.join(top, ".names"), "a+") as last:
    last.seek(0)
    for gone in set(last.read().split("\0")) - names - {""}:
        os.path.exists(os.path.join(top, gone)) and os.unlink(os.path.join(top, gone))
    last.truncate(0)
    last.write("\0".join(names))' "$dir/probing"
began=$(date +%s)
in_root sh -ec 'cd /probing; [ -x configure ] || ./bootstrap; mkdir -p build; cd build
    [ -f Makefile ] || ../configure -q --enable-werror; make -s -j"$(nproc)"' >"$dir.build.log" 2>&1 || {
    tail -n 20 "$dir.build.log"
    exit 1
}
if grep -q 'warning:' "$dir.build.log"; then
    grep 'warning:' "$dir.build.log" | head
    exit 1
fi
built=$(date +%s)
[ "$length" != build ] || exit 0
# shellcheck disable=SC2016 # make expands it
tests='$(UNIT_TESTS) tests/cli/test_demo.py'
[ "$length" = short ] || tests="$tests tests/cli/test_output.py tests/live/test_stacks.py tests/live/test_values.py tests/live/test_tables.py
    tests/live/test_native.py tests/sample/test_profile.py tests/inject/test_eval.py tests/dap/test_breakpoints.py tests/crash/test_crash.py"
failed=0
# shellcheck disable=SC2016,SC2086
in_root sh -c 'cd /probing && exec tests/run build "$@"' run $tests >"$dir.check.log" 2>&1 || failed=1
# shellcheck disable=SC2016
told=$(in_root sh -c '. /etc/os-release; version() { dpkg-query -W -f "\${Version}" "$1" 2>/dev/null | sed "s/^[0-9]*://; s/[-+~].*//"; }
    printf "%s: gcc %s, glibc %s, autoconf %s, SQLite %s, elfutils %s, libunwind %s, libwebsockets %s, Python %s" "$PRETTY_NAME" \
    "$(gcc -dumpfullversion)" "$(version libc6-dev)" "$(version autoconf)" "$(version libsqlite3-dev)" "$(version libdw-dev)" "$(version libunwind-dev)" \
    "$(version libwebsockets-dev)" "$(python3 -c "import platform; print(platform.python_version())")"')
echo "$(date -u +%F) $told; built in $((built - began)) s; $length: $(tail -n 1 "$dir.check.log")"
[ "$failed" = 0 ] || { head -n 60 "$dir.check.log"; exit 1; }
