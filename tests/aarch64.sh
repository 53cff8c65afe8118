#!/bin/sh
# tests/aarch64.sh DIR [root|build|run COMMAND...|short|long]: an AArch64 machine of Debian in DIR, and this tree built for it and tested in it.
#   root    make what the machine starts from: DIR/root by mmdebstrap, DIR/vmlinuz, DIR/initrd, DIR/disk
#   build   and compile this tree for it, here, into DIR/build
#   run     and start it, run COMMAND in it from the top of this tree, print what it prints, and end with its status; the build folder is
#           $BUILDDIR.  What it writes to its disk is gone with it
#   short   (unless said) the tests of C but what is slow there, `probing demo`
#   long    also these, stacks, evaluation, values, profiles, the debugger, gdb and crashes
# The processor is emulated (qemu-system-aarch64, no KVM): some 20 times slower than this machine.  Needs root.  $SUITE (bookworm) says which
# Debian, $KERNEL (arm64; arm64-16k has pages of 16 KiB), $ARCHIVE where it is had (this machine's apt sources), $WHEELS a folder of
# wheels, such as PyTorch's for AArch64, that are unpacked onto its disk when that is made; $LIMIT how long one test program of `long` may take (1200 s).
# The last line tells what ran, for tests/SYSTEMS.md.  Status 77, with the reason, when there can be no such machine here.
set -eu
usage='usage: tests/aarch64.sh DIR [root|build|run COMMAND...|short|long]'
dir=${1:?$usage} what=${2:-short}
[ $# -lt 2 ] || shift
shift
cd "$(dirname "$0")/.."
top=$PWD suite=${SUITE:-bookworm} triplet=aarch64-linux-gnu
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

skip() {
    echo "aarch64: $*"
    exit 77
}

# needs COMMAND PACKAGE...: the packages are installed when there is no such command.
needs() {
    ! command -v "$1" >/dev/null || return 0
    shift
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 || skip "needs $*"
}

# log NAME COMMAND...: quietly; the end of DIR/NAME.log when it fails.
log() {
    log=$dir/$1.log
    shift
    "$@" >"$log" 2>&1 </dev/null || {
        tail -n 20 "$log"
        return 1
    }
}

# The libraries of ours that `bootstrap` names, as headers; what tests use.
packages() {
    sed -n "/^build_packages='/,/'/p" bootstrap | tr -d "'" | sed 's/build_packages=//' | tr -s ' ' '\n' | grep -e '-dev$' | tr '\n' ','
    echo '?essential,libc6-dev,mount,python3,python3-pytest,python3-jsonschema,python3-numpy,python3-pip,python3-venv,gdb,binutils,procps,busybox-static,ca-certificates,zstd,lz4,xz-utils,iproute2,'"linux-image-${KERNEL:-arm64}"
}

# Unpacked only: no program of it runs here.  What its packages would set up by scripts follows.
make_root() {
    [ ! -e "$dir/root/.ready" ] || return 0
    [ "$(id -u)" = 0 ] || skip "needs root"
    needs mmdebstrap mmdebstrap && needs cpio cpio && needs depmod kmod && needs mke2fs e2fsprogs
    archive=${ARCHIVE:-$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)}
    [ -n "$archive" ] || skip "no archive: set ARCHIVE"
    rm -rf --one-file-system "$dir/root" "$dir/disk"
    # shellcheck disable=SC2016 # mmdebstrap's shell expands it
    # An archive that is kept for a while may be past its own date.
    log root mmdebstrap --mode=root --architectures=arm64 --aptopt='Acquire::Check-Valid-Until "false"' --variant=extract --include="$(packages)" \
        --setup-hook='for one in bin sbin lib; do mkdir -p "$1/usr/$one"; ln -s "usr/$one" "$1/$one"; done' \
        "$suite" "$dir/root" "$archive" || skip "no root, see $dir/root.log"
    rm -rf "$dir"/root/usr/share/doc "$dir"/root/usr/share/locale "$dir"/root/usr/share/man "$dir"/root/var/cache/apt "$dir"/root/var/lib/apt/lists
    cp "$dir/root/usr/share/base-passwd/passwd.master" "$dir/root/etc/passwd"
    cp "$dir/root/usr/share/base-passwd/group.master" "$dir/root/etc/group"
    ln -sf mawk "$dir/root/usr/bin/awk"
    printf '/usr/lib/%s\n' $triplet/blas $triplet/lapack >"$dir/root/etc/ld.so.conf.d/alternatives.conf"
    # Absolute links lead out of a linker's root.
    find "$dir/root/usr/lib/$triplet" -type l -lname '/*' -printf '%p %l\n' | while read -r link to; do ln -sfrn "$dir/root$to" "$link"; done
    make_kernel
    touch "$dir/root/.ready"
}

# What the kernel needs to reach its disk and the folders of this machine, in the order of their dependences.
modules() {
    python3 - "$1" virtio_pci virtio_blk virtio_rng ext4 crc32c_generic 9p 9pnet_virtio tcp_diag <<'END'
import os, sys

folder, *names = sys.argv[1:]
needs = {}
for line in open(os.path.join(folder, "modules.dep")):
    path, after = line.rstrip("\n").split(":")
    needs[path] = after.split()
by_name = {os.path.basename(path).split(".ko")[0].replace("-", "_"): path for path in needs}
done = []
def add(path):
    for other in needs[path]:
        add(other)
    if path not in done:
        done.append(path)
for name in names:  # what is not there is built in
    if name in by_name:
        add(by_name[name])
print("\n".join(done))
END
}

make_kernel() {
    kernel=$(echo "$dir"/root/usr/lib/modules/*)
    cp "$dir"/root/boot/vmlinuz-* "$dir/vmlinuz" 2>/dev/null || cp "$kernel/vmlinuz" "$dir/vmlinuz"
    depmod -b "$dir/root" "${kernel##*/}"
    first=$(mktemp -d)
    mkdir "$first/bin" "$first/modules" "$first/proc" "$first/dev" "$first/root"
    cp "$dir/root/bin/busybox" "$first/bin"
    modules "$kernel" | while read -r module; do
        name=$(basename "${module%.xz}")
        case $module in
        *.xz) xz -dc "$kernel/$module" >"$first/modules/$name" ;;
        *) cp "$kernel/$module" "$first/modules/$name" ;;
        esac
        echo "/bin/busybox insmod /modules/$name" >>"$first/load"
    done
    cat >"$first/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
. /load
for try in $(/bin/busybox seq 300); do
    [ ! -e /dev/vda ] || break
    /bin/busybox sleep 0.1
done
/bin/busybox mount -t ext4 -o noatime /dev/vda /root || /bin/busybox dmesg
exec /bin/busybox switch_root -c /dev/console /root /started
END
    chmod +x "$first/init"
    (cd "$first" && find . | cpio -o -H newc --quiet) | gzip -1 >"$dir/initrd"
    rm -rf "$first" "$dir"/root/boot "$dir"/root/usr/lib/modules
}

make_disk() {
    [ ! -e "$dir/disk" ] || return 0
    cat >"$dir/root/started" <<'END'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm /job
mount -t devpts devpts /dev/pts -o newinstance,ptmxmode=0666
for folder in /dev/shm /tmp /run; do mount -t tmpfs tmp $folder; done
chmod 1777 /tmp /dev/shm
ip link set lo up 2>/dev/null || busybox ifconfig lo 127.0.0.1 up
echo 127.0.0.1 localhost probing >/etc/hosts
hostname probing
/sbin/ldconfig
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288 job /job
while read -r tag folder options; do
    mkdir -p "$folder"
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,$options $tag "$folder"
done </job/folders
setsid -w sh /job/command >/job/output 2>&1 </dev/null
echo $? >/job/status
sync
busybox poweroff -f
END
    chmod +x "$dir/root/started"
    if [ -n "${WHEELS:-}" ]; then
        packages=$(echo "$dir"/root/usr/bin/python3.*[0-9])
        packages=$dir/root/usr/local/lib/${packages##*/}/dist-packages
        mkdir -p "$packages"
        for wheel in "$WHEELS"/*.whl; do python3 -m zipfile -e "$wheel" "$packages"; done
    fi
    # 3 GB to spare: PyTorch and a debugger's symbols.
    log disk mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1 -d "$dir/root" "$dir/disk.new" "$(($(du -sm "$dir/root" | cut -f1) * 11 / 10 + 3000))M"
    mv "$dir/disk.new" "$dir/disk"
}

make_build() {
    needs $triplet-gcc gcc-$triplet libc6-dev-arm64-cross
    [ -x configure ] || log configure ./bootstrap
    mkdir -p "$dir/build"
    export PKG_CONFIG_SYSROOT_DIR="$dir/root" PKG_CONFIG_LIBDIR="$dir/root/usr/lib/$triplet/pkgconfig:$dir/root/usr/share/pkgconfig"
    cache=$(command -v ccache || true)
    # The compiler has a C library of its own, which may be older: the machine's comes before it.  Signed return addresses as Debian has them from 13 on.
    libc="--sysroot=$dir/root -B$dir/root/usr/lib/$triplet -isystem $dir/root/usr/include/$triplet -isystem $dir/root/usr/include"
    [ -f "$dir/build/Makefile" ] || (cd "$dir/build" && log configured "$top/configure" -q --host=$triplet --enable-werror PYTHON=/usr/bin/python3 \
        CC="${cache:+ccache }$triplet-gcc $libc" CFLAGS="-g -O2 -mbranch-protection=standard")
    # shellcheck disable=SC2016 # make expands it
    log made make -s -C "$dir/build" -j"$(nproc)" all && log made-tests make -s -C "$dir/build" -j"$(nproc)" check TESTS=
    if grep 'warning:' "$dir/made.log" "$dir/made-tests.log"; then return 1; fi
}

# in_machine COMMAND...: its output and status.  The machine ends with it.
in_machine() {
    needs qemu-system-aarch64 qemu-system-arm
    job=$(mktemp -d) machine=''
    trap '[ -z "$machine" ] || kill "$machine" 2>/dev/null || :; rm -rf "$job"' EXIT
    trap 'exit 130' INT TERM
    {
        echo 'export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1'
        printf "export BUILDDIR='%s' SRCDIR='%s' PROBING='%s'\ncd '%s'\n" "$dir/build" "$top" "$dir/build/.libs/probing" "$top"
        for word; do printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"; done
        echo
    } >"$job/command"
    { echo "tree $top ro,cache=loose"; echo "build $dir/build cache=mmap"; } >"$job/folders"
    : >"$job/output"
    nice -n 10 qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on -smp 2 -m 2000 -accel tcg,thread=multi -display none -monitor none \
        -serial file:"$dir/console.log" -kernel "$dir/vmlinuz" -initrd "$dir/initrd" -append 'console=ttyAMA0 loglevel=4 panic=-1' -no-reboot -nic none \
        -drive file="$dir/disk",format=raw,if=virtio,snapshot=on -device virtio-rng-pci \
        -virtfs local,path="$job",mount_tag=job,security_model=none \
        -virtfs local,path="$top",mount_tag=tree,security_model=none,readonly=on \
        -virtfs local,path="$dir/build",mount_tag=build,security_model=none &
    machine=$!
    tail -n +1 -s 0.2 -f --pid=$machine "$job/output" # ends with the machine
    wait $machine || :
    machine=''
    if [ ! -s "$job/status" ]; then
        echo "aarch64: the machine ended without a status:"
        tail -n 20 "$dir/console.log"
        return 1
    fi
    return "$(cat "$job/status")"
}

make_root
make_disk
case $what in root) exit ;; esac
make_build
case $what in
build) exit ;;
run)
    in_machine "$@"
    exit
    ;;
short | long) ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac

# What runs in the machine: programs of C as they are, the rest by Debian's pytest.
tests='' # of Python: their limits of time are for a real machine
[ "$what" = short ] || tests="tests/live/test_stacks.py tests/inject/test_eval.py tests/live/test_values.py tests/live/test_native.py tests/live/test_tables.py tests/inject/test_inject.py
    tests/sample/test_profile.py tests/dap/test_breakpoints.py tests/crash/test_crash.py tests/gdb/test_commands.py"
# shellcheck disable=SC2016 # make expands it
units=$(make -s -C "$dir/build" --eval='print: ; @echo $(UNIT_TESTS)' print)
# What takes minutes there, or measures time.
long='tests/unit/proc tests/unit/core tests/unit/hide tests/unit/profile tests/unit/ring_hostile tests/unit/fleet_sql'
[ "$what" = long ] || units=$(echo "$units" | tr ' ' '\n' | grep -v -x -F "$(echo "$long" | tr ' ' '\n')" | tr '\n' ' ')
began=$(date +%s)
# shellcheck disable=SC2016 # the machine's shell expands these
in_machine sh -c 'for unit in $1; do echo "== $unit"; timeout 900 "$BUILDDIR/$unit" || echo "== $unit ended with $?"; done
    echo "== probing demo"; if timeout 900 "$PROBING" demo; then echo "[       OK ] demo"; else echo "== probing demo ended with $?"; fi
    for test in $2; do echo "== $test"; timeout "$3" python3 -m pytest -q -p no:cacheprovider -r fEs "$test" || echo "== $test ended with $?"; done
    . /etc/os-release; echo "on: $PRETTY_NAME, Linux $(uname -r), $(python3 --version)"' run "$units" "$tests" "${LIMIT:-1200}" >"$dir/check.log" 2>&1 || :
# passed, failed, skipped: cases of cmocka and pytest; a program that ended badly without a failed case is one.
counts=$(awk '/^== .* ended with/ { ended++ }
    /^\[ +OK \]/ { passed++ }
    /^\[ +FAILED +\] [A-Za-z_0-9]+$/ { if (!($0 in seen)) failed++; seen[$0] = 1 }
    /^\[ +SKIPPED +\] [A-Za-z_0-9]+$/ { if (!($0 in seen)) skipped++; seen[$0] = 1 }
    / in [0-9.]+s/ {
        n = split($0, word, /[ ,=]+/)
        for (i = 2; i <= n; i++) {
            if (word[i] == "passed") passed += word[i - 1]
            if (word[i] ~ /^(failed|errors?)$/) failed += word[i - 1]
            if (word[i] == "skipped") skipped += word[i - 1]
        }
    }
    END { print passed + 0, (failed > ended ? failed : ended) + 0, skipped + 0 }' "$dir/check.log")
[ -z "${PROBING_COUNTS:-}" ] || echo "$counts" >>"$PROBING_COUNTS"
# shellcheck disable=SC2086
set -- $counts
system=$(sed -n 's/^on: //p' "$dir/check.log")
grep -E '^(FAILED|ERROR|\[ +FAILED +\] [a-z]|== .* ended with)' "$dir/check.log" | head -n 40 || :
echo "$(date -u +%F) ${system:-no machine: $(tail -n 1 "$dir/check.log")}, emulated; $1 passed, $2 failed, $3 skipped ($what) in $((($(date +%s) - began) / 60)) minutes"
[ -n "$system" ] && [ "$2" = 0 ]
